//! A conversation from the records of its session.
//!
//! It mends what a session that broke off left open, and never writes anything back.

use crate::calls::{Progress, interrupted};
use belljar_types::{Conversation, Message, Record, ToolCall};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// Rebuilds the conversation that `records` tell of. A call without a result gets one that says
/// whether it may have taken effect; a result without its call is left out.
pub fn replay(records: impl IntoIterator<Item = Record>) -> Conversation {
    let mut replay = Replay::default();
    for record in records {
        match record {
            Record::Message { message } => replay.message(message),
            Record::CallStarted { call_id } => {
                replay.started.insert(call_id);
            }
            Record::RunStarted { .. }
            | Record::CallDone { .. }
            | Record::Usage { .. }
            | Record::Stopped { .. } => {}
        }
    }
    replay.close_calls();
    replay.conversation
}

#[derive(Default)]
struct Replay {
    conversation: Conversation,
    /// The calls of the last assistant message, in order.
    calls: Vec<ToolCall>,
    /// Their results so far, by call id.
    results: HashMap<String, Arc<Message>>,
    started: HashSet<String>,
}

impl Replay {
    fn message(&mut self, message: Arc<Message>) {
        match message.as_ref() {
            Message::Tool(tool) => {
                self.results.entry(tool.result.call_id.clone()).or_insert(message);
            }
            Message::Assistant(assistant) => {
                self.close_calls();
                self.calls = assistant.calls().cloned().collect();
                self.conversation.push(message);
            }
            Message::User(_) => {
                self.close_calls();
                self.conversation.push(message);
            }
        }
    }

    /// Gives the calls of the last message their results, in order.
    fn close_calls(&mut self) {
        for call in self.calls.drain(..) {
            let result = self.results.remove(&call.id).unwrap_or_else(|| {
                let progress = if self.started.contains(&call.id) {
                    Progress::Started
                } else {
                    Progress::NotStarted
                };
                let result = interrupted(&call, "the session broke off", progress);
                Arc::new(Message::Tool(belljar_types::ToolMessage { result }))
            });
            self.conversation.push(result);
        }
        self.results.clear();
    }
}
