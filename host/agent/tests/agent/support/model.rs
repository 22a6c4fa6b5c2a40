//! A model that plays turns, one for each request.

use belljar_types::{
    Arguments, FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
    ModelStream, Reasoning, ToolCall, Usage,
};
use futures::{StreamExt, stream};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

pub(crate) type Turn = Vec<Step>;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Event(ModelEvent),
    Error(ModelError),
    Wait(Duration),
    Panic,
}

pub(crate) fn text(text: &str) -> Step {
    Step::Event(ModelEvent::Text(text.to_owned()))
}

pub(crate) fn reasoning(text: &str) -> Step {
    Step::Event(ModelEvent::Reasoning(Reasoning {
        text: text.to_owned(),
        signature: Some("sig".to_owned()),
        data: None,
    }))
}

/// A call with its arguments as the text that the model sent.
pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> Step {
    Step::Event(ModelEvent::ToolCall(ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: Arguments::parse(arguments),
    }))
}

pub(crate) fn usage(input: u64, output: u64) -> Step {
    Step::Event(ModelEvent::Usage(Usage {
        input_tokens: (input > 0).then_some(input),
        output_tokens: (output > 0).then_some(output),
        cached_tokens: None,
    }))
}

pub(crate) fn finish(reason: FinishReason) -> Step {
    Step::Event(ModelEvent::Done(reason))
}

pub(crate) fn done() -> Step {
    finish(FinishReason::Stop)
}

pub(crate) fn fails(kind: ModelErrorKind) -> Step {
    Step::Error(ModelError::new(kind, format!("the server says {}", kind.name())))
}

pub(crate) fn fails_after(kind: ModelErrorKind, seconds: u64) -> Step {
    Step::Error(ModelError {
        retry_after: Some(Duration::from_secs(seconds)),
        ..ModelError::new(kind, format!("the server says {}", kind.name()))
    })
}

#[derive(Debug, Default)]
pub(crate) struct ScriptedModel {
    turns: Mutex<VecDeque<Turn>>,
    requests: Mutex<Vec<ModelRequest>>,
    yielded: Arc<AtomicUsize>,
    window: Option<u64>,
}

impl ScriptedModel {
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        Self { turns: Mutex::new(turns.into()), ..Self::default() }
    }

    pub(crate) fn with_window(self, tokens: u64) -> Self {
        Self { window: Some(tokens), ..self }
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// How many steps were taken from it.
    pub(crate) fn yielded(&self) -> usize {
        self.yielded.load(Ordering::SeqCst)
    }
}

impl Model for ScriptedModel {
    fn name(&self) -> &str {
        "m"
    }

    fn provider(&self) -> &str {
        "p"
    }

    fn context_window(&self) -> Option<u64> {
        self.window
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(request);
        let turn = self
            .turns
            .lock()
            .unwrap()
            .pop_front()
            .unwrap_or_else(|| vec![text("the script is over"), done()]);
        let yielded = self.yielded.clone();
        stream::iter(turn)
            .filter_map(move |step| {
                yielded.fetch_add(1, Ordering::SeqCst);
                async move {
                    match step {
                        Step::Event(event) => Some(Ok(event)),
                        Step::Error(error) => Some(Err(error)),
                        Step::Wait(time) => {
                            tokio::time::sleep(time).await;
                            None
                        }
                        Step::Panic => panic!("the model is broken"),
                    }
                }
            })
            .boxed()
    }
}
