use super::*;
use belljar_capability::Rule;
use std::path::PathBuf;

const FILE: &str = "/home/u/.config/belljar/config.toml";

fn parse(text: &str) -> Result<Config, String> {
    file::parse(Path::new(FILE), text).map_err(|error| error.to_string())
}

fn at(line: usize) -> Source {
    Source::File { path: PathBuf::from(FILE), line }
}

fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
    let read = |rules: &[&str]| -> Vec<Rule> { rules.iter().map(|r| r.parse().unwrap()).collect() };
    Rules { allow: read(allow), ask: read(ask), deny: read(deny), ..Rules::default() }
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn every_protocol_has_a_name() {
    for (name, protocol) in [
        ("anthropic", Protocol::Anthropic),
        ("openai", Protocol::OpenAi),
        ("openai-responses", Protocol::OpenAiResponses),
    ] {
        let config = parse(&format!("[providers.a]\nprotocol = \"{name}\"")).unwrap();
        assert_eq!(config.providers["a"].protocol, Some(protocol));
    }
}

#[test]
fn every_key_is_read() {
    let text = r#"model = "local/qwen"
permission_mode = "accept-edits"
max_turns = 30
max_output_tokens = 0x1000
context_window = 200_000
memory = true

[providers.local]
protocol = "openai"
base_url = "http://127.0.0.1:8080/v1"
api_key_env = "LOCAL_API_KEY"
[providers.anthropic]
base_url = "http://[::1]:9"

[rules]
allow = ["files/read_file", "search/*"]
ask = ["files/write_file"]
deny = ["delete_path"]
"#;
    let local = ProviderSettings {
        protocol: Some(Protocol::OpenAi),
        base_url: Some("http://127.0.0.1:8080/v1".to_owned()),
        api_key_env: Some("LOCAL_API_KEY".to_owned()),
        source: at(8),
    };
    let anthropic = ProviderSettings {
        protocol: None,
        base_url: Some("http://[::1]:9".to_owned()),
        api_key_env: None,
        source: at(12),
    };
    let expected = Config {
        model: Some(Setting { value: "local/qwen".to_owned(), source: at(1) }),
        permission_mode: Some(Setting { value: PermissionMode::AcceptEdits, source: at(2) }),
        max_turns: Some(Setting { value: 30, source: at(3) }),
        max_output_tokens: Some(Setting { value: 4096, source: at(4) }),
        context_window: Some(Setting { value: 200_000, source: at(5) }),
        memory: Some(Setting { value: true, source: at(6) }),
        providers: [("local".to_owned(), local), ("anthropic".to_owned(), anthropic)].into(),
        rules: rules(&["files/read_file", "search/*"], &["files/write_file"], &["delete_path"]),
        ..Config::default()
    };
    assert_eq!(parse(text), Ok(expected));
    assert_eq!(parse(""), Ok(Config::default()));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let variable = "`api_key_env` must be the name of an environment variable, never a key: write \
                    a name, such as `LOCAL_API_KEY`, and set that variable to the key";
    let cases = [
        ("\nmodle = \"a/b\"", "2: unknown key `modle`: did you mean `model`?"),
        (
            "zz = 1\nmodle = 1",
            "1: unknown key `zz`: the known keys here are `model`, \
          `permission_mode`, `max_turns`, `max_output_tokens`, `context_window`, `memory`, \
          `providers`, `rules`, `hooks`, `plugins`, `workspaces`",
        ),
        ("model = 3", "1: `model` must be a string, and is a whole number"),
        ("memory = 1", "1: `memory` must be `true` or `false`, and is a whole number"),
        (
            "model = \"gpt\"",
            "1: `gpt` is not a model: write `PROVIDER/NAME`, such as \
          `anthropic/claude-sonnet-5`",
        ),
        (
            "permission_mode = \"yolo\"",
            "1: `yolo` is not a permission mode: choose one of `plan`, \
          `default`, `accept-edits`, `dont-ask`, `bypass`",
        ),
        ("max_turns = \"3\"", "1: `max_turns` must be a whole number, and is a string"),
        ("max_turns = 0", "1: 0 is too small: write a whole number from 1"),
        ("max_turns = -1", "1: `max_turns` must be a whole number from 1 to 4294967295"),
        ("providers = 1", "1: `providers` must be a table, and is a whole number"),
        ("[providers]\nlocal = true", "2: `providers.local` must be a table, and is a boolean"),
        (
            "[providers.local]\napi_key = \"sk-secret\"",
            "2: unknown key `providers.local.api_key`: \
             did you mean `providers.local.api_key_env`?",
        ),
        (
            "[providers.local]\nbase_ulr = \"x\"",
            "2: unknown key `providers.local.base_ulr`: did \
          you mean `providers.local.base_url`?",
        ),
        (
            "[providers.local]\nprotocol = \"grpc\"",
            "2: `grpc` is not a protocol: choose one of \
          `anthropic`, `openai`, `openai-responses`",
        ),
        (
            "[providers.script]",
            "1: `script` plays files and cannot be a provider: choose another \
          name",
        ),
        (
            "[providers.\"a/b\"]",
            "1: `a/b` cannot be a provider's name: use letters, digits, `_`, \
          `-` and `.`",
        ),
        (
            "[providers.a]\nbase_url = \"localhost:80\"",
            "2: `base_url` must be a URL, such as \
          `http://127.0.0.1:8080/v1`",
        ),
        (
            "[providers.a]\nbase_url = \"https://me:secret@host\"",
            "2: `base_url` must not hold a \
          user name or password: name the variable that holds the key in `api_key_env`",
        ),
        ("[providers.a]\nbase_url = \"https://ho st\"", "2: `base_url` must not hold spaces"),
        ("[rules]\nallow = \"x\"", "2: `rules.allow` must be an array of strings, and is a string"),
        ("[rules]\nalow = []", "2: unknown key `rules.alow`: did you mean `rules.allow`?"),
        (
            "[rules]\ndeny = [\n  \"a\",\n  1,\n]",
            "4: `rules.deny` must be an array of strings, and \
          is a whole number",
        ),
        (
            "[rules]\ndeny = [\n  \"a\",\n  \"/b\",\n]",
            "4: the rule `/b` is empty on one side: \
          write `tool` or `plugin/tool`",
        ),
        (
            "[rules]\ndeny = [\"files/*(path)\"]",
            "2: the rule `files/*(path)` has an argument pattern that cannot be read: write \
             `plugin/tool(argument=pattern)`, with `*` and `**`, and a comma between patterns",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text), Err(format!("{FILE}:{message}")), "{text}");
    }
    for key in ["sk-secret", "", "1A", "A B"] {
        let text = format!("[providers.a]\napi_key_env = \"{key}\"");
        assert_eq!(parse(&text), Err(format!("{FILE}:2: {variable}")));
    }
}

#[test]
fn broken_toml_names_its_line_and_never_quotes_it() {
    for text in [
        "model = \"a/b\"\n\nkey = sk-secret\n",
        "[providers.a\napi = \"sk-secret\"",
        "a = \"sk-secret",
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with(FILE) && message.contains("not valid TOML"), "{message}");
        assert!(!message.contains("secret") && !message.contains('\n'), "{message}");
    }
    let message = parse("model = \"a/b\"\nmodel = \"a/c\"").unwrap_err();
    assert_eq!(message, format!("{FILE}:2: not valid TOML: duplicate key"));
}

#[test]
fn the_environment_is_read_and_unknown_variables_are_notices() {
    let setting = |name| Source::Environment(name);
    let (config, notices) = environment::parse(variables(&[
        ("BELLJAR_MODEL", "ollama/qwen"),
        ("BELLJAR_PERMISSION_MODE", "plan"),
        ("BELLJAR_MAX_TURNS", "7"),
        ("BELLJAR_MAX_OUTPUT_TOKENS", ""),
        ("BELLJAR_MODLE", "x"),
        ("BELLJAR_ZZZ", "x"),
        ("PATH", "/bin"),
    ]))
    .unwrap();
    let expected = Config {
        model: Some(Setting { value: "ollama/qwen".to_owned(), source: setting("BELLJAR_MODEL") }),
        permission_mode: Some(Setting {
            value: PermissionMode::Plan,
            source: setting("BELLJAR_PERMISSION_MODE"),
        }),
        max_turns: Some(Setting { value: 7, source: setting("BELLJAR_MAX_TURNS") }),
        ..Config::default()
    };
    assert_eq!(config, expected);
    assert_eq!(
        notices,
        [
            "the environment variable `BELLJAR_MODLE` sets nothing: did you mean `BELLJAR_MODEL`?",
            "the environment variable `BELLJAR_ZZZ` sets nothing: the known ones are \
             `BELLJAR_MODEL`, `BELLJAR_PERMISSION_MODE`, `BELLJAR_MAX_TURNS`, \
             `BELLJAR_MAX_OUTPUT_TOKENS`, `BELLJAR_CONTEXT_WINDOW`",
        ]
    );
    let cases = [
        ("BELLJAR_MAX_TURNS", "many", "`many` is not a whole number from 1 to 4294967295"),
        ("BELLJAR_MAX_TURNS", "0", "0 is too small: write a whole number from 1"),
        (
            "BELLJAR_MODEL",
            "x",
            "`x` is not a model: write `PROVIDER/NAME`, such as \
          `anthropic/claude-sonnet-5`",
        ),
    ];
    for (name, value, problem) in cases {
        let error = environment::parse(variables(&[(name, value)])).unwrap_err();
        assert_eq!(error.to_string(), format!("`{name}`: {problem}"));
    }
}

#[test]
fn later_sources_win_and_rules_add_up() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::below(root.path());
    std::fs::create_dir_all(&places.config).unwrap();
    std::fs::write(
        places.config_file(),
        "model = \"file/a\"\nmax_turns = 1\nmax_output_tokens = 5\n[rules]\nallow = [\"a\"]\n",
    )
    .unwrap();
    let file = |line| Source::File { path: places.config_file(), line };
    let loaded = load(Sources {
        places: &places,
        file: None,
        workspace: None,
        built_in: &[],
        environment: variables(&[("BELLJAR_MODEL", "env/b"), ("BELLJAR_MAX_TURNS", "2")]),
        flags: Flags {
            model: Some("flag/c".to_owned()),
            rules: rules(&["c"], &[], &["d"]),
            ..Flags::default()
        },
    })
    .unwrap();
    let expected = Config {
        model: Some(Setting { value: "flag/c".to_owned(), source: Source::Flag("--model") }),
        max_turns: Some(Setting { value: 2, source: Source::Environment("BELLJAR_MAX_TURNS") }),
        max_output_tokens: Some(Setting { value: 5, source: file(3) }),
        rules: rules(&["a", "c"], &[], &["d"]),
        ..Config::default()
    };
    assert_eq!(loaded, Loaded { config: expected, ..Loaded::default() });
}

fn load_with(places: &Places, file: Option<&Path>) -> Result<Loaded, String> {
    let flags = Flags::default();
    load(Sources { places, file, workspace: None, built_in: &[], environment: Vec::new(), flags })
        .map_err(|error| error.to_string())
}

#[test]
fn a_named_file_replaces_the_users_and_must_be_there() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::below(root.path());
    assert_eq!(load_with(&places, None), Ok(Loaded::default()));

    std::fs::create_dir_all(&places.config).unwrap();
    std::fs::write(places.config_file(), "this is not read").unwrap();
    let other = root.path().join("other.toml");
    std::fs::write(&other, "max_turns = 9").unwrap();
    let max_turns =
        Some(Setting { value: 9, source: Source::File { path: other.clone(), line: 1 } });
    let config = Config { max_turns, ..Config::default() };
    assert_eq!(load_with(&places, Some(&other)), Ok(Loaded { config, ..Loaded::default() }));

    let missing = root.path().join("missing.toml");
    let message = load_with(&places, Some(&missing)).unwrap_err();
    let start = format!("the configuration `{}` cannot be read: ", missing.display());
    assert!(message.starts_with(&start), "{message}");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let root = tempfile::tempdir().unwrap();
    let places = Places::below(root.path());
    std::fs::create_dir_all(&places.config).unwrap();
    std::fs::write(places.config_file(), "max_turns = 9").unwrap();
    let mode = std::fs::Permissions::from_mode(0o646);
    std::fs::set_permissions(places.config_file(), mode).unwrap();
    assert_eq!(
        load_with(&places, None),
        Err(format!(
            "the configuration `{}` can be written by others (mode 0646), so it is not read: make \
             it yours alone to write (`chmod go-w`), or name it with `--config`",
            places.config_file().display()
        ))
    );
}

mod grants;
mod hooks;
mod workspace;
