//! Ids of tool calls. A provider's own id is kept where it can serve; where it is missing,
//! unusable or taken, the call gets an id of ours, and that one goes back to the provider.

use belljar_types::{Conversation, Message};
use sha2::{Digest, Sha256};
use std::collections::HashSet;

/// The strictest limit among the APIs in use.
const MAX_LENGTH: usize = 40;

/// What an API takes as the id of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IdForm {
    #[default]
    Common,
    /// Nine letters and digits, no more and no less.
    Nine,
}

/// The ids that are in use.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    taken: HashSet<String>,
    form: IdForm,
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
        Self { taken, form: IdForm::Common }
    }

    /// Those of a request in the making.
    pub(crate) fn sent_as(form: IdForm) -> Self {
        Self { taken: HashSet::new(), form }
    }

    /// The id for a new call of `tool` that came with the id `given`, empty if with none.
    pub(crate) fn for_call(&mut self, given: &str, tool: &str) -> String {
        let usable = given != tool && is_acceptable(given);
        self.claim(usable.then_some(given))
    }

    /// The id under which a recorded call is sent: its own wherever the API takes it, else one that
    /// is the same in every request.
    pub(crate) fn for_history(&mut self, recorded: &str) -> String {
        match self.form {
            IdForm::Common => self.claim(is_acceptable(recorded).then_some(recorded)),
            IdForm::Nine => self.claim_nine(recorded),
        }
    }

    fn claim_nine(&mut self, recorded: &str) -> String {
        let is_nine = recorded.len() == 9 && recorded.bytes().all(|b| b.is_ascii_alphanumeric());
        if is_nine && self.taken.insert(recorded.to_owned()) {
            return recorded.to_owned();
        }
        let mut round = 0_u32;
        loop {
            let digest = Sha256::digest(format!("{recorded}\0{round}"));
            let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let id = digits[..9].to_owned();
            if self.taken.insert(id.clone()) {
                return id;
            }
            round += 1;
        }
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

    #[test]
    fn nine_letters_and_digits_are_made_of_any_id_and_stay_the_same() {
        let sent = || {
            let mut ids = CallIds::sent_as(IdForm::Nine);
            ["abcdefgh1", "call_1", "call_1", "abcdefgh1", "", "größe4567"]
                .map(|id| ids.for_history(id))
        };
        let got = sent();
        assert_eq!(got, sent());
        assert_eq!(got[0], "abcdefgh1");
        let different: HashSet<_> = got.iter().collect();
        assert_eq!(different.len(), got.len(), "{got:?}");
        for id in &got {
            assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()), "{id}");
        }
    }
}
