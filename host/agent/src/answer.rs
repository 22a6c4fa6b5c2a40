//! Asking the model for one answer: its stream, and further attempts where the stream fails or the
//! request did not fit.
//!
//! It shows what comes in as it comes in. What stays of it is decided when the stream is over.

use crate::{
    collector::Collector,
    driver::{Driver, full_name},
    panics,
    stop::Stop,
};
use belljar_types::{
    EventKind, FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Record,
    ToolCall, Usage,
};
use futures::StreamExt;
use std::{panic::AssertUnwindSafe, time::Duration};

/// What the model said in one round.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Nothing where it said nothing that belongs in the conversation.
    pub(crate) message: Option<belljar_types::AssistantMessage>,
    pub(crate) finish: FinishReason,
}

/// Why a stream ended before its answer did.
#[derive(Debug)]
enum Broken {
    Canceled,
    Model(ModelError),
}

impl Driver {
    /// Asks until there is an answer or no attempt is left.
    pub(crate) async fn ask(&mut self, model: &dyn Model) -> Result<Answer, Stop> {
        let reminders = std::mem::take(&mut self.reminders);
        self.room.begin_round();
        let mut request = self.make_request(model, &reminders).await?;
        let mut schedule = self.agent.settings.model_retry.schedule();
        loop {
            let mut collector = Collector::default();
            let listened = self.listen(model, request.clone(), &mut collector).await;
            self.book_usage(collector.usage()).await?;
            let error = match listened {
                Ok(finish) => return Ok(answer(collector, full_name(model), finish)),
                Err(Broken::Canceled) => {
                    self.keep_shown(collector, model).await?;
                    return Err(Stop::canceled());
                }
                Err(Broken::Model(error)) => error,
            };
            if error.kind == ModelErrorKind::ContextOverflow {
                match self.make_room(model, &request).await {
                    Ok(Some(attempt)) => {
                        self.tell_retry(attempt, Duration::ZERO, error.message).await;
                        request = self.make_request(model, &reminders).await?;
                        continue;
                    }
                    made => {
                        self.keep_shown(collector, model).await?;
                        return Err(made.err().unwrap_or_else(|| Stop::model(&error, None)));
                    }
                }
            }
            let next = if error.kind.is_retryable() {
                schedule.failed(error.retry_after).map_err(Some)
            } else {
                Err(None)
            };
            let (attempt, delay) = match next {
                Ok(next) => next,
                Err(gave_up) => {
                    self.keep_shown(collector, model).await?;
                    return Err(Stop::model(&error, gave_up));
                }
            };
            self.tell_retry(attempt, delay, error.message).await;
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Stop::canceled()),
                () = tokio::time::sleep(delay) => {}
            }
        }
    }

    /// Tells that the model is asked again: what this round has shown is void.
    async fn tell_retry(&mut self, attempt: u32, delay: Duration, reason: String) {
        let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let what = "model".to_owned();
        self.events.emit(EventKind::Retry { what, attempt, delay_ms, reason }).await;
    }

    /// Reads one stream to its end.
    async fn listen(
        &mut self,
        model: &dyn Model,
        request: ModelRequest,
        collector: &mut Collector,
    ) -> Result<FinishReason, Broken> {
        let stream = panics::catch(|| model.stream(request))
            .map_err(|panic| Broken::Model(panic_error(&panic)))?;
        let mut stream = AssertUnwindSafe(stream).catch_unwind();
        loop {
            let next = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Broken::Canceled),
                next = stream.next() => next,
            };
            let event = match next {
                Some(Ok(Ok(event))) => event,
                Some(Ok(Err(error))) => return Err(Broken::Model(error)),
                Some(Err(panic)) => {
                    return Err(Broken::Model(panic_error(&panics::message(panic.as_ref()))));
                }
                None => return Err(Broken::Model(ended_early())),
            };
            match event {
                ModelEvent::Text(text) if text.is_empty() => {}
                ModelEvent::Text(text) => {
                    collector.text(&text);
                    self.events.emit(EventKind::TextDelta { text }).await;
                }
                ModelEvent::ReasoningDelta(text) if text.is_empty() => {}
                ModelEvent::ReasoningDelta(text) => {
                    self.events.emit(EventKind::ReasoningDelta { text }).await;
                }
                ModelEvent::Reasoning(reasoning) => collector.reasoning(reasoning),
                ModelEvent::ToolCall(call) => {
                    self.check_id(&call, collector)?;
                    collector.call(call);
                }
                ModelEvent::Usage(later) => {
                    collector.update_usage(later);
                    let usage = collector.usage();
                    let mut total = self.usage;
                    total.add(usage);
                    self.events.emit(EventKind::Usage { usage, total }).await;
                }
                ModelEvent::Done(finish) => return Ok(finish),
            }
        }
    }

    /// A second call of the same id would make the conversation one that no provider takes.
    fn check_id(&self, call: &ToolCall, collector: &Collector) -> Result<(), Broken> {
        if self.call_ids.contains(&call.id) || collector.has_call(&call.id) {
            return Err(Broken::Model(ModelError::new(
                ModelErrorKind::Protocol,
                format!("the model's answer uses the call id `{}` again", call.id),
            )));
        }
        Ok(())
    }

    /// Adds the final figures of a stream, failed ones too: they were paid for.
    pub(crate) async fn book_usage(&mut self, usage: Usage) -> Result<(), Stop> {
        if usage != Usage::default() {
            self.usage.add(usage);
            self.session.append(Record::Usage { usage }).await?;
        }
        Ok(())
    }

    /// Keeps the text of an answer that broke off. Its calls never ran and are left out.
    async fn keep_shown(&mut self, collector: Collector, model: &dyn Model) -> Result<(), Stop> {
        match collector.text_only(full_name(model), /* cut */ true) {
            Some(message) => self.append_answer(message, FinishReason::Stop).await,
            None => Ok(()),
        }
    }
}

/// Reads a stream to its end without showing it, and keeps its text.
pub(crate) async fn read_quietly(
    model: &dyn Model,
    request: ModelRequest,
) -> (Result<String, ModelError>, Usage) {
    let mut usage = Usage::default();
    let read = async {
        let stream =
            panics::catch(|| model.stream(request)).map_err(|panic| panic_error(&panic))?;
        let mut stream = AssertUnwindSafe(stream).catch_unwind();
        let mut said = String::new();
        loop {
            match stream.next().await {
                Some(Ok(Ok(ModelEvent::Text(text)))) => said.push_str(&text),
                Some(Ok(Ok(ModelEvent::Usage(later)))) => usage.update(later),
                Some(Ok(Ok(ModelEvent::Done(FinishReason::Stop)))) => return Ok(said),
                Some(Ok(Ok(ModelEvent::Done(_)))) => {
                    let message = "the model did not finish its answer";
                    return Err(ModelError::new(ModelErrorKind::Cut, message));
                }
                Some(Ok(Ok(_))) => {}
                Some(Ok(Err(error))) => return Err(error),
                Some(Err(panic)) => return Err(panic_error(&panics::message(panic.as_ref()))),
                None => return Err(ended_early()),
            }
        }
    };
    let read = read.await;
    (read, usage)
}

fn answer(collector: Collector, model: String, finish: FinishReason) -> Answer {
    let message = match finish {
        FinishReason::Stop => collector.answer(model, /* cut */ false),
        FinishReason::Length => collector.answer(model, /* cut */ true),
        // The turn goes on unchanged, so its reasoning must be there.
        FinishReason::Pause => collector.whole(model, /* cut */ false),
        FinishReason::Refused => collector.text_only(model, /* cut */ false),
    };
    Answer { message, finish }
}

fn panic_error(message: &str) -> ModelError {
    ModelError::new(
        ModelErrorKind::Protocol,
        format!("reading the model's answer panicked, which is a bug: {message}"),
    )
}

fn ended_early() -> ModelError {
    ModelError::new(ModelErrorKind::Cut, "the model's stream ended before its answer did")
}
