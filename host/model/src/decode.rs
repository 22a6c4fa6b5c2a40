//! What the protocols' decoders have in common: events of the stream go in, model events come
//! out. Decoders are pure; reading, waiting and limits are the reader's.

use crate::{ids::CallIds, names::ToolNames};
use belljar_types::{Arguments, ModelEvent, ToolCall};
use serde_json::Value;

/// Reads one answer.
pub(crate) trait Decoder: Send {
    /// Takes one event of the stream: its name, empty if it has none, and its data.
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Step, StreamFault>;

    /// Whether the reason for the end is known, so that only figures may be missing.
    fn is_answered(&self) -> bool;

    /// The stream is at its end: what is left, and `Done`. Called once, and only if `event` said
    /// [`Step::Finished`] or the answer is known to be whole.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault>;
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    More,
    /// Nothing that follows matters.
    Finished,
}

/// Why an event ends the stream.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamFault {
    /// The provider's own error object.
    Reported(Value),
    /// Not of the protocol, and how.
    Protocol(String),
}

/// Reads the data of an event. It must be a JSON object in the events that matter, those without
/// a name and those that `matters` knows; nothing for any other.
pub(crate) fn object(
    name: &str,
    data: &str,
    matters: fn(&str) -> bool,
) -> Result<Option<Value>, StreamFault> {
    match serde_json::from_str(data) {
        Ok(value @ Value::Object(_)) => Ok(Some(value)),
        _ if name == "error" => Err(StreamFault::Reported(Value::String(data.to_owned()))),
        _ if !name.is_empty() && !matters(name) => Ok(None),
        _ => {
            let start: String = data.chars().take(120).collect();
            Err(StreamFault::Protocol(format!("an event is no JSON object: `{start}`")))
        }
    }
}

/// The text at `key`, empty where there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The number at `key`, also where a server wrote it as a text or with a fraction.
pub(crate) fn number(value: &Value, key: &str) -> Option<u64> {
    match value.get(key)? {
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64))
        }
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A call that came whole. Nothing for one that never got as far as its name.
///
/// `suspect`: the length limit was reached at its end.
pub(crate) fn call(
    given: (&str, &str),
    arguments: Arguments,
    suspect: bool,
    names: &ToolNames,
    ids: &mut CallIds,
) -> Result<Option<ModelEvent>, StreamFault> {
    let (id, name) = given;
    if name.is_empty() {
        let says_nothing = match &arguments {
            Arguments::Object(map) => map.is_empty(),
            Arguments::Text(text) => text.trim().is_empty(),
        };
        return match suspect || says_nothing {
            true => Ok(None),
            false => Err(StreamFault::Protocol("a tool call without a name".to_owned())),
        };
    }
    let tool = names.original(name).to_owned();
    let id = ids.for_call(id, name);
    Ok(Some(ModelEvent::ToolCall(ToolCall { id, tool, arguments })))
}

/// More of the answer's text.
pub(crate) fn push_text(text: &str, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::Text(text.to_owned()));
    }
}

/// More of the reasoning.
pub(crate) fn push_reasoning(text: &str, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::ReasoningDelta(text.to_owned()));
    }
}

#[cfg(test)]
mod tests;
