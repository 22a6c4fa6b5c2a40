//! What the session's commands answer.

use super::backend::Live;
use crate::{
    commands::{audit, plugin},
    model, setup,
};
use belljar_capability::PluginGrant;
use belljar_model::built_in_providers;
use belljar_terminal::{Command, Reply, Shown, Table};
use belljar_types::{Event, EventKind, Journal as _, Message, Toolbox as _};
use belljar_workspace::{Flags, LoadedSession};
use std::sync::Arc;

/// Messages of a resumed session that are shown.
const SHOWN: usize = 20;

pub(super) async fn carry_out(live: &Live, command: Command) -> Reply {
    let done = match command {
        Command::Status => Ok(status(live)),
        Command::Tools => Ok(tools(live)),
        Command::Plugins => Ok(plugins(live)),
        Command::Grants => grants(live),
        Command::Clear => clear(live),
        Command::Model(name) => choose_model(live, &name).await,
        Command::Resume(id) => resume(live, &id),
        Command::Audit(id) => receipts(live, &id),
        Command::Cost => Ok(cost(live)),
    };
    done.unwrap_or_else(|error| Reply::problem(format!("{error:#}")))
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> Reply {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    Reply { shown: vec![Shown::Table(Table { head, rows })] }
}

fn status(live: &Live) -> Reply {
    let parts = &live.0;
    let plugins = parts.sandbox.plugins();
    let offered = plugins.iter().filter(|plugin| plugin.is_offered()).count();
    let state = live.state();
    let rows = [
        ("model", format!("{}/{}", state.model.provider(), state.model.name())),
        ("permission mode", state.mode.to_string()),
        ("folder", parts.workspace.folder().display().to_string()),
        ("session", state.id.clone()),
        ("tools", format!("{}, of {offered} plugins", parts.sandbox.tools().len())),
        ("skills", parts.skills.catalog().count().to_string()),
        ("instructions", parts.instructions.files.len().to_string()),
    ];
    let rows = rows.into_iter().map(|(what, is)| vec![what.to_owned(), is]).collect();
    table(&["what", "is"], rows)
}

fn tools(live: &Live) -> Reply {
    let offered = live.0.sandbox.tools();
    let rows = offered.iter().map(|tool| {
        let first = tool.description.lines().next().unwrap_or_default();
        let hints = crate::commands::tools::hints(tool.hints);
        vec![tool.name.to_string(), hints.to_owned(), first.to_owned()]
    });
    table(&["tool", "hints", "what it does"], rows.collect())
}

fn plugins(live: &Live) -> Reply {
    let text: String = live.0.sandbox.plugins().iter().map(plugin::list_text).collect();
    Reply::text(text)
}

/// What is granted now, in the form that `belljar plugin grant` takes.
fn grants(live: &Live) -> anyhow::Result<Reply> {
    let parts = &live.0;
    let loaded = setup::configuration(
        &parts.places,
        parts.file.as_deref(),
        &parts.workspace,
        Flags::default(),
    )?;
    let rows: Vec<_> = loaded
        .config
        .plugins
        .iter()
        .flat_map(|(plugin, grant): (&String, &PluginGrant)| {
            let secrets = grant.secrets.iter().map(|secret| format!("secret {}", secret.name()));
            let grants: Vec<_> =
                grant.parts().iter().map(ToString::to_string).chain(secrets).collect();
            let grants = if grants.is_empty() { vec!["nothing".to_owned()] } else { grants };
            grants.into_iter().map(move |grant| vec![plugin.clone(), grant])
        })
        .collect();
    if rows.is_empty() {
        return Ok(Reply::text(
            "nothing is granted: the bundled tools have this folder, other plugins nothing; \
             `belljar plugin grant NAME …` grants",
        ));
    }
    Ok(table(&["plugin", "may"], rows))
}

/// A new conversation, in a session of its own.
fn clear(live: &Live) -> anyhow::Result<Reply> {
    let parts = &live.0;
    let journal = parts.store.create(parts.workspace.folder(), &parts.clock)?;
    let mut state = live.state();
    let before = std::mem::replace(&mut state.id, journal.session().to_owned());
    state.journal = Arc::new(journal);
    state.plan = None;
    Ok(Reply::text(format!("a new conversation; the one before is there with `/resume {before}`")))
}

async fn choose_model(live: &Live, name: &str) -> anyhow::Result<Reply> {
    if name.is_empty() {
        let mut names: Vec<_> =
            built_in_providers().into_iter().map(|provider| provider.name.to_string()).collect();
        names.extend(live.0.config.providers.keys().cloned());
        names.sort();
        names.dedup();
        let names = names.join(", ");
        return Ok(Reply::text(format!(
            "`/model PROVIDER/NAME`, where PROVIDER is one of {names}"
        )));
    }
    let parts = &live.0;
    let flags = Flags { model: Some(name.to_owned()), ..Flags::default() };
    let loaded =
        setup::configuration(&parts.places, parts.file.as_deref(), &parts.workspace, flags)?;
    let chosen = model::choose(&loaded.config).await?;
    live.state().model = chosen.model;
    Ok(Reply::text(format!("the model is `{name}` from the next turn on")))
}

fn resume(live: &Live, id: &str) -> anyhow::Result<Reply> {
    let parts = &live.0;
    if id.is_empty() {
        let list = parts.store.of_workspace(parts.workspace.folder())?;
        let current = live.state().id.clone();
        let rows = list.sessions.iter().map(|session| {
            let created = session.header.as_ref().map(|header| header.created.clone());
            let mark = if session.id == current { "this one" } else { "" };
            vec![session.id.clone(), created.unwrap_or_default(), mark.to_owned()]
        });
        return Ok(table(&["session", "begun", ""], rows.collect()));
    }
    if id == live.state().id {
        return Ok(Reply::text("this is that session"));
    }
    let (journal, loaded) = parts.store.resume(id)?;
    if let Some(header) = &loaded.header {
        anyhow::ensure!(
            header.workspace == parts.workspace.folder().to_string_lossy(),
            "the session `{id}` belongs to the folder `{}`",
            header.workspace
        );
    }
    {
        let mut state = live.state();
        state.id = id.to_owned();
        state.journal = Arc::new(journal);
        state.plan = None;
    }
    let mut shown: Vec<_> = loaded.notices.iter().cloned().map(Shown::Problem).collect();
    let messages = said(&loaded);
    let left_out = messages.len().saturating_sub(SHOWN);
    if left_out > 0 {
        shown.push(Shown::Text(format!("… {left_out} earlier messages")));
    }
    shown.extend(messages.into_iter().skip(left_out));
    Ok(Reply { shown })
}

/// What was said in a session.
fn said(session: &LoadedSession) -> Vec<Shown> {
    let conversation = session.conversation();
    let messages = conversation.messages().iter().filter_map(|message| match message.as_ref() {
        Message::User(user) => {
            let texts = user.parts.iter().filter_map(|part| match &part.content {
                belljar_types::Content::Text { text } => Some(text.as_str()),
                _ => None,
            });
            Some(Shown::Person(texts.collect::<Vec<_>>().join("\n")))
        }
        Message::Assistant(assistant) => {
            let text = assistant.text();
            let kind = EventKind::AssistantText { text };
            let event = Event { seq: 0, iteration: 0, agent: None, kind };
            (!assistant.text().is_empty()).then(|| Shown::Event(Box::new(event)))
        }
        Message::Tool(_) => None,
    });
    messages.collect()
}

fn receipts(live: &Live, id: &str) -> anyhow::Result<Reply> {
    let id = if id.is_empty() { live.state().id.clone() } else { id.to_owned() };
    Ok(Reply::text(audit::text(&live.0.store.load(&id)?)))
}

fn cost(live: &Live) -> Reply {
    let usage = live.state().usage;
    let tokens =
        |count: Option<u64>| count.map_or("not told".to_owned(), |count| count.to_string());
    table(
        &["tokens", "of this session's turns"],
        vec![
            vec!["input".to_owned(), tokens(usage.input_tokens)],
            vec!["of it from the cache".to_owned(), tokens(usage.cached_tokens)],
            vec!["output".to_owned(), tokens(usage.output_tokens)],
        ],
    )
}
