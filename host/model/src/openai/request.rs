//! The body of a request.

use crate::{
    content::{self, OutputPart, ResultContent},
    history::{CallResult, Piece, Turn, is_blank, turns},
    names::ToolNames,
};
use belljar_types::{Blob, ModelRequest, SystemPrompt, ToolDefinition};
use serde_json::{Value, json};

/// The JSON of a request to `model`. `own_model` is its name in conversations; `host` is where it
/// goes.
pub(crate) fn body(
    request: &ModelRequest,
    model: &str,
    own_model: &str,
    host: &str,
    names: &ToolNames,
) -> Value {
    let mut body = json!({
        "model": model,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if let Some(limit) = request.max_output_tokens {
        // OpenAI's own newer models refuse the older name, and other servers know only that one.
        let key = if host == "api.openai.com" { "max_completion_tokens" } else { "max_tokens" };
        body[key] = limit.into();
    }
    let tools: Vec<_> = request.tools.iter().map(|tool| function(tool, names)).collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    body["messages"] = messages(request, own_model, names).into();
    body
}

/// One message with both parts of the prompt, the stable one first: many servers' templates take
/// a system message in the first place only.
fn system(prompt: &SystemPrompt) -> Option<Value> {
    let parts: Vec<&str> =
        [&*prompt.stable, &prompt.environment].into_iter().filter(|text| !is_blank(text)).collect();
    (!parts.is_empty()).then(|| json!({ "role": "system", "content": parts.join("\n\n") }))
}

fn function(tool: &ToolDefinition, names: &ToolNames) -> Value {
    let mut function = json!({ "name": names.to_wire(&tool.name) });
    if !is_blank(&tool.description) {
        function["description"] = tool.description.as_str().into();
    }
    let mut parameters = tool.input_schema.as_ref().clone();
    if let Value::Object(schema) = &mut parameters {
        // A tool without arguments: servers refuse a schema that names none at all.
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    function["parameters"] = parameters;
    json!({ "type": "function", "function": function })
}

fn messages(request: &ModelRequest, own_model: &str, names: &ToolNames) -> Vec<Value> {
    let mut messages: Vec<_> = system(&request.system).into_iter().collect();
    // What the next user message holds: neighbours become one, as some templates insist on it.
    let mut said: Vec<OutputPart<'_>> = Vec::new();
    for turn in turns(&request.conversation, own_model, names) {
        match turn {
            Turn::User(contents) => {
                said.extend(contents.into_iter().filter_map(content::part));
            }
            Turn::Assistant(pieces) => {
                messages.extend(user(std::mem::take(&mut said)));
                messages.extend(assistant(pieces));
            }
            Turn::Results(results) => {
                for result in results {
                    messages.push(tool(&result, &mut said));
                }
            }
        }
    }
    let reminders = request.reminders.iter().filter(|reminder| !is_blank(reminder));
    said.extend(reminders.map(|reminder| OutputPart::Text(reminder.clone())));
    messages.extend(user(said));
    messages
}

/// A plain text wherever there is no image: not every server takes a list.
fn user(parts: Vec<OutputPart<'_>>) -> Option<Value> {
    if parts.is_empty() {
        return None;
    }
    let texts: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            OutputPart::Text(text) => Some(text.as_str()),
            OutputPart::Image(_) => None,
        })
        .collect();
    let content = if texts.len() == parts.len() {
        texts.join("\n\n").into()
    } else {
        parts.iter().map(part).collect::<Value>()
    };
    Some(json!({ "role": "user", "content": content }))
}

fn part(part: &OutputPart<'_>) -> Value {
    match part {
        OutputPart::Text(text) => json!({ "type": "text", "text": text }),
        OutputPart::Image(blob) => {
            json!({ "type": "image_url", "image_url": { "url": data_url(blob) } })
        }
    }
}

fn data_url(blob: &Blob) -> String {
    format!("data:{};base64,{}", blob.media_type, content::base64(blob))
}

/// Reasoning is left out: this protocol has no form for it.
fn assistant(pieces: Vec<Piece<'_>>) -> Option<Value> {
    let mut text = String::new();
    let mut calls = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Reasoning(_) => {}
            Piece::Call { id, name, input } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": { "name": name, "arguments": input.to_string() },
            })),
        }
    }
    let mut message = json!({ "role": "assistant" });
    message["content"] = if text.is_empty() { Value::Null } else { text.into() };
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    } else if message["content"].is_null() {
        return None;
    }
    Some(message)
}

/// A tool message takes text only: images go into the user message after the results, named by
/// their call.
fn tool<'a>(result: &CallResult<'a>, said: &mut Vec<OutputPart<'a>>) -> Value {
    let content = match content::of_result(result) {
        ResultContent::Failure(message) => format!("error: {message}"),
        ResultContent::Output(parts) => {
            let mut texts = Vec::new();
            let mut images = 0_usize;
            for part in parts {
                match part {
                    OutputPart::Text(text) => texts.push(text),
                    OutputPart::Image(blob) => {
                        images += 1;
                        said.push(OutputPart::Text(format!(
                            "Image {images} of the result of `{}` ({}):",
                            result.name, result.id
                        )));
                        said.push(OutputPart::Image(blob));
                        texts.push(format!("[image {images}: shown after the results]"));
                    }
                }
            }
            texts.join("\n")
        }
    };
    json!({ "role": "tool", "tool_call_id": result.id, "content": content })
}
