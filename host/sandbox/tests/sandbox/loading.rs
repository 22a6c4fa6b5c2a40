//! Loading: what is taken, what is not and why, and what the cache may be trusted with.

use crate::support::{Bench, bundled, run, text};
use belljar_capability::Limits;
use belljar_sandbox::{EngineSettings, LoadError, PluginFolder, Sandbox, SandboxConfig};
use belljar_test_guests::{HOSTILE, NOOP, Odd, odd};
use belljar_types::Toolbox;
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, time::Duration};

fn names(sandbox: &Sandbox) -> Vec<String> {
    sandbox.tools().iter().map(|tool| tool.name.to_string()).collect()
}

fn own_cache(bench: &Bench) -> SandboxConfig {
    SandboxConfig { cache: Some(bench.cache()), ..bench.config() }
}

/// The file's name and the reason, for every file that was not taken.
fn skipped(sandbox: &Sandbox) -> Vec<(String, String)> {
    sandbox
        .skipped()
        .iter()
        .map(|skipped| {
            let name = skipped.path.file_name().unwrap().to_string_lossy().into_owned();
            (name, skipped.reason.to_string())
        })
        .collect()
}

#[tokio::test]
async fn plugins_in_a_folder_are_taken_under_their_own_names() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    bench.add("odd one.wasm", odd(Odd::Sound));
    let config = SandboxConfig { bundled: bundled(), ..bench.config() };
    let sandbox = Sandbox::open(config).await.unwrap();
    let names = names(&sandbox);
    for name in ["read_file", "search_text", "noop__noop", "noop__echo"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    // A file name that no model server takes in a tool's name is replaced, and still works.
    let odd_name = names.iter().find(|name| name.starts_with("odd_one__sound_")).unwrap();
    assert_eq!(text(&run(&sandbox, odd_name, json!({})).await), "ok");
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(names, sorted);
    assert_eq!(skipped(&sandbox), []);
}

#[tokio::test]
async fn every_file_that_is_no_plugin_is_named_with_its_reason() {
    let bench = Bench::new();
    let component = NOOP.bytes;
    bench.add("a-text.wasm", "hello");
    bench.add("b-wat.wasm", "(component)");
    bench.add("c-empty.wasm", "");
    bench.add("d-module.wasm", b"\0asm\x01\0\0\0");
    bench.add("e-cut.wasm", &component[..component.len() / 2]);
    bench.add("f-none.wasm", b"\0asm\x0d\0\x01\0");
    bench.add("notes.txt", "hello");
    fs::create_dir(bench.plugins().join("folder.wasm")).unwrap();
    bench.add(".hidden", "");
    bench.add("files.wasm", component);
    std::os::unix::fs::symlink("/etc/passwd", bench.plugins().join("link.wasm")).unwrap();
    let newer = with_version(component, b"0.1.0", b"0.9.0");
    bench.add("newer.wasm", newer);
    let config = SandboxConfig { bundled: bundled(), ..bench.config() };
    let sandbox = Sandbox::open(config).await.unwrap();
    let skipped = skipped(&sandbox);
    let expected = [
        ("a-text.wasm", "is not WebAssembly"),
        ("b-wat.wasm", "is WebAssembly text"),
        ("c-empty.wasm", "is empty"),
        ("d-module.wasm", "is a core WebAssembly module, not a component"),
        ("e-cut.wasm", "is not a valid component"),
        ("f-none.wasm", "has no tools: it exports no `belljar:plugin/tools`"),
        ("files.wasm", "has the name of the bundled plugin `files`"),
        ("folder.wasm", "is not a regular file"),
        ("link.wasm", "cannot be read"),
        ("newer.wasm", "speaks `belljar:plugin` 0.9.0, and this host speaks 0.1.0"),
        ("notes.txt", "only `.wasm` files are taken"),
    ];
    assert_eq!(skipped.len(), expected.len(), "{skipped:#?}");
    for ((name, reason), (expected_name, says)) in skipped.iter().zip(expected) {
        assert_eq!(name, expected_name);
        assert!(reason.contains(says), "{name}: {reason}");
    }
    assert!(!names(&sandbox).iter().any(|name| name.contains("__")), "{:?}", names(&sandbox));
}

/// The component with another version of the interface in every place that names one.
fn with_version(component: &[u8], from: &[u8; 5], to: &[u8; 5]) -> Vec<u8> {
    let mut bytes = component.to_vec();
    let name = [b"belljar:plugin/".as_slice(), b"tools@"].concat();
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(name.len()).position(|window| window == name) {
        at += found + name.len();
        if bytes[at..].starts_with(from) {
            bytes[at..at + 5].copy_from_slice(to);
        }
    }
    bytes
}

#[tokio::test]
async fn a_plugin_that_breaks_the_contract_is_refused_with_its_reason() {
    let small =
        Limits { deadline: Duration::from_secs(3), fuel: 1_000_000_000, ..Limits::default() };
    let bench = Bench::new();
    let cases = [
        (Odd::SchemaOfString, "the type of its input schema is not `object`"),
        (Odd::SchemaOfArray, "its input schema is not a JSON object"),
        (Odd::SchemaNotJson, "its input schema is not JSON"),
        (Odd::SchemaHuge, "could not be asked for its tools"),
        (Odd::SchemaDeep, "its input schema is longer than"),
        (Odd::OutputSchemaNotJson, "its output schema is not JSON"),
        (Odd::NameEmpty, "names a tool ``"),
        (Odd::NameOfDigit, "names a tool `1st`"),
        (Odd::NameWithSpace, "names a tool `two words`"),
        (Odd::NameTooLong, "names a tool `aaa"),
        (Odd::NameHostile, "names a tool"),
        (Odd::NameNotAscii, "names a tool"),
        (Odd::NameTwice, "names two tools `sound`"),
        (Odd::DescriptionEmpty, "it has no description"),
        (Odd::DescriptionHuge, "it handed over too much"),
        (Odd::NoTools, "offers no tool"),
        (Odd::ManyTools, "it handed over too much"),
        (Odd::ListTraps, "the list is lost"),
        (Odd::ListExits, "exited with status 0"),
        (Odd::ListSpins, "could not be asked for its tools"),
        (Odd::ListSleeps, "deadline"),
        (Odd::ListGrows, "memory_limit"),
        (Odd::ListFloods, "could not be asked for its tools"),
    ];
    for (index, (kind, _)) in cases.iter().enumerate() {
        bench.add(&format!("odd{index:02}.wasm"), odd(*kind));
    }
    let sandbox = Sandbox::open(SandboxConfig { limits: small, ..bench.config() }).await.unwrap();
    let skipped = skipped(&sandbox);
    assert_eq!(skipped.len(), cases.len(), "{skipped:#?}");
    for ((name, reason), (kind, says)) in skipped.iter().zip(cases) {
        assert!(reason.contains(says), "{name} {kind:?}: {reason}");
    }
}

#[tokio::test]
async fn a_plugin_sees_nothing_when_it_is_asked_for_its_tools() {
    let bench = Bench::new();
    bench.write("file.txt", "");
    bench.add("odd.wasm", odd(Odd::ListLooksAround));
    let sandbox = Sandbox::open(bench.config()).await.unwrap();
    let description = sandbox.tools()[0].description.clone();
    assert!(!description.contains('='), "{description}");
    assert!(!description.contains("entries"), "{description}");
}

#[tokio::test]
async fn two_files_of_one_name_are_one_plugin_and_it_is_said() {
    let bench = Bench::new();
    let second = bench.root.path().join("second");
    fs::create_dir(&second).unwrap();
    bench.add("noop.wasm", NOOP.bytes);
    for name in ["noop.wasm", "NOOP.wasm"] {
        fs::write(second.join(name), NOOP.bytes).unwrap();
    }
    let folders =
        [bench.plugins(), second.clone()].map(|path| PluginFolder { path, named: true }).to_vec();
    let sandbox = Sandbox::open(SandboxConfig { folders, ..bench.config() }).await.unwrap();
    let shadowed: Vec<PathBuf> = sandbox
        .skipped()
        .iter()
        .filter(|skipped| matches!(*skipped.reason, LoadError::Shadowed { .. }))
        .map(|skipped| skipped.path.clone())
        .collect();
    assert_eq!(shadowed, [second.join("NOOP.wasm"), second.join("noop.wasm")]);
    assert_eq!(names(&sandbox), ["noop__echo", "noop__noop"]);
}

#[tokio::test]
async fn names_that_read_alike_are_refused() {
    let bench = Bench::new();
    bench.add("a.wasm", odd(Odd::NameWithSeparator));
    bench.add("a__plugin.wasm", odd(Odd::Sound));
    bench.add("my-tool.wasm", NOOP.bytes);
    bench.add("my_tool.wasm", NOOP.bytes);
    let sandbox = Sandbox::open(bench.config()).await.unwrap();
    let names = names(&sandbox);
    assert!(names.contains(&"my-tool__noop".to_owned()), "{names:?}");
    assert!(!names.contains(&"my_tool__noop".to_owned()), "{names:?}");
    assert_eq!(skipped(&sandbox).len(), 1, "{:?}", skipped(&sandbox));
}

#[tokio::test]
async fn a_second_start_takes_everything_from_the_cache() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    let first = Sandbox::open(own_cache(&bench)).await.unwrap();
    let tools = first.tools();
    drop(first);
    // If this start compiled or asked the plugin, the fuel would not do.
    let limits = Limits { fuel: 1, ..Limits::default() };
    let second = Sandbox::open(SandboxConfig { limits, ..own_cache(&bench) }).await.unwrap();
    assert_eq!(second.tools(), tools);
    assert_eq!(skipped(&second), []);
}

#[tokio::test]
async fn the_code_of_a_plugin_that_rests_is_given_back_and_taken_from_the_cache_again() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    drop(Sandbox::open(own_cache(&bench)).await.unwrap());
    let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
    assert_eq!(sandbox.give_back(Duration::ZERO), 0, "none is loaded before it is called");
    for _ in 0..2 {
        assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
        assert_eq!(sandbox.give_back(Duration::from_secs(3_600)), 0, "it was called just now");
        assert_eq!(sandbox.give_back(Duration::ZERO), 1);
        assert_eq!(sandbox.give_back(Duration::ZERO), 0, "it was given back already");
    }
}

#[tokio::test]
async fn a_cache_entry_that_was_touched_is_made_anew() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    bench.add("hostile.wasm", HOSTILE.bytes);
    let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
    assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
    drop(sandbox);
    let entries = || -> Vec<PathBuf> {
        let mut paths: Vec<_> =
            fs::read_dir(bench.cache()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    assert_eq!(entries().len(), 6, "{:?}", entries());
    type Touch = fn(&PathBuf);
    let touch: [(&str, Touch); 5] = [
        ("flipped", |path| {
            let mut bytes = fs::read(path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("cut", |path| {
            let bytes = fs::read(path).unwrap();
            fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("emptied", |path| fs::write(path, "").unwrap()),
        ("opened to others", |path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("linked", |path| {
            let away = path.with_extension("away");
            fs::rename(path, &away).unwrap();
            std::os::unix::fs::symlink(&away, path).unwrap();
        }),
    ];
    for (how, touch) in touch {
        for path in entries() {
            touch(&path);
        }
        let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
        assert_eq!(skipped(&sandbox), [], "{how}");
        assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok", "{how}");
        drop(sandbox);
        fs::remove_dir_all(bench.cache()).unwrap();
        Sandbox::open(own_cache(&bench)).await.unwrap();
    }
    // Entries that trade places are not what their names say.
    let compiled: Vec<_> =
        entries().into_iter().filter(|path| path.extension().unwrap() == "cwasm").collect();
    let [one, other] = compiled.as_slice() else { panic!("two compiled files: {compiled:?}") };
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).unwrap();
    fs::rename(other, one).unwrap();
    fs::rename(&aside, other).unwrap();
    let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
    assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
    assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
}

#[tokio::test]
async fn a_cache_folder_that_is_not_ours_alone_is_not_used() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    fs::create_dir(bench.cache()).unwrap();
    fs::set_permissions(bench.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
    assert_eq!(sandbox.notices().len(), 1, "{:?}", sandbox.notices());
    assert!(sandbox.notices()[0].contains("others may read or write it"));
    assert_eq!(fs::read_dir(bench.cache()).unwrap().count(), 0);
    assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");

    fs::remove_dir(bench.cache()).unwrap();
    let elsewhere = bench.root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bench.cache()).unwrap();
    let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
    assert!(sandbox.notices()[0].contains("not a folder of its own"), "{:?}", sandbox.notices());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[tokio::test]
async fn a_plugin_that_changed_since_the_start_is_not_run() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    drop(Sandbox::open(own_cache(&bench)).await.unwrap());
    let sandbox = Sandbox::open(own_cache(&bench)).await.unwrap();
    // Described from the cache, so not compiled yet; and then the cache is lost.
    for entry in fs::read_dir(bench.cache()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    bench.add("noop.wasm", HOSTILE.bytes);
    let report = run(&sandbox, "noop__noop", json!({})).await;
    let message = report.outcome.unwrap_err().message;
    assert!(message.contains("has changed since it was looked at"), "{message}");
}

#[tokio::test]
async fn without_a_pool_everything_works_the_same() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    let engine = EngineSettings { pooling: false, ..EngineSettings::default() };
    let sandbox = Sandbox::open(SandboxConfig { engine, ..own_cache(&bench) }).await.unwrap();
    assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
}

#[tokio::test]
async fn a_workspace_that_is_not_there_is_an_error() {
    let bench = Bench::new();
    let workspace = Some(bench.root.path().join("missing"));
    let error = Sandbox::open(SandboxConfig { workspace, ..own_cache(&bench) }).await.unwrap_err();
    assert!(error.to_string().contains("missing` cannot be opened"), "{error}");
}
