//! A conversation as one text, for the model to read about it instead of in it.

use belljar_types::{
    AssistantPart, Content, Conversation, Message, ModelRequest, Origin, Part, SystemPrompt,
    ToolResult, UserMessage,
};
use std::sync::Arc;

/// Characters of one result.
const RESULT: usize = 2_000;
/// Characters of a call's arguments.
const ARGUMENTS: usize = 1_000;

/// Which messages are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    All,
    /// What was said, without what tools returned.
    Said,
}

/// The last messages of which about so many tokens can be told, oldest first.
pub(crate) fn of(messages: &[Arc<Message>], told: Told, tokens: u64) -> String {
    let mut left = tokens;
    let mut lines = Vec::new();
    for message in messages.iter().rev() {
        let text = line(message, told);
        let price = crate::estimate::text(&text);
        if price > left {
            lines.push("[what came before is left out here]\n".to_owned());
            break;
        }
        left -= price;
        lines.push(text);
    }
    lines.reverse();
    lines.concat()
}

/// A request about a text, without tools.
pub(crate) fn request(
    instructions: &str,
    text: String,
    max_output_tokens: Option<u32>,
) -> ModelRequest {
    let mut conversation = Conversation::default();
    let parts = vec![Part::text(text, Origin::Host)];
    conversation.push(Message::User(UserMessage { parts }));
    ModelRequest {
        system: SystemPrompt { stable: instructions.into(), environment: String::new() },
        conversation,
        max_output_tokens,
        ..ModelRequest::default()
    }
}

fn line(message: &Message, told: Told) -> String {
    match message {
        Message::User(user) => {
            let parts = user.parts.iter().filter(|part| {
                told == Told::All || matches!(part.origin, Origin::Person | Origin::Model)
            });
            let texts: Vec<_> = parts.map(|part| content(&part.content)).collect();
            if texts.is_empty() { String::new() } else { format!("PERSON: {}\n", texts.join("\n")) }
        }
        Message::Assistant(assistant) => assistant
            .parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text { text } => format!("MODEL: {text}\n"),
                AssistantPart::Reasoning(_) => String::new(),
                AssistantPart::ToolCall(call) => {
                    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
                    format!("CALL {}: {}\n", call.tool, short(&arguments, ARGUMENTS))
                }
            })
            .collect(),
        Message::Tool(_) if told == Told::Said => String::new(),
        Message::Tool(tool) => result(&tool.result),
    }
}

fn result(result: &ToolResult) -> String {
    let text = match &result.outcome {
        Ok(output) => output.content.iter().map(content).collect::<Vec<_>>().join("\n"),
        Err(error) => format!("failed, {error}"),
    };
    format!("RESULT of {}: {}\n", result.tool, short(&text, RESULT))
}

fn content(content: &Content) -> String {
    match content {
        Content::Text { text } => text.clone(),
        Content::Image(blob) => format!("[image, {}]", blob.media_type),
        Content::Audio(blob) => format!("[audio, {}]", blob.media_type),
        Content::File(blob) => format!("[file, {}]", blob.media_type),
        Content::Link { uri, .. } => format!("[link {uri}]"),
    }
}

/// The beginning and the end of a text.
fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head} [… {} characters …] {tail}", count - 2 * half)
}
