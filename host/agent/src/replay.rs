//! A conversation from the records of its session.
//!
//! It mends what a session that broke off left open, and never writes anything back.

use crate::calls::{Progress, interrupted};
use belljar_types::{Conversation, Message, PendingCall, Record, ToolCall, ToolMessage};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

/// What a session left behind, to go on with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    /// What the model would read next. Its last calls have no result where they are pending.
    pub conversation: Conversation,
    /// The calls that the session broke off over, in order.
    pub pending: Vec<PendingCall>,
    /// Names of the skills that were loaded, in that order.
    pub active_skills: Vec<String>,
    /// The plan that the model noted last.
    pub notes: Option<String>,
}

/// Rebuilds the conversation that `records` tell of. A call without a result gets one that says
/// whether it may have taken effect; a result without its call is left out.
pub fn replay(records: impl IntoIterator<Item = Record>) -> Conversation {
    let mut replay = Replay::read(records);
    replay.close_calls();
    replay.restored.conversation
}

/// As [`replay`], but the calls that the session broke off over stay open.
pub fn restore(records: impl IntoIterator<Item = Record>) -> Restored {
    let mut replay = Replay::read(records);
    let answered = |call: &ToolCall| replay.results.contains_key(&call.id);
    // A result that was lost between others is not made up for by running its call again.
    let first_open = replay.calls.iter().rposition(answered).map_or(0, |last| last + 1);
    let open = replay.calls.split_off(first_open);
    replay.close_calls();
    let pending = |call: ToolCall| PendingCall { started: replay.started.contains(&call.id), call };
    let pending = open.into_iter().map(pending).collect();
    Restored { pending, ..replay.restored }
}

#[derive(Default)]
struct Replay {
    restored: Restored,
    /// The calls of the last assistant message, in order.
    calls: Vec<ToolCall>,
    /// Their results so far, by call id.
    results: HashMap<String, Arc<Message>>,
    started: HashSet<String>,
}

impl Replay {
    fn read(records: impl IntoIterator<Item = Record>) -> Self {
        let mut replay = Self::default();
        for record in records {
            match record {
                Record::Message { message } => replay.message(message),
                Record::CallStarted { call_id } => {
                    replay.started.insert(call_id);
                }
                Record::Replaced { head, dropped } => replay.replace(head, dropped),
                Record::SkillLoaded { name } => {
                    if !replay.restored.active_skills.contains(&name) {
                        replay.restored.active_skills.push(name);
                    }
                }
                Record::PlanNoted { text } => replay.restored.notes = Some(text),
                Record::RunStarted { .. }
                | Record::CallDone { .. }
                | Record::Usage { .. }
                | Record::Subagent { .. }
                | Record::Stopped { .. } => {}
            }
        }
        replay
    }

    fn message(&mut self, message: Arc<Message>) {
        match message.as_ref() {
            Message::Tool(tool) => {
                self.results.entry(tool.result.call_id.clone()).or_insert(message);
            }
            Message::Assistant(assistant) => {
                self.close_calls();
                self.calls = assistant.calls().cloned().collect();
                self.restored.conversation.push(message);
            }
            Message::User(_) => {
                self.close_calls();
                self.restored.conversation.push(message);
            }
        }
    }

    /// Takes the step that made room. It was taken between rounds, when no call was open.
    fn replace(&mut self, head: Vec<Arc<Message>>, dropped: usize) {
        self.close_calls();
        let messages = self.restored.conversation.messages();
        let rest = messages.iter().skip(dropped).cloned();
        self.restored.conversation = head.into_iter().chain(rest).collect();
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
                Arc::new(Message::Tool(ToolMessage { result }))
            });
            self.restored.conversation.push(result);
        }
        self.results.clear();
    }
}
