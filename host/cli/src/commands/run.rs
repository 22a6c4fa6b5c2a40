//! `belljar run`: one task, from the prompt to the exit code.

use super::drive::{self, Prepared};
use crate::{
    approver::TerminalApprover,
    arguments::{InputFormat, OutputArguments, RunArguments, RunMode, SessionArguments},
    control::{self, Control, ControlApprover, Said},
    exit::{self, Usage},
    lasting::Lasting,
    model,
    prompt::{self, Input, Prompt},
    screen::SharedScreen,
    setup::{self, Grants, Opened, Opening},
    show::{ResultLines, Sink},
    signals,
    tty::Tty,
};
use anyhow::Context as _;
use async_trait::async_trait;
use belljar_agent::{Actions, Agent, Restored, RunRequest, Settings, SystemSource, restore};
use belljar_model::Recorder;
use belljar_sandbox::Watching;
use belljar_types::{Approver, Journal as _, Mode, Origin, Part, PermissionMode, SystemPrompt};
use belljar_workspace::{
    Clock, Config, Flags, GrantStore, Hooks, Instructions, Memory, Places, PromptSource,
    SessionJournal, SessionStore, Skills, Workspace,
};
use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) async fn run(arguments: RunArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let cancel = signals::cancel_on_signals()?;
    let begun = tokio::select! {
        begun = begin(&arguments, &screen, &cancel) => begun,
        () = cancel.cancelled() => Ok(None),
    };
    let (prepared, recorder) = match begun {
        Ok(Some(begun)) => begun,
        Ok(None) => {
            drive::canceled_early(&screen, &arguments.output);
            return Ok(exit::CANCELED);
        }
        Err(error) => {
            drive::failed_early(&screen, &arguments.output, &error);
            return Err(error);
        }
    };
    let code = drive::drive(prepared).await?;
    if let (Some(recorder), Some(file)) = (recorder, &arguments.record) {
        let (turns, file) = (recorder.turns()?, file.display());
        screen.lock().note(&format!("recorded {turns} turns: play them with `-m script/{file}`"));
    }
    Ok(code)
}

/// All that comes before the first event; nothing where it was interrupted.
async fn begin(
    arguments: &RunArguments,
    screen: &SharedScreen,
    cancel: &CancellationToken,
) -> anyhow::Result<Option<(Prepared, Option<Recorder>)>> {
    check(arguments)?;
    let workspace = setup::workspace(arguments.world.workspace.as_deref())?;
    let asked = match arguments.input_format {
        InputFormat::Text => Asked::from_text(arguments, cancel).await?,
        InputFormat::StreamJson => {
            let places = Places::from_env()?;
            let store = GrantStore::new(&places, arguments.world.plugins.config.as_deref());
            let lasting = Lasting::new(store, workspace.folder());
            Asked::from_lines(arguments, lasting, cancel).await?
        }
    };
    match asked {
        Some(asked) => prepare(arguments, workspace, asked, screen, cancel).await.map(Some),
        None => Ok(None),
    }
}

/// What the options mean together.
fn check(arguments: &RunArguments) -> anyhow::Result<()> {
    let RunArguments { mode, plan, policy, prompt, .. } = arguments;
    let usage = |message: &str| Err(Usage(message.to_owned()).into());
    match (mode, plan) {
        (RunMode::Do, None) => {
            return usage("`--mode do` carries out a plan: name its file with `--plan`");
        }
        (RunMode::Chat | RunMode::Plan, Some(_)) => {
            return usage("`--plan` goes with `--mode do`, which carries the plan out");
        }
        _ => {}
    }
    if *mode == RunMode::Plan
        && policy.permission_mode.is_some_and(|mode| mode != PermissionMode::Plan)
    {
        return usage("`--mode plan` changes nothing, so its permission mode is `plan`");
    }
    let from_stdin = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let takes_stdin = [
        from_stdin(plan),
        prompt.as_deref() == Some("-"),
        arguments.input_format == InputFormat::StreamJson,
    ];
    if takes_stdin.into_iter().filter(|takes| *takes).count() > 1 {
        return usage("standard input is one thing: the prompt, the plan or lines of JSON");
    }
    Ok(())
}

/// What the run is asked to do, and by whom questions are answered.
struct Asked {
    parts: Vec<Part>,
    plan: Option<belljar_agent::Plan>,
    notices: Vec<String>,
    control: Option<(ControlApprover, Control)>,
}

impl Asked {
    /// Nothing where it was interrupted.
    async fn from_text(
        arguments: &RunArguments,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let plan = match &arguments.plan {
            None => None,
            Some(file) => match read_plan(file, cancel).await? {
                Some(text) => Some(text),
                None => return Ok(None),
            },
        };
        let session = &arguments.session;
        let may_be_silent = plan.is_some() || session.go_on || session.resume.is_some();
        let prompt = match arguments.prompt.as_deref() {
            None | Some("") if may_be_silent => Prompt::nothing(),
            prompt => prompt::assemble(prompt, cancel).await?,
        };
        let Prompt::Parts { parts, notices } = prompt else { return Ok(None) };
        // What `-` stands for is in the parts, and the prompt of the run.
        let task = arguments.prompt.clone().filter(|prompt| prompt != "-");
        let task = task.unwrap_or_else(|| "Carry out the plan.".to_owned());
        let plan = plan.map(|text| belljar_agent::Plan { task, text });
        Ok(Some(Self { parts, plan, notices, control: None }))
    }

    /// The prompt is the argument, else the first message of the other program.
    async fn from_lines(
        arguments: &RunArguments,
        lasting: Lasting,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let (approver, mut control) = control::listen(lasting, cancel.clone());
        let mut notices = Vec::new();
        let mut text = arguments.prompt.clone().filter(|text| !text.trim().is_empty());
        while text.is_none() {
            let next = tokio::select! {
                next = control.said.recv() => next,
                () = cancel.cancelled() => return Ok(None),
            };
            match next {
                Some(Said::User(said)) => text = Some(said).filter(|text| !text.trim().is_empty()),
                Some(Said::Nonsense(message)) => notices.push(message),
                None => {
                    let mut message = "standard input ended without a prompt: send a line \
                                       {\"type\":\"user\",\"text\":…}"
                        .to_owned();
                    for notice in notices {
                        message.push_str(&format!("\n{notice}"));
                    }
                    return Err(Usage(message).into());
                }
            }
        }
        let plan = match &arguments.plan {
            None => None,
            Some(file) => match read_plan(file, cancel).await? {
                Some(plan) => Some(plan),
                None => return Ok(None),
            },
        };
        let task = text.clone().unwrap_or_default();
        let parts = text.map(|text| Part::text(&text, Origin::Person)).into_iter().collect();
        let plan = plan.map(|text| belljar_agent::Plan { task, text });
        Ok(Some(Self { parts, plan, notices, control: Some((approver, control)) }))
    }
}

/// The text of a plan; nothing where it was interrupted.
async fn read_plan(file: &Path, cancel: &CancellationToken) -> anyhow::Result<Option<String>> {
    let text = if file == Path::new("-") {
        match prompt::read_all(cancel).await? {
            Input::Text(text) => text,
            Input::Canceled => return Ok(None),
        }
    } else {
        std::fs::read_to_string(file)
            .with_context(|| format!("the plan `{}` cannot be read", file.display()))?
    };
    if text.trim().is_empty() {
        return Err(Usage("the plan is empty".to_owned()).into());
    }
    Ok(Some(text))
}

/// The session that is written to, and what it holds already.
pub(super) fn session(
    arguments: &SessionArguments,
    store: &SessionStore,
    workspace: &Workspace,
    clock: &Clock,
    notices: &mut Vec<String>,
) -> anyhow::Result<(SessionJournal, Restored)> {
    let id = match arguments {
        SessionArguments { resume: Some(id), .. } => id.clone(),
        SessionArguments { go_on: true, .. } => {
            let list = store.of_workspace(workspace.folder())?;
            notices.extend(list.notices);
            let last = list.sessions.into_iter().next();
            last.map(|session| session.id).context(
                "there is no session of this folder to go on with: start one without `--continue`",
            )?
        }
        SessionArguments { .. } => {
            return Ok((store.create(workspace.folder(), clock)?, Restored::default()));
        }
    };
    let (journal, loaded) = store.resume(&id)?;
    notices.extend(loaded.notices);
    if let Some(header) = &loaded.header {
        let here = workspace.folder().to_string_lossy();
        anyhow::ensure!(
            header.workspace == here,
            "the session `{id}` belongs to the folder `{}`: go on with it there, with \
             `--workspace`",
            header.workspace
        );
    }
    Ok((journal, restore(loaded.records)))
}

/// Wires everything that the run needs, the cheapest first, so that a mistake is told at once.
async fn prepare(
    arguments: &RunArguments,
    workspace: Workspace,
    asked: Asked,
    screen: &SharedScreen,
    cancel: &CancellationToken,
) -> anyhow::Result<(Prepared, Option<Recorder>)> {
    let RunArguments { world, policy, output, .. } = arguments;
    let Asked { parts, plan, mut notices, control } = asked;
    let places = Places::from_env()?;
    let flags = Flags {
        model: arguments.model.clone(),
        max_turns: arguments.max_turns,
        ..setup::flags(policy)
    };
    let file = world.plugins.config.as_deref();
    let loaded = setup::configuration(&places, file, &workspace, flags)?;
    notices.extend(loaded.notices);
    let config = loaded.config;
    let own_plugins = loaded.workspace_plugins.as_deref();
    let folders = setup::plugin_folders(&places, &world.plugins, own_plugins)?;
    let grants = Grants::new(&config, &policy.grants, &workspace)?;
    let chosen = model::choose(&config).await?;
    notices.extend(chosen.notice);
    let is_asked = control.is_some() || has_person(screen);
    let mode = match arguments.mode {
        RunMode::Plan => PermissionMode::Plan,
        RunMode::Chat | RunMode::Do => permission_mode(&config, is_asked),
    };
    let opening = Opening {
        places: &places,
        workspace: &workspace,
        folders,
        mode,
        rules: config.rules.clone(),
        grants,
        watch: Watching::Told,
        screen,
    };
    let Opened { sandbox, notices: about_sandbox } = setup::sandbox(opening).await?;
    notices.extend(about_sandbox);
    notices.extend(setup::withheld_notice(&sandbox, mode));
    let instructions = Instructions::read(&workspace);
    notices.extend(instructions.notices.iter().cloned());
    let skills = Skills::read(&places, loaded.workspace_skills.as_deref());
    notices.extend(skills.notices().iter().cloned());
    let clock = Clock::system();
    let store = SessionStore::open(&places)?;
    let (journal, restored) =
        session(&arguments.session, &store, &workspace, &clock, &mut notices)?;

    // Last, so that no mistake leaves an empty recording in the way.
    let recorder = arguments.record.as_ref().map(Recorder::create).transpose()?;
    let model = match &recorder {
        Some(recorder) => recorder.record(chosen.model),
        None => chosen.model,
    };
    let full_name = format!("{}/{}", model.provider(), model.name());
    let mut system =
        PromptSource::new(workspace.clone(), &instructions, full_name, clock).with_skills(&skills);
    let mut memory = None;
    if config.memory.as_ref().is_some_and(|memory| memory.value) {
        let kept = Memory::new(&places, workspace.folder());
        match kept.index() {
            Ok(index) => {
                notices.extend(index.notices.iter().cloned());
                system = system.with_memory(&index);
                memory = Some(Arc::new(kept) as _);
            }
            Err(error) => notices.push(format!("this run has no memory: {error}")),
        }
    }
    let hooks = Hooks::new(config.hooks.clone(), workspace.folder(), journal.session(), |name| {
        std::env::var_os(name)
    });
    let (shown, sees) = watch::channel(String::new());
    let (approver, control): (Arc<dyn Approver>, _) = match control {
        Some((approver, control)) => (Arc::new(approver), Some(control)),
        None => {
            let lasting = Lasting::new(GrantStore::new(&places, file), workspace.folder());
            let approver = TerminalApprover::new(terminal(screen), screen.clone(), sees);
            (Arc::new(approver.writing_to(lasting)), None)
        }
    };
    let agent = Agent {
        model: Some(model),
        toolbox: Arc::new(sandbox.clone()),
        approver,
        journal: Arc::new(journal),
        settings: Settings {
            actions: Actions { ask_person: is_asked, ..Actions::all() },
            ..settings(&config)
        },
    };
    let has_skills = skills.catalog().next().is_some();
    let request = RunRequest {
        mode: match arguments.mode {
            RunMode::Chat => Mode::Chat,
            RunMode::Plan => Mode::Plan,
            RunMode::Do => Mode::Do,
        },
        plan,
        hooks: Some(Arc::new(hooks)),
        skills: has_skills.then(|| Arc::new(skills) as _),
        memory,
        permission_mode: mode,
        workspace: workspace.folder().display().to_string(),
        system: Arc::new(System(system)),
        cancel: cancel.clone(),
        ..RunRequest::resuming(restored, parts)
    };
    let lines = if output.talk.verbose { ResultLines(40) } else { ResultLines(3) };
    let sink = sink(screen, output, lines);
    Ok((Prepared { agent, request, notices, sink, shown, control }, recorder))
}

/// The sink of a run.
pub(super) fn sink(screen: &SharedScreen, output: &OutputArguments, lines: ResultLines) -> Sink {
    Sink::new(screen.clone(), output, lines)
}

pub(super) fn request(
    mode: PermissionMode,
    workspace: &Workspace,
    prompt: Vec<Part>,
    system: System,
    cancel: &CancellationToken,
) -> RunRequest {
    RunRequest {
        permission_mode: mode,
        workspace: workspace.folder().display().to_string(),
        system: Arc::new(system),
        cancel: cancel.clone(),
        ..RunRequest::new(prompt)
    }
}

/// Somebody can be asked where the question is seen and the answer can be typed.
pub(super) fn has_person(screen: &SharedScreen) -> bool {
    io::stdin().is_terminal() && screen.lock().is_err_terminal()
}

/// The terminal to ask at, where the question would be seen.
pub(super) fn terminal(screen: &SharedScreen) -> Option<Tty> {
    let is_seen = screen.lock().is_err_terminal();
    if is_seen { Tty::open() } else { None }
}

/// What is set, or what suits whether somebody can be asked.
pub(super) fn permission_mode(config: &Config, is_asked: bool) -> PermissionMode {
    let default = if is_asked { PermissionMode::Default } else { PermissionMode::DontAsk };
    setup::permission_mode(config, default)
}

pub(super) fn settings(config: &Config) -> Settings {
    let default = Settings::default();
    Settings {
        max_turns: config.max_turns.as_ref().map_or(default.max_turns, |turns| turns.value),
        max_output_tokens: config.max_output_tokens.as_ref().map(|tokens| tokens.value),
        context_window: config.context_window.as_ref().map(|tokens| tokens.value.into()),
        ..default
    }
}

/// The system prompt of each round.
#[derive(Debug)]
pub(super) struct System(pub(super) PromptSource);

#[async_trait]
impl SystemSource for System {
    async fn system(&self, _round: u32) -> SystemPrompt {
        self.0.prompt()
    }
}
