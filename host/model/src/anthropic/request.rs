//! The body of a request.

use crate::{
    content::{self, OutputPart, ResultContent},
    history::{CallResult, Piece, Turn, is_blank, turns},
    ids::IdForm,
    names::ToolNames,
};
use belljar_types::{Blob, ModelRequest, Reasoning, SystemPrompt, ToolDefinition};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The JSON of a request to `model`. `own_model` is its name in conversations.
pub(crate) fn body(
    request: &ModelRequest,
    model: &str,
    own_model: &str,
    names: &ToolNames,
) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": request.max_output_tokens.unwrap_or_else(|| default_max_tokens(model)),
        "stream": true,
    });
    let system = system(&request.system);
    if !system.is_empty() {
        body["system"] = system.into();
    }
    let turns = turns(&request.conversation, own_model, names, IdForm::Common);
    let tools = tools(&request.tools, names);
    if !tools.is_empty() {
        body["tools"] = tools.into();
    } else if let Some(tools) = called_tools(&turns) {
        body["tools"] = tools;
        body["tool_choice"] = json!({ "type": "none" });
    }
    body["messages"] = messages(turns, &request.reminders).into();
    body
}

/// The API wants a limit. Large enough for a whole file in one call, and no larger than what the
/// models of that generation take.
fn default_max_tokens(model: &str) -> u32 {
    if model.contains("claude-3-5") || model.contains("claude-3-7") {
        8_192
    } else if model.contains("claude-3") {
        4_096
    } else {
        32_000
    }
}

fn cache_mark() -> Value {
    json!({ "type": "ephemeral" })
}

fn system(prompt: &SystemPrompt) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !is_blank(&prompt.stable) {
        let mut block = text_block(&prompt.stable);
        block["cache_control"] = cache_mark();
        blocks.push(block);
    }
    if !is_blank(&prompt.environment) {
        blocks.push(text_block(&prompt.environment));
    }
    blocks
}

fn tools(tools: &[ToolDefinition], names: &ToolNames) -> Vec<Value> {
    let mut list: Vec<_> = tools
        .iter()
        .map(|tool| {
            let mut value = json!({ "name": names.to_wire(&tool.name) });
            if !is_blank(&tool.description) {
                value["description"] = tool.description.as_str().into();
            }
            value["input_schema"] = tool.input_schema.as_ref().clone();
            value
        })
        .collect();
    if let Some(last) = list.last_mut() {
        last["cache_control"] = cache_mark();
    }
    list
}

/// A request without tools whose conversation holds calls: the API wants the tools of those calls
/// all the same. Nothing where there are no calls.
fn called_tools(turns: &[Turn<'_>]) -> Option<Value> {
    let pieces = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant(pieces) => pieces.as_slice(),
        _ => &[],
    });
    let called: BTreeSet<_> = pieces
        .filter_map(|piece| match piece {
            Piece::Call { name, .. } => Some(*name),
            _ => None,
        })
        .collect();
    let tool = |name| json!({ "name": name, "input_schema": { "type": "object" } });
    (!called.is_empty()).then(|| called.into_iter().map(tool).collect())
}

/// Messages in the making. Neighbours of one role become one message.
#[derive(Default)]
struct Messages {
    list: Vec<(&'static str, Vec<Value>)>,
}

impl Messages {
    fn push(&mut self, role: &'static str, block: Value) {
        match self.list.last_mut() {
            Some((last, blocks)) if *last == role => blocks.push(block),
            _ => self.list.push((role, vec![block])),
        }
    }

    /// Marks the end of what the next request will begin with. Thinking takes no mark.
    fn mark_end(&mut self) {
        if let Some((_, blocks)) = self.list.last_mut()
            && let Some(block) = blocks.iter_mut().rev().find(|block| !is_thinking(block))
        {
            block["cache_control"] = cache_mark();
        }
    }

    /// The API refuses a last message of the assistant whose text ends in white space.
    fn trim_end(&mut self) {
        if let Some(("assistant", blocks)) = self.list.last_mut()
            && let Some(block) = blocks.last_mut()
            && let Some(text) = block.get("text").and_then(Value::as_str)
        {
            block["text"] = text.trim_end().into();
        }
    }

    fn into_json(self) -> Vec<Value> {
        self.list
            .into_iter()
            .map(|(role, blocks)| json!({ "role": role, "content": blocks }))
            .collect()
    }
}

fn messages(turns: Vec<Turn<'_>>, reminders: &[String]) -> Vec<Value> {
    let mut messages = Messages::default();
    for turn in turns {
        match turn {
            Turn::User(contents) => {
                for part in contents.into_iter().filter_map(content::part) {
                    messages.push("user", part_block(part));
                }
            }
            Turn::Assistant(pieces) => {
                for block in pieces.into_iter().filter_map(piece_block) {
                    messages.push("assistant", block);
                }
            }
            Turn::Results(results) => {
                for result in results {
                    messages.push("user", result_block(result));
                }
            }
        }
    }
    messages.mark_end();
    for reminder in reminders.iter().filter(|reminder| !is_blank(reminder)) {
        messages.push("user", text_block(reminder));
    }
    messages.trim_end();
    messages.into_json()
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image_block(blob: &Blob) -> Value {
    json!({
        "type": "image",
        "source": {
            "type": "base64",
            "media_type": blob.media_type,
            "data": content::base64(blob),
        },
    })
}

fn part_block(part: OutputPart<'_>) -> Value {
    match part {
        OutputPart::Text(text) => text_block(&text),
        OutputPart::Image(blob) => image_block(blob),
    }
}

fn piece_block(piece: Piece<'_>) -> Option<Value> {
    match piece {
        Piece::Text(text) => Some(text_block(text)),
        Piece::Reasoning(reasoning) => thinking_block(reasoning),
        Piece::Call { id, name, input } => {
            Some(json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
        }
    }
}

/// Reasoning goes back exactly as it came; without a signature the API refuses it. What begins with
/// a brace is of another protocol, which the provider spoke when it was said.
fn thinking_block(reasoning: &Reasoning) -> Option<Value> {
    let is_ours = |text: &&String| !text.starts_with('{');
    match (reasoning.data.as_ref().filter(is_ours), reasoning.signature.as_ref().filter(is_ours)) {
        (Some(data), _) => Some(json!({ "type": "redacted_thinking", "data": data })),
        (None, Some(signature)) => Some(json!({
            "type": "thinking",
            "thinking": reasoning.text,
            "signature": signature,
        })),
        (None, None) => None,
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn result_block(result: CallResult<'_>) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": result.id });
    match content::of_result(&result) {
        ResultContent::Failure(message) => {
            block["content"] = json!([text_block(&message)]);
            block["is_error"] = true.into();
        }
        ResultContent::Output(parts) => {
            block["content"] = parts.into_iter().map(part_block).collect();
        }
    }
    block
}
