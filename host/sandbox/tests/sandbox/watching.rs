//! The plugin folders while a sandbox is open: what is dropped, replaced and removed.

use crate::support::{Bench, bundled, call, ignore, kind, run, text, writing};
use belljar_capability::{Binding, PluginGrant, Standing};
use belljar_sandbox::{PluginFolder, Sandbox, SandboxConfig, Watching, digest};
use belljar_test_guests::{HOSTILE, NOOP, Odd, made, odd};
use belljar_types::{ToolErrorKind, Toolbox};
use serde_json::json;
use std::{collections::BTreeMap, fs};
use tokio_util::sync::CancellationToken;

async fn watched(bench: &Bench) -> Sandbox {
    Sandbox::open(SandboxConfig { watch: Watching::Told, ..bench.config() }).await.unwrap()
}

fn names(sandbox: &Sandbox) -> Vec<String> {
    sandbox.tools().iter().map(|tool| tool.name.to_string()).collect()
}

/// Puts a whole file into its place at once, as careful programs do.
fn put(bench: &Bench, name: &str, bytes: impl AsRef<[u8]>) {
    let aside = bench.root.path().join("aside");
    fs::write(&aside, bytes).unwrap();
    fs::rename(&aside, bench.plugins().join(name)).unwrap();
}

/// Does something to the folder and waits until it is taken; returns what people are told.
async fn after(sandbox: &Sandbox, change: impl FnOnce()) -> Vec<String> {
    let before = sandbox.generation();
    change();
    sandbox.changed_since(before).await;
    sandbox.news().await
}

#[tokio::test]
async fn a_file_that_is_dropped_in_is_offered_and_one_that_is_removed_is_not() {
    let bench = Bench::new();
    let sandbox = watched(&bench).await;
    assert_eq!(names(&sandbox), Vec::<String>::new());
    assert_eq!(sandbox.news().await, Vec::<String>::new());

    let news = after(&sandbox, || put(&bench, "noop.wasm", NOOP.bytes)).await;
    assert_eq!(names(&sandbox), ["noop__echo", "noop__noop"]);
    assert_eq!(news, ["the plugin `noop` is there: `noop__noop`, `noop__echo`"]);
    assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");

    let file = bench.plugins().join("noop.wasm");
    let news = after(&sandbox, || fs::remove_file(file).unwrap()).await;
    assert_eq!(names(&sandbox), Vec::<String>::new());
    assert_eq!(news, ["the plugin `noop` is gone, and its tools with it"]);
    let error = sandbox.prepare(&call("noop__noop", json!({}))).err().unwrap();
    assert_eq!(error.kind, ToolErrorKind::UnknownTool);
}

#[tokio::test]
async fn a_file_that_is_replaced_serves_the_next_call_and_running_calls_keep_theirs() {
    let bench = Bench::new();
    bench.add("guest.wasm", HOSTILE.bytes);
    let sandbox = watched(&bench).await;
    // One has begun, one is prepared and waits for an answer.
    let cancel = CancellationToken::new();
    let sleeping = sandbox.prepare(&call("guest__sleep_for_ever", json!({}))).unwrap();
    let mut sleeping = sleeping.run(None, ignore(), cancel.clone());
    assert!(futures::poll!(&mut sleeping).is_pending());
    let prepared = sandbox.prepare(&call("guest__count", json!({}))).unwrap();

    let news = after(&sandbox, || put(&bench, "guest.wasm", NOOP.bytes)).await;
    assert_eq!(news, ["the plugin `guest` was replaced: the next call uses the new file"]);
    assert_eq!(names(&sandbox), ["guest__echo", "guest__noop"]);
    assert_eq!(text(&run(&sandbox, "guest__noop", json!({})).await), "ok");
    let report = prepared.run(None, ignore(), CancellationToken::new()).await;
    assert_eq!(text(&report), "1");
    assert_eq!(&*report.receipt.unwrap().source.digest, HOSTILE.digest);
    cancel.cancel();
    assert_eq!(kind(&sleeping.await), ToolErrorKind::Canceled);
}

#[tokio::test]
async fn half_a_file_is_never_taken() {
    let bench = Bench::new();
    bench.add("guest.wasm", NOOP.bytes);
    let sandbox = watched(&bench).await;
    let half = &HOSTILE.bytes[..HOSTILE.bytes.len() / 2];
    for partly in [half, b"", b"\0asm", &HOSTILE.bytes[..8]] {
        let news = after(&sandbox, || bench.add("guest.wasm", partly)).await;
        let [told] = news.as_slice() else { panic!("{news:?}") };
        assert!(told.ends_with("; what it was before still serves"), "{told}");
        assert_eq!(names(&sandbox), ["guest__echo", "guest__noop"]);
        assert_eq!(text(&run(&sandbox, "guest__noop", json!({})).await), "ok");
        let info = sandbox.plugins()[0].clone();
        assert!(info.serves_earlier && info.skipped.is_some(), "{info:?}");
    }
    bench.add("guest.wasm", HOSTILE.bytes);
    // The pieces of what was written before may be taken one by one.
    while !sandbox.skipped().is_empty() {
        let before = sandbox.generation();
        if sandbox.skipped().is_empty() {
            break;
        }
        sandbox.changed_since(before).await;
    }
    assert_eq!(text(&run(&sandbox, "guest__count", json!({})).await), "1");
}

#[tokio::test]
async fn what_was_allowed_is_suspended_when_it_changes_and_back_when_it_changes_back() {
    let bench = Bench::new();
    bench.write("a.txt", "content");
    bench.add("hostile.wasm", HOSTILE.bytes);
    let binding = Some(Binding::Digest(HOSTILE.digest.to_owned()));
    let grants = BTreeMap::from([("hostile".to_owned(), PluginGrant { binding, ..writing() })]);
    let folders = vec![PluginFolder { path: bench.plugins(), named: false }];
    let sandbox =
        Sandbox::open(SandboxConfig { watch: Watching::Told, folders, grants, ..bench.config() })
            .await
            .unwrap();
    let read = json!({"path": "a.txt"});
    assert_eq!(text(&run(&sandbox, "hostile__read_path", read.clone()).await), "content");

    for changed in [
        made::with_section(HOSTILE.bytes, "x", b""),
        made::with_section(HOSTILE.bytes, "x", b"x"),
        NOOP.bytes.to_vec(),
    ] {
        let prepared = sandbox.prepare(&call("hostile__read_path", read.clone())).unwrap();
        let news = after(&sandbox, || put(&bench, "hostile.wasm", &changed)).await;
        let [told] = news.as_slice() else { panic!("{news:?}") };
        assert!(told.contains("has changed since it was allowed"), "{told}");
        assert_eq!(names(&sandbox), Vec::<String>::new());
        let standing = sandbox.plugins()[0].standing.clone().unwrap();
        let from = HOSTILE.digest.to_owned();
        assert_eq!(standing, Standing::Changed { from, named: false });
        // What was prepared before runs the bytes that were allowed.
        let report = prepared.run(None, ignore(), CancellationToken::new()).await;
        assert_eq!(text(&report), "content");
        assert_eq!(&*report.receipt.unwrap().source.digest, HOSTILE.digest);
        after(&sandbox, || put(&bench, "hostile.wasm", HOSTILE.bytes)).await;
        assert_eq!(text(&run(&sandbox, "hostile__read_path", read.clone()).await), "content");
    }
}

#[tokio::test]
async fn names_are_judged_anew_each_time() {
    let bench = Bench::new();
    let second = bench.root.path().join("second");
    fs::create_dir(&second).unwrap();
    fs::write(second.join("guest.wasm"), odd(Odd::Sound)).unwrap();
    let folders = [bench.plugins(), second].map(|path| PluginFolder { path, named: true }).to_vec();
    let sandbox = Sandbox::open(SandboxConfig {
        watch: Watching::Told,
        folders,
        bundled: bundled(),
        ..bench.config()
    })
    .await
    .unwrap();
    let guests = |sandbox: &Sandbox| -> Vec<String> {
        names(sandbox).into_iter().filter(|name| name.contains("__")).collect()
    };
    assert_eq!(guests(&sandbox), ["guest__sound"]);
    // The first folder wins the name.
    let news = after(&sandbox, || put(&bench, "GUEST.wasm", NOOP.bytes)).await;
    assert_eq!(guests(&sandbox), ["GUEST__echo", "GUEST__noop"]);
    assert_eq!(news.len(), 2, "{news:?}");
    assert!(news.iter().any(|told| told.contains("is shadowed by")), "{news:?}");
    after(&sandbox, || fs::remove_file(bench.plugins().join("GUEST.wasm")).unwrap()).await;
    assert_eq!(guests(&sandbox), ["guest__sound"]);
    // A bundled plugin's name, and what reads like it, stays reserved.
    for name in ["files.wasm", "Files.wasm", "FILES.wasm"] {
        let news = after(&sandbox, || put(&bench, name, NOOP.bytes)).await;
        assert!(news[0].contains("has the name of the bundled plugin `files`"), "{news:?}");
        assert_eq!(guests(&sandbox), ["guest__sound"]);
        after(&sandbox, || fs::remove_file(bench.plugins().join(name)).unwrap()).await;
    }
}

#[tokio::test]
async fn a_folder_that_comes_to_be_is_watched_from_the_next_round_on() {
    let bench = Bench::new();
    fs::remove_dir(bench.plugins()).unwrap();
    let sandbox = watched(&bench).await;
    fs::create_dir(bench.plugins()).unwrap();
    bench.add("noop.wasm", NOOP.bytes);
    let before = sandbox.generation();
    sandbox.news().await;
    sandbox.changed_since(before).await;
    assert_eq!(names(&sandbox), ["noop__echo", "noop__noop"]);
    // Another folder in its place is another matter than the first.
    fs::rename(bench.plugins(), bench.root.path().join("away")).unwrap();
    fs::create_dir(bench.plugins()).unwrap();
    let before = sandbox.generation();
    sandbox.news().await;
    sandbox.changed_since(before).await;
    assert_eq!(names(&sandbox), Vec::<String>::new());
    after(&sandbox, || put(&bench, "noop.wasm", NOOP.bytes)).await;
    assert_eq!(names(&sandbox), ["noop__echo", "noop__noop"]);
}

#[tokio::test]
async fn where_the_system_does_not_tell_the_folders_are_looked_at_in_each_round() {
    let bench = Bench::new();
    let config = SandboxConfig { watch: Watching::EachRound, ..bench.config() };
    let sandbox = Sandbox::open(config).await.unwrap();
    for (change, expected) in [
        ("add", vec!["noop__echo", "noop__noop"]),
        ("replace", vec!["noop__sound"]),
        ("remove", Vec::new()),
    ] {
        match change {
            "add" => put(&bench, "noop.wasm", NOOP.bytes),
            "replace" => put(&bench, "noop.wasm", odd(Odd::Sound)),
            _ => fs::remove_file(bench.plugins().join("noop.wasm")).unwrap(),
        }
        let before = sandbox.generation();
        sandbox.news().await;
        sandbox.changed_since(before).await;
        assert_eq!(names(&sandbox), expected, "{change}");
    }
}

#[tokio::test]
async fn a_manifest_that_comes_to_lie_beside_a_plugin_makes_it_another() {
    let bench = Bench::new();
    bench.add("noop.wasm", NOOP.bytes);
    let sandbox = watched(&bench).await;
    let toml = b"manifest = 1\n";
    after(&sandbox, || put(&bench, "noop.toml", toml)).await;
    let expected = digest(NOOP.bytes, Some(toml));
    assert_eq!(sandbox.plugins()[0].digest.as_deref(), Some(expected.as_str()));
    assert_eq!(&*sandbox.tools()[0].source.digest, expected);
}
