//! The conversation: what the model will read next, and where every part of it came from.

use crate::{ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

/// Where a piece of content came from. Content from anywhere but `Person` is data, never orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// Typed or piped by the person who started the run.
    Person,
    /// The host's own words: refusals, reminders, notes on what was cut.
    Host,
    /// A file of the workspace, by its path inside it.
    Workspace { path: String },
    /// A plugin, by name and digest.
    Plugin { plugin: Arc<str>, digest: Arc<str> },
    /// A host on the web.
    Web { host: String },
    /// The model's own words where they come back as content: a summary of what was said, a
    /// subagent's answer.
    Model,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    Text {
        text: String,
    },
    Image(Blob),
    Audio(Blob),
    File(Blob),
    Link {
        uri: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        media_type: Option<String>,
    },
}

/// Bytes with an IANA media type, such as `image/png`. In JSON the bytes are base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blob {
    pub media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(with = "base64_bytes")]
    pub data: Arc<[u8]>,
}

mod base64_bytes {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::{borrow::Cow, sync::Arc};

    pub(super) fn serialize<S: Serializer>(data: &Arc<[u8]>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&STANDARD.encode(data))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Arc<[u8]>, D::Error> {
        let text = Cow::<str>::deserialize(d)?;
        STANDARD.decode(text.as_ref()).map(Into::into).map_err(D::Error::custom)
    }
}

/// Content and where it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    #[serde(flatten)]
    pub content: Content,
    pub origin: Origin,
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>, origin: Origin) -> Self {
        Self { content: Content::Text { text: text.into() }, origin }
    }
}

/// What the model sent as arguments. In JSON: an object, or a string where it was not one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    Object(Map<String, Value>),
    /// The text as it came, which is no JSON object. Such a call never runs.
    Text(String),
}

impl Arguments {
    /// Reads the text that a model sent. Nothing at all stands for `{}`; anything that is not an
    /// object is kept as it is, never repaired.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Self::Object(map),
            _ => Self::Text(text.to_owned()),
        }
    }

    /// The arguments as an object.
    ///
    /// # Errors
    ///
    /// A sentence that says where the text stops being a JSON object, for the model.
    pub fn object(&self) -> Result<&Map<String, Value>, String> {
        match self {
            Self::Object(map) => Ok(map),
            Self::Text(text) => Err(match serde_json::from_str::<Value>(text) {
                Ok(_) => "the arguments must be a JSON object".to_owned(),
                Err(error) => format!("the arguments are not valid JSON: {error}"),
            }),
        }
    }
}

/// What a person said, with what was attached to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    pub parts: Vec<Part>,
}

/// Reasoning that the provider wants back. `signature` and `data` go back byte for byte, and only
/// to the model that made them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Reasoning that the provider sends encrypted only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AssistantPart {
    Text { text: String },
    Reasoning(Reasoning),
    ToolCall(ToolCall),
}

/// What the model said in one round: text, reasoning and calls, in the order in which they came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    pub parts: Vec<AssistantPart>,
    /// `provider/name` of the model that said it.
    pub model: String,
    /// The stream ended before the message did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl AssistantMessage {
    /// The calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            AssistantPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// All text, joined.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                AssistantPart::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolMessage {
    pub result: ToolResult,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
    Tool(ToolMessage),
}

/// The messages of a run, the only truth about what the model reads next.
///
/// A clone is a snapshot that shares everything, whatever its length; the first message that is
/// pushed while a snapshot is still held copies the list of messages, never the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation {
    messages: Arc<Vec<Arc<Message>>>,
}

impl Conversation {
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        Arc::make_mut(&mut self.messages).push(message.into());
    }

    /// Whether both are the same list in memory: true says that they are equal, false nothing.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.messages, &other.messages)
    }

    /// Checks what every provider insists on: exactly one result for each call, in call order
    /// right after the message that made them, no result without its call, no call id twice, no
    /// message without content and no empty text.
    ///
    /// # Errors
    ///
    /// The first violation, with the index of its message.
    pub fn check(&self) -> Result<(), String> {
        match self.open_calls()?.as_slice() {
            [] => Ok(()),
            open => {
                let ids: Vec<_> = open.iter().map(|call| &call.id).collect();
                Err(format!("calls without results: {ids:?}"))
            }
        }
    }

    /// Checks the same, but that the last calls may lack their results: these come back, in order.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check).
    pub fn open_calls(&self) -> Result<Vec<&ToolCall>, String> {
        let mut seen = HashSet::new();
        let mut open: VecDeque<&ToolCall> = VecDeque::new();
        for (index, message) in self.messages.iter().enumerate() {
            let checked = match message.as_ref() {
                Message::Tool(ToolMessage { result }) => match open.pop_front() {
                    Some(call) if call.id == result.call_id => Ok(()),
                    Some(call) => {
                        Err(format!("a result for `{}`, want `{}`", result.call_id, call.id))
                    }
                    None => Err(format!("a result for `{}` without its call", result.call_id)),
                },
                _ if !open.is_empty() => {
                    let ids: Vec<_> = open.iter().map(|call| &call.id).collect();
                    Err(format!("calls without results: {ids:?}"))
                }
                Message::User(user) => check_user(user),
                Message::Assistant(assistant) => {
                    let twice = assistant.calls().find(|call| !seen.insert(call.id.as_str()));
                    open.extend(assistant.calls());
                    match twice {
                        Some(call) => Err(format!("call id `{}` twice", call.id)),
                        None => check_assistant(assistant),
                    }
                }
            };
            checked.map_err(|what| format!("message {index}: {what}"))?;
        }
        Ok(open.into())
    }
}

impl FromIterator<Arc<Message>> for Conversation {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self { messages: Arc::new(messages.into_iter().collect()) }
    }
}

fn check_user(user: &UserMessage) -> Result<(), String> {
    if user.parts.is_empty() {
        return Err("a user message without content".to_owned());
    }
    let is_blank =
        |part: &Part| matches!(&part.content, Content::Text { text } if text.trim().is_empty());
    if user.parts.iter().any(is_blank) { Err("an empty text".to_owned()) } else { Ok(()) }
}

fn check_assistant(assistant: &AssistantMessage) -> Result<(), String> {
    if assistant.parts.is_empty() {
        return Err("an assistant message without content".to_owned());
    }
    let is_blank = |part: &AssistantPart| matches!(part, AssistantPart::Text { text } if text.trim().is_empty());
    if assistant.parts.iter().any(is_blank) { Err("an empty text".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
