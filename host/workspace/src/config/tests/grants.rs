//! What stands in `[plugins]` and `[workspaces]` of the user's file.

use super::*;
use belljar_capability::{Binding, FolderGrant, Limit, LimitSettings, SecretGrant};

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn folder(host: &str, guest: Option<&str>) -> FolderGrant {
    FolderGrant { host: host.to_owned(), guest: guest.map(|guest| guest.parse().unwrap()) }
}

#[test]
fn every_key_of_a_plugin_is_read() {
    let text = format!(
        r#"[plugins.weather]
digest = "{DIGEST}"
files.read = ["data", {{ host = "~/sets", guest = "/sets" }}]
files.write = ["out"]
files.deny = ["**/.env", "**/.git/**"]
net = ["https://api.open-meteo.com"]
env = ["TZ"]
secrets = [{{ name = "WEATHER_KEY", from_env = "WEATHER_KEY", host = "api.open-meteo.com", header = "authorization", format = "Bearer {{}}" }}]
limits = {{ deadline = "10s", memory = "64MiB", requests = 5, fuel = 1_000_000 }}

[plugins.files]
env = {{ TZ = "UTC", LANG = true }}
[[plugins.files.secrets]]
name = "A"
from_env = "B"
host = "a.example:8443"
header = "X-Key"
[[plugins.files.files.read]]
host = "x"

[plugins."odd name"]
dev = "/src/odd name.wasm"

[plugins.nothing]
"#
    );
    let weather = PluginGrant {
        binding: Some(Binding::Digest(DIGEST.to_owned())),
        read: vec![folder("data", None), folder("~/sets", Some("/sets"))],
        write: vec![folder("out", None)],
        deny: vec!["**/.env".to_owned(), "**/.git/**".to_owned()],
        net: vec!["https://api.open-meteo.com".parse().unwrap()],
        env: [("TZ".to_owned(), None)].into(),
        secrets: vec![
            SecretGrant::new(
                "WEATHER_KEY",
                "WEATHER_KEY",
                "api.open-meteo.com",
                "authorization",
                "Bearer {}",
            )
            .unwrap(),
        ],
        limits: LimitSettings::from([
            (Limit::Deadline, 10_000),
            (Limit::Memory, 64 << 20),
            (Limit::Requests, 5),
            (Limit::Fuel, 1_000_000),
        ]),
    };
    let files = PluginGrant {
        read: vec![folder("x", None)],
        env: [("TZ".to_owned(), Some("UTC".to_owned())), ("LANG".to_owned(), None)].into(),
        secrets: vec![SecretGrant::new("A", "B", "a.example:8443", "x-key", "{}").unwrap()],
        ..PluginGrant::default()
    };
    let odd = PluginGrant {
        binding: Some(Binding::Dev("/src/odd name.wasm".into())),
        ..PluginGrant::default()
    };
    let plugins = [
        ("weather", weather),
        ("files", files),
        ("odd name", odd),
        ("nothing", PluginGrant::default()),
    ];
    let plugins = plugins.map(|(name, grant)| (name.to_owned(), grant)).into();
    assert_eq!(parse(&text), Ok(Config { plugins, ..Config::default() }));
}

#[test]
fn what_is_said_about_folders_is_read() {
    let text = format!(
        "[workspaces.\"/home/u/a/\"]\nallow = [\"files/*\"]\ntrusted = \"{DIGEST}\"\n\
         [workspaces.\"/b\"]\n"
    );
    let a = WorkspaceSettings {
        allow: vec!["files/*".parse().unwrap()],
        trusted: Some(DIGEST.to_owned()),
    };
    let workspaces = [(PathBuf::from("/home/u/a"), a), ("/b".into(), WorkspaceSettings::default())];
    assert_eq!(parse(&text), Ok(Config { workspaces: workspaces.into(), ..Config::default() }));
}

/// A mistake in one plugin's table is an error that names it: nothing is dropped in silence.
#[test]
fn what_is_wrong_in_a_table_is_named_with_its_line() {
    let keys =
        "the known keys here are `digest`, `dev`, `files`, `net`, `env`, `secrets`, `limits`";
    let folders = "`plugins.a.files.read` must be an array of folders, each a string or `{ host = \
                   …, guest = … }`, and is";
    let digest = "`plugins.a.digest` is `sha256:` and 64 hexadecimal digits, as `belljar plugin \
                  grant a` writes it";
    let state = "shows the system's own state instead of files, so it cannot be granted: grant a \
                 folder of a disk";
    let of_workspace = "is `sha256:` and 64 hexadecimal digits, as `belljar trust` writes it";
    let cases: Vec<(&str, String)> = vec![
        ("\nplugins = 3", "2: `plugins` must be a table, and is a whole number".into()),
        ("plugins.a = 3", "1: `plugins.a` must be a table, and is a whole number".into()),
        (
            "[plugins.\"\"]",
            "1: a plugin's name is that of its file, without `.wasm`".into(),
        ),
        ("[plugins.a]\nnets = []", "2: unknown key `plugins.a.nets`: did you mean `plugins.a.net`?".into()),
        ("[plugins.a]\nhooks = []", format!("2: unknown key `plugins.a.hooks`: {keys}")),
        ("[plugins.a]\ndigest = \"sha256:12\"", format!("2: {digest}")),
        (
            "[plugins.a]\ndigest = \"sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef\"",
            format!("2: {digest}"),
        ),
        ("[plugins.a]\ndev = \"a.wasm\"", "2: `plugins.a.dev` is the absolute path of a `a.wasm`".into()),
        ("[plugins.a]\ndev = \"/x/b.wasm\"", "2: `plugins.a.dev` is the absolute path of a `a.wasm`".into()),
        (
            "[plugins.a]\ndigest = \"x\"\ndev = \"/x/a.wasm\"",
            "3: `plugins.a` has both `digest` and `dev`: keep the one that is meant".into(),
        ),
        (
            "[plugins.a]\nfiles.reed = []",
            "2: unknown key `plugins.a.files.reed`: did you mean `plugins.a.files.read`?".into(),
        ),
        ("[plugins.a]\nfiles.read = \"data\"", format!("2: {folders} a string")),
        ("[plugins.a]\nfiles.read = [\n\"x\",\n1]", format!("4: {folders} a whole number")),
        (
            "[plugins.a]\nfiles.read = [\"\"]",
            "2: `plugins.a.files.read` names a folder: write `.` for the workspace".into(),
        ),
        (
            "[plugins.a]\nfiles.read = [{ guest = \"/x\" }]",
            "2: `plugins.a.files.read` has no `host`: name the folder".into(),
        ),
        (
            "[plugins.a]\nfiles.read = [{ host = \"x\", gust = \"/x\" }]",
            "2: unknown key `plugins.a.files.read.gust`: did you mean `plugins.a.files.read.guest`?".into(),
        ),
        (
            "[plugins.a]\nfiles.read = [{ host = \"x\", guest = \"../x\" }]",
            "2: `../x` climbs out of its folder: write it without `..`".into(),
        ),
        (
            "[plugins.a]\nnet = []\nfiles.read = [\"../x\"]",
            "1: `plugins.a`: the folder `../x` climbs with `..`: write it without".into(),
        ),
        (
            "[plugins.a]\nfiles.read = [{ host = \"/proc/self\", guest = \"/p\" }]",
            format!("1: `plugins.a`: `/proc/self` {state}"),
        ),
        ("[plugins.a]\nfiles.write = [{ host = \"/dev\", guest = \"/p\" }]", format!("1: `plugins.a`: `/dev` {state}")),
        ("[plugins.a]\nfiles.write = [{ host = \"/sys//\", guest = \"/p\" }]", format!("1: `plugins.a`: `/sys//` {state}")),
        (
            "[plugins.a]\nfiles.write = [{ host = \"/x\", guest = \"/tmp\" }]",
            "1: `plugins.a`: `/tmp` is the place of every call's own temporary folder: choose \
             another guest path".into(),
        ),
        (
            "[plugins.a]\nfiles.deny = [\"a/../b\"]",
            "2: the deny glob `a/../b` cannot be read: it holds `.`, `..` or an empty name; write one \
             such as `**/.env`".into(),
        ),
        ("[plugins.a]\nenv = \"TZ\"", "2: `plugins.a.env` must be an array of names or a table of names and values, and is a string".into()),
        ("[plugins.a]\nenv = [\"A=B\"]", "2: `plugins.a.env` names variables: letters, digits and `_`, not a digit first".into()),
        ("[plugins.a]\nenv = { \"1\" = \"x\" }", "2: `plugins.a.env` names variables: letters, digits and `_`, not a digit first".into()),
        (
            "[plugins.a]\nenv = { A = false }",
            "2: `plugins.a.env.A` must be a string, or `true` for the host's own value, and is a boolean".into(),
        ),
        ("[plugins.a]\nsecrets = [\"KEY\"]", "2: `plugins.a.secrets` must be an array of tables, and is a string".into()),
        ("[plugins.a]\nsecrets = [{ name = \"K\" }]", "2: a secret of `plugins.a.secrets` has no `from_env`: write one".into()),
        (
            "[plugins.a]\nsecrets = [{ name = \"K\", value = \"sk-secret\" }]",
            "2: unknown key `plugins.a.secrets.value`: the known keys here are `name`, `from_env`, \
             `host`, `header`, `format`".into(),
        ),
        (
            "[plugins.a]\nlimits = { memory = \"lots\" }",
            "2: the limit `memory`: `lots` is not a size such as `64MiB`".into(),
        ),
        (
            "[plugins.a]\nlimits = { deadline = 10 }",
            "2: `plugins.a.limits.deadline` must be a time such as `10s` or `1m 30s`, and is a whole number".into(),
        ),
        (
            "[plugins.a]\nlimits = { calls = 1000 }",
            "2: the limit `calls`: 1000 is out of range: write something from 1 to 64".into(),
        ),
        ("[workspaces.home]", "1: `home` is not the absolute path of a folder".into()),
        ("[workspaces.\"/a/../b\"]", "1: `/a/../b` is not the absolute path of a folder".into()),
        (
            "[workspaces.\"/a\"]\n[workspaces.\"/a/\"]",
            "2: `/a/` is named twice: keep one table for it".into(),
        ),
        (
            "[workspaces.\"/a\"]\ndeny = []",
            "2: unknown key `workspaces./a.deny`: the known keys here are `allow`, `trusted`".into(),
        ),
        ("[workspaces.\"/a\"]\ntrusted = true", "2: `workspaces./a.trusted` must be a string, and is a boolean".into()),
        ("[workspaces.\"/a\"]\ntrusted = \"yes\"", format!("2: `workspaces./a.trusted` {of_workspace}")),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text), Err(format!("{FILE}:{message}")), "{text}");
    }
    for text in [
        "[plugins.a]\nnet = [\"example.com\"]",
        "[plugins.a]\nlimits = { time = \"3s\" }",
        "[plugins.a]\nsecrets = [{ name = \"K\", from_env = \"K\", host = \"h.example\", header = \"host\" }]",
    ] {
        let message = parse(text).unwrap_err();
        assert!(message.starts_with(&format!("{FILE}:2: ")), "{message}");
    }
}
