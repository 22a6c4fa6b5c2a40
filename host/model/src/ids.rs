//! Ids of tool calls. A provider's own id is kept where it can serve; where it is missing,
//! unusable or taken, the call gets an id of ours, and that one goes back to the provider.

use belljar_types::{Conversation, Message};
use std::collections::HashSet;

/// The strictest limit among the APIs in use.
const MAX_LENGTH: usize = 40;

/// The ids that are in use.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
}

impl CallIds {
    /// All ids of a conversation, for the calls of the answer to it.
    pub(crate) fn of(conversation: &Conversation) -> Self {
        let mut taken = HashSet::new();
        for message in conversation.messages() {
            match message.as_ref() {
                Message::Assistant(assistant) => {
                    taken.extend(assistant.calls().map(|call| call.id.clone()));
                }
                Message::Tool(tool) => {
                    taken.insert(tool.result.call_id.clone());
                }
                Message::User(_) => {}
            }
        }
        Self { taken }
    }

    /// The id for a new call of `tool` that came with the id `given`, empty if with none.
    pub(crate) fn for_call(&mut self, given: &str, tool: &str) -> String {
        let usable = given != tool && is_acceptable(given);
        self.claim(usable.then_some(given))
    }

    /// The id under which a recorded call is sent: its own wherever the API takes it.
    pub(crate) fn for_history(&mut self, recorded: &str) -> String {
        self.claim(is_acceptable(recorded).then_some(recorded))
    }

    fn claim(&mut self, wanted: Option<&str>) -> String {
        if let Some(id) = wanted
            && self.taken.insert(id.to_owned())
        {
            return id.to_owned();
        }
        let mut number = self.taken.len() + 1;
        loop {
            let id = format!("call_{number}");
            if self.taken.insert(id.clone()) {
                return id;
            }
            number += 1;
        }
    }
}

fn is_acceptable(id: &str) -> bool {
    (1..=MAX_LENGTH).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_kept_once_and_only_where_it_can_serve() {
        let mut ids = CallIds::default();
        let long = "x".repeat(41);
        let given = ["call_2", "call_2", "", "read_file", "a b", &long, "toolu_1"];
        let got: Vec<_> = given.iter().map(|id| ids.for_call(id, "read_file")).collect();
        assert_eq!(got, ["call_2", "call_3", "call_4", "call_5", "call_6", "call_7", "toolu_1"]);
    }
}
