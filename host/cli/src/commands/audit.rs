//! `belljar audit`: the receipts of a session's calls.

use crate::{
    arguments::AuditArguments,
    arguments_block, exit,
    screen::SharedScreen,
    setup,
    show::{denials::denial, receipt},
    visible,
};
use anyhow::bail;
use belljar_types::{
    Action, Arguments, CallTimes, DecidedBy, Decision, Message, Receipt, Record, ToolError,
    ToolErrorKind,
};
use belljar_workspace::{LoadedSession, Places, SessionStore};
use serde::Serialize;
use std::collections::HashMap;

/// Paths and hosts that are named of each kind.
const NAMED: usize = 20;
/// Characters of a detail.
const DETAIL: usize = 400;

pub(crate) fn audit(arguments: &AuditArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let AuditArguments { session, json, workspace } = arguments;
    let store = SessionStore::open(&Places::from_env()?)?;
    let id = match session {
        Some(id) => id.clone(),
        None => {
            let workspace = setup::workspace(workspace.as_deref())?;
            match store.latest(workspace.folder())? {
                Some(id) => id,
                None => bail!(
                    "no session has been kept of `{}`: name one that `belljar sessions list` shows",
                    workspace.folder().display()
                ),
            }
        }
    };
    let session = store.load(&id)?;
    let mut screen = screen.lock();
    for notice in &session.notices {
        screen.note(&format!("note: {notice}"));
    }
    let written = match json {
        true => calls(&session).iter().try_for_each(|call| screen.json(call)),
        false => screen.product(&text(&session)),
    };
    written.map_or_else(exit::of_write_error, |()| Ok(exit::COMPLETED))
}

/// All receipts of a session, for people.
pub(super) fn text(session: &LoadedSession) -> String {
    table(session, &calls(session))
}

/// One call as the session has it.
#[derive(Debug, Serialize)]
struct Call<'a> {
    call_id: &'a str,
    /// The name that the model used.
    tool: Option<&'a str>,
    arguments: Option<&'a Arguments>,
    /// Nothing where the call never came to an end.
    ok: Option<bool>,
    error: Option<&'a ToolError>,
    receipt: Option<&'a Receipt>,
}

/// The calls in the order in which they were made.
fn calls(session: &LoadedSession) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut at = HashMap::new();
    for record in &session.records {
        let (agent, record) = innermost(record);
        match record {
            Record::Message { message } => match &**message {
                Message::Assistant(assistant) => {
                    for call in assistant.calls() {
                        at.insert((agent, call.id.as_str()), calls.len());
                        calls.push(Call {
                            call_id: &call.id,
                            tool: Some(&call.tool),
                            arguments: Some(&call.arguments),
                            ok: None,
                            error: None,
                            receipt: None,
                        });
                    }
                }
                Message::Tool(tool) => {
                    let result = &tool.result;
                    if let Some(at) = at.get(&(agent, result.call_id.as_str())) {
                        calls[*at].ok = Some(result.outcome.is_ok());
                        calls[*at].error = result.outcome.as_ref().err();
                    }
                }
                Message::User(_) => {}
            },
            Record::CallDone { call_id, receipt } => match at.get(&(agent, call_id.as_str())) {
                Some(at) => calls[*at].receipt = receipt.as_ref(),
                // What was asked for is lost, what it did is not.
                None => calls.push(Call {
                    call_id,
                    tool: None,
                    arguments: None,
                    ok: None,
                    error: None,
                    receipt: receipt.as_ref(),
                }),
            },
            Record::RunStarted { .. }
            | Record::CallStarted { .. }
            | Record::Usage { .. }
            | Record::Replaced { .. }
            | Record::SkillLoaded { .. }
            | Record::PlanNoted { .. }
            | Record::Subagent { .. }
            | Record::Stopped { .. } => {}
        }
    }
    calls
}

/// A record and the subagent that it is of, if it is one's.
fn innermost(mut record: &Record) -> (Option<&str>, &Record) {
    let mut of = None;
    while let Record::Subagent { agent, inner, .. } = record {
        of = Some(&**agent);
        record = inner;
    }
    (of, record)
}

const COLUMNS: usize = 10;
/// The columns at the left that hold words.
const WORDS: usize = 3;
const HEAD: [&str; COLUMNS] =
    ["#", "tool", "end", "total", "wait", "start", "guest", "host", "fuel", "memory"];

/// The calls as a table, each with what it touched and was refused below it.
fn table(session: &LoadedSession, calls: &[Call<'_>]) -> String {
    let mut text = match &session.header {
        Some(header) => {
            format!("session {} in {}\n", session.id, visible::line(&header.workspace))
        }
        None => format!("session {}\n", session.id),
    };
    if calls.is_empty() {
        text.push_str("no tool was called\n");
        return text;
    }
    let rows: Vec<_> = calls.iter().enumerate().map(|(at, call)| row(at + 1, call)).collect();
    let mut widths = HEAD.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    text.push_str(&line(&HEAD.map(str::to_owned), widths));
    let indent = " ".repeat(widths[0] + 2);
    for (row, call) in rows.iter().zip(calls) {
        text.push_str(&line(row, widths));
        for detail in details(call) {
            text.push_str(&format!("{indent}{}\n", visible::short(&detail, DETAIL)));
        }
    }
    text
}

/// Words to the left, numbers to the right.
fn line(cells: &[String; COLUMNS], widths: [usize; COLUMNS]) -> String {
    let cells = cells.iter().zip(widths).enumerate().map(|(at, (cell, width))| match at {
        0..WORDS => format!("{cell:width$}"),
        _ => format!("{cell:>width$}"),
    });
    let line = cells.collect::<Vec<_>>().join("  ");
    format!("{}\n", line.trim_end())
}

fn row(number: usize, call: &Call<'_>) -> [String; COLUMNS] {
    let end = match (call.ok, call.error) {
        (Some(true), _) => "ok".to_owned(),
        (_, Some(error)) => error.kind.to_string(),
        _ => "unknown".to_owned(),
    };
    let tool = call.tool.or(call.receipt.map(|receipt| receipt.tool.as_str()));
    let tool = visible::short(tool.unwrap_or("?"), 64);
    let [total, wait, start, guest, host, fuel, memory] = match call.receipt {
        None => std::array::from_fn(|_| "-".to_owned()),
        Some(receipt) => {
            let CallTimes { waiting_us, instantiate_us, run_us, host_us } = receipt.times;
            let total = waiting_us.saturating_add(instantiate_us).saturating_add(run_us);
            let guest = run_us.saturating_sub(host_us);
            let [total, wait, start, guest, host] =
                [total, waiting_us, instantiate_us, guest, host_us].map(receipt::milliseconds);
            let memory = receipt::size(receipt.peak_memory_bytes);
            [total, wait, start, guest, host, share(receipt), memory]
        }
    };
    [number.to_string(), tool, end, total, wait, start, guest, host, fuel, memory]
}

/// Fuel as a share of what was allowed.
fn share(receipt: &Receipt) -> String {
    if receipt.fuel_limit == 0 {
        return "-".to_owned();
    }
    // Tenths of a percent, rounded up: something is never nothing.
    let used = u128::from(receipt.fuel_used) * 1_000;
    let tenths = used.div_ceil(u128::from(receipt.fuel_limit));
    format!("{}.{} %", tenths / 10, tenths % 10)
}

fn details(call: &Call<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(arguments) = call.arguments {
        lines.push(arguments_block::short(arguments));
    }
    if let Some(receipt) = call.receipt {
        let plugin = format!("plugin {} {}", receipt.source.plugin, receipt.source.digest);
        lines.push(format!("{}; {}", decided(&receipt.decision), plugin));
        if receipt.read_only {
            lines.push("in a read-only world".to_owned());
        }
        lines.extend(named("read", &receipt.files_read));
        lines.extend(named("wrote", &receipt.files_written));
        lines.extend(named("contacted", &receipt.hosts));
        lines.extend(receipt.denied.iter().map(|one| format!("refused: {}", denial(one))));
    }
    match call.error {
        Some(error) if call.receipt.is_none_or(|receipt| receipt.denied.is_empty()) => {
            let remedy = error.remedy.as_ref().map(|remedy| format!("; `{remedy}` allows it"));
            let first = error.message.lines().next().unwrap_or_default();
            let what = if error.kind == ToolErrorKind::Denied { "refused" } else { "failed" };
            lines.push(format!("{what}: {first}{}", remedy.unwrap_or_default()));
        }
        Some(_) => {}
        None if call.ok.is_none() => {
            lines.push("how it ended is not recorded; it may have taken effect".to_owned());
        }
        None => {}
    }
    lines.retain(|line| !line.is_empty());
    lines
}

fn decided(decision: &Decision) -> String {
    let action = match decision.action {
        Action::Allow => "allowed",
        Action::Ask => "asked",
        Action::Deny => "denied",
    };
    match &decision.by {
        DecidedBy::Person => format!("{action} by you"),
        DecidedBy::Rule { rule } => format!("{action} by the rule `{rule}`"),
        DecidedBy::Mode { mode } => format!("{action} by the permission mode `{mode}`"),
        DecidedBy::ProtectedPath { path } => format!("{action}: `{path}` is protected"),
    }
}

fn named(verb: &str, names: &[String]) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("{verb} {shown}{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::receipt::tests::receipt as sample;
    use belljar_types::{
        AssistantMessage, AssistantPart, Origin, ToolCall, ToolMessage, ToolOutput, ToolResult,
    };
    use serde_json::json;
    use std::sync::Arc;

    fn asked(calls: &[(&str, &str)]) -> Record {
        let parts = calls
            .iter()
            .map(|(id, tool)| {
                AssistantPart::ToolCall(ToolCall {
                    id: (*id).to_owned(),
                    tool: (*tool).to_owned(),
                    arguments: Arguments::parse(r#"{"path": "a"}"#),
                })
            })
            .collect();
        let message = AssistantMessage { parts, model: "script/x".to_owned(), cut: false };
        Record::Message { message: Arc::new(Message::Assistant(message)) }
    }

    fn ended(id: &str, outcome: Result<ToolOutput, ToolError>) -> Record {
        let result = ToolResult {
            call_id: id.to_owned(),
            tool: String::new(),
            outcome,
            origin: Origin::Host,
        };
        Record::Message { message: Arc::new(Message::Tool(ToolMessage { result })) }
    }

    fn session() -> LoadedSession {
        let denied = ToolError::new(ToolErrorKind::Denied, "no\nmore")
            .with_remedy("--allow files/write_file");
        let mut used = sample();
        used.fuel_used = 15;
        used.fuel_limit = 10_000;
        used.denied[0].grant = Some("files.read=/etc:/etc".to_owned());
        let done = |id: &str, receipt| Record::CallDone { call_id: id.to_owned(), receipt };
        LoadedSession {
            id: "0199".to_owned(),
            header: None,
            records: vec![
                asked(&[("1", "read_file"), ("2", "write_file"), ("3", "long\u{1b}[2J")]),
                ended("1", Ok(ToolOutput::text("x"))),
                done("1", Some(used)),
                ended("2", Err(denied)),
                done("2", None),
                Record::CallStarted { call_id: "3".to_owned() },
            ],
            notices: Vec::new(),
        }
    }

    #[test]
    fn the_table_says_what_ran_what_it_touched_and_what_was_refused() {
        let session = session();
        insta::assert_snapshot!(table(&session, &calls(&session)));
    }

    #[test]
    fn each_call_is_one_json_object() {
        let session = session();
        let calls = calls(&session);
        let told: Vec<_> = calls
            .iter()
            .map(|call| serde_json::to_value(call).unwrap())
            .map(|call| json!([call["call_id"], call["ok"], call["receipt"]["fuel_used"]]))
            .collect();
        assert_eq!(
            told,
            [json!(["1", true, 15]), json!(["2", false, null]), json!(["3", null, null])]
        );
    }
}
