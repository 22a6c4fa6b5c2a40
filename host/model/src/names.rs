//! Tool names on the wire. The APIs take letters, digits, `_` and `-` only, 64 at most; a tool of
//! any other name gets a stand-in made of its name and a digest of it, so that it stays the same
//! from round to round whatever other tools there are.

use belljar_types::{Conversation, Message, ToolDefinition};
use sha2::{Digest, Sha256};
use std::{collections::HashMap, fmt::Write};

const MAX_LENGTH: usize = 64;
/// Digits of the digest in a stand-in.
const DIGEST_DIGITS: usize = 8;

/// The names of one request, in both directions.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    to_wire: HashMap<String, String>,
    from_wire: HashMap<String, String>,
}

impl ToolNames {
    /// The names of all tools offered, and of all that the conversation holds calls of.
    pub(crate) fn new(tools: &[ToolDefinition], conversation: &Conversation) -> Self {
        let offered = tools.iter().map(|tool| &*tool.name);
        let called = conversation.messages().iter().flat_map(|message| match message.as_ref() {
            Message::Assistant(assistant) => {
                assistant.calls().map(|call| call.tool.as_str()).collect()
            }
            _ => Vec::new(),
        });
        let (plain, odd): (Vec<_>, Vec<_>) =
            offered.chain(called).partition(|name| is_acceptable(name));
        let mut names = Self::default();
        // Names that can stay as they are come first: no stand-in may take one of them.
        for name in plain {
            names.insert(name, name.to_owned());
        }
        for name in odd {
            if !names.to_wire.contains_key(name) {
                let wire = names.stand_in(name);
                names.insert(name, wire);
            }
        }
        names
    }

    /// The name that the API takes.
    pub(crate) fn to_wire<'a>(&'a self, name: &'a str) -> &'a str {
        self.to_wire.get(name).map_or(name, String::as_str)
    }

    /// Our name for the one that the model used; an unknown one is left as it is.
    pub(crate) fn original<'a>(&'a self, name: &'a str) -> &'a str {
        self.from_wire.get(name).map_or(name, String::as_str)
    }

    fn insert(&mut self, name: &str, wire: String) {
        self.from_wire.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }

    fn stand_in(&self, name: &str) -> String {
        let readable: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(MAX_LENGTH - DIGEST_DIGITS - 1)
            .collect();
        // A tool may be named so that it equals another's stand-in; then the next digest is taken.
        let mut round = 0_u32;
        loop {
            let digest = Sha256::digest(format!("{name}\0{round}"));
            let mut digits = String::new();
            for byte in digest.iter().take(DIGEST_DIGITS / 2) {
                // Writing into a string cannot fail.
                let _ = write!(digits, "{byte:02x}");
            }
            let wire = format!("{readable}_{digits}");
            if !self.from_wire.contains_key(&wire) {
                return wire;
            }
            round += 1;
        }
    }
}

fn is_acceptable(name: &str) -> bool {
    (1..=MAX_LENGTH).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_types::{Hints, ToolSource};
    use std::{collections::HashSet, sync::Arc};

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            tool: name.into(),
            source: ToolSource { plugin: "p".into(), digest: "sha256:0".into() },
            title: None,
            description: String::new(),
            input_schema: Arc::new(serde_json::json!({"type": "object"})),
            output_schema: None,
            hints: Hints::default(),
        }
    }

    fn names(names: &[&str]) -> ToolNames {
        let tools: Vec<_> = names.iter().map(|name| tool(name)).collect();
        ToolNames::new(&tools, &Conversation::default())
    }

    #[test]
    fn stand_ins_never_collide_and_map_back() {
        let long = "x".repeat(80);
        let longer = "x".repeat(81);
        let list =
            ["read_file", "get.it", "get it", "get_it", "größe", "gr__e", "", &long, &longer];
        let names = names(&list);
        let wire: HashSet<_> = list.iter().map(|name| names.to_wire(name)).collect();
        assert_eq!(wire.len(), list.len(), "{wire:?}");
        for name in list {
            assert!(is_acceptable(names.to_wire(name)), "{name}");
            assert_eq!(names.original(names.to_wire(name)), name);
        }
        assert_eq!(names.to_wire("get_it"), "get_it");
        assert_eq!(names.original("never_heard_of"), "never_heard_of");
    }

    #[test]
    fn a_stand_in_does_not_depend_on_the_other_tools() {
        assert_eq!(
            names(&["get.it"]).to_wire("get.it"),
            names(&["a.b", "get it", "get.it", "get_it"]).to_wire("get.it")
        );
    }

    #[test]
    fn a_tool_named_like_a_stand_in_keeps_its_name() {
        let taken = names(&["get.it"]).to_wire("get.it").to_owned();
        let names = names(&["get.it", &taken]);
        assert_eq!(names.to_wire(&taken), taken);
        assert_eq!(names.original(&taken), taken);
        assert_ne!(names.to_wire("get.it"), taken);
        assert_eq!(names.original(names.to_wire("get.it")), "get.it");
    }
}
