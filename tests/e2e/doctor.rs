//! `belljar doctor`: what is found on a fresh machine, on a broken one, and what mends it.

use crate::support::Machine;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

fn findings(machine: &Machine, variables: &[(&str, &str)], options: &[&str]) -> (i32, Vec<Value>) {
    let arguments = ["doctor", "--json"].iter().chain(options);
    let mut command = machine.command(arguments);
    // A cache of its own: it is looked at here.
    command.env("XDG_CACHE_HOME", machine.path("cache")).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let findings = report["findings"].as_array().unwrap().clone();
    let has_problem = findings.iter().any(|finding| finding["status"] == "problem");
    assert_eq!(report["ok"], json!(!has_problem));
    assert_eq!(output.status.code(), Some(i32::from(has_problem)), "{findings:#?}");
    (i32::from(has_problem), findings)
}

fn of<'a>(findings: &'a [Value], about: &str) -> Vec<&'a Value> {
    findings.iter().filter(|finding| finding["about"] == about).collect()
}

fn problems(findings: &[Value]) -> Vec<&str> {
    findings
        .iter()
        .filter(|finding| finding["status"] == "problem")
        .map(|finding| finding["about"].as_str().unwrap())
        .collect()
}

/// A model that needs no server and no key.
fn model(machine: &Machine) -> String {
    machine.script(&[crate::support::says("x")])
}

#[test]
fn a_machine_with_a_model_has_no_problem_and_is_left_as_it_was() {
    let machine = Machine::new();
    let model = model(&machine);
    let (code, found) = findings(&machine, &[("BELLJAR_MODEL", &model)], &[]);
    assert_eq!((code, problems(&found)), (0, Vec::<&str>::new()), "{found:#?}");
    let chosen = of(&found, "model")[0]["text"].as_str().unwrap();
    assert!(chosen.contains(&model), "{chosen}");
    for about in ["version", "configuration", "folders", "compile cache", "plugins", "sandbox"] {
        assert!(!of(&found, about).is_empty(), "nothing about {about}: {found:#?}");
    }
    for folder in ["home", "config", "data", "state", "cache"] {
        assert!(!machine.path(folder).exists(), "`{folder}` was made");
    }
}

#[test]
fn keys_are_named_and_never_shown() {
    let machine = Machine::new();
    let variables = [("ANTHROPIC_API_KEY", "sk-canary-1"), ("OPENAI_API_KEY", "sk-canary-2")];
    let (code, found) = findings(&machine, &variables, &[]);
    assert_eq!(code, 0, "{found:#?}");
    let text = json!(found).to_string();
    assert!(text.contains("ANTHROPIC_API_KEY") && !text.contains("canary"), "{text}");
    let keys = of(&found, "keys")[0];
    assert_eq!(keys["status"], "ok", "{keys}");
    assert!(of(&found, "model")[0]["text"].as_str().unwrap().contains("anthropic/"), "{found:#?}");
}

#[test]
fn everything_broken_is_told_at_once_with_what_mends_it() {
    let machine = Machine::new();
    machine.write_at("config/belljar/config.toml", "modle = \"a/b\"\n");
    machine.write_at("state/belljar/sessions/one.jsonl", "");
    machine.write_at("data/belljar/plugins/module.wasm", b"\0asm\x01\0\0\0");
    machine.write_at("data/belljar/plugins/noop.wasm", belljar_test_guests::NOOP.bytes);
    machine.write_at("cache/belljar/components/x", "");
    let mode = |path: &str, mode| {
        fs::set_permissions(machine.path(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("data/belljar", 0o777);
    mode("state/belljar/sessions", 0o755);
    mode("cache/belljar/components", 0o755);
    let (code, found) = findings(&machine, &[], &[]);
    assert_eq!(code, 1);
    let mut about = problems(&found);
    about.sort_unstable();
    assert_eq!(
        about,
        ["compile cache", "configuration", "folders", "folders", "model"],
        "{found:#?}"
    );
    let configuration = of(&found, "configuration")[0]["text"].as_str().unwrap();
    assert!(configuration.contains("modle") && configuration.contains("model"), "{configuration}");
    let plugins = of(&found, "plugins");
    let text: String = plugins.iter().map(|finding| finding.to_string()).collect();
    for says in [
        "0 taken, 1 waiting for a yes, 1 refused",
        "module.wasm` is refused: it is a core WebAssembly module",
        "noop.wasm` has not been allowed",
        "then belljar plugin grant noop",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }

    // The lines that mend the folders do.
    for finding in found.iter().filter(|finding| {
        finding["status"] == "problem"
            && ["folders", "compile cache"].contains(&finding["about"].as_str().unwrap())
    }) {
        let mend = finding["mend"].as_str().unwrap();
        assert!(Command::new("sh").args(["-c", mend]).status().unwrap().success(), "{mend}");
    }
    let (_, found) = findings(&machine, &[], &[]);
    assert_eq!(problems(&found), ["configuration", "model"], "{found:#?}");
}

#[test]
fn things_in_the_place_of_folders_do_not_stop_it() {
    let machine = Machine::new();
    let model = model(&machine);
    machine.write_at("data/belljar", "a file");
    machine.write_at("state/belljar/sessions", "a file");
    machine.write_at("config/belljar/config.toml/folder", "");
    let (code, found) = findings(
        &machine,
        &[("BELLJAR_MODEL", &model)],
        &["--workspace", "missing", "--plugins", "missing"],
    );
    assert_eq!(code, 1);
    for about in ["workspace", "configuration", "folders", "plugins"] {
        assert!(problems(&found).contains(&about), "{about}: {found:#?}");
    }
}

/// A plugin that is asked for its tools would sleep for a year, and one that is called too.
#[test]
fn no_plugin_is_started() {
    let machine = Machine::new();
    let model = model(&machine);
    let sleeper = belljar_test_guests::odd(belljar_test_guests::Odd::ListSleeps);
    machine.write_at("plugins/sleeper.wasm", &sleeper);
    machine.write_at("data/belljar/plugins/sleeper.wasm", &sleeper);
    let plugins = machine.path("plugins").display().to_string();
    let (code, found) = findings(&machine, &[("BELLJAR_MODEL", &model)], &["--plugins", &plugins]);
    assert_eq!(code, 0, "{found:#?}");
    // Nothing was compiled either.
    assert!(!machine.path("cache").exists());
    let plugins = json!(of(&found, "plugins")).to_string();
    for says in [
        "plugins`: 1 taken, 0 waiting for a yes, 0 refused",
        "plugins`: 0 taken, 1 waiting for a yes, 0 refused",
    ] {
        assert!(plugins.contains(says), "{says}: {plugins}");
    }
}

#[test]
fn text_is_one_line_for_each_thing_and_nothing_acts() {
    let machine = Machine::new();
    machine.write_at("config/belljar/config.toml", "\"\\u001b[2J\" = 1\n");
    let name = "evil\u{1b}[2J.wasm";
    machine.write_at(&format!("data/belljar/plugins/{name}"), "");
    let ended = machine.run(["doctor"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}'), "{ended:?}");
    for line in ended.stdout.lines() {
        let is_finding = ["ok ", "note ", "problem "].iter().any(|status| line.starts_with(status));
        assert!(is_finding || line.trim_start().starts_with("mend: "), "{line:?}");
    }
    assert!(Path::new(&machine.path("data")).exists());
}
