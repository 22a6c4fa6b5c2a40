//! The loop behind the session: each turn is a run over the session's file as it is.

use super::commands;
use crate::{
    commands::{drive::stop, run::System},
    lasting::Lasting,
};
use async_trait::async_trait;
use belljar_agent::{Actions, Agent, Plan, RunHandle, RunRequest, Settings, restore, start};
use belljar_sandbox::Sandbox;
use belljar_terminal::{Backend, Command, Reply, SessionApprover, Status, Steered, Turn};
use belljar_types::{
    ApprovalQuestion, Arguments, Content, Event, EventKind, Mode, Model, Origin, Part,
    PermissionMode, StopReason, ToolCall, Toolbox as _, Usage,
};
use belljar_workspace::{
    Clock, Config, Hooks, Instructions, Places, PromptSource, SessionJournal, SessionStore, Skills,
    Workspace,
};
use futures::{FutureExt as _, StreamExt as _, stream, stream::BoxStream};
use std::{
    fmt, fs,
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// Bytes of the history file that are read.
const HISTORY: usize = 256 << 10;

/// What a session is made of.
pub(super) struct Parts {
    /// The configuration that was named in place of the user's own.
    pub(super) file: Option<PathBuf>,
    pub(super) places: Places,
    pub(super) workspace: Workspace,
    pub(super) config: Config,
    pub(super) sandbox: Sandbox,
    pub(super) instructions: Instructions,
    pub(super) skills: Arc<Skills>,
    pub(super) clock: Clock,
    pub(super) store: SessionStore,
    pub(super) approver: SessionApprover,
    pub(super) lasting: Lasting,
    pub(super) state: Mutex<State>,
}

/// What changes in the course of a session.
pub(super) struct State {
    pub(super) id: String,
    pub(super) journal: Arc<SessionJournal>,
    pub(super) model: Arc<dyn Model>,
    /// The person's choice; a run in plan mode is narrower.
    pub(super) mode: PermissionMode,
    /// The last plan and what it is for.
    pub(super) plan: Option<Plan>,
    /// What the last turn was about, and what kind of run it was.
    pub(super) task: String,
    pub(super) last: Mode,
    pub(super) busy: Option<Busy>,
    /// Of all turns.
    pub(super) usage: Usage,
}

/// A run that goes on.
pub(super) struct Busy {
    cancel: CancellationToken,
    /// It plans, whatever mode the person chooses meanwhile.
    plans: bool,
    /// There once the run has begun.
    handle: Option<RunHandle>,
}

/// The session's loop and what its commands look at. A clone is the same.
#[derive(Clone)]
pub(super) struct Live(pub(super) Arc<Parts>);

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("id", &self.state().id).finish_non_exhaustive()
    }
}

impl Live {
    pub(super) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run; what keeps it from beginning is its one event.
    async fn begin(self, turn: Turn, cancel: CancellationToken) -> BoxStream<'static, Event> {
        let parts = &self.0;
        let mode = match turn {
            Turn::Plan(_) => Mode::Plan,
            Turn::Do(_) => Mode::Do,
            Turn::Message(_) => Mode::Chat,
            // What goes on is what it was: a plan still changes nothing.
            Turn::GoOn => self.state().last,
        };
        self.state().last = mode;
        let permission_mode =
            if mode == Mode::Plan { PermissionMode::Plan } else { self.state().mode };
        parts.sandbox.set_mode(permission_mode);
        parts.sandbox.refresh().await;
        let (id, journal, model, plan) = {
            let state = self.state();
            (
                state.id.clone(),
                Arc::clone(&state.journal),
                Arc::clone(&state.model),
                state.plan.clone(),
            )
        };
        // The file is what was said; a run that was dropped may have left calls open in it.
        let restored = match parts.store.load(&id) {
            Ok(loaded) => restore(loaded.records),
            Err(error) => return self.not_begun(StopReason::SessionError, error.to_string()),
        };
        let (text, plan) = match turn {
            Turn::Message(text) | Turn::Plan(text) => (text, None),
            Turn::GoOn => (String::new(), plan.filter(|_| mode == Mode::Do)),
            Turn::Do(more) => match plan {
                Some(plan) => (more, Some(plan)),
                None => {
                    let message = "there is no plan yet: make one with `/plan TASK`".to_owned();
                    return self.not_begun(StopReason::Ended, message);
                }
            },
        };
        if !text.trim().is_empty() {
            self.state().task.clone_from(&text);
        }
        let prompt = match text.trim() {
            "" => Vec::new(),
            _ => vec![Part::text(&text, Origin::Person)],
        };
        let name = format!("{}/{}", model.provider(), model.name());
        let system = PromptSource::new(
            parts.workspace.clone(),
            &parts.instructions,
            name,
            parts.clock.clone(),
        )
        .with_skills(&parts.skills);
        let commands = parts.config.hooks.clone();
        let hooks =
            Hooks::new(commands, parts.workspace.folder(), &id, |name| std::env::var_os(name));
        let agent = Agent {
            model: Some(model),
            toolbox: Arc::new(parts.sandbox.clone()),
            approver: Arc::new(parts.approver.clone()),
            journal,
            settings: Settings {
                // The session asks the person about calls; the model asks in its answers.
                actions: Actions { ask_person: false, ..Actions::all() },
                ..super::super::run::settings(&parts.config)
            },
        };
        let has_skills = parts.skills.catalog().next().is_some();
        let request = RunRequest {
            mode,
            plan,
            hooks: Some(Arc::new(hooks)),
            skills: has_skills.then(|| Arc::clone(&parts.skills) as _),
            permission_mode,
            workspace: parts.workspace.folder().display().to_string(),
            system: Arc::new(System(system)),
            cancel,
            ..RunRequest::resuming(restored, prompt)
        };
        let run = start(agent, request);
        if let Some(busy) = &mut self.state().busy {
            busy.handle = Some(run.handle());
        }
        let live = self.clone();
        run.inspect(move |event| live.note(event, mode)).boxed()
    }

    /// The one event of a run that could not begin.
    fn not_begun(&self, reason: StopReason, message: String) -> BoxStream<'static, Event> {
        let mode = {
            let mut state = self.state();
            state.busy = None;
            state.mode
        };
        self.decide_in(mode);
        let kind = stop(reason, message);
        stream::iter([Event { seq: 0, iteration: 0, agent: None, kind }]).boxed()
    }

    /// Keeps of a run what later turns need.
    fn note(&self, event: &Event, mode: Mode) {
        let EventKind::Stop { usage, result, reason, .. } = &event.kind else { return };
        if event.agent.is_some() {
            return;
        }
        let mut state = self.state();
        state.busy = None;
        let sum = |all: Option<u64>, more: Option<u64>| match (all, more) {
            (None, None) => None,
            (all, more) => Some(all.unwrap_or(0) + more.unwrap_or(0)),
        };
        state.usage = Usage {
            input_tokens: sum(state.usage.input_tokens, usage.input_tokens),
            output_tokens: sum(state.usage.output_tokens, usage.output_tokens),
            cached_tokens: sum(state.usage.cached_tokens, usage.cached_tokens),
        };
        if mode == Mode::Plan {
            self.decide_in(state.mode);
        }
        if mode == Mode::Plan && *reason == StopReason::Completed {
            state.plan = Some(Plan { task: state.task.clone(), text: result.clone() });
        }
    }

    /// Decides in this mode from the next call on; what is offered follows at once.
    fn decide_in(&self, mode: PermissionMode) {
        self.0.sandbox.set_mode(mode);
        let sandbox = self.0.sandbox.clone();
        tokio::spawn(async move { sandbox.refresh().await });
    }

    fn history_file(&self) -> PathBuf {
        self.0.places.state.join("history")
    }
}

#[async_trait]
impl Backend for Live {
    fn start(&self, turn: Turn) -> BoxStream<'static, Event> {
        let cancel = CancellationToken::new();
        let mut state = self.state();
        let plans = match turn {
            Turn::Plan(_) => true,
            Turn::GoOn => state.last == Mode::Plan,
            Turn::Message(_) | Turn::Do(_) => false,
        };
        state.busy = Some(Busy { cancel: cancel.clone(), plans, handle: None });
        drop(state);
        self.clone().begin(turn, cancel).flatten_stream().boxed()
    }

    fn steer(&self, text: &str) -> Steered {
        let state = self.state();
        let handle = state.busy.as_ref().and_then(|busy| busy.handle.as_ref());
        match handle.map(|handle| handle.steer(vec![Part::text(text, Origin::Person)])) {
            Some(Ok(())) => Steered::Queued,
            Some(Err(_)) | None => Steered::Closed,
        }
    }

    fn cancel(&self) {
        if let Some(busy) = &self.state().busy {
            busy.cancel.cancel();
        }
    }

    fn status(&self) -> Status {
        let state = self.state();
        Status {
            model: format!("{}/{}", state.model.provider(), state.model.name()),
            permission_mode: state.mode,
            context_percent: None,
            cost: None,
        }
    }

    fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), String> {
        let mut state = self.state();
        state.mode = mode;
        if state.busy.as_ref().is_some_and(|busy| busy.plans) {
            // From the next turn on.
            return Ok(());
        }
        self.decide_in(mode);
        Ok(())
    }

    fn always(&self, question: &ApprovalQuestion) -> Option<String> {
        let always = self.0.lasting.to(question)?;
        Some(format!("`{}` into `{}`", always.line(), always.file().display()))
    }

    fn write_always(&self, question: &ApprovalQuestion) -> Result<(), String> {
        match self.0.lasting.to(question) {
            Some(always) => always.write(),
            None => Err("there is no yes for good to this".to_owned()),
        }
    }

    async fn command(&self, command: Command) -> Reply {
        commands::carry_out(self, command).await
    }

    async fn files(&self, prefix: &str) -> Vec<String> {
        // By the bundled tool, which sees what tools may see and leaves out what is ignored.
        let special = |letter: char| "*?[]{}!\\".contains(letter);
        let prefix: String = prefix.chars().filter(|letter| !special(*letter)).collect();
        let arguments = serde_json::json!({ "pattern": format!("**/*{prefix}*") });
        let call = ToolCall {
            id: "complete".to_owned(),
            tool: "find_files".to_owned(),
            arguments: Arguments::parse(&arguments.to_string()),
        };
        let Ok(prepared) = self.0.sandbox.prepare(&call) else { return Vec::new() };
        let report = prepared.run(None, Arc::new(|_| {}), CancellationToken::new()).await;
        let Ok(output) = report.outcome else { return Vec::new() };
        let texts = output.content.iter().filter_map(|content| match content {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let mut files: Vec<_> = texts
            .flat_map(str::lines)
            .filter(|line| !line.is_empty() && !line.starts_with('['))
            .map(str::to_owned)
            .collect();
        files.sort_by_key(|file| (!file.starts_with(&prefix), file.len()));
        files.truncate(100);
        files
    }

    fn history(&self) -> String {
        let bytes = fs::read(self.history_file()).unwrap_or_default();
        let from = bytes.len().saturating_sub(HISTORY);
        // A line that was cut at its beginning is nobody's.
        let from = match from {
            0 => 0,
            from => bytes[from..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(from, |at| from + at + 1),
        };
        String::from_utf8_lossy(&bytes[from..]).into_owned()
    }

    fn remember(&self, line: &str) {
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        // A history that cannot be kept is no reason to keep a person from working.
        let _ =
            options.open(self.history_file()).and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
