//! Deciding, held by tables and by properties.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

use belljar_capability::{
    Access, Approved, Granted, Mount, NetworkScope, Rule, RuleError, RuleSubject, Rules, Subject,
    decide, is_offered, world,
};
use belljar_types::{Action, DecidedBy, Hints, PermissionMode};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::DontAsk,
    PermissionMode::Bypass,
];

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Rules { allow: parse(allow), ask: parse(ask), deny: parse(deny), ..Rules::default() }
}

fn writing() -> Subject<'static> {
    Subject {
        plugin: "files",
        tool: "write_file",
        model_name: "write_file",
        hints: Hints::default(),
        arguments: None,
        is_known: true,
        granted: &NOTHING,
        request: None,
    }
}

static NOTHING: LazyLock<Granted> = LazyLock::new(Granted::default);

fn about<'a>(plugin: &'a str, tool: &'a str, model_name: &'a str) -> RuleSubject<'a> {
    RuleSubject { plugin, tool, model_name, arguments: None }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
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
        let decided = kinds.map(|hints| {
            decide(mode, &Rules::default(), &Subject { hints, ..writing() }).decision.action
        });
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
        let decision = decide(mode, &rules, &writing()).decision;
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
        assert_eq!(
            rule.stops(&about(plugin, tool, model_name)),
            expected,
            "{rule:?} {plugin}/{tool}"
        );
    }
}

#[test]
fn allowing_a_bundled_tool_allows_no_other_of_that_name() {
    let rule: Rule = "write_file".parse().unwrap();
    assert!(rule.allows(&about("files", "write_file", "write_file")));
    assert!(!rule.allows(&about("evil", "write_file", "evil__write_file")));
    // Denying it does mean both.
    assert!(rule.stops(&about("evil", "write_file", "evil__write_file")));
}

#[test]
fn a_rule_that_cannot_be_held_is_refused() {
    let text = |rule: &str| rule.parse::<Rule>().unwrap_err();
    assert_eq!(text(""), RuleError::Empty { rule: String::new() });
    assert_eq!(text("files/"), RuleError::Empty { rule: "files/".into() });
    assert_eq!(text("/read"), RuleError::Empty { rule: "/read".into() });
    for rule in ["files/*(path=**/.env", "read_file(x)", "a(=x)", "a(x=)", "a(x=[)", "a()"] {
        assert_eq!(text(rule), RuleError::ArgumentPattern { rule: rule.into() });
    }
    for rule in ["a/b/c", "{a,b}", "[ab]", "a?", "a\\b", "a\nb"] {
        assert_eq!(text(rule), RuleError::NotAName { rule: rule.into() });
    }
}

#[test]
fn arguments_are_matched_in_their_canonical_form() {
    // Rule, value of `path`, whether it stops as a deny rule, whether it allows.
    let cases = [
        ("files/*(path=**/.env)", json!(".env"), true, true),
        ("files/*(path=**/.env)", json!("a/b/.env"), true, true),
        ("files/*(path=**/.env)", json!("./a/../.env"), true, true),
        ("files/*(path=**/.env)", json!("/a//.env/"), true, true),
        ("files/*(path=**/.env)", json!("a/.ENV"), true, false),
        ("files/*(path=**/.env)", json!("a/.env.example"), false, false),
        ("files/*(path=**/.env)", json!(["x", "a/.env"]), true, false),
        ("files/*(path=**/.env)", json!({"deep": ["a/.env"]}), true, false),
        ("files/*(path=**/.env)", json!(7), false, false),
        ("files/*(path=src/**)", json!("src/main.rs"), true, true),
        ("files/*(path=src/**)", json!("src/../.git/config"), true, false),
        ("files/*(path=src/**)", json!("../src/main.rs"), false, false),
        ("files/*(path=src/*)", json!("src/deep/main.rs"), false, false),
        ("files/*(path=src/**)", json!(["src/a", "src/b"]), true, true),
        ("files/*(path=src/**)", json!(["src/a", "b"]), true, false),
        ("files/*(path=src/**)", json!([]), false, false),
        ("files/*(path=https://docs.rs/**)", json!("https://docs.rs/a/b"), true, true),
        ("files/*(path=https://docs.rs/**)", json!("HTTPS://DOCS.RS:443/a"), true, true),
        ("files/*(path=https://docs.rs/**)", json!("https://docs.rs.evil.example/"), false, false),
        ("files/*(path=https://docs.rs/**)", json!("https://docs.rs@evil.example/"), false, false),
        ("files/*(other=x)", json!("x"), false, false),
    ];
    for (rule, value, stops, allows) in cases {
        let text = rule;
        let rule: Rule = rule.parse().unwrap();
        let arguments = object(json!({"path": value.clone()}));
        let subject =
            RuleSubject { arguments: Some(&arguments), ..about("files", "read_file", "read_file") };
        assert_eq!(rule.stops(&subject), stops, "{text} stops {value}");
        assert_eq!(rule.allows(&subject), allows, "{text} allows {value}");
    }
}

#[test]
fn every_pattern_of_a_rule_has_to_match() {
    let rule: Rule = "files/move_path(from=a/**, to=b/**)".parse().unwrap();
    let stops = |from: &str, to: &str| {
        let arguments = object(json!({"from": from, "to": to}));
        rule.stops(&RuleSubject {
            arguments: Some(&arguments),
            ..about("files", "move_path", "move_path")
        })
    };
    assert!(stops("a/x", "b/x"));
    assert!(!stops("a/x", "c/x") && !stops("c/x", "b/x"));
}

#[test]
fn a_rule_with_a_pattern_withholds_no_tool() {
    let rules = rules(&[], &[], &["files/*(path=**/.env)"]);
    assert!(is_offered(PermissionMode::Default, &rules, &writing()));
    let arguments = object(json!({"path": "a/.env"}));
    let subject = Subject { arguments: Some(&arguments), ..writing() };
    assert_eq!(decide(PermissionMode::Bypass, &rules, &subject).decision.action, Action::Deny);
}

#[test]
fn a_protected_path_is_asked_about_in_every_mode_and_no_rule_speaks_for_it() {
    let arguments = object(json!({"path": "sub/../.git/hooks/pre-commit", "text": "x"}));
    let subject = Subject { arguments: Some(&arguments), ..writing() };
    let by = DecidedBy::ProtectedPath { path: ".git/hooks/pre-commit".to_owned() };
    let allow = rules(&["*"], &[], &[]);
    for mode in [PermissionMode::Default, PermissionMode::AcceptEdits, PermissionMode::Bypass] {
        let verdict = decide(mode, &allow, &subject);
        assert_eq!((verdict.decision.action, &verdict.decision.by), (Action::Ask, &by), "{mode}");
        assert_eq!(verdict.asks_for.protected, [".git/hooks/pre-commit".parse().unwrap()]);
    }
    let verdict = decide(PermissionMode::DontAsk, &allow, &subject);
    assert_eq!((verdict.decision.action, verdict.decision.by), (Action::Deny, by));
    assert_eq!(verdict.asks_for, Approved::default());
    // Reading is another matter, and so is a rule that denies.
    let reading = Subject { hints: hints(true, false), ..subject };
    assert_eq!(decide(PermissionMode::Default, &allow, &reading).decision.action, Action::Allow);
    let deny = rules(&["*"], &[], &["write_file"]);
    assert_eq!(decide(PermissionMode::Bypass, &deny, &subject).decision.action, Action::Deny);
}

#[test]
fn rules_of_the_configuration_hold_for_known_bytes_only() {
    let unknown = Subject { is_known: false, ..writing() };
    let configured = rules(&["files/write_file"], &[], &[]);
    assert_eq!(decide(PermissionMode::Default, &configured, &unknown).decision.action, Action::Ask);
    let this_run = Rules { allow_this_run: configured.allow, ..Rules::default() };
    assert_eq!(decide(PermissionMode::Default, &this_run, &unknown).decision.action, Action::Allow);
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
    (any_rules(), any_rules(), any_rules(), any_rules())
        .prop_map(|(allow, allow_this_run, ask, deny)| Rules { allow, allow_this_run, ask, deny })
}

fn any_granted() -> impl Strategy<Value = Arc<Granted>> {
    prop::sample::select([None, Some(Access::Read), Some(Access::ReadWrite)].to_vec()).prop_map(
        |access| {
            let mount = |access| Mount {
                host: "/home/user/project".into(),
                guest: "".parse().unwrap(),
                access,
            };
            Arc::new(Granted {
                mounts: access.into_iter().map(mount).collect(),
                net: vec!["https://example.com".parse().unwrap()],
                ..Granted::default()
            })
        },
    )
}

/// The rights of a world's folders, and how far its network is open.
fn rights(
    granted: &Arc<Granted>,
    mode: PermissionMode,
    hints: Hints,
) -> (Vec<Access>, NetworkScope) {
    let world = world(granted, mode, hints, Approved::default());
    let access = world.granted.mounts.iter().map(|mount| world.access(mount.access)).collect();
    (access, world.network)
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
        granted in any_granted(), mode in any_mode(), hints in any_hints(),
    ) {
        let (access, network) = rights(&granted, mode, hints);
        let given: Vec<_> = granted.mounts.iter().map(|mount| mount.access).collect();
        prop_assert_eq!(access.len(), given.len());
        prop_assert!(access.iter().zip(&given).all(|(got, given)| got <= given));
        prop_assert!(hints.open_world || network == NetworkScope::None);
    }

    #[test]
    fn a_read_only_tool_and_plan_mode_never_get_a_folder_to_write(
        granted in any_granted(), mode in any_mode(), hints in any_hints(),
    ) {
        let writes = world(&granted, mode, hints, Approved::default()).can_write();
        prop_assert!(!(writes && (hints.read_only || mode == PermissionMode::Plan)));
    }

    #[test]
    fn a_matching_deny_rule_always_wins(
        mode in any_mode(), rules in any_rule_set(), hints in any_hints(),
    ) {
        let subject = Subject { hints, ..writing() };
        let matches = |rule: &Rule| rule.stops(&about(subject.plugin, subject.tool, subject.model_name));
        if rules.deny.iter().any(matches) {
            prop_assert_eq!(decide(mode, &rules, &subject).decision.action, Action::Deny);
            prop_assert!(!is_offered(mode, &rules, &subject));
        }
    }

    #[test]
    fn adding_a_deny_or_an_ask_rule_never_widens_anything(
        mode in any_mode(), rules in any_rule_set(), more in any_rules(), hints in any_hints(),
    ) {
        let subject = Subject { hints, ..writing() };
        let before = width(decide(mode, &rules, &subject).decision.action);
        let mut denied = rules.clone();
        denied.deny.extend(more.clone());
        prop_assert!(width(decide(mode, &denied, &subject).decision.action) <= before);
        // In `dont-ask`, asking is the narrowest; elsewhere an ask may stand over a plain allow.
        let mut asked = rules;
        asked.ask.extend(more);
        prop_assert!(width(decide(mode, &asked, &subject).decision.action) <= before.max(1));
    }

    #[test]
    fn plan_is_never_wider_than_any_other_mode(
        mode in any_mode(), rules in any_rule_set(), hints in any_hints(), granted in any_granted(),
    ) {
        let subject = Subject { hints, ..writing() };
        let plan = decide(PermissionMode::Plan, &rules, &subject).decision.action;
        let other = decide(mode, &rules, &subject).decision.action;
        prop_assert!(plan != Action::Allow || other == Action::Allow);
        let (narrow, narrow_network) = rights(&granted, PermissionMode::Plan, hints);
        let (wide, wide_network) = rights(&granted, mode, hints);
        prop_assert!(narrow.iter().zip(&wide).all(|(narrow, wide)| narrow <= wide));
        prop_assert!(narrow_network <= wide_network);
    }
}
