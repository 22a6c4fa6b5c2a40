//! Plugins from a folder: dropped in, offered, called.

use crate::support::{Machine, calls, of_type, repository, says};
use belljar_test_guests::{NOOP, Odd, odd};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};

#[test]
fn a_plugin_written_with_the_sdk_elsewhere_is_offered_and_called() {
    let machine = Machine::new();
    let project = machine.path("weather");
    let manifest = format!(
        "[package]\nname = \"weather\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [lib]\ncrate-type = [\"cdylib\"]\n\n\
         [dependencies]\nbelljar-sdk = {{ path = {:?} }}\n\n[workspace]\n",
        repository().join("sdk/rust")
    );
    machine.write_at("weather/Cargo.toml", manifest);
    // The tool that the README shows, as it stands there.
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let source = readme.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    machine.write_at("weather/src/lib.rs", source);
    // The same versions as here, so that nothing has to be looked up.
    fs::copy(repository().join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("weather");
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--offline", "--release", "--target", "wasm32-wasip2", "--target-dir"])
        .arg(&target)
        .current_dir(&project)
        .env("RUSTUP_TOOLCHAIN", std::env::var_os("RUSTUP_TOOLCHAIN").unwrap_or_default())
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let component = fs::read(target.join("wasm32-wasip2/release/weather.wasm")).unwrap();

    let model = machine.script(&[
        calls("weather__forecast", json!({"city": "Oslo"})),
        calls("weather__forecast", json!({"town": "Oslo"})),
        says("Take a hat."),
    ]);
    machine.write_at("plugins/weather.wasm", &component);
    let plugins = machine.path("plugins").display().to_string();
    let ended =
        machine.run(["run", "-m", &model, "-o", "stream-json", "--plugins", &plugins, "weather?"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let tools = events[0]["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("weather__forecast")), "{tools:?}");
    let results = of_type(&events, "tool_result");
    assert_eq!(results[0]["content"][0]["text"], "sunny in Oslo", "{results:#?}");
    assert_eq!(results[0]["content"][0]["origin"]["plugin"], "weather");
    assert_eq!(results[1]["error"]["kind"], "invalid_arguments");
    let message = results[1]["error"]["message"].as_str().unwrap();
    assert!(message.contains("town") && message.contains("city"), "{message}");

    // In the user's own folder it waits until they have said yes to it.
    machine.write_at("data/belljar/plugins/weather.wasm", &component);
    let ended = machine.run(["run", "-m", &model, "-o", "stream-json", "weather?"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    assert!(!events[0]["tools"].as_array().unwrap().contains(&json!("weather__forecast")));
    let result = of_type(&events, "tool_result")[0];
    assert_eq!(result["error"]["kind"], "denied", "{result}");
    assert_eq!(result["error"]["remedy"], "belljar plugin grant weather", "{result}");
}

#[test]
fn tools_are_listed_with_schema_and_hints() {
    let machine = Machine::new();
    machine.write_at("plugins/noop.wasm", NOOP.bytes);
    let plugins = machine.path("plugins").display().to_string();
    let ended = machine.run(["tools", "--json", "--plugins", &plugins]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let tools: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let read = named("read_file");
    assert_eq!(read["input_schema"]["type"], "object");
    assert_eq!(read["input_schema"]["required"], json!(["path"]));
    assert_eq!(read["hints"]["read_only"], true);
    assert_eq!(named("delete_path")["hints"]["destructive"], true);
    assert_eq!(named("noop__echo")["plugin"], "noop");
    for tool in &tools {
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
        assert_eq!(tool["input_schema"]["additionalProperties"], false, "{tool}");
    }
    let ended = machine.run(["tools", "--plugins", &plugins]);
    assert!(ended.stdout.contains("read_file") && ended.stdout.contains("noop__noop"), "{ended:?}");
}

#[test]
fn every_file_that_is_not_taken_gets_its_line() {
    let machine = Machine::new();
    machine.write_at("plugins/broken.wasm", "not wasm at all");
    machine.write_at("plugins/module.wasm", b"\0asm\x01\0\0\0");
    machine.write_at("plugins/schema.wasm", odd(Odd::SchemaOfString));
    machine.write_at("plugins/notes.txt", "hello");
    machine.write_at("plugins/noop.wasm", NOOP.bytes);
    let plugins = machine.path("plugins").display().to_string();
    let ended = machine.run(["tools", "--plugins", &plugins]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for (file, reason) in [
        ("broken.wasm", "is not WebAssembly"),
        ("module.wasm", "is a core WebAssembly module"),
        ("schema.wasm", "input schema is not `object`"),
        ("notes.txt", "only `.wasm` files are taken"),
    ] {
        let line = ended.stderr.lines().find(|line| line.contains(file));
        let line = line.unwrap_or_else(|| panic!("no line for {file}: {ended:?}"));
        assert!(line.contains(reason), "{line}");
    }
    assert!(ended.stdout.contains("noop__noop"), "{ended:?}");
}

#[test]
fn a_plugin_from_a_folder_reaches_no_file() {
    let machine = Machine::new();
    machine.write("secret.txt", "secret");
    machine.write_at("plugins/hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let plugins = machine.path("plugins").display().to_string();
    for path in ["secret.txt", "/secret.txt", "/etc/passwd", "."] {
        let ended = machine.run([
            "call",
            "--plugins",
            &plugins,
            "hostile__read_path",
            &json!({"path": path}).to_string(),
        ]);
        assert!(matches!(ended.code, 6 | 7), "{path}: {ended:?}");
        assert!(!ended.stdout.contains("secret"), "{path}: {ended:?}");
    }
    let arguments = json!({"path": "new.txt", "text": "x"}).to_string();
    let ended = machine.run(["call", "--plugins", &plugins, "hostile__write_path", &arguments]);
    assert!(matches!(ended.code, 6 | 7), "{ended:?}");
    assert!(!machine.workspace().join("new.txt").exists());
}

#[test]
fn hostile_words_are_shown_and_not_obeyed() {
    let machine = Machine::new();
    machine.write_at("plugins/odd.wasm", odd(Odd::DescriptionHostile));
    machine.write_at("plugins/hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let plugins = machine.path("plugins").display().to_string();
    let listed = machine.run(["tools", "--plugins", &plugins]);
    let model = machine.script(&[calls("hostile__hostile_words", json!({})), says("seen")]);
    let ran = machine.run(["run", "-v", "-m", &model, "--plugins", &plugins, "look"]);
    for ended in [&listed, &ran] {
        assert_eq!(ended.code, 0, "{ended:?}");
        for text in [&ended.stdout, &ended.stderr] {
            for hostile in ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}', '\u{9b}', '\u{8}'] {
                assert!(!text.contains(hostile), "{hostile:?} in {text:?}");
            }
        }
    }
}

/// Escape sequences, controls, bidirectional and zero-width characters.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;t\u{7}\u{202e}x\u{2066}\u{200b}\u{9b}31m\r\u{8}\u{feff}";

fn has_no_hostile_character(text: &str) {
    let acting = text.chars().find(|c| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    });
    assert_eq!(acting, None, "{text:?}");
}

/// Results, errors, logs, shown output, file names and plugin names, for people and as events.
#[test]
fn hostile_words_in_every_output_are_shown_and_not_obeyed() {
    let machine = Machine::new();
    machine.write_at("plugins/hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    machine.write_at(&format!("plugins/{}.wasm", HOSTILE.replace('/', "")), "no plugin");
    machine.write(&HOSTILE.replace('/', ""), HOSTILE);
    let plugins = machine.path("plugins").display().to_string();
    let fail = json!({"kind": "failed", "message": HOSTILE});
    let print = json!({"stdout": HOSTILE, "stderr": HOSTILE, "log": HOSTILE, "emit": HOSTILE});
    let turns = [
        calls("hostile__fail", fail.clone()),
        calls("hostile__print", print.clone()),
        calls("hostile__hostile_words", json!({})),
        calls("list_directory", json!({})),
        calls(HOSTILE, json!({HOSTILE: HOSTILE})),
        calls("hostile__panic", json!({})),
        says(HOSTILE),
    ];
    let model = machine.script(&turns);
    for format in ["text", "json", "stream-json"] {
        let ended =
            machine.run(["run", "-v", "-m", &model, "--plugins", &plugins, "-o", format, HOSTILE]);
        assert_eq!(ended.code, 0, "{ended:?}");
        has_no_hostile_character(&ended.stderr);
        // As text, the answer goes to a pipe as it is; at a terminal it does not, which the tests
        // of the screen show.
        if format != "text" {
            has_no_hostile_character(&ended.stdout);
        }
    }
    for (tool, arguments) in [("hostile__fail", fail), ("hostile__print", print)] {
        let arguments = arguments.to_string();
        let ended = machine.run(["call", "-v", "--plugins", &plugins, tool, &arguments]);
        has_no_hostile_character(&ended.stderr);
    }
}

/// Traps, refusals and files that are no plugins, as the model reads them.
#[test]
fn no_failure_tells_the_model_of_this_machine() {
    let machine = Machine::new();
    machine.write_at("plugins/hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    machine.write_at("plugins/broken.wasm", b"\0asm\x0d\0\x01\0broken");
    machine.write("a.txt", "x");
    let plugins = machine.path("plugins").display().to_string();
    let outside = machine.path("secret").display().to_string();
    let read = |path: &str| json!({"path": path});
    let turns = [
        calls("hostile__panic", json!({})),
        calls("hostile__abort", json!({})),
        calls("hostile__recurse", json!({})),
        calls("hostile__exit", json!({"code": 1})),
        calls("hostile__read_path", read("a.txt")),
        calls("hostile__look_around", json!({})),
        calls("read_file", read("missing.txt")),
        calls("read_file", read("../secret")),
        calls("list_directory", read("..")),
        calls("write_file", json!({"path": ".git/config", "content": "x"})),
        calls("broken__tool", json!({})),
        calls("read_file", read("a.txt")),
        says("done"),
    ];
    machine.write_at("secret", "x");
    let model = machine.script(&turns);
    let ended = machine.run([
        "run",
        "-m",
        &model,
        "--plugins",
        &plugins,
        "-o",
        "stream-json",
        "--permission-mode",
        "bypass",
        "--max-turns",
        "50",
        "look",
    ]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let results = of_type(&events, "tool_result");
    assert_eq!(results.len(), turns.len() - 1);
    let root = machine.path("").display().to_string();
    let root = root.trim_end_matches('/');
    let home = std::env::var("HOME").unwrap_or_default();
    let loose = [root, &outside, "wasm backtrace", "stack backtrace", "0x", "/rustc/", ".cargo"];
    for result in results {
        let text = result.to_string();
        for loose in loose {
            assert!(!text.contains(loose), "`{loose}` in {text}");
        }
        assert!(home.len() < 2 || !text.contains(&home), "{text}");
    }
}
