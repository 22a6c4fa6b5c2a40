//! Rules, and what they decide about a call.

use super::{Target, Verdict, lines};
use crate::generate;
use belljar_capability::{
    Granted, GuestPath, NetRequest, Rule, RuleSubject, Rules, Subject, decide,
};
use belljar_types::{Action, Hints, PermissionMode};
use serde_json::{Map, Value, json};

/// A rule, the plugin, the tool, and the text of the argument `path`, one a line.
pub(super) const TARGET: Target =
    Target { name: "rules", check, generate: |rng| generate::text(rng, &SAMPLES, &WORDS) };

const SAMPLES: [&str; 7] = [
    "files/*(path=**/.env)\nfiles\nread_file\na/../.env",
    "files/move_path(path=src/**, to=b/*)\nfiles\nmove_path\nsrc/main.rs",
    "read_*\nfiles\nread_file\n./README.md",
    "*\nx\ny\n/",
    "weather/now\nweather\nnow\nhttps://docs.rs/a",
    "a/b(path=https://docs.rs/**)\na\nb\nHTTPS://DOCS.RS:443/a/../b?c#d",
    "a/b(path=[a-z]*.{rs,toml})\na\nb\n.git/hooks/pre-commit",
];

const WORDS: [&str; 24] = [
    "*",
    "**",
    "?",
    "[!a]",
    "{a,b}",
    "(path=",
    "path=",
    ")",
    ",",
    "/",
    "files",
    "read_file",
    "../",
    "./",
    "//",
    "https://",
    "@",
    ":443",
    "%2e%2e",
    "AGENTS.md",
    ".GIT",
    "\\",
    "\n",
    "=",
];

const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::DontAsk,
    PermissionMode::Bypass,
];

fn check(input: &[u8]) -> Verdict {
    let Some([text, plugin, tool, argument]) = lines(input) else { return Verdict::Refused };
    let rule = match text.parse::<Rule>() {
        Ok(rule) => rule,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Verdict::Refused;
        }
    };
    assert_eq!(rule.text().parse().as_ref(), Ok(&rule), "a rule is what was written");

    let arguments = object(argument);
    let subject = RuleSubject { plugin, tool, model_name: tool, arguments: Some(&arguments) };
    if rule.allows(&subject) {
        assert!(rule.stops(&subject), "what a rule allows it also stops");
    }
    // Another spelling of the same path gains nothing and loses nothing.
    if NetRequest::for_url("GET", argument).is_err()
        && let Some(path) = GuestPath::named_by(argument)
    {
        let canonical = object(path.as_str());
        let spelled = RuleSubject { arguments: Some(&canonical), ..subject };
        assert_eq!(rule.allows(&spelled), rule.allows(&subject), "`{path}` is the same path");
        if rule.stops(&spelled) {
            assert!(rule.stops(&subject), "`{path}` is the same path");
        }
    }
    decisions(&rule, &subject, &arguments);
    if rule.stops(&subject) { Verdict::Taken } else { Verdict::Refused }
}

fn object(path: &str) -> Map<String, Value> {
    let mut arguments = Map::new();
    arguments.insert("path".to_owned(), json!(path));
    arguments
}

/// A rule that denies and matches always wins; one that allows never gives more than it did
/// before another was added to deny or ask.
fn decisions(rule: &Rule, about: &RuleSubject<'_>, arguments: &Map<String, Value>) {
    let granted = Granted::default();
    let subject = Subject {
        plugin: about.plugin,
        tool: about.tool,
        model_name: about.model_name,
        hints: Hints::default(),
        arguments: Some(arguments),
        is_known: true,
        granted: &granted,
        request: None,
    };
    let one = |rule: &Rule| vec![rule.clone()];
    for mode in MODES {
        let action = |rules: &Rules| decide(mode, rules, &subject).decision.action;
        let allowing = Rules { allow: one(rule), ..Rules::default() };
        let asking = Rules { ask: one(rule), ..allowing.clone() };
        let denying = Rules { deny: one(rule), ..asking.clone() };
        if rule.stops(about) {
            assert_eq!(action(&denying), Action::Deny, "deny wins in {mode}");
            assert_ne!(action(&asking), Action::Allow, "ask beats allow in {mode}");
        }
        if action(&allowing) == Action::Deny {
            assert_eq!(action(&asking), Action::Deny, "asking allows nothing in {mode}");
        }
    }
}
