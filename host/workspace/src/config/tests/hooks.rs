//! The `[[hooks.POINT]]` tables of the user's file.

use super::*;
use crate::hooks::{HookCommand, HookCommands, OnFailure};
use belljar_types::HookPoint;
use std::time::Duration;

fn hooks(text: &str) -> Result<HookCommands, String> {
    parse_user(Path::new("/c.toml"), text)
        .map(|config| config.hooks)
        .map_err(|error| error.to_string())
}

#[test]
fn hooks_are_read_in_order_with_their_defaults() {
    let text = r#"
[[hooks.pre_tool]]
command = ["/usr/bin/check", "--strict", "$HOME"]
env = { TZ = "UTC", LANG = true }
timeout = "1m 30s"
on_failure = "block"

[[hooks.pre_tool]]
command = ["/usr/bin/second"]
env = ["PATH"]
on_failure = "warn"

[[hooks.subagent_stop]]
command = ["~/bin/notify"]
"#;
    let at = |line| Source::File { path: PathBuf::from("/c.toml"), line };
    let plain = |program: PathBuf, line| HookCommand {
        program,
        arguments: Vec::new(),
        environment: BTreeMap::new(),
        timeout: Duration::from_secs(30),
        on_failure: OnFailure::Warn,
        source: at(line),
    };
    let variables = |variables: &[(&str, Option<&str>)]| {
        let owned =
            |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
        variables.iter().map(owned).collect::<BTreeMap<_, _>>()
    };
    let check = HookCommand {
        arguments: vec!["--strict".to_owned(), "$HOME".to_owned()],
        environment: variables(&[("TZ", Some("UTC")), ("LANG", None)]),
        timeout: Duration::from_secs(90),
        on_failure: OnFailure::Block,
        ..plain(PathBuf::from("/usr/bin/check"), 2)
    };
    let second = HookCommand {
        environment: variables(&[("PATH", None)]),
        ..plain(PathBuf::from("/usr/bin/second"), 8)
    };
    let notify = plain(std::env::home_dir().unwrap().join("bin/notify"), 13);
    let expected = HookCommands::from([
        (HookPoint::PreTool, vec![check, second]),
        (HookPoint::SubagentStop, vec![notify]),
    ]);
    assert_eq!(hooks(text), Ok(expected));
    assert_eq!(hooks("[hooks]\nstop = []"), Ok(HookCommands::new()));
}

#[test]
fn what_is_wrong_with_a_hook_is_told_with_its_place() {
    let one = |lines: &str| format!("[[hooks.stop]]\n{lines}");
    let absolute = |program: &str| {
        format!(
            "2: `hooks.stop.command` begins with `{program}`, which is not an absolute path: write \
             the program's place, as `command -v` shows it"
        )
    };
    let cases = [
        (
            "[[hooks.pre_tol]]\ncommand = [\"/x\"]".to_owned(),
            "1: unknown key `hooks.pre_tol`: did you mean `hooks.pre_tool`?".to_owned(),
        ),
        (
            "[hooks]\nstop = [\"sh\"]".to_owned(),
            "2: `hooks.stop` must be an array of tables, each with a `command`, and is a string"
                .to_owned(),
        ),
        (
            "[hooks.stop]\ncommand = [\"/x\"]".to_owned(),
            "1: `hooks.stop` must be an array of tables, each with a `command`, and is a table"
                .to_owned(),
        ),
        (
            one("command = \"/x --y\""),
            "2: `hooks.stop.command` must be an array of strings, and is a string".to_owned(),
        ),
        (
            one("command = []"),
            "1: a hook of `hooks.stop` has no `command`: write an array, the program's path first"
                .to_owned(),
        ),
        (one("command = [\"sh\"]"), absolute("sh")),
        (one("command = [\"./x\"]"), absolute("./x")),
        (one("command = [\"~me/x\"]"), absolute("~me/x")),
        (one("command = [\"\"]"), absolute("")),
        (
            one("command = [\"/x\", \"a\\u0000b\"]"),
            "1: `hooks.stop.command` holds a zero byte".to_owned(),
        ),
        (
            one("command = [\"/x\"]\nshell = true"),
            "3: unknown key `hooks.stop.shell`: the known keys here are `command`, `env`, \
             `timeout`, `on_failure`"
                .to_owned(),
        ),
        (
            one("command = [\"/x\"]\non_failure = \"block\""),
            "3: `hooks.stop.on_failure` is `block`, and there is nothing to block at `stop`: that \
             is possible at `user_prompt`, `pre_round`, `pre_tool`, `post_tool`, `pre_compact`"
                .to_owned(),
        ),
        (
            one("command = [\"/x\"]\non_failure = \"ignore\""),
            "3: `hooks.stop.on_failure` is `ignore`: choose one of `warn`, `block`".to_owned(),
        ),
    ];
    for (text, message) in cases {
        assert_eq!(hooks(&text), Err(format!("/c.toml:{message}")), "{text}");
    }
    let many = "[[hooks.stop]]\ncommand = [\"/x\"]\n".repeat(21);
    assert_eq!(hooks(&many), Err("/c.toml:41: `hooks.stop` has more than 20 hooks".to_owned()));
    for timeout in ["\"0s\"", "\"x\"", "\"48h\""] {
        let error = hooks(&one(&format!("command = [\"/x\"]\ntimeout = {timeout}"))).unwrap_err();
        assert!(error.starts_with("/c.toml:3: `hooks.stop.timeout`: "), "{error}");
    }
}
