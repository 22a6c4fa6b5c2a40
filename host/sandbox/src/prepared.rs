//! A call that was decided on, and its way through the sandbox.

use crate::{
    bindings::{PluginPre, types},
    call::{self, CallOutcome, CallSetup},
    http::{HttpSetup, Redactor},
    output,
    plugin::Plugin,
    question, redaction,
    state::CallState,
    toolbox::Inner,
    watchdog::Watchdog,
};
use async_trait::async_trait;
use belljar_capability::{Approved, Limits, NetRequest, Standing, World, world};
use belljar_types::{
    Action, ApprovalAnswer, CallObserver, CallReport, CallTimes, DecidedBy, Decision, Denial,
    Origin, PermissionMode, PreparedCall, Question, Receipt, ToolDefinition, ToolError,
    ToolErrorKind, ToolOutput,
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
    /// What it was decided in, and what its world is made for.
    pub(crate) mode: PermissionMode,
    pub(crate) decision: Decision,
    /// The request that the arguments name, for a tool whose host is known before it runs.
    pub(crate) request: Option<NetRequest>,
    /// What a person's yes adds to the world.
    pub(crate) asks_for: Approved,
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

    fn question(&self) -> Question {
        question::question(
            &self.definition,
            &self.world(),
            &self.asks_for,
            self.plugin.standing.is_known(),
        )
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
        let approved = self.asks_for.clone();
        world(&self.plugin.granted, self.mode, self.definition.hints, approved)
    }

    /// Keeps a yes that holds for more than this call. One to a protected path never does; one to
    /// a host holds for that host, since hosts are asked about once.
    fn remember(&self, answer: &ApprovalAnswer) {
        let Approved { protected, host } = &self.asks_for;
        if protected.is_empty() && (*answer != ApprovalAnswer::Once || host.is_some()) {
            let host = self.request.as_ref().map(NetRequest::origin);
            self.inner.allow_for_session(&self.definition, host);
        }
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
                self.remember(&answer);
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
            None => return Err(self.nobody_to_ask()),
        };
        Err(ToolError::new(ToolErrorKind::Denied, message))
    }

    fn nobody_to_ask(&self) -> ToolError {
        let name = &self.definition.name;
        let denied = |message: String| ToolError::new(ToolErrorKind::Denied, message);
        if let Some(path) = self.asks_for.protected.first() {
            let path = path.as_str().to_owned();
            return refusal(
                &self.definition,
                &Decision { action: Action::Deny, by: DecidedBy::ProtectedPath { path } },
            );
        }
        let remedy = match &self.asks_for.host {
            Some(host) => format!("--grant '{}.net={host}'", self.definition.source.plugin),
            None => format!("--allow {}", rule_for(&self.definition)),
        };
        denied(format!(
            "`{name}` needs the user's approval and nobody is there to ask; do without it, or tell \
             the user that `{remedy}` allows it"
        ))
        .with_remedy(remedy)
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
        let world = self.world();
        let call = Call {
            definition: Arc::clone(&self.definition),
            decision: self.decision.clone(),
            read_only: !world.can_write(),
            bytes_in: self.arguments.len(),
            waiting: asked.elapsed(),
        };
        let limits = self.plugin.granted.limits;
        let runtime = Handle::current();
        // Should this future be dropped, the guest ends at its next look at the token.
        let token = cancel.child_token();
        let _end_with_us = token.clone().drop_guard();
        // Guests run on threads of their own: one that is stuck in the kernel holds up nobody.
        let started = Instant::now();
        let watchdog = self.inner.watchdog.clone();
        let overdue = overdue(&watchdog, started + limits.deadline, cancel);
        let guest = spawn_blocking(move || {
            let _permits = permits;
            self.run_guest(&pre, &world, &runtime, observer, &token)
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
        world: &World,
        runtime: &Handle,
        observer: CallObserver,
        cancel: &CancellationToken,
    ) -> CallOutcome<Result<ToolOutput, ToolError>> {
        let limits = &world.granted.limits;
        let outside = &self.inner.outside;
        let redactor = Redactor::of_grants(&world.granted.redacted, &outside.secrets).map(Arc::new);
        let observer = match &redactor {
            Some(redactor) => redaction::observer(redactor, observer),
            None => observer,
        };
        let setup = CallSetup {
            limits,
            world,
            plugin: Arc::clone(&self.plugin.source.plugin),
            mounts: Arc::clone(&self.plugin.mounts),
            scratch: self.plugin.scratch(&self.inner.loader),
            http: HttpSetup {
                plugin: Arc::clone(&self.definition.source.plugin),
                outside: outside.clone(),
                redactor: redactor.clone(),
            },
            observer,
            checks_paths: self.plugin.standing == Standing::Bundled,
        };
        let (tool, arguments) = (&*self.definition.tool, &*self.arguments);
        let ended = runtime.block_on(call::run(pre, setup, cancel, async |exports, store| {
            let tools = exports.belljar_plugin_tools();
            let mut answer: Result<types::Output, types::Failure> =
                tools.call_call_tool(&mut *store, tool, arguments).await?;
            store.data_mut().crossings.add(output::carried(&answer))?;
            if let Some(redactor) = &redactor {
                answer = redaction::answer(redactor, answer);
            }
            Ok(match answer {
                Ok(answer) => output::convert(answer, limits),
                Err(failure) => Err(output::failure(failure, limits)),
            })
        }));
        match &redactor {
            Some(redactor) => redaction::outcome(redactor, ended),
            None => ended,
        }
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
    let mut error = call::deadline_error(limits, None);
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
pub(crate) fn rule_for(tool: &ToolDefinition) -> String {
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
    let denied = |message: String| ToolError::new(ToolErrorKind::Denied, message);
    match &decision.by {
        DecidedBy::Rule { rule } => {
            denied(format!("the rule `{rule}` does not let `{name}` run; do without it"))
        }
        DecidedBy::Mode { mode: mode @ PermissionMode::Plan } => denied(format!(
            "the permission mode `{mode}` lets nothing change, and `{name}` may; plan the \
             change instead of making it"
        )),
        DecidedBy::Mode { mode } => denied(format!(
            "the permission mode `{mode}` lets `{name}` run only where a rule allows it; \
             do without it, or tell the user that `--allow {}` allows it",
            rule_for(tool)
        ))
        .with_remedy(format!("--allow {}", rule_for(tool))),
        DecidedBy::ProtectedPath { path } => denied(format!(
            "`{path}` is protected, since other programs obey what stands there: writing it needs \
             the user's own answer, and nobody is asked here; do without it, or tell the user"
        )),
        DecidedBy::Person => denied(format!("the user refused `{name}`")),
    }
}

/// The model reads that a tool is there and waits for a person to look at its plugin.
pub(crate) fn not_offered(tool: &ToolDefinition, standing: &Standing) -> ToolError {
    let plugin = &tool.source.plugin;
    let why = match standing {
        Standing::Changed { .. } => "has changed since the user allowed it",
        _ => "has not been allowed by the user",
    };
    let message = format!(
        "the plugin `{plugin}` {why}; do without it, or tell the user to look at it with \
         `belljar plugin grant {plugin}`"
    );
    ToolError::new(ToolErrorKind::Denied, message)
        .with_remedy(format!("belljar plugin grant {plugin}"))
}

/// What is known of a call before it runs.
struct Call {
    definition: Arc<ToolDefinition>,
    decision: Decision,
    read_only: bool,
    bytes_in: usize,
    waiting: Duration,
}

impl Call {
    /// Puts together what the model reads and what is kept about the call.
    fn report(self, ended: CallOutcome<Result<ToolOutput, ToolError>>) -> CallReport {
        let source = self.definition.source.clone();
        let CallOutcome { result, denied, .. } = ended;
        // What raises a limit was worded where nobody knew whose it is.
        let outcome = result.flatten().map_err(|mut error| {
            error.remedy =
                error.remedy.map(|raised| format!("--grant '{}.{raised}'", source.plugin));
            with_denials(error, &denied)
        });
        let receipt = Receipt {
            tool: self.definition.tool.to_string(),
            decision: self.decision,
            read_only: self.read_only,
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
            hosts: ended.hosts,
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
    for Denial { operation, target, reason, .. } in denied.iter().take(TOLD) {
        message.push_str(&format!("\nrefused: {operation} `{target}`: {reason}"));
    }
    if denied.len() > TOLD {
        message.push_str(&format!("\nand {} more", denied.len() - TOLD));
    }
    let denied_error = ToolError::new(ToolErrorKind::Denied, message);
    match denied.iter().find_map(|denial| denial.grant.as_ref()) {
        Some(grant) => denied_error.with_remedy(format!("--grant '{grant}'")),
        None => denied_error,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
