//! Deciding what happens to a call, from the mode, the rules and the tool's hints.

use crate::{Rule, Rules};
use belljar_types::{Action, DecidedBy, Decision, Hints, PermissionMode};

/// The tool that is decided about.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub plugin: &'a str,
    /// Its own name inside the plugin.
    pub tool: &'a str,
    /// The name that the model uses.
    pub model_name: &'a str,
    pub hints: Hints,
}

/// Decides. A rule that matches beats the mode's own row, but never makes `plan` wider; where
/// nothing asks (`dont-ask`), what would ask is denied.
pub fn decide(mode: PermissionMode, rules: &Rules, subject: &Subject<'_>) -> Decision {
    let by_mode = |action| Decision { action, by: DecidedBy::Mode { mode } };
    let by_rule = |action, rule: &Rule| Decision {
        action,
        by: DecidedBy::Rule { rule: rule.text().to_owned() },
    };
    let Subject { plugin, tool, model_name, hints } = *subject;
    let matches = |rule: &&Rule| rule.matches(plugin, tool, model_name);

    if let Some(rule) = rules.deny.iter().find(matches) {
        return by_rule(Action::Deny, rule);
    }
    let own_row = mode_row(mode, hints);
    if mode == PermissionMode::Plan && own_row == Action::Deny {
        return by_mode(Action::Deny);
    }
    if let Some(rule) = rules.ask.iter().find(matches) {
        return by_rule(without_asking(mode, Action::Ask), rule);
    }
    if let Some(rule) = rules.allow.iter().find(|rule| rule.allows(plugin, tool, model_name)) {
        return by_rule(Action::Allow, rule);
    }
    by_mode(without_asking(mode, own_row))
}

/// Whether a tool is offered to the model: what is denied outright is not.
pub fn is_offered(mode: PermissionMode, rules: &Rules, subject: &Subject<'_>) -> bool {
    decide(mode, rules, subject).action != Action::Deny
}

fn without_asking(mode: PermissionMode, action: Action) -> Action {
    match (mode, action) {
        (PermissionMode::DontAsk, Action::Ask) => Action::Deny,
        (_, action) => action,
    }
}

/// The mode's own row for a tool with these hints.
fn mode_row(mode: PermissionMode, hints: Hints) -> Action {
    match (mode, hints.read_only, hints.open_world) {
        (PermissionMode::Bypass, _, _) => Action::Allow,
        (PermissionMode::Plan, true, false) => Action::Allow,
        (PermissionMode::Plan, _, _) => Action::Deny,
        (_, _, true) => Action::Ask,
        (_, true, false) => Action::Allow,
        (PermissionMode::AcceptEdits, false, false) => Action::Allow,
        (PermissionMode::Default | PermissionMode::DontAsk, false, false) => Action::Ask,
    }
}
