//! Deciding what happens to a call, from the mode, the rules, the arguments and the tool's hints.

use crate::{Approved, Granted, GuestPath, NetGrant, NetRequest, Rule, RuleSubject, Rules, paths};
use belljar_types::{Action, DecidedBy, Decision, Hints, PermissionMode};
use serde_json::{Map, Value};

/// The call that is decided about, or the tool where no arguments are given.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub plugin: &'a str,
    /// Its own name inside the plugin.
    pub tool: &'a str,
    /// The name that the model uses.
    pub model_name: &'a str,
    pub hints: Hints,
    pub arguments: Option<&'a Map<String, Value>>,
    /// The plugin comes with the program, or a person said yes to these very bytes: what else the
    /// configuration allows by name holds for it.
    pub is_known: bool,
    /// What the plugin gets.
    pub granted: &'a Granted,
    /// The request that the arguments name, for a tool whose host is known before it runs.
    pub request: Option<&'a NetRequest>,
}

/// What was decided, and what a yes would add to the call's world.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub decision: Decision,
    pub asks_for: Approved,
}

/// Decides about a call.
///
/// A rule that matches beats the mode's own row, but never makes `plan` wider and never speaks for
/// a protected path; where nothing asks (`dont-ask`), what would ask is denied.
pub fn decide(mode: PermissionMode, rules: &Rules, subject: &Subject<'_>) -> Verdict {
    let protected = match subject.arguments {
        Some(arguments) if !subject.hints.read_only && mode != PermissionMode::Plan => {
            protected_in(arguments)
        }
        _ => Vec::new(),
    };
    let host = subject
        .request
        .filter(|request| !subject.granted.covers(request))
        .map(|request| NetGrant::of_host(request.scheme(), request.host().clone(), request.port()));
    let decision = decision(mode, rules, subject, &protected, host.is_some());
    let asks_for = match decision.action {
        Action::Ask => Approved { protected, host },
        // Nobody is asked, so nothing is added.
        Action::Allow | Action::Deny => Approved::default(),
    };
    Verdict { decision, asks_for }
}

fn decision(
    mode: PermissionMode,
    rules: &Rules,
    subject: &Subject<'_>,
    protected: &[GuestPath],
    names_a_new_host: bool,
) -> Decision {
    let by_mode = |action| Decision { action, by: DecidedBy::Mode { mode } };
    let by_rule = |action, rule: &Rule| Decision {
        action,
        by: DecidedBy::Rule { rule: rule.text().to_owned() },
    };
    let Subject { plugin, tool, model_name, arguments, .. } = *subject;
    let about = RuleSubject { plugin, tool, model_name, arguments };

    if let Some(rule) = rules.deny.iter().find(|rule| rule.stops(&about)) {
        return by_rule(Action::Deny, rule);
    }
    let own_row = mode_row(mode, subject, names_a_new_host);
    if mode == PermissionMode::Plan && own_row == Action::Deny {
        return by_mode(Action::Deny);
    }
    if let Some(path) = protected.first() {
        return Decision {
            action: without_asking(mode, Action::Ask),
            by: DecidedBy::ProtectedPath { path: path.as_str().to_owned() },
        };
    }
    if let Some(rule) = rules.ask.iter().find(|rule| rule.stops(&about)) {
        return by_rule(without_asking(mode, Action::Ask), rule);
    }
    let known = rules.allow.iter().filter(|_| subject.is_known);
    let mut allowing = rules.allow_this_run.iter().chain(known);
    if let Some(rule) = allowing.find(|rule| rule.allows(&about)) {
        return by_rule(Action::Allow, rule);
    }
    by_mode(without_asking(mode, own_row))
}

/// Whether a tool is offered to the model: what is denied outright, whatever the arguments, is not.
pub fn is_offered(mode: PermissionMode, rules: &Rules, subject: &Subject<'_>) -> bool {
    let tool = Subject { arguments: None, request: None, ..*subject };
    decide(mode, rules, &tool).decision.action != Action::Deny
}

fn without_asking(mode: PermissionMode, action: Action) -> Action {
    match (mode, action) {
        (PermissionMode::DontAsk, Action::Ask) => Action::Deny,
        (_, action) => action,
    }
}

/// The mode's own row for a call of this kind.
fn mode_row(mode: PermissionMode, subject: &Subject<'_>, names_a_new_host: bool) -> Action {
    let Hints { read_only, open_world, .. } = subject.hints;
    let has_hosts = !subject.granted.net.is_empty() && !names_a_new_host;
    match (mode, read_only, open_world) {
        (PermissionMode::Bypass, _, _) => Action::Allow,
        (PermissionMode::Plan, true, false) => Action::Allow,
        (PermissionMode::Plan, true, true) if has_hosts => Action::Allow,
        (PermissionMode::Plan, _, _) => Action::Deny,
        // The person who granted exactly the host that this call names has been asked about it.
        (PermissionMode::Default | PermissionMode::AcceptEdits, true, true)
            if subject.request.is_some() && !names_a_new_host =>
        {
            Action::Allow
        }
        (_, _, true) => Action::Ask,
        (_, true, false) => Action::Allow,
        (PermissionMode::AcceptEdits, false, false) => Action::Allow,
        (PermissionMode::Default | PermissionMode::DontAsk, false, false) => Action::Ask,
    }
}

/// The protected paths that arguments name, at any depth, each once.
fn protected_in(arguments: &Map<String, Value>) -> Vec<GuestPath> {
    const MOST: usize = 20;
    fn look(value: &Value, found: &mut Vec<GuestPath>) {
        match value {
            Value::String(text) => {
                let path = GuestPath::named_by(text)
                    .filter(|path| paths::is_protected(path.as_str()) && !found.contains(path));
                if found.len() < MOST {
                    found.extend(path);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| look(value, found)),
            Value::Object(map) => map.values().for_each(|value| look(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    arguments.values().for_each(|value| look(value, &mut found));
    found
}
