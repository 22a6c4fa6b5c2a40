//! Scripted parts for the loop, and a stage on which they play together.

mod approver;
mod journal;
mod model;
mod render;
mod toolbox;

pub(crate) use approver::{Asked, ScriptedApprover};
pub(crate) use journal::MemoryJournal;
pub(crate) use model::{
    ScriptedModel, Step, Turn, call, done, fails, fails_after, finish, reasoning, text, usage,
};
pub(crate) use render::{check_stream, conversation_lines, lines, record_lines};
pub(crate) use toolbox::ScriptedToolbox;

use belljar_agent::{Agent, Finished, Jitter, RetryPolicy, Run, RunRequest, Settings, start};
use belljar_types::{Event, Origin, Part};
use futures::StreamExt;
use std::sync::Arc;

/// An agent of scripted parts and what it is asked to do.
pub(crate) struct Stage {
    pub(crate) model: Arc<ScriptedModel>,
    pub(crate) toolbox: Arc<ScriptedToolbox>,
    pub(crate) approver: Arc<ScriptedApprover>,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) settings: Settings,
    pub(crate) request: RunRequest,
}

/// What a run on the stage showed and left behind.
pub(crate) struct Played {
    pub(crate) events: Vec<Event>,
    pub(crate) finished: Finished,
}

impl Stage {
    pub(crate) fn new(turns: Vec<Turn>) -> Self {
        Self {
            model: Arc::new(ScriptedModel::new(turns)),
            toolbox: Arc::new(ScriptedToolbox::default()),
            approver: Arc::new(ScriptedApprover::default()),
            journal: Arc::new(MemoryJournal::default()),
            settings: Settings {
                model_retry: RetryPolicy { jitter: Jitter::Off, ..RetryPolicy::for_models() },
                tool_retry: RetryPolicy { jitter: Jitter::Off, ..RetryPolicy::for_tools() },
                ..Settings::default()
            },
            request: RunRequest {
                workspace: "demo".to_owned(),
                ..RunRequest::new(vec![Part::text("go", Origin::Person)])
            },
        }
    }

    pub(crate) fn asked(mut self, answers: Vec<Asked>) -> Self {
        self.approver = Arc::new(ScriptedApprover::new(answers));
        self
    }

    pub(crate) fn tools(mut self, names: &[&str]) -> Self {
        self.toolbox = Arc::new(ScriptedToolbox::with_tools(names));
        self
    }

    /// A model of that window, which plays these turns.
    pub(crate) fn window(mut self, tokens: u64, turns: Vec<Turn>) -> Self {
        self.model = Arc::new(ScriptedModel::new(turns).with_window(tokens));
        self
    }

    pub(crate) fn request(mut self, change: impl FnOnce(&mut RunRequest)) -> Self {
        change(&mut self.request);
        self
    }

    pub(crate) fn journal(mut self, journal: MemoryJournal) -> Self {
        self.journal = Arc::new(journal);
        self
    }

    pub(crate) fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    pub(crate) fn agent(&self) -> Agent {
        Agent {
            model: Some(self.model.clone()),
            toolbox: self.toolbox.clone(),
            approver: self.approver.clone(),
            journal: self.journal.clone(),
            settings: self.settings.clone(),
        }
    }

    pub(crate) fn start(&self) -> Run {
        start(self.agent(), self.request.clone())
    }

    /// Plays to the end with a reader that is always ready.
    pub(crate) async fn play(&self) -> Played {
        read(self.start(), |_, _| {}).await
    }

    /// Plays to the end and compares the whole event list.
    pub(crate) async fn expect(&self, expected: &[&str]) -> Played {
        let played = self.play().await;
        assert_eq!(lines(&played.events), expected);
        played
    }
}

/// Reads a run to its end, calling `each` with the run after every event, and checks what holds
/// for every stream.
pub(crate) async fn read(mut run: Run, mut each: impl FnMut(&Run, &Event)) -> Played {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        each(&run, &event);
        events.push(event);
    }
    let finished = run.finish().await.unwrap();
    check_stream(&events);
    assert_eq!(finished.conversation.check(), Ok(()));
    Played { events, finished }
}
