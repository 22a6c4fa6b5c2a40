//! The body of a request.

use super::kept;
use crate::{
    content::{self, OutputPart},
    history::{Piece, Turn, is_blank, turns},
    ids::IdForm,
    names::ToolNames,
    openai::parameters,
};
use belljar_types::{ModelRequest, ToolDefinition};
use serde_json::{Value, json};

/// The API takes no smaller limit.
const LEAST_OUTPUT_TOKENS: u32 = 16;

/// The JSON of a request to `model`. `own_model` is its name in conversations.
pub(crate) fn body(
    request: &ModelRequest,
    model: &str,
    own_model: &str,
    names: &ToolNames,
) -> Value {
    let mut body = json!({ "model": model, "stream": true, "store": false });
    if reasons(model) {
        body["include"] = json!(["reasoning.encrypted_content"]);
    }
    if let Some(limit) = request.max_output_tokens {
        body["max_output_tokens"] = limit.max(LEAST_OUTPUT_TOKENS).into();
    }
    if let Some(system) = content::system(&request.system) {
        body["instructions"] = system.into();
    }
    let tools: Vec<_> = request.tools.iter().map(|tool| function(tool, names)).collect();
    if !tools.is_empty() {
        body["tools"] = tools.into();
    }
    body["input"] = input(request, own_model, names).into();
    body
}

/// Whether a model has reasoning to encrypt. The older ones of OpenAI's refuse to be asked for it.
fn reasons(model: &str) -> bool {
    let model = model.strip_prefix("ft:").unwrap_or(model);
    !["gpt-3.5", "gpt-4", "chatgpt-4"].iter().any(|older| model.starts_with(older))
}

/// Unless told otherwise the API changes a schema so that every argument must be given.
fn function(tool: &ToolDefinition, names: &ToolNames) -> Value {
    let mut function = json!({ "type": "function", "name": names.to_wire(&tool.name) });
    if !is_blank(&tool.description) {
        function["description"] = tool.description.as_str().into();
    }
    function["parameters"] = parameters(tool);
    function["strict"] = false.into();
    function
}

fn input(request: &ModelRequest, own_model: &str, names: &ToolNames) -> Vec<Value> {
    let mut items = Vec::new();
    let mut said: Vec<OutputPart<'_>> = Vec::new();
    for turn in turns(&request.conversation, own_model, names, IdForm::Common) {
        match turn {
            Turn::User(contents) => said.extend(contents.into_iter().filter_map(content::part)),
            Turn::Assistant(pieces) => {
                items.extend(user(std::mem::take(&mut said)));
                assistant(pieces, &mut items);
            }
            Turn::Results(results) => {
                for result in results {
                    let output = content::result_text(&result, &mut said);
                    items.push(json!({
                        "type": "function_call_output",
                        "call_id": result.id,
                        "output": output,
                    }));
                }
            }
        }
    }
    let reminders = request.reminders.iter().filter(|reminder| !is_blank(reminder));
    said.extend(reminders.map(|reminder| OutputPart::Text(reminder.clone())));
    items.extend(user(said));
    items
}

fn user(parts: Vec<OutputPart<'_>>) -> Option<Value> {
    if parts.is_empty() {
        return None;
    }
    let content = match content::plain_text(&parts) {
        Some(text) => text.into(),
        None => parts.iter().map(part).collect::<Value>(),
    };
    Some(json!({ "role": "user", "content": content }))
}

fn part(part: &OutputPart<'_>) -> Value {
    match part {
        OutputPart::Text(text) => json!({ "type": "input_text", "text": text }),
        OutputPart::Image(blob) => {
            json!({ "type": "input_image", "image_url": content::data_url(blob) })
        }
    }
}

/// Items in the order in which they came. Reasoning that nothing follows is left out: the API
/// refuses it without what it led to.
fn assistant(pieces: Vec<Piece<'_>>, items: &mut Vec<Value>) {
    let mut thoughts = Vec::new();
    for piece in pieces {
        let item = match piece {
            Piece::Reasoning(reasoning) => {
                thoughts.extend(kept::item(reasoning));
                continue;
            }
            Piece::Text(text) => json!({ "role": "assistant", "content": text }),
            Piece::Call { id, name, input } => json!({
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": input.to_string(),
            }),
        };
        items.append(&mut thoughts);
        items.push(item);
    }
}
