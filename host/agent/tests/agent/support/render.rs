//! Events and messages as short lines, so that tests compare whole lists and can be read. Every
//! field that a test could get wrong is in them.

use belljar_types::{
    Arguments, AssistantPart, Content, Conversation, Event, EventKind, Message, Part, Record,
    ToolResult, Usage,
};
use std::collections::{HashMap, VecDeque};

/// Each event as `AGENT:ITERATION type fields`.
pub(crate) fn lines(events: &[Event]) -> Vec<String> {
    let agent = |event: &Event| event.agent.as_ref().map(|agent| format!("{agent}:"));
    events
        .iter()
        .map(|event| {
            let agent = agent(event).unwrap_or_default();
            format!("{agent}{} {}", event.iteration, kind(&event.kind))
        })
        .collect()
}

/// What holds for every stream: numbers without gaps, one stop and it is the last, and for each
/// call of each agent a start, one result and one end. Results are in the order of the starts, each
/// with its end right behind it.
pub(crate) fn check_stream(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let stops: Vec<usize> = events
        .iter()
        .enumerate()
        .filter(|(_, event)| matches!(event.kind, EventKind::Stop { .. }))
        .map(|(index, _)| index)
        .collect();
    assert_eq!(stops, [events.len() - 1], "{:#?}", lines(events));
    // The calls without a result, and the one whose result was just told, by agent.
    let mut all: HashMap<_, (VecDeque<&str>, Option<&str>)> = HashMap::new();
    for event in events {
        let (open, told) = all.entry(event.agent.as_deref()).or_default();
        match &event.kind {
            EventKind::ToolCallStart { call_id, .. } => {
                assert!(!open.contains(&call_id.as_str()), "{call_id} starts twice");
                assert_eq!(*told, None, "{call_id} starts between a result and its end");
                open.push_back(call_id);
            }
            EventKind::ToolResult(result) => {
                assert_eq!(*told, None);
                assert_eq!(open.pop_front(), Some(result.call_id.as_str()));
                *told = Some(&result.call_id);
            }
            EventKind::ToolCallDone { call_id, .. } => {
                assert_eq!(told.take(), Some(call_id.as_str()));
            }
            _ => {}
        }
    }
    for (agent, (open, told)) in all {
        assert_eq!((open, told), (VecDeque::new(), None), "{agent:?}");
    }
}

/// Each message as a line.
pub(crate) fn conversation_lines(conversation: &Conversation) -> Vec<String> {
    conversation.messages().iter().map(|message| message_line(message)).collect()
}

fn message_line(message: &Message) -> String {
    match message {
        Message::User(user) => format!("user {}", content(&user.parts)),
        Message::Assistant(assistant) => {
            let parts: Vec<String> = assistant
                .parts
                .iter()
                .map(|part| match part {
                    AssistantPart::Text { text } => format!("{text:?}"),
                    AssistantPart::Reasoning(reasoning) => format!("<{}>", reasoning.text),
                    AssistantPart::ToolCall(call) => {
                        format!("{}:{}{}", call.id, call.tool, arguments(&call.arguments))
                    }
                })
                .collect();
            let cut = if assistant.cut { " (cut)" } else { "" };
            format!("assistant {}{cut}", parts.join(" "))
        }
        Message::Tool(tool) => format!("tool {}", result(&tool.result)),
    }
}

/// Each record as a line.
pub(crate) fn record_lines(records: &[Record]) -> Vec<String> {
    records.iter().map(record_line).collect()
}

fn record_line(record: &Record) -> String {
    match record {
        Record::RunStarted { model, mode, permission_mode } => {
            format!("run_started {model} {mode:?} {permission_mode}")
        }
        Record::Message { message } => message_line(message),
        Record::CallStarted { call_id } => format!("call_started {call_id}"),
        Record::CallDone { call_id, receipt } => {
            format!("call_done {call_id} {}", if receipt.is_some() { "receipt" } else { "-" })
        }
        Record::Usage { usage } => {
            format!("usage {:?}/{:?}", usage.input_tokens, usage.output_tokens)
        }
        Record::Replaced { head, dropped } => {
            let head: Vec<_> = head.iter().map(|message| message_line(message)).collect();
            format!("replaced {dropped} by {head:?}")
        }
        Record::SkillLoaded { name } => format!("skill_loaded {name}"),
        Record::PlanNoted { text } => format!("plan_noted {text:?}"),
        Record::Subagent { call_id, agent, inner } => {
            format!("{agent} of {call_id}: {}", record_line(inner))
        }
        Record::Stopped { reason, message } => format!("stopped {reason:?} {message:?}"),
    }
}

fn content(parts: &[Part]) -> String {
    parts
        .iter()
        .map(|part| match &part.content {
            Content::Text { text } => format!("{text:?}"),
            other => format!("{other:?}"),
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn arguments(arguments: &Arguments) -> String {
    serde_json::to_string(arguments).unwrap()
}

fn result(result: &ToolResult) -> String {
    let outcome = match &result.outcome {
        Ok(output) => format!(
            "ok {}",
            output
                .content
                .iter()
                .map(|content| match content {
                    Content::Text { text } => text.clone(),
                    other => format!("{other:?}"),
                })
                .collect::<Vec<_>>()
                .join(" ")
        ),
        Err(error) => error.to_string(),
    };
    format!("{} {} {outcome}", result.call_id, result.tool)
}

fn tokens(usage: &Usage) -> String {
    format!("{}/{}", usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0))
}

fn kind(kind: &EventKind) -> String {
    match kind {
        EventKind::Start { session, model, workspace, mode, permission_mode, tools } => format!(
            "start {session} {model} {workspace} {mode:?} {permission_mode} {} tools",
            tools.len()
        ),
        EventKind::RoundStart => "round_start".to_owned(),
        EventKind::TextDelta { text } => format!("text_delta {text:?}"),
        EventKind::ReasoningDelta { text } => format!("reasoning_delta {text:?}"),
        EventKind::AssistantText { text } => format!("assistant_text {text:?}"),
        EventKind::ToolCallStart { call_id, tool, plugin, arguments: given } => format!(
            "tool_call_start {call_id} {}:{tool} {}",
            plugin.as_deref().unwrap_or("-"),
            arguments(given)
        ),
        EventKind::Approval { call_id, tool, question, options } => {
            format!("approval {call_id} {tool} {question} {}", options.join(","))
        }
        EventKind::ApprovalAnswer { call_id, answer, by } => {
            format!("approval_answer {call_id} {answer} by {by}")
        }
        EventKind::ToolProgress { call_id, done, total, message } => {
            format!("tool_progress {call_id} {done}/{} {message}", total.unwrap_or(0))
        }
        EventKind::ToolOutput { call_id, text } => format!("tool_output {call_id} {text}"),
        EventKind::ToolResult(given) => format!("tool_result {}", result(given)),
        EventKind::ToolCallDone { call_id, receipt } => {
            format!("tool_call_done {call_id} {}", if receipt.is_some() { "receipt" } else { "-" })
        }
        EventKind::Usage { usage, total } => {
            format!("usage {} of {}", tokens(usage), tokens(total))
        }
        EventKind::Retry { what, attempt, delay_ms, reason } => {
            format!("retry {what} {attempt} in {delay_ms} ms: {reason}")
        }
        EventKind::Compaction { before_tokens, after_tokens } => {
            format!("compaction {before_tokens} {after_tokens}")
        }
        EventKind::Notice { message } => format!("notice {message}"),
        EventKind::Error { kind, message } => format!("error {kind}: {message}"),
        EventKind::Stop {
            reason,
            message,
            turns,
            duration_ms,
            usage,
            result,
            denials,
            denied: _,
            session,
        } => format!(
            "stop {reason:?} {message:?} turns={turns} ms={duration_ms} usage={} \
             result={result:?} denials={denials} {session}",
            tokens(usage)
        ),
    }
}
