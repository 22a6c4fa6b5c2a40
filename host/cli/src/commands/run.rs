//! `belljar run`: one task, from the prompt to the exit code.

use super::drive::{self, Plan};
use crate::{
    approver::TerminalApprover,
    arguments::{OutputArguments, RunArguments},
    exit, model,
    prompt::{self, Prompt},
    screen::SharedScreen,
    setup::{self, Grants, Opened, Opening},
    show::{ResultLines, Sink},
    signals,
    tty::Tty,
};
use async_trait::async_trait;
use belljar_agent::{Agent, RunRequest, Settings, SystemSource};
use belljar_sandbox::Watching;
use belljar_types::{Part, PermissionMode, SystemPrompt};
use belljar_workspace::{
    Clock, Config, Flags, GrantStore, Instructions, Places, PromptSource, SessionStore, Workspace,
};
use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) async fn run(arguments: RunArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let cancel = signals::cancel_on_signals()?;
    let prompt = prompt::assemble(arguments.prompt.as_deref(), &cancel).await?;
    let Prompt::Parts { parts, notices } = prompt else {
        drive::canceled_early(&screen, &arguments.output);
        return Ok(exit::CANCELED);
    };
    let preparing = prepare(&arguments, parts, notices, &screen, &cancel);
    let prepared = tokio::select! {
        prepared = preparing => prepared,
        () = cancel.cancelled() => {
            drive::canceled_early(&screen, &arguments.output);
            return Ok(exit::CANCELED);
        }
    };
    match prepared {
        Ok(plan) => drive::drive(plan).await,
        Err(error) => {
            drive::failed_early(&screen, &arguments.output, &error);
            Err(error)
        }
    }
}

/// Wires everything that the run needs, the cheapest first, so that a mistake is told at once.
async fn prepare(
    arguments: &RunArguments,
    prompt: Vec<Part>,
    mut notices: Vec<String>,
    screen: &SharedScreen,
    cancel: &CancellationToken,
) -> anyhow::Result<Plan> {
    let RunArguments { world, policy, output, .. } = arguments;
    let places = Places::from_env()?;
    let workspace = setup::workspace(world.workspace.as_deref())?;
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
    let mode = permission_mode(&config, screen);
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
    let clock = Clock::system();
    let journal = SessionStore::open(&places)?.create(workspace.folder(), &clock)?;

    let full_name = format!("{}/{}", chosen.model.provider(), chosen.model.name());
    let system = PromptSource::new(workspace.clone(), &instructions, full_name, clock);
    let (shown, sees) = watch::channel(String::new());
    let agent = Agent {
        model: Some(chosen.model),
        toolbox: Arc::new(sandbox.clone()),
        approver: Arc::new(
            TerminalApprover::new(terminal(screen), screen.clone(), sees)
                .writing_to(GrantStore::new(&places, file), workspace.folder()),
        ),
        journal: Arc::new(journal),
        settings: settings(&config),
    };
    let request = request(mode, &workspace, prompt, System(system), cancel);
    let lines = if output.talk.verbose { ResultLines(40) } else { ResultLines(3) };
    let sink = sink(screen, output, lines);
    Ok(Plan { agent, request, notices, sink, shown })
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
fn permission_mode(config: &Config, screen: &SharedScreen) -> PermissionMode {
    let default =
        if has_person(screen) { PermissionMode::Default } else { PermissionMode::DontAsk };
    setup::permission_mode(config, default)
}

fn settings(config: &Config) -> Settings {
    let default = Settings::default();
    Settings {
        max_turns: config.max_turns.as_ref().map_or(default.max_turns, |turns| turns.value),
        max_output_tokens: config.max_output_tokens.as_ref().map(|tokens| tokens.value),
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
