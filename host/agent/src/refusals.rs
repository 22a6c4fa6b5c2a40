//! The calls that a person said no to in this run, so that nobody is asked the same thing again.
//!
//! Two calls are the same where tool and arguments are, whatever the order of an object's keys.

use crate::canonical;
use serde_json::{Map, Value};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// The person's reason, if one was given, by tool and canonical arguments.
    reasons: HashMap<(String, String), Option<String>>,
}

impl Refusals {
    pub(crate) fn remember(
        &mut self,
        tool: &str,
        arguments: &Map<String, Value>,
        reason: Option<String>,
    ) {
        self.reasons.insert((tool.to_owned(), canonical::object(arguments)), reason);
    }

    /// What the model reads where this very call was refused before.
    pub(crate) fn repeated(&self, tool: &str, arguments: &Map<String, Value>) -> Option<String> {
        let reason = self.reasons.get(&(tool.to_owned(), canonical::object(arguments)))?;
        let because = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        Some(format!(
            "the user already said no to this same call in this turn{because}; \
             they were not asked again. Do it another way, or tell them what you need and why"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn the_order_of_keys_does_not_make_another_call() {
        let mut refusals = Refusals::default();
        let arguments = object(json!({"a": {"x": [1, {"p": 1, "q": 2}], "y": null}, "b": "t"}));
        refusals.remember("write", &arguments, Some("not that file".to_owned()));
        let again = object(json!({"b": "t", "a": {"y": null, "x": [1, {"q": 2, "p": 1}]}}));
        assert_eq!(
            refusals.repeated("write", &again).as_deref(),
            Some(
                "the user already said no to this same call in this turn: not that file; \
                 they were not asked again. Do it another way, or tell them what you need and why"
            )
        );
    }

    #[test]
    fn another_tool_or_other_arguments_are_another_call() {
        let mut refusals = Refusals::default();
        refusals.remember("write", &object(json!({"a": [1, 2]})), None);
        for (tool, arguments) in [
            ("delete", json!({"a": [1, 2]})),
            ("write", json!({"a": [2, 1]})),
            ("write", json!({"a": "[1,2]"})),
            ("write", json!({"a": [1, 2], "b": null})),
        ] {
            assert_eq!(refusals.repeated(tool, &object(arguments)), None);
        }
    }
}
