//! `belljar plugin`: list, inspect, add, remove and pack.

use crate::support::{Machine, calls, of_type, says};
use belljar_test_guests::{HOSTILE, NOOP, Odd, made, odd};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    thread,
};

fn own(name: &str) -> String {
    format!("data/belljar/plugins/{name}")
}

/// A manifest that tells its tool and wants a folder.
const MANIFEST: &str = "\
manifest = 1
version = \"1.2.3\"
description = \"Says ok.\"

[[tools]]
name = \"sound\"
description = \"Answers `ok`.\"
input_schema = { type = \"object\" }
hints = { read_only = true }

[[wants.files]]
path = \"data\"
why = \"the sets\"
";

#[test]
fn every_file_is_listed_with_what_became_of_it() {
    let machine = Machine::new();
    machine.write_at("named/noop.wasm", NOOP.bytes);
    machine.write_at(&own("NOOP.wasm"), NOOP.bytes);
    machine.write_at(&own("files.wasm"), NOOP.bytes);
    machine.write_at(&own("hostile.wasm"), HOSTILE.bytes);
    machine.write_at(&own("cut.wasm"), &NOOP.bytes[..100]);
    machine.write_at(&own("notes.txt"), "x");
    machine.write_at(&own("lonely.toml"), "manifest = 1");
    let named = machine.path("named").display().to_string();
    let ended = machine.run(["plugin", "list", "--json", "--plugins", &named]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let listed: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let states: Vec<_> = listed
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap_or("-").to_owned();
            (text("name"), text("state"), text("standing"), one["offered"].as_bool().unwrap())
        })
        .collect();
    let expected = [
        ("files", "loaded", "bundled", true),
        ("search", "loaded", "bundled", true),
        ("noop", "loaded", "named", true),
        ("NOOP", "shadowed", "-", false),
        ("cut", "refused", "unseen", false),
        ("files", "refused", "-", false),
        ("hostile", "not_allowed", "unseen", false),
        ("lonely.toml", "refused", "-", false),
        ("notes.txt", "refused", "-", false),
    ];
    let expected = expected.map(|(name, state, standing, offered)| {
        (name.to_owned(), state.to_owned(), standing.to_owned(), offered)
    });
    // Bundled plugins that were added since are no matter here.
    let states: Vec<_> =
        states.into_iter().filter(|one| one.2 != "bundled" || one.0 != "web").collect();
    assert_eq!(states, expected);
    let noop = listed.iter().find(|one| one["name"] == "noop").unwrap();
    assert_eq!(noop["digest"], NOOP.digest);
    assert_eq!(noop["tools"], json!(["noop__noop", "noop__echo"]));

    let ended = machine.run(["plugin", "list", "--plugins", &named]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for line in [
        "files: bundled".to_owned(),
        "noop: offered for this run, with no grants".to_owned(),
        format!(
            "NOOP: shadowed: is shadowed by `{named}/noop.wasm`, which has the same name: rename one of them"
        ),
        "hostile: not allowed yet".to_owned(),
        "  next     belljar plugin inspect hostile, belljar plugin grant hostile".to_owned(),
        "notes.txt: refused: is not a plugin: only `.wasm` files are taken".to_owned(),
        format!("  digest   {}", HOSTILE.digest),
    ] {
        assert!(ended.stdout.lines().any(|shown| shown == line), "{line}: {}", ended.stdout);
    }
}

#[test]
fn a_plugin_is_inspected_without_running_it() {
    let machine = Machine::new();
    // Asked for its tools, it would never answer.
    machine.write_at("spins.wasm", odd(Odd::ListSpins));
    machine.write_at("manifest.toml", MANIFEST);
    let (file, manifest) = (machine.path("spins.wasm"), machine.path("manifest.toml"));
    let (file, manifest) = (file.display().to_string(), manifest.display().to_string());
    let ended = machine.run(["plugin", "inspect", &file]);
    assert_eq!(ended.code, 0, "{ended:?}");
    for shown in [
        "  interface  belljar:plugin 0.1.0",
        "  manifest   none: it gets what is granted to it by name",
        "  status     not allowed yet",
        "  tools      not in the manifest: the component is asked when it is loaded",
        "  grants     nothing",
    ] {
        assert!(ended.stdout.lines().any(|line| line == shown), "{shown}: {}", ended.stdout);
    }
    assert!(ended.stdout.contains("files\n"), "{}", ended.stdout);

    let ended = machine.run(["plugin", "pack", &file, "--manifest", &manifest]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    let ended = machine.run(["plugin", "inspect", &file]);
    for shown in [
        "spins 1.2.3: Says ok.",
        "  manifest   in the component",
        "  wants      files.read data (the sets)",
        "  tools      sound  reads       Answers `ok`.",
    ] {
        assert!(ended.stdout.lines().any(|line| line == shown), "{shown}: {}", ended.stdout);
    }
    let ended = machine.run(["plugin", "inspect", "--json", &file]);
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["manifest"]["wants"]["files"][0]["path"], "data");
    assert_eq!(shown["standing"], "unseen");
    assert_eq!(shown["digest"], belljar_sandbox::digest(&fs::read(&file).unwrap(), None));

    // By name: a bundled one, and one in a folder, with the manifest beside it.
    let ended = machine.run(["plugin", "inspect", "files"]);
    assert!(ended.stdout.contains("files.write . (reading and changing"), "{ended:?}");
    machine.write_at(&own("noop.wasm"), NOOP.bytes);
    machine.write_at(&own("noop.toml"), MANIFEST);
    let ended = machine.run(["plugin", "inspect", "noop"]);
    assert!(ended.stdout.contains("in `noop.toml`, which is part of the digest"), "{ended:?}");
    let expected = belljar_sandbox::digest(NOOP.bytes, Some(MANIFEST.as_bytes()));
    assert!(ended.stdout.contains(&expected), "{ended:?}");
}

#[test]
fn what_is_no_plugin_is_said_and_hostile_words_are_shown_as_text() {
    let machine = Machine::new();
    machine.write_at("text.wasm", "hello");
    machine.write_at("module.wasm", b"\0asm\x01\0\0\0");
    machine.write_at("none.wasm", b"\0asm\x0d\0\x01\0");
    machine.write_at("twice.wasm", {
        let once = made::with_section(NOOP.bytes, "belljar:manifest", b"{\"manifest\":1}");
        made::with_section(&once, "belljar:manifest", b"{\"manifest\":1}")
    });
    for (target, says) in [
        ("text.wasm", "is not WebAssembly"),
        ("module.wasm", "is a core WebAssembly module"),
        ("none.wasm", "has no tools"),
        ("twice.wasm", "has two manifests"),
        ("missing.wasm", "cannot be read"),
    ] {
        let file = machine.path(target).display().to_string();
        let ended = machine.run(["plugin", "inspect", &file]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
        assert!(ended.stderr.contains(says), "{target}: {ended:?}");
    }
    let ended = machine.run(["plugin", "inspect", "nobody"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("there is no plugin `nobody`"), "{ended:?}");

    let words = "\u{1b}[2J\u{202e}\u{200b}\u{9b}x";
    let manifest = json!({
        "manifest": 1,
        "version": words,
        "description": words,
        "tools": [{"name": "a", "description": words, "input_schema": {"type": "object"}}],
        "wants": {"files": [{"path": "data", "why": words}]},
    });
    let hostile =
        made::with_section(NOOP.bytes, "belljar:manifest", manifest.to_string().as_bytes());
    machine.write_at("plugins/odd\u{1b}[2J.wasm", &hostile);
    machine.write_at("plugins/other.wasm", &hostile);
    let plugins = machine.path("plugins").display().to_string();
    let file = machine.path("plugins/odd\u{1b}[2J.wasm").display().to_string();
    for arguments in [
        &["plugin", "inspect", &file][..],
        &["plugin", "inspect", &file, "--json"],
        &["plugin", "list", "--plugins", &plugins],
        &["plugin", "list", "--plugins", &plugins, "--json"],
    ] {
        let ended = machine.run(arguments);
        assert_eq!(ended.code, 0, "{ended:?}");
        for text in [&ended.stdout, &ended.stderr] {
            for hostile in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{9b}'] {
                assert!(!text.contains(hostile), "{hostile:?} in {text:?}");
            }
        }
    }
}

#[test]
fn a_plugin_is_added_listed_and_removed() {
    let machine = Machine::new();
    machine.write_at("noop.wasm", NOOP.bytes);
    machine.write_at("noop.toml", MANIFEST);
    let file = machine.path("noop.wasm").display().to_string();
    let place = machine.path(&own("noop.wasm"));

    let ended = machine.run(["plugin", "add", &file]);
    assert_eq!((ended.code, ended.stdout.trim_end()), (0, place.to_str().unwrap()), "{ended:?}");
    assert!(ended.stderr.contains("belljar plugin grant noop"), "{ended:?}");
    assert_eq!(fs::read(&place).unwrap(), NOOP.bytes);
    assert_eq!(fs::read_to_string(machine.path(&own("noop.toml"))).unwrap(), MANIFEST);
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
    let files = fs::read_dir(machine.path(&own(""))).unwrap().count();
    assert_eq!(files, 2, "nothing else is left there");
    // Adding allows nothing.
    let ended = machine.run(["tools"]);
    assert!(!ended.stdout.contains("noop__"), "{ended:?}");

    // Another of the name does not replace it unasked.
    machine.write_at("other/noop.wasm", HOSTILE.bytes);
    let other = machine.path("other/noop.wasm").display().to_string();
    let ended = machine.run(["plugin", "add", &other]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
    assert!(ended.stderr.contains("--replace"), "{ended:?}");
    assert_eq!(fs::read(&place).unwrap(), NOOP.bytes);
    let ended = machine.run(["plugin", "add", &other, "--replace"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(fs::read(&place).unwrap(), HOSTILE.bytes);
    assert!(!machine.path(&own("noop.toml")).exists(), "the manifest was the other's");

    let ended = machine.run(["plugin", "remove", "noop"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, ""), "{ended:?}");
    assert!(!place.exists());
    let ended = machine.run(["plugin", "remove", "noop"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("is not there"), "{ended:?}");
}

#[test]
fn what_is_not_what_was_meant_is_not_added() {
    let machine = Machine::new();
    machine.write_at("noop.wasm", NOOP.bytes);
    machine.write_at("text.wasm", "hello");
    machine.write_at("files.wasm", NOOP.bytes);
    machine.write_at("secret", "secret");
    let path = |name: &str| machine.path(name).display().to_string();
    let wrong = format!("sha256:{}", "0".repeat(64));
    let (noop, text, files) = (path("noop.wasm"), path("text.wasm"), path("files.wasm"));
    let cases: [(&[&str], i32, &str); 10] = [
        (&[&noop, "--digest", &wrong], 1, "is not the plugin that was meant"),
        (&[&noop, "--digest", "sha256:12"], 2, "64 hexadecimal digits"),
        (&[&noop, "--name", "../noop"], 2, "cannot be a plugin's name"),
        (&[&noop, "--name", ".noop"], 2, "cannot be a plugin's name"),
        (&[&noop, "--name", "Files"], 2, "reads like the bundled plugin `files`"),
        (&[&files], 2, "reads like the bundled plugin `files`"),
        (&[&text], 1, "is not WebAssembly"),
        (&["missing.wasm"], 1, "cannot be read"),
        (&["https://example.org/a.wasm"], 2, "needs `--digest"),
        (&["http://example.org/a.wasm", "--digest", &wrong], 2, "comes over `https`"),
    ];
    for (arguments, code, says) in cases {
        let ended = machine.run(["plugin", "add"].iter().chain(arguments));
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{arguments:?}: {ended:?}");
        assert!(ended.stderr.contains(says), "{arguments:?}: {ended:?}");
    }
    let ended = machine.run(["plugin", "remove", "../../../secret"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    let added = fs::read_dir(machine.path(&own(""))).map_or(0, Iterator::count);
    assert_eq!(added, 0);
}

/// A server on this machine that gives the same answer to everybody; its address.
fn server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            // A reader that has seen enough goes away.
            let _ = stream.write_all(&answer);
        }
    });
    format!("http://{address}")
}

fn ok(body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn a_plugin_from_a_url_is_the_one_that_was_meant_or_none() {
    let machine = Machine::new();
    let url = format!("{}/plugins/noop.wasm?v=1", server(ok(NOOP.bytes)));
    let ended = machine.run(["plugin", "add", &url, "--digest", NOOP.digest]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(fs::read(machine.path(&own("noop.wasm"))).unwrap(), NOOP.bytes);

    let redirect = |to: &str| {
        format!(
            "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )
        .into_bytes()
    };
    let endless =
        b"HTTP/1.1 200 OK\r\ncontent-length: 999999999999\r\nconnection: close\r\n\r\n\0asm"
            .to_vec();
    for (answer, says) in [
        (ok(HOSTILE.bytes), "is not the plugin that was meant"),
        (ok(b""), "is not the plugin that was meant"),
        (
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
            "404",
        ),
        (redirect("http://example.org/noop.wasm"), "redirects away from https"),
        (redirect("file:///etc/passwd"), "cannot be fetched"),
        (endless, "cannot be fetched"),
    ] {
        let url = format!("{}/other.wasm", server(answer));
        let ended = machine.run(["plugin", "add", &url, "--digest", NOOP.digest]);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{says}: {ended:?}");
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
        assert!(!machine.path(&own("other.wasm")).exists());
    }
}

#[test]
fn a_manifest_is_packed_once_and_replaced_when_asked() {
    let machine = Machine::new();
    machine.write_at("noop.wasm", NOOP.bytes);
    machine.write_at("one.toml", MANIFEST);
    machine.write_at("two.toml", "manifest = 1\nversion = \"2.0.0\"\n");
    machine.write_at("bad.toml", "manifest = 1\n[[wants.files]]\npath = \"../x\"\n");
    let path = |name: &str| machine.path(name).display().to_string();
    let (noop, out) = (path("noop.wasm"), path("out.wasm"));
    let (one, two, bad) = (path("one.toml"), path("two.toml"), path("bad.toml"));
    let ended = machine.run(["plugin", "pack", &noop, "--manifest", &one, "-o", &out]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(fs::read(&noop).unwrap(), NOOP.bytes);
    let digest = belljar_sandbox::digest(&fs::read(&out).unwrap(), None);
    assert!(ended.stderr.contains(&digest), "{ended:?}");

    let ended = machine.run(["plugin", "pack", &out, "--manifest", &two]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("replace it with `--replace`"), "{ended:?}");
    let ended = machine.run(["plugin", "pack", &out, "--manifest", &two, "--replace"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let ended = machine.run(["plugin", "inspect", &out]);
    assert!(ended.stdout.starts_with("out 2.0.0\n"), "{ended:?}");

    for (file, manifest, says) in [
        (&noop, &bad, "climbs out"),
        (&noop, &noop, "is not UTF-8"),
        (&one, &one, "is not WebAssembly"),
    ] {
        let ended = machine.run(["plugin", "pack", file, "--manifest", manifest, "-o", &out]);
        assert_eq!(ended.code, 1, "{says}: {ended:?}");
        assert!(ended.stderr.contains(says), "{says}: {ended:?}");
    }
}

#[test]
fn a_file_that_is_dropped_in_during_a_run_is_there_in_the_next_round() {
    let machine = Machine::new();
    machine.write("noop.wasm", NOOP.bytes);
    fs::create_dir(machine.workspace().join("plugins")).unwrap();
    let plugins = machine.workspace().join("plugins").display().to_string();
    // Compiled before, so that taking it is a matter of milliseconds.
    machine.write_at("before/noop.wasm", NOOP.bytes);
    let before = machine.path("before").display().to_string();
    assert_eq!(machine.run(["plugin", "list", "--plugins", &before]).code, 0);
    let model = machine.script(&[
        calls("move_path", json!({"from": "noop.wasm", "to": "plugins/noop.wasm"})),
        calls("read_file", json!({"path": "plugins"})),
        calls("noop__noop", json!({})),
        says("done"),
    ]);
    let ended = machine.run([
        "run",
        "-m",
        &model,
        "-o",
        "stream-json",
        "--permission-mode",
        "bypass",
        "--plugins",
        &plugins,
        "go",
    ]);
    let events = ended.events();
    let results = of_type(&events, "tool_result");
    assert_eq!(results[2]["content"][0]["text"], "ok", "{ended:#?}");
    let notices = of_type(&events, "notice");
    let told = notices.iter().find(|notice| {
        notice["message"] == "the plugin `noop` is there: `noop__noop`, `noop__echo`"
    });
    assert!(told.is_some_and(|told| told["iteration"].as_u64() >= Some(2)), "{notices:#?}");
}
