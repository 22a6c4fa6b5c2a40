//! The conversation as every provider accepts it: blank texts left out, each call answered right
//! after the message that made it, reasoning only where it goes back to the model that made it.
//! What an old session lacks is mended the same way each time, so that caches hold.

use crate::{
    ids::{CallIds, IdForm},
    names::ToolNames,
};
use belljar_types::{
    Arguments, AssistantMessage, AssistantPart, Content, Conversation, Message, Reasoning,
    ToolResult,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// What the model reads where a call was recorded and its result was not.
pub(crate) const NO_RESULT: &str =
    "interrupted: no result was recorded, the call may have taken effect";

#[derive(Debug, PartialEq)]
pub(crate) enum Turn<'a> {
    User(Vec<&'a Content>),
    Assistant(Vec<Piece<'a>>),
    /// The results of the assistant turn before, in the order of its calls.
    Results(Vec<CallResult<'a>>),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Reasoning(&'a Reasoning),
    Call { id: String, name: &'a str, input: Value },
}

#[derive(Debug, PartialEq)]
pub(crate) struct CallResult<'a> {
    pub(crate) id: String,
    /// The name on the wire.
    pub(crate) name: &'a str,
    /// Nothing where the session holds none.
    pub(crate) result: Option<&'a ToolResult>,
}

/// Reads a conversation for the model `own_model` (`provider/name`).
pub(crate) fn turns<'a>(
    conversation: &'a Conversation,
    own_model: &str,
    names: &'a ToolNames,
    form: IdForm,
) -> Vec<Turn<'a>> {
    let mut turns = Vec::new();
    let mut ids = CallIds::sent_as(form);
    let mut rest = conversation.messages();
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        match message.as_ref() {
            Message::User(user) => {
                turns.extend(user_turn(user.parts.iter().map(|part| &part.content)));
            }
            Message::Assistant(assistant) => {
                let keep_reasoning = assistant.model == own_model;
                let pieces = pieces(assistant, keep_reasoning, names, &mut ids);
                let results = results(assistant, &pieces, rest);
                if !pieces.is_empty() {
                    turns.push(Turn::Assistant(pieces));
                }
                if !results.is_empty() {
                    turns.push(Turn::Results(results));
                }
            }
            // Taken by the assistant message that made the call; one without a call is left out.
            Message::Tool(_) => {}
        }
    }
    turns
}

/// Whether a text says nothing.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn user_turn<'a>(contents: impl Iterator<Item = &'a Content>) -> Option<Turn<'a>> {
    let contents: Vec<_> = contents
        .filter(|content| !matches!(content, Content::Text { text } if is_blank(text)))
        .collect();
    (!contents.is_empty()).then_some(Turn::User(contents))
}

fn pieces<'a>(
    assistant: &'a AssistantMessage,
    keep_reasoning: bool,
    names: &'a ToolNames,
    ids: &mut CallIds,
) -> Vec<Piece<'a>> {
    assistant
        .parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text } if is_blank(text) => None,
            AssistantPart::Text { text } => Some(Piece::Text(text)),
            AssistantPart::Reasoning(reasoning) => {
                keep_reasoning.then_some(Piece::Reasoning(reasoning))
            }
            AssistantPart::ToolCall(call) => Some(Piece::Call {
                id: ids.for_history(&call.id),
                name: names.to_wire(&call.tool),
                input: input(&call.arguments),
            }),
        })
        .collect()
}

/// Pairs the calls of one message with their results, which stand before the next message of the
/// model.
fn results<'a>(
    assistant: &'a AssistantMessage,
    pieces: &[Piece<'a>],
    rest: &'a [Arc<Message>],
) -> Vec<CallResult<'a>> {
    let mut found: Vec<_> = rest
        .iter()
        .take_while(|message| !matches!(message.as_ref(), Message::Assistant(_)))
        .filter_map(|message| match message.as_ref() {
            Message::Tool(tool) => Some(&tool.result),
            _ => None,
        })
        .collect();
    let wire = pieces.iter().filter_map(|piece| match piece {
        Piece::Call { id, name, .. } => Some((id, *name)),
        _ => None,
    });
    assistant
        .calls()
        .zip(wire)
        .map(|(call, (id, name))| {
            let place = found.iter().position(|result| result.call_id == call.id);
            CallResult { id: id.clone(), name, result: place.map(|place| found.remove(place)) }
        })
        .collect()
}

/// Arguments that are no object are shown to the model inside one: the APIs refuse anything else,
/// and with it every later request of the session.
fn input(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Object(map) => Value::Object(map.clone()),
        Arguments::Text(text) => json!({ "invalid_arguments": text }),
    }
}
