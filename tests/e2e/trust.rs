//! What a workspace brings of its own: it counts after a person trusted it, and only ever narrows.

use crate::support::{Ended, Machine, calls, of_type, says};
use belljar_test_guests::NOOP;
use serde_json::{Value, json};
use std::fs;

const CONFIG: &str = "config/belljar/config.toml";

fn run(machine: &Machine, options: &[&str]) -> (Ended, Vec<Value>) {
    let model = machine
        .script(&[calls("write_file", json!({"path": "a.txt", "content": "x"})), says("done")]);
    let line = ["run", "-m", &model, "-o", "stream-json"];
    let ended = machine.run([&line[..], options, &["x"]].concat());
    let events = ended.events();
    (ended, events)
}

fn notices(events: &[Value]) -> String {
    of_type(events, "notice").iter().map(|notice| notice["message"].to_string() + "\n").collect()
}

#[test]
fn a_folder_counts_once_it_is_trusted_and_until_its_file_changes() {
    let machine = Machine::new();
    machine.write("belljar.toml", "[rules]\ndeny = [\"write_*\"]\n");
    let folder = machine.workspace().canonicalize().unwrap();
    let bypass = ["--permission-mode", "bypass"];
    let (_, events) = run(&machine, &bypass);
    assert!(machine.workspace().join("a.txt").exists());
    let line = format!("trust it with `belljar trust {}`", folder.display());
    assert!(notices(&events).contains(&line), "{events:#?}");
    fs::remove_file(machine.workspace().join("a.txt")).unwrap();

    let nobody = machine.run(["trust"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(nobody.stderr.contains("│ deny = [\"write_*\"]"), "{nobody:?}");
    assert!(!machine.path(CONFIG).exists());
    let trusted = machine.run(["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    let config = fs::read_to_string(machine.path(CONFIG)).unwrap();
    let start = format!("[workspaces.{:?}]\ntrusted = \"sha256:", folder.display().to_string());
    assert!(config.starts_with(&start), "{config}");

    let (_, events) = run(&machine, &bypass);
    assert_eq!(of_type(&events, "tool_result")[0]["error"]["kind"], "denied", "{events:#?}");
    assert!(!machine.workspace().join("a.txt").exists());
    assert_eq!(machine.run(["trust"]).code, 0, "trusted as it is, so nobody is asked");

    machine.write("belljar.toml", "[rules]\ndeny = []\n");
    let (_, events) = run(&machine, &[]);
    assert!(notices(&events).contains("it has changed since you trusted it"), "{events:#?}");
    let changed = machine.run(["trust"]);
    assert!(changed.stderr.contains("has changed since you trusted it"), "{changed:?}");

    assert_eq!(machine.run(["trust", "--remove"]).code, 0);
    assert_eq!(machine.run(["trust", "--remove"]).code, 1);
    assert!(!fs::read_to_string(machine.path(CONFIG)).unwrap().contains("trusted"));
}

/// Every key of the configuration in a trusted file: what would widen anything is an error before
/// anything runs, and `belljar trust` says so first.
#[test]
fn a_trusted_file_widens_nothing() {
    let widening = [
        ("permission_mode = \"bypass\"", "permission_mode"),
        ("permission_mode = \"accept-edits\"", "permission_mode"),
        ("model = \"evil/x\"", "model"),
        ("model = \"script/evil.jsonl\"", "model"),
        ("max_turns = 99", "max_turns"),
        ("max_output_tokens = 99", "max_output_tokens"),
        ("[providers.evil]\nprotocol = \"openai\"", "providers"),
        ("[providers.ollama]\nbase_url = \"https://evil.example\"", "providers"),
        ("[rules]\nallow = [\"*\"]", "rules.allow"),
        ("[plugins.noop]\ndigest = \"sha256:0\"", "plugins.noop.digest"),
        ("[plugins.noop]\ndev = \"/noop.wasm\"", "plugins.noop.dev"),
        ("[plugins.noop]\nsecrets = []", "plugins.noop.secrets"),
        ("[plugins.noop]\nenv = { LD_PRELOAD = \"x\" }", "plugins.noop.env"),
        ("[workspaces.\"/\"]\nallow = [\"*\"]", "workspaces"),
        ("[hooks]\nstart = \"sh\"", "hooks"),
        ("secrets = []", "secrets"),
        ("unheard_of = 1", "unheard_of"),
    ];
    for (text, key) in widening {
        let machine = Machine::new();
        machine.write("belljar.toml", text);
        let refused = machine.run(["trust", "--yes"]);
        assert_eq!(refused.code, 1, "{text}: {refused:?}");
        assert!(refused.stderr.contains(&format!("`{key}`")), "{text}: {refused:?}");
        assert!(!machine.path(CONFIG).exists(), "{text}");
        // Trusted by hand it is an error all the same.
        let digest = sha256(text);
        let folder = machine.workspace().canonicalize().unwrap();
        let trusted =
            format!("[workspaces.{:?}]\ntrusted = \"{digest}\"\n", folder.display().to_string());
        machine.write_at(CONFIG, trusted);
        let model = machine.script(&[says("never")]);
        let ended = machine.run(["run", "-m", &model, "x"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{text}: {ended:?}");
        assert!(ended.stderr.contains(&format!("`{key}`")), "{text}: {ended:?}");
    }
}

fn sha256(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[test]
fn a_trusted_file_narrows_and_asks() {
    let machine = Machine::new();
    machine.write(
        "belljar.toml",
        "permission_mode = \"plan\"\n[plugins.noop]\nfiles.read = [\"data\"]\nnet = [\"public\"]\n",
    );
    machine.write_at("data/belljar/plugins/noop.wasm", NOOP.bytes);
    assert_eq!(machine.run(["trust", "--yes"]).code, 0);
    let (_, events) = run(&machine, &[]);
    assert_eq!(events[0]["permission_mode"], "plan");
    let line = "`belljar plugin grant noop 'noop.read=data' 'noop.net=public'`";
    assert!(notices(&events).contains(line), "{events:#?}");
    // Asking granted nothing; the line does.
    assert!(!fs::read_to_string(machine.path(CONFIG)).unwrap().contains("noop"));
    let grant = ["plugin", "grant", "noop", "noop.read=data", "noop.net=public", "--yes"];
    fs::create_dir(machine.workspace().join("data")).unwrap();
    let granted = machine.run(grant);
    assert_eq!(granted.code, 0, "{granted:?}");
    let (_, events) = run(&machine, &[]);
    assert!(!notices(&events).contains("asks for more"), "{events:#?}");
    // What a person chooses for a run holds.
    let (_, events) = run(&machine, &["--permission-mode", "accept-edits"]);
    assert_eq!(events[0]["permission_mode"], "accept-edits");
}

#[test]
fn plugins_of_a_folder_are_seen_once_it_is_trusted_and_each_needs_its_own_yes() {
    let machine = Machine::new();
    machine.write(".belljar/plugins/noop.wasm", NOOP.bytes);
    let call = || machine.run(["call", "noop__noop"]);
    let before = call();
    assert_eq!(before.code, 2, "no such tool: {before:?}");
    assert!(before.stderr.contains("belljar trust"), "{before:?}");
    let trusted = machine.run(["trust", "--yes"]);
    assert_eq!(trusted.code, 0, "{trusted:?}");
    assert!(trusted.stderr.contains("noop.wasm"), "{trusted:?}");
    let seen = call();
    assert_eq!(seen.code, 7, "{seen:?}");
    assert!(seen.stderr.contains("belljar plugin grant noop"), "{seen:?}");
    assert!(!machine.run(["tools"]).stdout.contains("noop__noop"));
    assert_eq!(machine.run(["plugin", "grant", "noop", "--yes"]).code, 0);
    assert_eq!(call().code, 0);
    assert!(machine.run(["tools"]).stdout.contains("noop__noop"));
}

#[cfg(unix)]
#[test]
fn what_is_not_the_users_own_file_is_not_read_though_it_was_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    machine.write("belljar.toml", "permission_mode = \"plan\"\n");
    assert_eq!(machine.run(["trust", "--yes"]).code, 0);
    let file = machine.workspace().join("belljar.toml");
    let mode = |machine: &Machine| {
        let (_, events) = run(machine, &[]);
        let told = notices(&events).contains("is not read: it");
        (events[0]["permission_mode"].as_str().unwrap().to_owned(), told)
    };
    assert_eq!(mode(&machine), ("plan".to_owned(), false));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(mode(&machine), ("dont-ask".to_owned(), true));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(&file, machine.path("same.toml")).unwrap();
    std::os::unix::fs::symlink(machine.path("same.toml"), &file).unwrap();
    assert_eq!(mode(&machine), ("dont-ask".to_owned(), true));
}

#[test]
fn a_folder_that_brings_nothing_cannot_be_trusted() {
    let machine = Machine::new();
    let ended = machine.run(["trust", "--yes"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("brings nothing to trust"), "{ended:?}");
}
