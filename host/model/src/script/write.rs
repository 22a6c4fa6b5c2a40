//! Turns as lines of a script, so that playing one streams what was said: in the keys that people
//! write where they play to the same events, else piece by piece.

use super::{format, play};
use crate::ids::CallIds;
use belljar_types::{Arguments, FinishReason, ModelError, ModelEvent, Reasoning, ToolCall, Usage};
use serde_json::{Map, Value, json};

/// The line, without its end, of a turn that streamed `items`; the last of them is `Done` or an
/// error.
pub(crate) fn line(items: &[Result<ModelEvent, ModelError>]) -> String {
    let plain = plain(items).to_string();
    if plays_to(&plain, items) { plain } else { whole(items).to_string() }
}

fn plays_to(line: &str, items: &[Result<ModelEvent, ModelError>]) -> bool {
    match format::parse(line).as_deref() {
        Ok([turn]) => play(turn, CallIds::default()) == items,
        _ => false,
    }
}

fn plain(items: &[Result<ModelEvent, ModelError>]) -> Value {
    let mut reasoning = String::new();
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut figures = None;
    let mut turn = Map::new();
    for item in items {
        match item {
            Ok(ModelEvent::ReasoningDelta(more)) => reasoning.push_str(more),
            Ok(ModelEvent::Text(more)) => text.push_str(more),
            Ok(ModelEvent::ToolCall(made)) => calls.push(call(made)),
            Ok(ModelEvent::Usage(latest)) => figures = Some(usage(latest)),
            _ => {}
        }
    }
    if !reasoning.is_empty() {
        turn.insert("reasoning".to_owned(), reasoning.into());
    }
    if !text.is_empty() {
        turn.insert("text".to_owned(), text.into());
    }
    if !calls.is_empty() {
        turn.insert("calls".to_owned(), calls.into());
    }
    turn.extend(figures.map(|usage| ("usage".to_owned(), usage)));
    turn.extend(items.last().and_then(end));
    turn.into()
}

fn whole(items: &[Result<ModelEvent, ModelError>]) -> Value {
    let stream: Vec<_> = items
        .iter()
        .filter_map(|item| {
            Some(match item.as_ref().ok()? {
                ModelEvent::Text(text) => json!({ "text": text }),
                ModelEvent::ReasoningDelta(text) => json!({ "reasoning": text }),
                ModelEvent::Reasoning(reasoning) => json!({ "kept": kept(reasoning) }),
                ModelEvent::ToolCall(made) => json!({ "call": call(made) }),
                ModelEvent::Usage(figures) => json!({ "usage": usage(figures) }),
                ModelEvent::Done(_) => return None,
            })
        })
        .collect();
    let mut turn = Map::from_iter([("stream".to_owned(), stream.into())]);
    turn.extend(items.last().and_then(end));
    turn.into()
}

/// How a turn ends, unless it ends as every turn does that says nothing else.
fn end(item: &Result<ModelEvent, ModelError>) -> Option<(String, Value)> {
    let finish = match item {
        Err(error) => return Some(("error".to_owned(), failure(error))),
        Ok(ModelEvent::Done(finish)) => finish,
        Ok(_) => return None,
    };
    let name = match finish {
        FinishReason::Stop => return None,
        FinishReason::Length => "length",
        FinishReason::Refused => "refused",
        FinishReason::Pause => "pause",
    };
    Some(("finish".to_owned(), name.into()))
}

fn failure(error: &ModelError) -> Value {
    let ModelError { kind, message, retry_after } = error;
    let mut value = json!({ "kind": kind.name(), "message": message });
    if let Some(wait) = retry_after {
        // A part of a millisecond counts whole: it is the least wait.
        let millis = wait.as_nanos().div_ceil(1_000_000);
        value["retry_after_ms"] = u64::try_from(millis).unwrap_or(u64::MAX).into();
    }
    value
}

fn call(call: &ToolCall) -> Value {
    let ToolCall { id, tool, arguments } = call;
    let arguments = match arguments {
        Arguments::Object(map) => map.clone().into(),
        Arguments::Text(text) => Value::from(text.as_str()),
    };
    json!({ "tool": tool, "arguments": arguments, "id": id })
}

fn kept(reasoning: &Reasoning) -> Value {
    let Reasoning { text, signature, data } = reasoning;
    let mut value = json!({ "text": text });
    for (key, part) in [("signature", signature), ("data", data)] {
        if let Some(part) = part {
            value[key] = part.as_str().into();
        }
    }
    value
}

fn usage(usage: &Usage) -> Value {
    let Usage { input_tokens, output_tokens, cached_tokens } = usage;
    let figures = [
        ("input_tokens", input_tokens),
        ("output_tokens", output_tokens),
        ("cached_tokens", cached_tokens),
    ];
    figures.into_iter().filter_map(|(key, figure)| Some((key, (*figure)?))).collect()
}
