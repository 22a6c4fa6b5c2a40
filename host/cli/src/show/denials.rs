//! What was denied in a run, and the line that would allow exactly that.

use super::receipt;
use crate::visible;
use belljar_capability::{Rules, Subject, decide};
use belljar_types::{
    Action, DecidedBy, PermissionMode, Receipt, ToolDefinition, ToolErrorKind, ToolResult,
};
use std::{collections::BTreeMap, sync::Arc};

/// Characters of the line of one denial.
const LINE: usize = 300;

/// What a run's calls are decided by.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    mode: Option<PermissionMode>,
    rules: Rules,
    tools: BTreeMap<Arc<str>, ToolDefinition>,
}

impl Advice {
    /// `tools` are all that there are, offered or not.
    pub(crate) fn new(
        mode: PermissionMode,
        rules: Rules,
        tools: impl IntoIterator<Item = ToolDefinition>,
    ) -> Self {
        let tools = tools.into_iter().map(|tool| (Arc::clone(&tool.name), tool)).collect();
        Self { mode: Some(mode), rules, tools }
    }

    /// Why a call of this tool does not simply run, and what a person can do about it.
    fn for_tool(&self, name: &str) -> Option<String> {
        let tool = self.tools.get(name)?;
        let subject = Subject {
            plugin: &tool.source.plugin,
            tool: &tool.tool,
            model_name: &tool.name,
            hints: tool.hints,
        };
        let decision = decide(self.mode?, &self.rules, &subject);
        Some(match (decision.action, decision.by) {
            (Action::Allow, _) => return None,
            (_, DecidedBy::Rule { rule }) => format!("the rule `{rule}` stands against it"),
            (_, DecidedBy::Mode { mode: mode @ PermissionMode::Plan }) => {
                format!("the permission mode `{mode}` lets nothing change")
            }
            _ => format!("`--allow {}/{}` allows it", tool.source.plugin, tool.tool),
        })
    }
}

/// The denials of a run so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Denials {
    lines: Vec<String>,
}

impl Denials {
    /// Takes the end of a call. `answered` says that a person decided about it.
    pub(crate) fn add(
        &mut self,
        result: &ToolResult,
        receipt: Option<&Receipt>,
        answered: bool,
        advice: &Advice,
    ) {
        let Err(error) = &result.outcome else { return };
        if error.kind != ToolErrorKind::Denied {
            return;
        }
        let tool = &result.tool;
        let said_no = format!("`{tool}`: you said no");
        let line = match receipt {
            _ if answered => said_no,
            // Refused again on the strength of that answer.
            None if self.lines.contains(&said_no) => said_no,
            None => match advice.for_tool(tool) {
                Some(advice) => format!("`{tool}`: {advice}"),
                None => format!("`{tool}`"),
            },
            Some(receipt) => {
                let denied: Vec<_> = receipt
                    .denied
                    .iter()
                    .map(|denial| {
                        format!("{} `{}` ({})", denial.operation, denial.target, denial.reason)
                    })
                    .collect();
                match denied.as_slice() {
                    [] => format!("`{tool}`: {}", receipt::failure(error)),
                    denied => format!("`{tool}`: {}", denied.join(", ")),
                }
            }
        };
        let line = visible::short(&line, LINE);
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// All of them, for the end of a run.
    pub(crate) fn summary(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let lines: String = self.lines.iter().map(|line| format!("\n  {line}")).collect();
        Some(format!("denied in this run:{lines}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::receipt::tests::receipt;
    use belljar_types::{Hints, Origin, ToolError, ToolSource};

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.into(),
            tool: name.into(),
            source: ToolSource { plugin: "files".into(), digest: "sha256:0".into() },
            title: None,
            description: "d".to_owned(),
            input_schema: Arc::new(serde_json::json!({"type": "object"})),
            output_schema: None,
            hints: Hints::default(),
        }
    }

    fn denied(tool: &str) -> ToolResult {
        ToolResult {
            call_id: "1".to_owned(),
            tool: tool.to_owned(),
            outcome: Err(ToolError::new(ToolErrorKind::Denied, "denied: no")),
            origin: Origin::Host,
        }
    }

    #[test]
    fn each_denial_is_summed_up_once_with_what_would_allow_it() {
        let rules = Rules { deny: vec!["delete_path".parse().unwrap()], ..Rules::default() };
        let tools = [tool("edit_file"), tool("delete_path"), tool("read_file")];
        let advice = Advice::new(PermissionMode::DontAsk, rules, tools);
        let mut denials = Denials::default();
        assert_eq!(denials.summary(), None);
        for tool in ["edit_file", "edit_file", "delete_path"] {
            denials.add(&denied(tool), None, false, &advice);
        }
        denials.add(&denied("read_file"), Some(&receipt()), false, &advice);
        denials.add(&denied("move_path"), None, true, &advice);
        assert_eq!(
            denials.summary().unwrap(),
            "denied in this run:\n  `edit_file`: `--allow files/edit_file` allows it\n  \
             `delete_path`: the rule `delete_path` stands against it\n  `read_file`: read \
             `/etc/passwd` (outside)\n  `move_path`: you said no"
        );
    }
}
