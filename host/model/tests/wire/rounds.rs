//! The next round: every answer that came to an end goes back in a request that its server takes,
//! with what the server wants back in it byte for byte.

use crate::{
    fixtures::{
        ANTHROPIC, GEMINI, MISTRAL, OPENAI, RESPONSES, WIRES, Wire, content, model, request,
        result, text, user,
    },
    server::{Answer, Server},
    vector::{self, Pace},
};
use belljar_types::{
    AssistantMessage, AssistantPart, Conversation, FinishReason, Message, ModelEvent, Reasoning,
};
use futures::StreamExt;
use serde_json::Value;
use std::path::Path;

#[tokio::test]
async fn what_was_answered_goes_back() {
    for wire in WIRES {
        let mut rounds = 0;
        let mut kept = 0;
        for path in wire.answers() {
            let Some(answer) = answered(wire, &path).await else { continue };
            let body = next_request(wire, &answer, &path).await;
            let at = path.display().to_string();
            match wire {
                ANTHROPIC => anthropic(&body, &at),
                RESPONSES => responses(&body, &at),
                _ => chat(wire, &body, &at),
            }
            for reasoning in reasonings(&answer) {
                for word in secrets(reasoning) {
                    assert!(holds(&body, &word), "{at}: `{word}` is not in {body}");
                    kept += 1;
                }
            }
            rounds += 1;
        }
        assert!(rounds > 5, "{}: {rounds} rounds", wire.name);
        assert!(kept > 0 || wire == MISTRAL, "{}: nothing was kept", wire.name);
    }
}

/// The message that an answer becomes, or nothing where it failed or says nothing.
async fn answered(wire: Wire, path: &Path) -> Option<AssistantMessage> {
    let server = Server::start(vector::read(path, Pace::AtOnce)).await;
    let items: Vec<_> = model(wire, &server.address).stream(request()).collect().await;
    let mut parts: Vec<AssistantPart> = Vec::new();
    for item in items {
        match item.ok()? {
            ModelEvent::Text(more) => match parts.last_mut() {
                Some(AssistantPart::Text { text }) => text.push_str(&more),
                _ => parts.push(AssistantPart::Text { text: more }),
            },
            ModelEvent::Reasoning(reasoning) => parts.push(AssistantPart::Reasoning(reasoning)),
            ModelEvent::ToolCall(call) => parts.push(AssistantPart::ToolCall(call)),
            ModelEvent::Done(FinishReason::Refused) => return None,
            _ => {}
        }
    }
    let says_something = parts.iter().any(|part| !matches!(part, AssistantPart::Reasoning(_)));
    says_something.then(|| AssistantMessage { parts, model: wire.full_name(), cut: false })
}

/// The body of the request after it, with a result for each call and a word of the person's.
async fn next_request(wire: Wire, answer: &AssistantMessage, path: &Path) -> Value {
    let mut request = request();
    let mut conversation: Conversation = request.conversation.clone();
    conversation.push(Message::Assistant(answer.clone()));
    for call in answer.calls() {
        conversation.push(result(&call.id, &call.tool, content(vec![text("done")])));
    }
    conversation.push(user(vec![text("Go on.")]));
    conversation.check().unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
    request.conversation = conversation;
    let server = Server::start(Answer::new(&["HTTP/1.1 500 Enough"], "")).await;
    model(wire, &server.address).stream(request).collect::<Vec<_>>().await;
    server.received().await.body
}

fn reasonings(answer: &AssistantMessage) -> impl Iterator<Item = &Reasoning> {
    answer.parts.iter().filter_map(|part| match part {
        AssistantPart::Reasoning(reasoning) => Some(reasoning),
        _ => None,
    })
}

/// The texts that only the server can read.
fn secrets(reasoning: &Reasoning) -> Vec<String> {
    let mut list = Vec::new();
    for text in [&reasoning.signature, &reasoning.data].into_iter().flatten() {
        match serde_json::from_str::<Value>(text) {
            Ok(value) if value.is_object() => texts(&value, &mut list),
            _ => list.push(text.clone()),
        }
    }
    assert!(!list.is_empty(), "{reasoning:?}");
    list
}

/// All texts inside a value.
fn texts(value: &Value, list: &mut Vec<String>) {
    match value {
        Value::String(text) => list.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, list)),
        Value::Object(map) => map.values().for_each(|value| texts(value, list)),
        _ => {}
    }
}

fn holds(body: &Value, word: &str) -> bool {
    let mut all = Vec::new();
    texts(body, &mut all);
    all.iter().any(|text| text == word)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn strings<'a>(values: impl IntoIterator<Item = &'a Value>, key: &str) -> Vec<String> {
    values.into_iter().filter_map(|value| Some(value[key].as_str()?.to_owned())).collect()
}

/// Roles take turns, and the results of a message's calls are the first of the next one.
fn anthropic(body: &Value, at: &str) {
    let messages = list(&body["messages"]);
    for pair in messages.windows(2) {
        assert_ne!(pair[0]["role"], pair[1]["role"], "{at}: {body}");
        let of_kind = |message: &Value, kind: &str, key: &str| {
            strings(list(&message["content"]).iter().filter(|block| block["type"] == kind), key)
        };
        let calls = of_kind(&pair[0], "tool_use", "id");
        let results = of_kind(&pair[1], "tool_result", "tool_use_id");
        assert_eq!(calls, results, "{at}: {body}");
        let first = list(&pair[1]["content"]).iter().take(results.len());
        assert!(first.into_iter().all(|block| block["type"] == "tool_result"), "{at}: {body}");
    }
}

/// Each call's result is right after the message that made it, and the dialects' own rules hold.
fn chat(wire: Wire, body: &Value, at: &str) {
    let messages = list(&body["messages"]);
    let is = |message: &Value, role: &str| message["role"] == role;
    for (place, message) in messages.iter().enumerate() {
        let calls = list(&message["tool_calls"]);
        let following = messages[place + 1..].iter().take_while(|message| is(message, "tool"));
        if is(message, "assistant") {
            let ids = strings(calls, "id");
            assert_eq!(ids, strings(following, "tool_call_id"), "{at}: {body}");
            if wire == MISTRAL {
                let is_nine = |id: &String| {
                    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
                };
                assert!(ids.iter().all(is_nine), "{at}: {ids:?}");
            }
        }
        if wire == GEMINI && !calls.is_empty() {
            let signature =
                |call: &Value| call["extra_content"]["google"]["thought_signature"].is_string();
            assert!(calls.iter().any(signature), "{at}: {body}");
        }
    }
    for pair in messages.windows(2) {
        let is_refused = is(&pair[0], "tool") && is(&pair[1], "user");
        assert!(wire != MISTRAL || !is_refused, "{at}: {body}");
        assert!(wire == OPENAI || !is(&pair[0], "user") || !is(&pair[1], "user"), "{at}: {body}");
    }
}

/// Each call has one result after it, and reasoning is never the last thing that was said.
fn responses(body: &Value, at: &str) {
    let items = list(&body["input"]);
    let of_kind = |kind: &str| strings(items.iter().filter(|item| item["type"] == kind), "call_id");
    assert_eq!(of_kind("function_call"), of_kind("function_call_output"), "{at}: {body}");
    for pair in items.windows(2) {
        if pair[0]["type"] == "reasoning" {
            let kind = pair[1]["type"].as_str();
            let leads_on = matches!(kind, Some("reasoning" | "function_call"));
            assert!(leads_on || pair[1]["role"] == "assistant", "{at}: {body}");
        }
    }
    assert!(items.last().is_none_or(|item| item["type"] != "reasoning"), "{at}: {body}");
}
