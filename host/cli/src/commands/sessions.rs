//! `belljar sessions`: what was kept of runs, to look at and to remove.

use crate::{
    arguments::SessionsCommand,
    arguments_block,
    confirm::confirm,
    exit,
    screen::{SharedScreen, Tone},
    show::receipt,
    visible,
};
use belljar_types::{AssistantPart, Content, Message, Record, ToolResult};
use belljar_workspace::{LoadedSession, Places, SessionStore, SessionSummary};
use std::io;

/// Lines of a tool's result.
const RESULT_LINES: usize = 20;
/// Characters of one of them.
const RESULT_LINE: usize = 200;

pub(crate) async fn sessions(command: SessionsCommand, screen: SharedScreen) -> anyhow::Result<u8> {
    let store = SessionStore::open(&Places::from_env()?)?;
    let written = match command {
        SessionsCommand::List => list(&store, &screen)?,
        SessionsCommand::Show { id } => show(&store.load(&id)?, &screen),
        SessionsCommand::Remove { id, yes } => return remove(&store, &id, yes, &screen).await,
    };
    written.map_or_else(exit::of_write_error, |()| Ok(exit::COMPLETED))
}

fn list(store: &SessionStore, screen: &SharedScreen) -> anyhow::Result<io::Result<()>> {
    let list = store.list()?;
    let lines: String = list.sessions.iter().map(line).collect();
    let mut screen = screen.lock();
    for notice in &list.notices {
        screen.note(&format!("note: {notice}"));
    }
    if lines.is_empty() {
        screen.note("no session has been kept yet");
        return Ok(Ok(()));
    }
    Ok(screen.product(&lines))
}

fn line(session: &SessionSummary) -> String {
    let SessionSummary { id, header, bytes, .. } = session;
    let (created, workspace) = match header {
        Some(header) => (header.created.as_str(), header.workspace.as_str()),
        None => ("its first line is lost", ""),
    };
    let text = format!(
        "{id}  {}  {:>8}  {}",
        visible::line(created),
        receipt::size(*bytes),
        visible::line(workspace)
    );
    format!("{}\n", text.trim_end())
}

fn show(session: &LoadedSession, screen: &SharedScreen) -> io::Result<()> {
    let mut screen = screen.lock();
    for notice in &session.notices {
        screen.note(&format!("note: {notice}"));
    }
    screen.product(&conversation(session))
}

/// The conversation as people read it.
fn conversation(session: &LoadedSession) -> String {
    let mut text = String::new();
    let mut say = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    if let Some(header) = &session.header {
        let (created, workspace) =
            (visible::line(&header.created), visible::line(&header.workspace));
        say(&format!("session {} of {created} in {workspace}", session.id));
    }
    for record in &session.records {
        match record {
            Record::RunStarted { model, permission_mode, .. } => {
                let model = visible::line(model);
                say(&format!("\n── run with {model}, permission mode {permission_mode}"));
            }
            Record::Message { message } => {
                for line in message_lines(message) {
                    say(&line);
                }
            }
            Record::Stopped { reason, message } => {
                let reason = serde_json::to_string(reason).unwrap_or_default();
                let reason = reason.trim_matches('"').replace('_', " ");
                let why = if message.is_empty() { String::new() } else { format!(": {message}") };
                say(&format!("\n── {reason}{}", visible::line(&why)));
            }
            Record::Replaced { dropped, .. } => {
                say(&format!("\n── the {dropped} oldest messages made room for later ones"));
            }
            Record::CallStarted { .. }
            | Record::CallDone { .. }
            | Record::Usage { .. }
            | Record::SkillLoaded { .. }
            | Record::PlanNoted { .. }
            | Record::Subagent { .. } => {}
        }
    }
    text
}

fn message_lines(message: &Message) -> Vec<String> {
    let block = |text: &str| -> Vec<String> {
        text.lines().map(|line| format!("  {}", visible::line(line))).collect()
    };
    match message {
        Message::User(user) => {
            let mut lines = vec!["\nperson:".to_owned()];
            lines.extend(user.parts.iter().flat_map(|part| block(&content(&part.content))));
            lines
        }
        Message::Assistant(assistant) => {
            let mut lines = vec!["\nmodel:".to_owned()];
            for part in &assistant.parts {
                match part {
                    AssistantPart::Text { text } => lines.extend(block(text)),
                    AssistantPart::Reasoning(_) => {}
                    AssistantPart::ToolCall(call) => lines.push(format!(
                        "  → {} {}",
                        visible::line(&call.tool),
                        arguments_block::short(&call.arguments)
                    )),
                }
            }
            lines
        }
        Message::Tool(tool) => result_lines(&tool.result),
    }
}

fn content(content: &Content) -> String {
    match content {
        Content::Text { text } => text.clone(),
        other => format!("[{}]", receipt::content(other)),
    }
}

fn result_lines(result: &ToolResult) -> Vec<String> {
    let tool = visible::line(&result.tool);
    let (head, text) = match &result.outcome {
        Ok(output) => {
            let texts: Vec<_> = output.content.iter().map(content).collect();
            (format!("\n{tool}:"), texts.join("\n"))
        }
        Err(error) => (format!("\n{tool} failed:"), receipt::failure(error)),
    };
    let all: Vec<_> = text.lines().collect();
    let mut lines = vec![head];
    lines.extend(
        all.iter()
            .take(RESULT_LINES)
            .map(|line| format!("  {}", visible::short(line, RESULT_LINE))),
    );
    if all.len() > RESULT_LINES {
        lines.push(format!("  … {} more lines", all.len() - RESULT_LINES));
    }
    lines
}

async fn remove(
    store: &SessionStore,
    id: &str,
    yes: bool,
    screen: &SharedScreen,
) -> anyhow::Result<u8> {
    if !yes {
        let session = store.load(id)?;
        let messages = session.conversation().messages().len();
        let question = format!("remove session {} with {messages} messages for good?", session.id);
        if !confirm(screen, &question).await? {
            screen.lock().toned(Tone::Plain, "nothing was changed");
            return Ok(exit::FAILED);
        }
    }
    store.remove(id)?;
    screen.lock().note(&format!("removed session {id}"));
    Ok(exit::COMPLETED)
}
