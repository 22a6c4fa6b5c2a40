//! `belljar` by itself: a session in this folder, at the terminal.
//!
//! What is seen and typed is `belljar-terminal`'s; this gives it the loop, and answers its commands.

mod backend;
mod commands;

use super::run::{permission_mode, session};
use crate::{
    arguments::SessionCommand,
    exit,
    lasting::Lasting,
    model,
    screen::SharedScreen,
    setup::{self, Grants, Opened, Opening},
};
use backend::{Live, State};
use belljar_sandbox::Watching;
use belljar_terminal::{Left, Settings, Why};
use belljar_types::{Journal as _, Mode, Usage};
use belljar_workspace::{Clock, Flags, GrantStore, Instructions, Places, SessionStore, Skills};
use std::sync::{Arc, Mutex};

pub(crate) async fn run(arguments: SessionCommand, screen: SharedScreen) -> anyhow::Result<u8> {
    let places = Places::from_env()?;
    let workspace = setup::workspace(arguments.world.workspace.as_deref())?;
    let file = arguments.world.plugins.config.clone();
    let flags = Flags {
        model: arguments.model.clone(),
        max_turns: arguments.max_turns,
        ..setup::flags(&arguments.policy)
    };
    let loaded = setup::configuration(&places, file.as_deref(), &workspace, flags)?;
    let mut notices = loaded.notices;
    let config = loaded.config;
    let own_plugins = loaded.workspace_plugins.as_deref();
    let folders = setup::plugin_folders(&places, &arguments.world.plugins, own_plugins)?;
    let chosen = model::choose(&config).await?;
    notices.extend(chosen.notice);
    let mode = permission_mode(&config, /* is_asked */ true);
    let Opened { sandbox, notices: about_sandbox } = setup::sandbox(Opening {
        places: &places,
        workspace: &workspace,
        folders,
        mode,
        rules: config.rules.clone(),
        grants: Grants::new(&config, &arguments.policy.grants, &workspace)?,
        watch: Watching::Told,
        screen: &screen,
    })
    .await?;
    notices.extend(about_sandbox);
    let instructions = Instructions::read(&workspace);
    notices.extend(instructions.notices.iter().cloned());
    let skills = Skills::read(&places, loaded.workspace_skills.as_deref());
    notices.extend(skills.notices().iter().cloned());
    let clock = Clock::system();
    let store = SessionStore::open(&places)?;
    let (journal, _) = session(&arguments.session, &store, &workspace, &clock, &mut notices)?;

    setup::show_notices(&screen, &notices);
    let (approver, questions) = belljar_terminal::approvals();
    let lasting = Lasting::new(GrantStore::new(&places, file.as_deref()), workspace.folder());
    let state = State {
        id: journal.session().to_owned(),
        journal: Arc::new(journal),
        model: chosen.model,
        mode,
        plan: None,
        task: String::new(),
        last: Mode::Chat,
        busy: None,
        usage: Usage::default(),
    };
    let live = Live::new(backend::Parts {
        file,
        places,
        workspace,
        config,
        sandbox,
        instructions,
        skills: Arc::new(skills),
        clock,
        store,
        approver,
        lasting,
        state: Mutex::new(state),
    });
    let settings = Settings { colour: screen.lock().has_colour() };
    let Left { session, why } = belljar_terminal::run(Arc::new(live), questions, settings).await?;
    if let Some(session) = session.filter(|_| why != Why::TerminalGone) {
        screen.lock().note(&format!("to go on: belljar --resume {session}"));
    }
    Ok(match why {
        Why::Person => exit::COMPLETED,
        Why::Signal | Why::TerminalGone => exit::CANCELED,
    })
}
