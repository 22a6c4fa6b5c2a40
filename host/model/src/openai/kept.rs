//! What servers of this protocol want back beside text and calls: signatures of thoughts in
//! `extra_content`, at a call or at the message, and `reasoning_details`. In a conversation each is
//! a piece of reasoning whose signature is the fields as JSON, by the place that they go back to.

use crate::decode::text;
use belljar_types::Reasoning;
use serde_json::{Map, Value, json};

/// Fields that go back as they came.
#[derive(Debug, PartialEq)]
pub(super) enum Kept {
    /// Of the call that follows.
    Call(Map<String, Value>),
    /// Of the message.
    Message(Map<String, Value>),
}

const CALL: &str = "tool_call";
const MESSAGE: &str = "message";

impl Kept {
    /// The piece of a conversation.
    pub(super) fn into_reasoning(self) -> Reasoning {
        let signature = match self {
            Self::Call(fields) => json!({ CALL: fields }),
            Self::Message(fields) => json!({ MESSAGE: fields }),
        };
        Reasoning { text: String::new(), signature: Some(signature.to_string()), data: None }
    }

    /// Reads a piece back; nothing for reasoning of another kind.
    pub(super) fn of(reasoning: &Reasoning) -> Option<Self> {
        let mut places: Map<_, _> = serde_json::from_str(reasoning.signature.as_deref()?).ok()?;
        let mut take = |place| match places.remove(place)? {
            Value::Object(fields) => Some(fields),
            _ => None,
        };
        take(CALL).map(Self::Call).or_else(|| take(MESSAGE).map(Self::Message))
    }
}

/// What an answer's message carries, put together from its pieces.
#[derive(Debug, Default)]
pub(super) struct MessageFields {
    extra_content: Option<Value>,
    details: Vec<Value>,
}

impl MessageFields {
    pub(super) fn take(&mut self, delta: &Value) {
        if let Some(extra) = extra_content(delta).filter(|extra| !is_thought(extra)) {
            self.extra_content = Some(extra.clone());
        }
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            match self.details.last_mut() {
                Some(last) if is_continued(last, detail) => extend(last, detail),
                _ if detail.is_object() => self.details.push(detail.clone()),
                _ => {}
            }
        }
    }

    pub(super) fn into_kept(self) -> Option<Kept> {
        let mut fields = Map::new();
        if let Some(extra) = self.extra_content {
            fields.insert("extra_content".to_owned(), extra);
        }
        if self.details.iter().any(is_signed) {
            fields.insert("reasoning_details".to_owned(), self.details.into());
        }
        (!fields.is_empty()).then_some(Kept::Message(fields))
    }
}

/// The field that is sent back whole, whatever is in it.
pub(super) fn extra_content(value: &Value) -> Option<&Value> {
    value.get("extra_content").filter(|extra| extra.as_object().is_some_and(|map| !map.is_empty()))
}

/// Whether it only says that the text beside it is a thought.
pub(super) fn is_thought(extra: &Value) -> bool {
    let google = &extra["google"];
    google["thought"] == true && google.get("thought_signature").is_none()
}

/// Reasoning that is neither signed nor encrypted is nothing that a server insists on.
fn is_signed(detail: &Value) -> bool {
    !text(detail, "signature").is_empty() || !text(detail, "data").is_empty()
}

/// Details of one index are one detail in pieces.
fn is_continued(last: &Value, next: &Value) -> bool {
    next.get("index").is_some_and(|index| !index.is_null())
        && last.get("index") == next.get("index")
        && last.get("type") == next.get("type")
}

/// Texts grow; anything else that comes later is set.
fn extend(last: &mut Value, next: &Value) {
    let (Value::Object(last), Value::Object(next)) = (last, next) else { return };
    for (key, value) in next {
        let is_text = matches!(key.as_str(), "text" | "summary" | "data");
        match (last.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) if is_text => text.push_str(more),
            (_, Value::Null) => {}
            _ => {
                last.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: Value) -> Map<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        let extra = json!({"extra_content": {"google": {"thought_signature": "a+/=\u{e9}"}}});
        let call = || Kept::Call(fields(extra.clone()));
        let message = || Kept::Message(fields(extra.clone()));
        assert_eq!(Kept::of(&call().into_reasoning()), Some(call()));
        assert_eq!(Kept::of(&message().into_reasoning()), Some(message()));
    }

    #[test]
    fn reasoning_of_another_protocol_is_not_ours() {
        for signature in [None, Some("EqQBCg+/="), Some("{}"), Some("{\"message\": 1}"), Some("[]")]
        {
            let signature = signature.map(str::to_owned);
            let reasoning = Reasoning { text: "t".to_owned(), signature, data: None };
            assert_eq!(Kept::of(&reasoning), None, "{reasoning:?}");
        }
    }
}
