//! Deciding, held by tables and by properties.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

use belljar_capability::{
    Access, Rule, RuleError, Rules, Subject, World, decide, is_offered, world,
};
use belljar_types::{Action, DecidedBy, Hints, PermissionMode};
use proptest::prelude::*;

const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::DontAsk,
    PermissionMode::Bypass,
];

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Rules { allow: parse(allow), ask: parse(ask), deny: parse(deny) }
}

fn writing() -> Subject<'static> {
    Subject {
        plugin: "files",
        tool: "write_file",
        model_name: "write_file",
        hints: Hints::default(),
    }
}

fn hints(read_only: bool, open_world: bool) -> Hints {
    Hints { read_only, open_world, ..Hints::default() }
}

#[test]
fn every_mode_has_its_row() {
    use Action::{Allow, Ask, Deny};
    // Read-only, writing, open-world and writing, open-world and read-only.
    let table = [
        (PermissionMode::Plan, [Allow, Deny, Deny, Deny]),
        (PermissionMode::Default, [Allow, Ask, Ask, Ask]),
        (PermissionMode::AcceptEdits, [Allow, Allow, Ask, Ask]),
        (PermissionMode::DontAsk, [Allow, Deny, Deny, Deny]),
        (PermissionMode::Bypass, [Allow, Allow, Allow, Allow]),
    ];
    let kinds = [hints(true, false), hints(false, false), hints(false, true), hints(true, true)];
    for (mode, expected) in table {
        let decided = kinds
            .map(|hints| decide(mode, &Rules::default(), &Subject { hints, ..writing() }).action);
        assert_eq!(decided, expected, "{mode}");
    }
}

#[test]
fn deny_beats_ask_beats_allow_and_the_rule_is_named() {
    use Action::{Allow, Ask, Deny};
    let (allow, ask, deny) = (&["files/*"][..], &["*"][..], &["write_*"][..]);
    let cases = [
        (PermissionMode::Default, rules(allow, ask, deny), Deny, "write_*"),
        (PermissionMode::Bypass, rules(allow, ask, deny), Deny, "write_*"),
        (PermissionMode::Default, rules(allow, ask, &[]), Ask, "*"),
        (PermissionMode::Bypass, rules(allow, ask, &[]), Ask, "*"),
        // Where nothing asks, an ask is a refusal.
        (PermissionMode::DontAsk, rules(allow, ask, &[]), Deny, "*"),
        (PermissionMode::DontAsk, rules(allow, &[], &[]), Allow, "files/*"),
        (PermissionMode::Default, rules(allow, &[], &[]), Allow, "files/*"),
    ];
    for (mode, rules, action, rule) in cases {
        let decision = decide(mode, &rules, &writing());
        assert_eq!(decision.action, action, "{mode} {rules:?}");
        assert_eq!(decision.by, DecidedBy::Rule { rule: rule.to_owned() }, "{mode} {rules:?}");
    }
}

#[test]
fn rules_match_by_name_and_only_by_name() {
    let cases = [
        ("write_file", "files", "write_file", "write_file", true),
        ("files/write_file", "files", "write_file", "write_file", true),
        ("files/*", "files", "write_file", "write_file", true),
        ("*/write_file", "files", "write_file", "write_file", true),
        ("write_*", "files", "write_file", "write_file", true),
        ("write", "files", "write_file", "write_file", false),
        ("file", "files", "write_file", "write_file", false),
        ("other/*", "files", "write_file", "write_file", false),
        ("WRITE_FILE", "files", "write_file", "write_file", false),
        ("weather__now", "weather", "now", "weather__now", true),
        ("weather/now", "weather", "now", "weather__now", true),
        ("now", "weather", "now", "weather__now", true),
        ("odd one/*", "odd one", "now", "odd_one__now_1234abcd", true),
        // A rule for a plugin's tool never speaks of a tool that only looks like it.
        ("files/read_file", "files2", "read_file", "files2__read_file", false),
    ];
    for (rule, plugin, tool, model_name, expected) in cases {
        let rule: Rule = rule.parse().unwrap();
        assert_eq!(rule.matches(plugin, tool, model_name), expected, "{rule:?} {plugin}/{tool}");
    }
}

#[test]
fn allowing_a_bundled_tool_allows_no_other_of_that_name() {
    let rule: Rule = "write_file".parse().unwrap();
    assert!(rule.allows("files", "write_file", "write_file"));
    assert!(!rule.allows("evil", "write_file", "evil__write_file"));
    // Denying it does mean both.
    assert!(rule.matches("evil", "write_file", "evil__write_file"));
}

#[test]
fn a_rule_that_cannot_be_held_is_refused() {
    let text = |rule: &str| rule.parse::<Rule>().unwrap_err();
    assert_eq!(text(""), RuleError::Empty { rule: String::new() });
    assert_eq!(text("files/"), RuleError::Empty { rule: "files/".into() });
    assert_eq!(text("/read"), RuleError::Empty { rule: "/read".into() });
    for rule in ["files/*(path=**/.env)", "read_file(x)"] {
        assert_eq!(text(rule), RuleError::ArgumentPattern { rule: rule.into() });
    }
    for rule in ["a/b/c", "{a,b}", "[ab]", "a?", "a\\b", "a\nb"] {
        assert_eq!(text(rule), RuleError::NotAName { rule: rule.into() });
    }
}

fn any_mode() -> impl Strategy<Value = PermissionMode> {
    prop::sample::select(MODES.as_slice())
}

fn any_hints() -> impl Strategy<Value = Hints> {
    any::<[bool; 4]>().prop_map(|[read_only, destructive, idempotent, open_world]| Hints {
        read_only,
        destructive,
        idempotent,
        open_world,
    })
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    const TEXTS: [&str; 7] =
        ["*", "files/*", "write_file", "files/write_file", "other/*", "read_file", "w*"];
    prop::collection::vec(prop::sample::select(TEXTS.as_slice()), 0..3)
        .prop_map(|texts| texts.iter().map(|text| text.parse().unwrap()).collect())
}

fn any_rule_set() -> impl Strategy<Value = Rules> {
    (any_rules(), any_rules(), any_rules()).prop_map(|(allow, ask, deny)| Rules {
        allow,
        ask,
        deny,
    })
}

fn any_world() -> impl Strategy<Value = World> {
    prop::sample::select(
        [None, Some(Access::Read), Some(Access::ReadWrite)]
            .map(|workspace| World { workspace })
            .to_vec(),
    )
}

/// How far an action lets a call go.
fn width(action: Action) -> u8 {
    match action {
        Action::Deny => 0,
        Action::Ask => 1,
        Action::Allow => 2,
    }
}

proptest! {
    #[test]
    fn a_world_is_never_wider_than_its_grant(
        granted in any_world(), mode in any_mode(), hints in any_hints(),
    ) {
        prop_assert!(world(granted, mode, hints).workspace <= granted.workspace);
    }

    #[test]
    fn a_read_only_tool_and_plan_mode_never_get_a_folder_to_write(
        granted in any_world(), mode in any_mode(), hints in any_hints(),
    ) {
        let writes = world(granted, mode, hints).workspace == Some(Access::ReadWrite);
        prop_assert!(!(writes && (hints.read_only || mode == PermissionMode::Plan)));
    }

    #[test]
    fn a_matching_deny_rule_always_wins(
        mode in any_mode(), rules in any_rule_set(), hints in any_hints(),
    ) {
        let subject = Subject { hints, ..writing() };
        let matches = |rule: &Rule| rule.matches(subject.plugin, subject.tool, subject.model_name);
        if rules.deny.iter().any(matches) {
            prop_assert_eq!(decide(mode, &rules, &subject).action, Action::Deny);
            prop_assert!(!is_offered(mode, &rules, &subject));
        }
    }

    #[test]
    fn adding_a_deny_or_an_ask_rule_never_widens_anything(
        mode in any_mode(), rules in any_rule_set(), more in any_rules(), hints in any_hints(),
    ) {
        let subject = Subject { hints, ..writing() };
        let before = width(decide(mode, &rules, &subject).action);
        let mut denied = rules.clone();
        denied.deny.extend(more.clone());
        prop_assert!(width(decide(mode, &denied, &subject).action) <= before);
        // In `dont-ask`, asking is the narrowest; elsewhere an ask may stand over a plain allow.
        let mut asked = rules;
        asked.ask.extend(more);
        prop_assert!(width(decide(mode, &asked, &subject).action) <= before.max(1));
    }

    #[test]
    fn plan_is_never_wider_than_any_other_mode(
        mode in any_mode(), rules in any_rule_set(), hints in any_hints(), granted in any_world(),
    ) {
        let subject = Subject { hints, ..writing() };
        let plan = decide(PermissionMode::Plan, &rules, &subject).action;
        let other = decide(mode, &rules, &subject).action;
        prop_assert!(plan != Action::Allow || other == Action::Allow);
        let narrow = world(granted, PermissionMode::Plan, hints);
        prop_assert!(narrow.workspace <= world(granted, mode, hints).workspace);
    }
}
