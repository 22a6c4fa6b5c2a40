//! Running the calls of one answer, one after the other in call order: announce, prepare, ask,
//! record, run, and exactly one result for each.
//!
//! Whatever comes of a call is a result that the model reads. Only a cancel or a session that
//! cannot be written ends the run from here.

use crate::{driver::Driver, panics, stop::Stop};
use belljar_types::{
    Action, ApprovalAnswer, ApprovalQuestion, Arguments, CallReport, CallUpdate, EventKind,
    Message, Origin, PreparedCall, Receipt, Record, StopReason, ToolCall, ToolError, ToolErrorKind,
    ToolMessage, ToolResult,
};
use serde_json::Map;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// How many updates of a running call may wait for the reader; further ones are left out and
/// counted, since the guest's thread cannot wait.
const WAITING_UPDATES: usize = 64;

/// A call without a result.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// Whether it is the last one of an answer that was cut by the model's length limit.
    cut_by_length: bool,
    /// Whether the reader knows of it.
    announced: bool,
    progress: Progress,
}

/// How far a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    NotStarted,
    Started,
    /// Started in a world in which nothing can be changed.
    StartedReadOnly,
}

impl OpenCall {
    pub(crate) fn new(call: ToolCall, cut_by_length: bool) -> Self {
        Self { call, cut_by_length, announced: false, progress: Progress::NotStarted }
    }
}

/// What a person made of a call.
enum Permission {
    /// To be run with this answer; none where nobody was asked.
    Run(Option<ApprovalAnswer>),
    /// Not to be run; the toolbox words the refusal.
    Refused(Option<ApprovalAnswer>),
    /// Refused before, with what the model reads.
    RefusedBefore(String),
}

impl Driver {
    /// Runs the open calls.
    pub(crate) async fn run_calls(&mut self) -> Result<(), Stop> {
        while let Some(open) = self.open.front() {
            self.check_cancel()?;
            let (call, cut) = (open.call.clone(), open.cut_by_length);
            self.run_call(&call, cut).await?;
        }
        Ok(())
    }

    /// Gives every open call a result that says how the run ended over it.
    ///
    /// # Errors
    ///
    /// A result could not be written to the session; they are all in the conversation all the
    /// same.
    pub(crate) async fn settle_open_calls(&mut self, reason: StopReason) -> Result<(), Stop> {
        let mut settled = Ok(());
        while let Some(open) = self.open.front() {
            let result = interrupted(&open.call, cause(reason), open.progress);
            let plugin = self.plugin_of(&result.tool);
            self.announce(plugin).await;
            if let Err(stop) = self.finish_call(result, None).await {
                settled = Err(stop);
            }
        }
        settled
    }

    async fn run_call(&mut self, call: &ToolCall, cut_by_length: bool) -> Result<(), Stop> {
        let toolbox = self.agent.toolbox.clone();
        let prepared = panics::catch(|| toolbox.prepare(call)).unwrap_or_else(|panic| {
            let message = format!("preparing the call panicked, which is a bug: {panic}");
            Err(ToolError::new(ToolErrorKind::Trap, message))
        });
        let plugin = match &prepared {
            Ok(prepared) => Some(prepared.definition().source.plugin.clone()),
            Err(_) => self.plugin_of(&call.tool),
        };
        match &prepared {
            Err(error) if error.kind == ToolErrorKind::UnknownTool => {
                self.unknown.unknown(&call.tool);
            }
            _ => self.unknown.known(),
        }
        self.announce(plugin).await;
        let prepared = match check_arguments(prepared, call, cut_by_length) {
            Ok(prepared) => prepared,
            Err(error) => return self.finish_call(by_host(call, error), None).await,
        };
        let answer = match self.permission(prepared.as_ref(), call).await? {
            Permission::Run(answer) => {
                self.check_cancel()?;
                self.session.append(Record::CallStarted { call_id: call.id.clone() }).await?;
                self.mark_started(prepared.definition().hints.read_only);
                answer
            }
            Permission::Refused(answer) => answer,
            Permission::RefusedBefore(message) => {
                let error = ToolError::new(ToolErrorKind::Denied, message);
                return self.finish_call(by_host(call, error), None).await;
            }
        };
        let report = self.run_prepared(prepared, call, answer).await?;
        let CallReport { outcome, origin, receipt } = report;
        let result =
            ToolResult { call_id: call.id.clone(), tool: call.tool.clone(), outcome, origin };
        self.finish_call(result, receipt).await
    }

    /// Asks where the decision is to ask.
    async fn permission(
        &mut self,
        prepared: &dyn PreparedCall,
        call: &ToolCall,
    ) -> Result<Permission, Stop> {
        match prepared.decision().action {
            Action::Allow => return Ok(Permission::Run(None)),
            Action::Deny => return Ok(Permission::Refused(None)),
            Action::Ask => {}
        }
        let tool = prepared.definition().name.clone();
        let none = Map::new();
        let arguments = match &call.arguments {
            Arguments::Object(map) => map,
            Arguments::Text(_) => &none,
        };
        if let Some(message) = self.refusals.repeated(&tool, arguments) {
            return Ok(Permission::RefusedBefore(message));
        }
        let answer = self.ask_person(prepared, call).await?;
        match &answer {
            Some(ApprovalAnswer::No) => self.refusals.remember(&tool, arguments, None),
            Some(ApprovalAnswer::NoBecause(reason)) => {
                self.refusals.remember(&tool, arguments, Some(reason.clone()));
            }
            _ => {}
        }
        if answer.as_ref().is_some_and(ApprovalAnswer::is_yes) {
            Ok(Permission::Run(answer))
        } else {
            Ok(Permission::Refused(answer))
        }
    }

    async fn ask_person(
        &mut self,
        prepared: &dyn PreparedCall,
        call: &ToolCall,
    ) -> Result<Option<ApprovalAnswer>, Stop> {
        let definition = prepared.definition();
        let question = ApprovalQuestion {
            call: call.clone(),
            source: definition.source.clone(),
            hints: definition.hints,
            question: prepared.question(),
        };
        self.events
            .emit(EventKind::Approval {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                question: question.question.text.clone(),
                options: question.question.options(),
            })
            .await;
        let approver = self.agent.approver.clone();
        let asked = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::canceled()),
            asked = panics::catch_async(approver.ask(&question)) => asked,
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(panic) => {
                let message = format!("asking for approval panicked, which is a bug: {panic}");
                self.events.emit(EventKind::Notice { message }).await;
                None
            }
        };
        // Nobody there to ask: the mode's own answer is no.
        let (name, by) = answer.as_ref().map_or(("no", "mode"), |answer| (answer.name(), "person"));
        self.events
            .emit(EventKind::ApprovalAnswer {
                call_id: call.id.clone(),
                answer: name.to_owned(),
                by: by.to_owned(),
            })
            .await;
        Ok(answer)
    }

    /// Runs a call in a task of its own, so that it goes on while the reader is slow and a panic
    /// in it stays there.
    async fn run_prepared(
        &mut self,
        prepared: Box<dyn PreparedCall>,
        call: &ToolCall,
        answer: Option<ApprovalAnswer>,
    ) -> Result<CallReport, Stop> {
        let (sender, mut updates) = mpsc::channel(WAITING_UPDATES);
        let left_out = Arc::new(AtomicU32::new(0));
        let counter = left_out.clone();
        let observer = Arc::new(move |update: CallUpdate| {
            if sender.try_send(update).is_err() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        let running = prepared.run(answer, observer, self.cancel.child_token());
        let mut task = AbortOnDropHandle::new(tokio::spawn(running));
        let joined = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    let grace = self.agent.settings.cancel_grace;
                    break tokio::time::timeout(grace, &mut task).await.ok();
                }
                Some(update) = updates.recv() => self.show(call, update).await,
                joined = &mut task => break Some(joined),
            }
        };
        if self.cancel.is_cancelled() {
            return self.report_after_cancel(joined.and_then(Result::ok), call);
        }
        while let Ok(update) = updates.try_recv() {
            self.show(call, update).await;
        }
        let left_out = left_out.load(Ordering::Relaxed);
        if left_out > 0 {
            let message =
                format!("{left_out} updates of `{}` came too fast and were left out", call.tool);
            self.events.emit(EventKind::Notice { message }).await;
        }
        match joined {
            Some(Ok(report)) => Ok(report),
            Some(Err(error)) => Ok(broken_report(call, error)),
            None => Err(Stop::canceled()),
        }
    }

    /// What a call reported counts also after a cancel, unless all it says is that it was
    /// cancelled: that is told in the run's own words, when the open calls are settled.
    fn report_after_cancel(
        &self,
        report: Option<CallReport>,
        call: &ToolCall,
    ) -> Result<CallReport, Stop> {
        let mut report = report.ok_or_else(Stop::canceled)?;
        let canceled =
            matches!(&report.outcome, Err(error) if error.kind == ToolErrorKind::Canceled);
        if canceled {
            // Without a receipt it was still waiting for a place to run in.
            let progress = match (self.open.front(), &report.receipt) {
                (Some(open), Some(_)) => open.progress,
                _ => Progress::NotStarted,
            };
            let result = interrupted(call, cause(StopReason::Canceled), progress);
            report = CallReport { outcome: result.outcome, origin: result.origin, ..report };
        }
        Ok(report)
    }

    async fn show(&mut self, call: &ToolCall, update: CallUpdate) {
        let call_id = call.id.clone();
        let kind = match update {
            CallUpdate::Progress { done, total, message } => {
                EventKind::ToolProgress { call_id, done, total, message }
            }
            CallUpdate::Output { text } => EventKind::ToolOutput { call_id, text },
        };
        self.events.emit(kind).await;
    }

    /// Tells the reader of the first open call, once.
    async fn announce(&mut self, plugin: Option<Arc<str>>) {
        if let Some(open) = self.open.front_mut()
            && !open.announced
        {
            open.announced = true;
            self.events.emit(EventKind::call_start(&open.call, plugin)).await;
        }
    }

    fn mark_started(&mut self, read_only: bool) {
        if let Some(open) = self.open.front_mut() {
            open.progress = if read_only { Progress::StartedReadOnly } else { Progress::Started };
        }
    }

    /// Closes the first open call with its result: in the session, in the conversation, and for
    /// the reader.
    async fn finish_call(
        &mut self,
        result: ToolResult,
        receipt: Option<Receipt>,
    ) -> Result<(), Stop> {
        let call_id = result.call_id.clone();
        self.denials.note(&result);
        let message = Arc::new(Message::Tool(ToolMessage { result: result.clone() }));
        let written = self.session.append(Record::Message { message: message.clone() }).await;
        // Also where it could not be written: the conversation and the reader's picture of it
        // stay whole.
        self.conversation.push(message);
        self.open.pop_front();
        self.events.emit(EventKind::ToolResult(result)).await;
        let record = Record::CallDone { call_id: call_id.clone(), receipt: receipt.clone() };
        let written = match written {
            Ok(()) => self.session.append(record).await,
            Err(error) => Err(error),
        };
        self.events.emit(EventKind::ToolCallDone { call_id, receipt }).await;
        Ok(written?)
    }

    fn plugin_of(&self, tool: &str) -> Option<Arc<str>> {
        let tools = panics::catch(|| self.agent.toolbox.tools()).ok()?;
        tools
            .iter()
            .find(|definition| definition.name.as_ref() == tool)
            .map(|definition| definition.source.plugin.clone())
    }
}

/// The result of a call that the run ended over.
pub(crate) fn interrupted(call: &ToolCall, cause: &str, progress: Progress) -> ToolResult {
    let message = match progress {
        Progress::NotStarted => format!("{cause} before the call ran"),
        Progress::Started => {
            format!("{cause} while the call ran; it may have taken effect")
        }
        Progress::StartedReadOnly => {
            format!("{cause} while the call ran; it only reads, so nothing was changed")
        }
    };
    by_host(call, ToolError::new(ToolErrorKind::Canceled, message))
}

/// A result in the host's own words.
fn by_host(call: &ToolCall, error: ToolError) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        outcome: Err(error),
        origin: Origin::Host,
    }
}

/// What ended the run over an open call, for the model.
fn cause(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Canceled => "interrupted by the user",
        StopReason::SessionError => "the session could no longer be written",
        _ => "the run broke off",
    }
}

/// Arguments that are no object never run, whatever the toolbox makes of them.
fn check_arguments(
    prepared: Result<Box<dyn PreparedCall>, ToolError>,
    call: &ToolCall,
    cut_by_length: bool,
) -> Result<Box<dyn PreparedCall>, ToolError> {
    let Err(place) = call.arguments.object() else { return prepared };
    match prepared {
        Err(error) if error.kind != ToolErrorKind::InvalidArguments => Err(error),
        _ => {
            let message = if cut_by_length {
                format!(
                    "the answer was cut by the model's length limit inside these arguments, so \
                     the call did not run: {place}; send it again with less in it, or in several \
                     calls"
                )
            } else {
                format!(
                    "{place}; the call did not run: send it again with one JSON object that fits \
                     the tool's schema"
                )
            };
            Err(ToolError::new(ToolErrorKind::InvalidArguments, message))
        }
    }
}

/// The report of a call whose task died.
fn broken_report(call: &ToolCall, error: tokio::task::JoinError) -> CallReport {
    let why = match error.try_into_panic() {
        Ok(panic) => panics::message(panic.as_ref()),
        Err(error) => error.to_string(),
    };
    let message = format!(
        "the host's code for `{}` panicked, which is a bug: {why}; the call may have taken effect",
        call.tool
    );
    CallReport {
        outcome: Err(ToolError::new(ToolErrorKind::Trap, message)),
        origin: Origin::Host,
        receipt: None,
    }
}
