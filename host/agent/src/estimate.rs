//! How many tokens things take, as an estimate: no tokenizer of any provider is known here.
//!
//! About four ASCII characters a token, one for any other character, and a flat price for what is
//! no text. It is linear, so the price of a conversation is kept as a running sum.

use belljar_types::{
    Arguments, AssistantPart, Content, Conversation, Message, ModelRequest, Part, SystemPrompt,
    ToolDefinition, ToolResult,
};

const MESSAGE: u64 = 4;
const CALL: u64 = 12;
const TOOL: u64 = 12;
/// An image, or a page or two of a document.
const BLOB: u64 = 1_600;
const BYTES_OF_A_BLOB_TOKEN: u64 = 64;

pub(crate) fn text(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    // Each other character has exactly one byte that does not continue another.
    let other = text.bytes().filter(|byte| *byte >= 0xC0).count() as u64;
    ascii.div_ceil(4) + other
}

pub(crate) fn message(message: &Message) -> u64 {
    MESSAGE
        + match message {
            Message::User(user) => user.parts.iter().map(part).sum::<u64>(),
            Message::Assistant(assistant) => assistant.parts.iter().map(assistant_part).sum(),
            Message::Tool(tool) => result(&tool.result),
        }
}

pub(crate) fn conversation(conversation: &Conversation) -> u64 {
    conversation.messages().iter().map(|one| message(one)).sum()
}

pub(crate) fn tools(tools: &[ToolDefinition]) -> u64 {
    tools.iter().map(tool).sum()
}

pub(crate) fn tool(tool: &ToolDefinition) -> u64 {
    TOOL + text(&tool.name) + text(&tool.description) + value(&tool.input_schema)
}

pub(crate) fn system(system: &SystemPrompt) -> u64 {
    text(&system.stable) + text(&system.environment)
}

/// Everything but the conversation and the tools, whose prices are known already.
pub(crate) fn rest(request: &ModelRequest) -> u64 {
    system(&request.system) + request.reminders.iter().map(|reminder| text(reminder)).sum::<u64>()
}

pub(crate) fn part(part: &Part) -> u64 {
    content(&part.content)
}

pub(crate) fn result(result: &ToolResult) -> u64 {
    match &result.outcome {
        Ok(output) => {
            output.content.iter().map(content).sum::<u64>()
                + output.structured.as_ref().map_or(0, value)
        }
        Err(error) => MESSAGE + text(&error.message),
    }
}

fn assistant_part(part: &AssistantPart) -> u64 {
    match part {
        AssistantPart::Text { text: said } => text(said),
        AssistantPart::Reasoning(reasoning) => {
            text(&reasoning.text) + reasoning.data.as_deref().map_or(0, text)
        }
        AssistantPart::ToolCall(call) => {
            CALL + text(&call.tool)
                + match &call.arguments {
                    Arguments::Object(map) => {
                        map.iter().map(|(key, one)| text(key) + value(one)).sum()
                    }
                    Arguments::Text(said) => text(said),
                }
        }
    }
}

fn content(content: &Content) -> u64 {
    match content {
        Content::Text { text: said } => text(said),
        Content::Image(_) => BLOB,
        Content::Audio(blob) | Content::File(blob) => {
            BLOB + blob.data.len() as u64 / BYTES_OF_A_BLOB_TOKEN
        }
        Content::Link { uri, title, .. } => text(uri) + title.as_deref().map_or(0, text),
    }
}

fn value(value: &serde_json::Value) -> u64 {
    use serde_json::Value;
    match value {
        Value::Object(map) => map.iter().map(|(key, one)| 1 + text(key) + self::value(one)).sum(),
        Value::Array(items) => items.iter().map(self::value).sum::<u64>() + 1,
        Value::String(said) => 1 + text(said),
        Value::Null | Value::Bool(_) | Value::Number(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_cost_about_a_quarter_of_their_letters_and_other_scripts_more() {
        assert_eq!(text(""), 0);
        assert_eq!(text("a"), 1);
        assert_eq!(text(&"a".repeat(400)), 100);
        assert_eq!(text("日本語"), 3);
        assert_eq!(text("é e"), 2);
    }

    #[test]
    fn a_value_costs_at_least_its_texts() {
        assert_eq!(value(&json!({"path": "a".repeat(40), "n": [1, true]})), 1 + 1 + 11 + 2 + 5);
    }
}
