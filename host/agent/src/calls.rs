//! Running the calls of one answer, in call order: announce, prepare, ask, record, run, and
//! exactly one result for each. Neighbouring calls of read-only tools run at once; their results
//! are in call order all the same.
//!
//! Whatever comes of a call is a result that the model reads. Only a cancel, a hook that ends the
//! run or a session that cannot be written ends it from here.

mod batch;
mod permission;
mod words;

pub(crate) use words::{by_host, interrupted};

use crate::{actions::Action, driver::Driver, panics, stop::Stop};
use belljar_types::{
    ApprovalAnswer, Arguments, EventKind, HookPoint, Message, Mode, PendingCall, PreparedCall,
    Receipt, Record, StopReason, ToolCall, ToolError, ToolErrorKind, ToolMessage, ToolResult,
};
use std::sync::Arc;
use words::{cause, check_arguments};

/// A call without a result.
#[derive(Debug)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// Whether it is the last one of an answer that was cut by the model's length limit.
    cut_by_length: bool,
    /// Whether the reader knows of it.
    announced: bool,
    pub(crate) progress: Progress,
    /// Whether it had started when its session broke off.
    broke_off: bool,
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
        let progress = Progress::NotStarted;
        Self { call, cut_by_length, announced: false, progress, broke_off: false }
    }

    /// A call that a session left open. Nothing that was decided of it holds any more.
    pub(crate) fn resumed(pending: PendingCall) -> Self {
        let progress = if pending.started { Progress::Started } else { Progress::NotStarted };
        let open = Self::new(pending.call, /* cut_by_length */ false);
        Self { progress, broke_off: pending.started, ..open }
    }
}

/// A call that was decided on.
struct Ready {
    /// As it is run: a hook may have changed its arguments.
    call: ToolCall,
    prepared: Box<dyn PreparedCall>,
    /// A person's answer; none where nobody was asked.
    answer: Option<ApprovalAnswer>,
    /// Whether it runs. Where it does not, the toolbox words the refusal.
    runs: bool,
}

impl Ready {
    fn is_read_only(&self) -> bool {
        self.prepared.definition().hints.read_only
    }
}

/// What comes next for a call.
enum Next {
    Run(Ready),
    Act(Action),
    /// It does not run.
    Done(ToolResult),
}

impl Driver {
    /// Runs the open calls.
    pub(crate) async fn run_calls(&mut self) -> Result<(), Stop> {
        while !self.open.is_empty() {
            self.check_cancel()?;
            let mut batch = Vec::new();
            let mut behind = None;
            match self.look_at(0).await? {
                Next::Run(ready) => batch.push(ready),
                other => behind = Some(other),
            }
            while self.may_join(&batch) {
                match self.look_at(batch.len()).await? {
                    Next::Run(ready) if ready.is_read_only() => batch.push(ready),
                    other => {
                        behind = Some(other);
                        break;
                    }
                }
            }
            if !batch.is_empty() {
                self.run_batch(batch).await?;
            }
            match behind {
                None => {}
                Some(Next::Done(result)) => self.finish_call(result, None).await?,
                Some(Next::Act(action)) => self.run_action(action).await?,
                Some(Next::Run(ready)) => self.run_batch(vec![ready]).await?,
            }
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
        if !self.recorded {
            self.settle_unrecorded();
            return Ok(());
        }
        let mut settled = Ok(());
        while let Some(open) = self.open.front() {
            let result = interrupted(&open.call, cause(reason), open.progress);
            let plugin = self.plugin_of(&result.tool);
            self.announce(0, plugin).await;
            if let Err(stop) = self.close_call(result, None).await {
                settled = Err(stop);
            }
        }
        settled
    }

    /// A run that never began leaves the session as it is: the calls that it would have gone on
    /// with stay open there, and get a result in the conversation alone.
    fn settle_unrecorded(&mut self) {
        let Ok(open) = self.conversation.open_calls() else { return };
        let open: Vec<_> = open.into_iter().cloned().collect();
        for call in open {
            let started =
                self.request.pending.iter().any(|one| one.started && one.call.id == call.id);
            let progress = if started { Progress::Started } else { Progress::NotStarted };
            let result = interrupted(&call, "the session broke off", progress);
            self.push(Arc::new(Message::Tool(ToolMessage { result })));
        }
    }

    /// Whether the call behind a batch may run at the same time.
    fn may_join(&self, batch: &[Ready]) -> bool {
        let limit = self.agent.settings.parallel_calls;
        let can_grow = batch.last().is_some_and(Ready::is_read_only) && batch.len() < limit;
        let Some(open) = self.open.get(batch.len()).filter(|_| can_grow) else { return false };
        // One that cannot run is told of in its place, behind the results of the others.
        if open.call.arguments.object().is_err() || open.broke_off {
            return false;
        }
        let tool = open.call.tool.as_str();
        self.offered.action(tool).is_none()
            && self
                .offered
                .known
                .iter()
                .any(|known| known.name.as_ref() == tool && known.hints.read_only)
    }

    /// Announces an open call, decides on it, and asks where it must.
    async fn look_at(&mut self, index: usize) -> Result<Next, Stop> {
        let open = &self.open[index];
        let (call, cut, broke_off) = (open.call.clone(), open.cut_by_length, open.broke_off);
        if let Some(action) = self.offered.action(&call.tool) {
            self.unknown.known();
            self.announce(index, Some(action.source().plugin)).await;
            if broke_off && !action.is_read_only() {
                return Ok(Next::Done(broken_off(&call)));
            }
            return Ok(match call.arguments.object() {
                Ok(_) => Next::Act(action),
                Err(_) => {
                    let error = words::malformed(&call, cut);
                    Next::Done(by_host(&call, error))
                }
            });
        }
        let prepared = self.prepare(&call).map_err(|error| self.name_near(&call, error));
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
        self.announce(index, plugin).await;
        if broke_off && !prepared.as_ref().is_ok_and(|one| one.definition().hints.read_only) {
            return Ok(Next::Done(broken_off(&call)));
        }
        self.mark(index, Progress::NotStarted);
        let prepared = match check_arguments(prepared, &call, cut) {
            Ok(prepared) => prepared,
            Err(error) => return Ok(Next::Done(by_host(&call, error))),
        };
        self.decide(call, prepared).await
    }

    /// Whether a call runs: plan mode, hooks, and a person where the decision is to ask.
    async fn decide(
        &mut self,
        mut call: ToolCall,
        mut prepared: Box<dyn PreparedCall>,
    ) -> Result<Next, Stop> {
        let denied = |call: &ToolCall, message: String| {
            let error = ToolError::new(ToolErrorKind::Denied, message);
            Ok(Next::Done(by_host(call, error)))
        };
        let plugin = prepared.definition().source.plugin.clone();
        let report = self.hook_pre_tool(&call, &plugin).await?;
        if let Some(reason) = report.blocked {
            return denied(&call, format!("denied by a hook of the user's: {reason}"));
        }
        if let Some(arguments) = report.arguments {
            call.arguments = Arguments::Object(arguments);
            prepared = match self.prepare(&call) {
                Ok(prepared) => prepared,
                Err(error) => {
                    let message = format!(
                        "a hook of the user's changed the arguments, and with them the call does \
                         not run: {}",
                        error.message
                    );
                    let error = ToolError { message, ..error };
                    return Ok(Next::Done(by_host(&call, error)));
                }
            };
            let shown = serde_json::to_string(&call.arguments).unwrap_or_default();
            let tool = &call.tool;
            self.notice(format!("a hook changed the arguments of `{tool}` to {shown}")).await;
        }
        if self.request.mode == Mode::Plan && !prepared.definition().hints.read_only {
            return denied(
                &call,
                "in plan mode only tools that read are there: put what you would do into the plan"
                    .to_owned(),
            );
        }
        self.permission(call, prepared).await
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError> {
        panics::catch(|| self.agent.toolbox.prepare(call)).unwrap_or_else(|panic| {
            let message = format!("preparing the call panicked, which is a bug: {panic}");
            Err(ToolError::new(ToolErrorKind::Trap, message))
        })
    }

    /// The toolbox names its own tools that are near to an unknown one; the loop has some too.
    fn name_near(&self, call: &ToolCall, error: ToolError) -> ToolError {
        match self.offered.near(&call.tool) {
            Some(near) if error.kind == ToolErrorKind::UnknownTool => {
                let message = format!("{}; did you mean `{near}`?", error.message);
                ToolError { message, ..error }
            }
            _ => error,
        }
    }

    /// Tells the reader of an open call, once.
    async fn announce(&mut self, index: usize, plugin: Option<Arc<str>>) {
        if let Some(open) = self.open.get_mut(index)
            && !open.announced
        {
            open.announced = true;
            self.events.emit(EventKind::call_start(&open.call, plugin)).await;
        }
    }

    fn mark(&mut self, index: usize, progress: Progress) {
        if let Some(open) = self.open.get_mut(index) {
            open.progress = progress;
        }
    }

    /// Records that an open call is about to run.
    pub(crate) async fn start_call(&mut self, index: usize, read_only: bool) -> Result<(), Stop> {
        let Some(open) = self.open.get(index) else { return Ok(()) };
        self.session.append(Record::CallStarted { call_id: open.call.id.clone() }).await?;
        self.mark(index, if read_only { Progress::StartedReadOnly } else { Progress::Started });
        Ok(())
    }

    /// Closes the first open call with its result, and asks the hooks about it.
    pub(crate) async fn finish_call(
        &mut self,
        result: ToolResult,
        receipt: Option<Receipt>,
    ) -> Result<(), Stop> {
        let hooks = self.request.hooks.as_ref();
        let has_hooks = hooks.is_some_and(|hooks| hooks.has(HookPoint::PostTool));
        if !has_hooks || self.cancel.is_cancelled() {
            return self.close_call(result, receipt).await;
        }
        self.close_call(result.clone(), receipt.clone()).await?;
        self.hook_post_tool(&result, receipt.as_ref()).await
    }

    /// Closes the first open call with its result: in the session, in the conversation, and for
    /// the reader.
    async fn close_call(
        &mut self,
        result: ToolResult,
        receipt: Option<Receipt>,
    ) -> Result<(), Stop> {
        let call_id = result.call_id.clone();
        self.denials.note(&result);
        if let Some(open) = self.open.front() {
            self.repetitions.note(&open.call, &result);
        }
        let message = Arc::new(Message::Tool(ToolMessage { result: result.clone() }));
        let written = self.session.append(Record::Message { message: message.clone() }).await;
        // Also where it could not be written: the conversation and the reader's picture of it
        // stay whole.
        self.push(message);
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
        if let Some(action) = self.offered.action(tool) {
            return Some(action.source().plugin);
        }
        let tools = panics::catch(|| self.agent.toolbox.tools()).ok()?;
        tools
            .iter()
            .find(|definition| definition.name.as_ref() == tool)
            .map(|definition| definition.source.plugin.clone())
    }
}

/// The result of a call that had started when its session broke off, and is not run again.
fn broken_off(call: &ToolCall) -> ToolResult {
    interrupted(call, "the session broke off", Progress::Started)
}
