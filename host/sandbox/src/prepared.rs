//! A call that was decided on, and its way through the sandbox.

use crate::{
    bindings::{PluginPre, types},
    call::{self, CallOutcome, CallSetup},
    limits::Limits,
    output,
    plugin::Plugin,
    state::CallState,
    toolbox::Inner,
    watchdog::Watchdog,
};
use async_trait::async_trait;
use belljar_capability::{Access, World, world};
use belljar_types::{
    Action, ApprovalAnswer, CallObserver, CallReport, CallTimes, DecidedBy, Decision, Denial,
    Origin, PermissionMode, PreparedCall, Receipt, ToolDefinition, ToolError, ToolErrorKind,
    ToolOutput,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    runtime::Handle,
    sync::OwnedSemaphorePermit,
    task::{JoinError, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

/// How long past its deadline, or past a cancel, a guest's thread may take to come back before
/// it is left behind.
const DEADLINE_GRACE: Duration = Duration::from_secs(2);
const CANCEL_GRACE: Duration = Duration::from_millis(80);

pub(crate) struct Prepared {
    pub(crate) inner: Arc<Inner>,
    pub(crate) plugin: Arc<Plugin>,
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) decision: Decision,
    /// JSON of an object.
    pub(crate) arguments: String,
}

#[async_trait]
impl PreparedCall for Prepared {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn question(&self) -> String {
        let ToolDefinition { tool, source, hints, .. } = self.definition.as_ref();
        let reach = match self.world().workspace {
            Some(Access::ReadWrite) if hints.destructive => {
                "may change, overwrite and delete files in the workspace"
            }
            Some(Access::ReadWrite) => "may change files in the workspace",
            Some(Access::Read) => "may read files in the workspace",
            None => "gets no files and no network",
        };
        format!("`{tool}` of the plugin `{}` {reach}", source.plugin)
    }

    async fn run(
        mut self: Box<Self>,
        answer: Option<ApprovalAnswer>,
        observer: CallObserver,
        cancel: CancellationToken,
    ) -> CallReport {
        let report = match self.settle(answer) {
            Ok(()) => self.execute(observer, &cancel).await,
            Err(error) => Err(error),
        };
        report.unwrap_or_else(|error| CallReport {
            outcome: Err(error),
            origin: Origin::Host,
            receipt: None,
        })
    }
}

impl Prepared {
    /// The world that this call gets if it is allowed.
    fn world(&self) -> World {
        world(self.plugin.granted, self.inner.policy.mode, self.definition.hints)
    }

    /// Turns a decision to ask into the person's answer.
    fn settle(&mut self, answer: Option<ApprovalAnswer>) -> Result<(), ToolError> {
        match self.decision.action {
            Action::Allow => return Ok(()),
            Action::Deny => return Err(refusal(&self.definition, &self.decision)),
            Action::Ask => {}
        }
        let name = &self.definition.name;
        let message = match answer {
            Some(answer) if answer.is_yes() => {
                if answer == ApprovalAnswer::Session {
                    self.inner.allow_for_session(&self.definition);
                }
                self.decision = Decision { action: Action::Allow, by: DecidedBy::Person };
                return Ok(());
            }
            Some(ApprovalAnswer::NoBecause(reason)) => {
                format!("the user refused this call of `{name}` and says: {reason}")
            }
            Some(_) => format!(
                "the user refused this call of `{name}`; do not repeat it, do something \
                 else or ask what they want"
            ),
            None => format!(
                "`{name}` needs the user's approval and nobody is there to ask; do without \
                 it, or tell the user that `--allow {}` allows it",
                rule_for(&self.definition)
            ),
        };
        Err(ToolError::new(ToolErrorKind::Denied, message))
    }

    async fn execute(
        self,
        observer: CallObserver,
        cancel: &CancellationToken,
    ) -> Result<CallReport, ToolError> {
        let asked = Instant::now();
        let (pre, permits) = tokio::select! {
            ready = self.take_place() => ready?,
            () = cancel.cancelled() => {
                return Err(ToolError::new(
                    ToolErrorKind::Canceled,
                    "interrupted by the user before it ran",
                ));
            }
        };
        let call = Call {
            definition: Arc::clone(&self.definition),
            decision: self.decision.clone(),
            world: self.world(),
            bytes_in: self.arguments.len(),
            waiting: asked.elapsed(),
        };
        let limits = self.inner.limits;
        let runtime = Handle::current();
        // Should this future be dropped, the guest ends at its next look at the token.
        let token = cancel.child_token();
        let _end_with_us = token.clone().drop_guard();
        // Guests run on threads of their own: one that is stuck in the kernel holds up nobody.
        let started = Instant::now();
        let world = call.world;
        let watchdog = self.inner.watchdog.clone();
        let overdue = overdue(&watchdog, started + limits.deadline, cancel);
        let guest = spawn_blocking(move || {
            let _permits = permits;
            self.run_guest(&pre, world, &runtime, observer, &token)
        });
        let ended = tokio::select! {
            ended = guest => ended.map_err(host_failed),
            () = overdue => Err(left_behind(&limits, cancel)),
        };
        // Nobody came back to say what the call used, but that it ran must be known.
        let lost = |error| CallOutcome::lost(error, &limits, started.elapsed());
        Ok(call.report(ended.unwrap_or_else(lost)))
    }

    /// Waits for a place to run in, with the plugin compiled.
    ///
    /// First the plugin's own share of places, then the common one: a plugin that floods waits in
    /// its own queue and not in everybody's.
    async fn take_place(
        &self,
    ) -> Result<(PluginPre<CallState>, [OwnedSemaphorePermit; 2]), ToolError> {
        let closed = |_| ToolError::new(ToolErrorKind::Unavailable, "the sandbox is shutting down");
        let own = Arc::clone(&self.plugin.permits).acquire_owned().await.map_err(closed)?;
        let common = Arc::clone(&self.inner.in_flight).acquire_owned().await.map_err(closed)?;
        let pre = match self.plugin.ready_now() {
            Some(pre) => pre,
            None => {
                let (plugin, inner) = (Arc::clone(&self.plugin), Arc::clone(&self.inner));
                let loaded = spawn_blocking(move || plugin.ready(&inner.loader));
                loaded.await.map_err(host_failed)?.map_err(|error| {
                    let name = &self.plugin.source.plugin;
                    let message = format!("the plugin `{name}` cannot be loaded: it {error}");
                    ToolError::new(ToolErrorKind::Failed, message)
                })?
            }
        };
        Ok((pre, [own, common]))
    }

    /// Runs on a thread that may block.
    fn run_guest(
        &self,
        pre: &PluginPre<CallState>,
        world: World,
        runtime: &Handle,
        observer: CallObserver,
        cancel: &CancellationToken,
    ) -> CallOutcome<Result<ToolOutput, ToolError>> {
        let limits = &self.inner.limits;
        let setup = CallSetup {
            limits,
            world,
            workspace: self.inner.workspace.as_ref(),
            observer,
            checks_paths: self.plugin.bundled,
        };
        let (tool, arguments) = (&*self.definition.tool, &*self.arguments);
        runtime.block_on(call::run(pre, setup, cancel, async |exports, store| {
            let tools = exports.belljar_plugin_tools();
            let answer: Result<types::Output, types::Failure> =
                tools.call_call_tool(store, tool, arguments).await?;
            Ok(match answer {
                Ok(answer) => output::convert(answer, limits),
                Err(failure) => Err(output::failure(failure, limits)),
            })
        }))
    }
}

/// Ends when a call's thread should have come back and has not: it is stuck in the kernel.
async fn overdue(watchdog: &Watchdog, deadline: Instant, cancel: &CancellationToken) {
    let canceled = async {
        cancel.cancelled().await;
        tokio::time::sleep(CANCEL_GRACE).await;
    };
    tokio::select! {
        () = watchdog.wait_until(deadline + DEADLINE_GRACE) => {}
        () = canceled => {}
    }
}

fn left_behind(limits: &Limits, cancel: &CancellationToken) -> ToolError {
    const STUCK: &str = "; it is stuck in a system call, and its thread was left behind";
    if cancel.is_cancelled() {
        let message =
            format!("interrupted by the user while it ran, and may have taken effect{STUCK}");
        return ToolError::new(ToolErrorKind::Canceled, message);
    }
    let mut error = call::deadline_error(limits);
    error.message.push_str(STUCK);
    error
}

fn host_failed(_: JoinError) -> ToolError {
    ToolError::new(
        ToolErrorKind::Trap,
        "the host failed during this call, which is a bug in the host; only this call is lost",
    )
}

/// The rule that would allow a tool, and no other.
fn rule_for(tool: &ToolDefinition) -> String {
    // A bundled tool's bare name says too little to a reader; any other's names its plugin.
    if tool.name == tool.tool {
        format!("{}/{}", tool.source.plugin, tool.tool)
    } else {
        tool.name.to_string()
    }
}

/// The model reads what was refused, and what the person it works for can do about it.
pub(crate) fn refusal(tool: &ToolDefinition, decision: &Decision) -> ToolError {
    let name = &tool.name;
    let message = match &decision.by {
        DecidedBy::Rule { rule } => {
            format!("the rule `{rule}` does not let `{name}` run; do without it")
        }
        DecidedBy::Mode { mode: mode @ PermissionMode::Plan } => format!(
            "the permission mode `{mode}` lets nothing change, and `{name}` may; plan the \
             change instead of making it"
        ),
        DecidedBy::Mode { mode } => format!(
            "the permission mode `{mode}` lets `{name}` run only where a rule allows it; \
             do without it, or tell the user that `--allow {}` allows it",
            rule_for(tool)
        ),
        DecidedBy::Person => format!("the user refused `{name}`"),
    };
    ToolError::new(ToolErrorKind::Denied, message)
}

/// What is known of a call before it runs.
struct Call {
    definition: Arc<ToolDefinition>,
    decision: Decision,
    world: World,
    bytes_in: usize,
    waiting: Duration,
}

impl Call {
    /// Puts together what the model reads and what is kept about the call.
    fn report(self, ended: CallOutcome<Result<ToolOutput, ToolError>>) -> CallReport {
        let source = self.definition.source.clone();
        let CallOutcome { result, denied, .. } = ended;
        let outcome = result.flatten().map_err(|error| with_denials(error, &denied));
        let receipt = Receipt {
            tool: self.definition.tool.to_string(),
            decision: self.decision,
            read_only: self.world.workspace != Some(Access::ReadWrite),
            fuel_used: ended.fuel_used,
            fuel_limit: ended.fuel_limit,
            peak_memory_bytes: ended.peak_memory as u64,
            times: CallTimes {
                waiting_us: micros(self.waiting),
                instantiate_us: micros(ended.instantiate),
                run_us: micros(ended.run),
                host_us: micros(ended.in_host),
            },
            bytes_in: self.bytes_in as u64,
            bytes_out: outcome.as_ref().map_or(0, output::size) as u64,
            files_read: ended.read,
            files_written: ended.written,
            hosts: Vec::new(),
            denied,
            error: outcome.as_ref().err().map(|error| error.kind),
            log: ended.log,
            source: source.clone(),
        };
        let origin = Origin::Plugin { plugin: source.plugin, digest: source.digest };
        CallReport { outcome, origin, receipt: Some(receipt) }
    }
}

/// A guest that was refused something sees an error number only; the host adds what it was. The
/// limits keep their own kinds: they say more about why the call ended.
fn with_denials(error: ToolError, denied: &[Denial]) -> ToolError {
    const TOLD: usize = 5;
    let plain =
        matches!(error.kind, ToolErrorKind::Failed | ToolErrorKind::Trap | ToolErrorKind::Denied);
    if denied.is_empty() || !plain {
        return error;
    }
    let mut message = error.message;
    for Denial { operation, target, reason } in denied.iter().take(TOLD) {
        message.push_str(&format!("\nrefused: {operation} `{target}`: {reason}"));
    }
    if denied.len() > TOLD {
        message.push_str(&format!("\nand {} more", denied.len() - TOLD));
    }
    ToolError::new(ToolErrorKind::Denied, message)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
