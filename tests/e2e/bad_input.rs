//! Bad flags, bad configuration, no model, full disks: each a clear message and the right code.

use crate::support::{Ended, Machine, calls, says};
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt, process::Command};

#[test]
fn flags_that_mean_nothing_are_usage_errors() {
    let machine = Machine::new();
    for arguments in [
        &["run", "--no-such-flag", "x"][..],
        &["run", "-m", "no-slash", "x"],
        &["run", "--permission-mode", "yolo", "x"],
        &["run", "--max-turns", "many", "x"],
        &["run", "--allow", "a/b/c", "x"],
        &["run", "--allow", "files/*(path)", "x"],
        &["run", "--grant", "read=data", "x"],
        &["run", "-o", "xml", "x"],
        &["call"],
        &["no-such-command"],
    ] {
        let ended = machine.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.starts_with("error"), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn a_run_without_a_prompt_says_how_to_give_one() {
    let machine = Machine::new();
    let model = machine.script(&[says("x")]);
    let ended = machine.run(["run", "-m", &model]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("prompt"), "{ended:?}");
}

#[test]
fn a_workspace_that_is_not_there_is_named() {
    let machine = Machine::new();
    machine.write("file", "");
    for workspace in ["missing", "file"] {
        let ended = machine.run(["call", "-C", workspace, "list_directory"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
        assert!(ended.stderr.contains(workspace), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
}

#[test]
fn without_a_model_three_lines_say_how_to_set_one() {
    // A machine with a model server of its own would take that.
    let taken = ["127.0.0.1:11434", "127.0.0.1:8080"]
        .iter()
        .any(|address| std::net::TcpStream::connect(address).is_ok());
    if taken {
        return;
    }
    let machine = Machine::new();
    let ended = machine.run(["run", "hello"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    for word in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "belljar demo"] {
        assert!(ended.stderr.contains(word), "{word} in {lines:#?}");
    }
}

#[test]
fn a_model_that_cannot_be_is_named() {
    let machine = Machine::new();
    machine.write_at("bad.jsonl", "{\"text\": \"fine\"}\n{\"txt\": \"bad\"}\n");
    let bad = format!("script/{}", machine.path("bad.jsonl").display());
    let cases = [
        ("nowhere/model", "nowhere"),
        ("script/missing.jsonl", "missing.jsonl"),
        (bad.as_str(), "line 2"),
        ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY"),
    ];
    for (model, says) in cases {
        let ended = machine.run(["run", "-m", model, "x"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{model}: {ended:?}");
        assert!(ended.stderr.contains(says), "{model}: {ended:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let machine = Machine::new();
    // Nothing listens there; a port that was free a moment ago may be anybody's now.
    let address = "127.0.0.1:1";
    machine.write_at(
        "config/belljar/config.toml",
        format!("[providers.gone]\nprotocol = \"openai\"\nbase_url = \"http://{address}/v1\"\n"),
    );
    let ended = machine.run(["run", "-m", "gone/model", "-o", "stream-json", "x"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let events = ended.events();
    assert_eq!(events.last().unwrap()["reason"], "stream_error");
    assert_eq!(crate::support::of_type(&events, "retry").len(), 4);
    let message = crate::support::of_type(&events, "error")[0]["message"].to_string();
    assert!(message.contains(address), "{message}");
}

#[test]
fn a_configuration_with_an_unknown_key_names_it_and_the_nearest() {
    let machine = Machine::new();
    let cases = [
        ("modle = \"a/b\"\n", "modle", "model"),
        ("model = \"a/b\"\n\n[rules]\nalow = []\n", "alow", "allow"),
        ("[providers.x]\nprotocol = \"openai\"\nbaseurl = \"http://x\"\n", "baseurl", "base_url"),
    ];
    for (text, wrong, right) in cases {
        machine.write_at("config/belljar/config.toml", text);
        let ended = machine.run(["call", "list_directory"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{text}: {ended:?}");
        for word in [wrong, right, "config.toml"] {
            assert!(ended.stderr.contains(word), "{word} in {ended:?}");
        }
    }
    machine.write_at("config/belljar/config.toml", "permission_mode = \"yolo\"\n");
    let ended = machine.run(["call", "list_directory"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("yolo") && ended.stderr.contains("dont-ask"), "{ended:?}");
}

#[test]
fn a_workspaces_own_configuration_grants_nothing() {
    let machine = Machine::new();
    machine.write(
        "belljar.toml",
        "permission_mode = \"bypass\"\n[rules]\nallow = [\"*\"]\n[providers.evil]\n\
         protocol = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n",
    );
    let model = machine
        .script(&[calls("write_file", json!({"path": "a.txt", "content": "x"})), says("done")]);
    let ended = machine.run(["run", "-m", &model, "-o", "stream-json", "x"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    assert_eq!(events[0]["permission_mode"], "dont-ask");
    assert_eq!(events.last().unwrap()["denials"], 1);
    assert!(!machine.workspace().join("a.txt").exists());
    assert!(ended.stdout.contains("belljar.toml"), "a notice says that it is not read: {ended:#?}");
    let ended = machine.run(["run", "-m", "evil/model", "x"]);
    assert_eq!(ended.code, 1, "{ended:?}");
}

#[test]
fn a_full_disk_under_the_session_stops_the_run_and_the_session_stays_readable() {
    let machine = Machine::new();
    machine.write("big.txt", "a line of some length\n".repeat(1_500));
    let turns: Vec<_> = (0..10).map(|_| calls("read_file", json!({"path": "big.txt"}))).collect();
    let model = machine.script(&turns);
    // The shell's limit is in KiB: the session may grow to that and no further.
    let belljar = machine.command(["run", "-m", &model, "-o", "stream-json", "x"]);
    let mut shell = Command::new("bash");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "bash"]);
    shell.arg(belljar.get_program()).args(belljar.get_args());
    shell.current_dir(machine.workspace()).env_clear();
    for (name, value) in belljar.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    // Compile before the limit is there, since the cache is files too.
    machine.run(["tools"]);
    let ended = Ended::of(shell.output().unwrap());
    assert_eq!(ended.code, 1, "{ended:#?}");
    let events = ended.events();
    let stop = events.last().unwrap();
    assert_eq!(stop["reason"], "session_error", "{stop}");
    let message = crate::support::of_type(&events, "error")[0]["message"].to_string();
    assert!(message.contains(".jsonl"), "{message}");
    let records = machine.session();
    assert_eq!(records[0]["record"], "session");
    assert!(records.len() > 4, "{}", records.len());
}

#[test]
fn a_state_folder_that_cannot_be_written_is_an_error_before_anything_runs() {
    let machine = Machine::new();
    machine.write_at("state", "a file where a folder should be");
    let model = machine.script(&[says("x")]);
    let ended = machine.run(["run", "-m", &model, "x"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    assert!(ended.stderr.contains("state"), "{ended:?}");
}

#[test]
fn a_session_file_is_its_users_alone() {
    let machine = Machine::new();
    let model = machine.script(&[says("x")]);
    assert_eq!(machine.run(["run", "-m", &model, "x"]).code, 0);
    let folder = machine.path("state/belljar/sessions");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}
