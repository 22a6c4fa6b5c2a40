//! The body of a request.

use super::{kept::Kept, schema};
use crate::{
    content::{self, OutputPart},
    dialect::Dialect,
    history::{Piece, Turn, is_blank, turns},
    ids::IdForm,
    names::ToolNames,
};
use belljar_types::{ModelRequest, ToolDefinition};
use serde_json::{Map, Value, json};

/// Said between a result and a person's words, where a server refuses the one right after the
/// other.
const BRIDGE: &str = "Understood.";

/// Stands for a signature that a call of another model cannot have; Gemini takes it in place of
/// one and refuses a call that has none.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The JSON of a request to `model`. `own_model` is its name in conversations.
pub(crate) fn body(
    request: &ModelRequest,
    model: &str,
    own_model: &str,
    dialect: Dialect,
    names: &ToolNames,
) -> Value {
    let mut body = json!({ "model": model, "stream": true });
    // Mistral sends its figures unasked, and refuses the question.
    if dialect != Dialect::Mistral {
        body["stream_options"] = json!({ "include_usage": true });
    }
    if let Some(limit) = request.max_output_tokens {
        // OpenAI's own newer models refuse the older name, and other servers know only that one.
        let key = match dialect {
            Dialect::OpenAi => "max_completion_tokens",
            _ => "max_tokens",
        };
        body[key] = limit.into();
    }
    let tools: Vec<_> = request.tools.iter().map(|tool| function(tool, dialect, names)).collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    let mut messages = Messages { dialect, list: Vec::new() };
    // One message, in the first place: many servers' templates take no other.
    messages.list.extend(
        content::system(&request.system).map(|text| json!({ "role": "system", "content": text })),
    );
    fill(&mut messages, request, own_model, names);
    if dialect == Dialect::Gemini && wants_signatures(model) {
        messages.list.iter_mut().for_each(sign);
    }
    body["messages"] = messages.list.into();
    body
}

fn function(tool: &ToolDefinition, dialect: Dialect, names: &ToolNames) -> Value {
    let mut function = json!({ "name": names.to_wire(&tool.name) });
    if !is_blank(&tool.description) {
        function["description"] = tool.description.as_str().into();
    }
    if dialect == Dialect::Gemini {
        if let Some(parameters) = schema::parameters(&tool.input_schema) {
            function["parameters"] = parameters;
        }
    } else {
        function["parameters"] = parameters(tool);
    }
    json!({ "type": "function", "function": function })
}

/// The schema of a tool. One without arguments names an empty list of them: servers refuse a
/// schema that has none at all.
pub(crate) fn parameters(tool: &ToolDefinition) -> Value {
    let mut parameters = tool.input_schema.as_ref().clone();
    if let Value::Object(schema) = &mut parameters {
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    parameters
}

/// Messages in the making.
struct Messages {
    dialect: Dialect,
    list: Vec<Value>,
}

impl Messages {
    fn user(&mut self, parts: Vec<OutputPart<'_>>) {
        if parts.is_empty() {
            return;
        }
        if self.dialect == Dialect::Mistral && self.ends_with("tool") {
            self.list.push(json!({ "role": "assistant", "content": BRIDGE }));
        }
        // A plain text wherever there is no image: not every server takes a list.
        let content = match content::plain_text(&parts) {
            Some(text) => text.into(),
            None => parts.iter().map(part).collect::<Value>(),
        };
        self.list.push(json!({ "role": "user", "content": content }));
    }

    fn ends_with(&self, role: &str) -> bool {
        self.list.last().is_some_and(|message| message["role"] == role)
    }
}

fn fill(messages: &mut Messages, request: &ModelRequest, own_model: &str, names: &ToolNames) {
    let form = match messages.dialect {
        Dialect::Mistral => IdForm::Nine,
        _ => IdForm::Common,
    };
    // What the next user message holds: neighbours become one, as some templates insist on it.
    let mut said: Vec<OutputPart<'_>> = Vec::new();
    for turn in turns(&request.conversation, own_model, names, form) {
        match turn {
            Turn::User(contents) => {
                said.extend(contents.into_iter().filter_map(content::part));
            }
            Turn::Assistant(pieces) => {
                messages.user(std::mem::take(&mut said));
                messages.list.extend(assistant(pieces));
            }
            Turn::Results(results) => {
                for result in results {
                    let content = content::result_text(&result, &mut said);
                    messages.list.push(
                        json!({ "role": "tool", "tool_call_id": result.id, "content": content }),
                    );
                }
            }
        }
    }
    let reminders = request.reminders.iter().filter(|reminder| !is_blank(reminder));
    said.extend(reminders.map(|reminder| OutputPart::Text(reminder.clone())));
    messages.user(said);
    // An answer that is to go on must say so.
    if messages.dialect == Dialect::Mistral
        && let Some(last) = messages.list.last_mut()
        && last["role"] == "assistant"
    {
        last["prefix"] = true.into();
    }
}

fn part(part: &OutputPart<'_>) -> Value {
    match part {
        OutputPart::Text(text) => json!({ "type": "text", "text": text }),
        OutputPart::Image(blob) => {
            json!({ "type": "image_url", "image_url": { "url": content::data_url(blob) } })
        }
    }
}

/// Of reasoning only what this protocol has a place for goes back, to that place.
fn assistant(pieces: Vec<Piece<'_>>) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    let mut of_message = Map::new();
    let mut of_next_call = Map::new();
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Reasoning(reasoning) => match Kept::of(reasoning) {
                Some(Kept::Call(fields)) => of_next_call = fields,
                Some(Kept::Message(fields)) => of_message.extend(fields),
                None => {}
            },
            Piece::Call { id, name, input } => {
                let mut call = json!({
                    "id": id,
                    "type": "function",
                    "function": { "name": name, "arguments": input.to_string() },
                });
                add_fields(&mut call, std::mem::take(&mut of_next_call));
                calls.push(call);
            }
        }
    }
    let mut message = json!({ "role": "assistant" });
    message["content"] = if text.is_empty() { Value::Null } else { text.into() };
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    } else if message["content"].is_null() {
        return None;
    }
    add_fields(&mut message, of_message);
    Some(message)
}

/// Fields that are ours stay as we set them.
fn add_fields(value: &mut Value, fields: Map<String, Value>) {
    for (key, field) in fields {
        if value.get(&key).is_none() {
            value[key] = field;
        }
    }
}

/// Whether a model refuses calls without a signature; the older generations never sign.
fn wants_signatures(model: &str) -> bool {
    !["gemini-1", "gemini-2", "gemma"].iter().any(|older| model.contains(older))
}

/// The first call of a message must be signed.
fn sign(message: &mut Value) {
    let Some(Value::Array(calls)) = message.get_mut("tool_calls") else { return };
    let is_signed = calls.iter().any(|call| call.get("extra_content").is_some());
    if let (false, Some(first)) = (is_signed, calls.first_mut()) {
        first["extra_content"] = json!({ "google": { "thought_signature": NO_SIGNATURE } });
    }
}
