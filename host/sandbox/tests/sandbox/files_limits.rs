//! How much a call may write and create, and its temporary folder.

use crate::support::{Bench, error, kind, raw_grant, run, script, steps, steps_read_only, text};
use belljar_capability::{Limit, PluginGrant};
use belljar_sandbox::{Sandbox, SandboxConfig};
use belljar_types::{CallReport, Denial, ToolErrorKind};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, os::unix::fs::MetadataExt, path::Path};

fn limited(limit: Limit, value: u64) -> PluginGrant {
    PluginGrant { limits: BTreeMap::from([(limit, value)]), ..raw_grant(&[], &["."]) }
}

fn only_denial(report: CallReport) -> Denial {
    let denied = report.receipt.unwrap().denied;
    assert_eq!(denied.len(), 1, "{denied:?}");
    denied.into_iter().next().unwrap()
}

/// Bytes of all files below a folder, and how many there are.
fn used(folder: &Path) -> (u64, u64) {
    let (mut bytes, mut names) = (0, 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        names += 1;
        if metadata.is_dir() {
            let (more, deeper) = used(&path);
            (bytes, names) = (bytes + more, names + deeper);
        } else {
            bytes += metadata.size();
        }
    }
    (bytes, names)
}

#[tokio::test]
async fn every_way_to_write_ends_at_the_quota() {
    const ROOM: u64 = 100_000;
    let open = json!({"do": "open", "path": "f", "as": "f", "with": "create write"});
    let page = "x".repeat(4_000);
    let more = json!({"do": "write", "handle": "f", "text": "x".repeat(40_000)});
    let ways: [(&str, Value, Value); 8] = [
        (
            "writing over the same place",
            json!([open, more, more, more, more]),
            json!([{"ok": "regular-file"}, {"ok": 40_000}, {"ok": 40_000}, {"ok": 20_000}, {"error": "quota"}]),
        ),
        (
            "one write of too much",
            json!([open, {"do": "write", "handle": "f", "text": "x".repeat(200_000)}, more]),
            json!([{"ok": "regular-file"}, {"ok": 100_000}, {"error": "quota"}]),
        ),
        (
            "a size out of nothing",
            json!([open, {"do": "set_size", "handle": "f", "size": 1_u64 << 40}]),
            json!([{"ok": "regular-file"}, {"error": "quota"}]),
        ),
        (
            "a size again and again",
            json!([
                open,
                {"do": "set_size", "handle": "f", "size": 60_000},
                {"do": "set_size", "handle": "f", "size": 0},
                {"do": "set_size", "handle": "f", "size": 60_000}
            ]),
            json!([{"ok": "regular-file"}, {"ok": null}, {"ok": null}, {"error": "quota"}]),
        ),
        (
            "a stream",
            json!([open, {"do": "stream_zeros", "handle": "f", "bytes": 1_000_000}]),
            json!([{"ok": "regular-file"}, {"error": [98_304, "quota"]}]),
        ),
        (
            "many streams",
            json!([open, {"do": "repeat", "times": 30, "steps": [{"do": "stream_append", "handle": "f", "text": page}]}]),
            json!([{"ok": "regular-file"}, {"ok": {"0: {\"error\":\"quota\"}": 5, "0: {\"ok\":null}": 25}}]),
        ),
        (
            "files that are removed again",
            json!([{"do": "repeat", "times": 4, "steps": [open, more, {"do": "unlink", "path": "f"}]}]),
            json!([{"ok": {
                "0: {\"ok\":\"regular-file\"}": 4,
                "1: {\"error\":\"quota\"}": 1, "1: {\"ok\":20000}": 1, "1: {\"ok\":40000}": 2,
                "2: {\"ok\":null}": 4
            }}]),
        ),
        (
            "the temporary folder",
            json!([
                {"do": "open", "at": "/tmp", "path": "f", "as": "f", "with": "create write"},
                more, more, more, more
            ]),
            json!([{"ok": "regular-file"}, {"ok": 40_000}, {"ok": 40_000}, {"ok": 20_000}, {"error": "quota"}]),
        ),
    ];
    for (way, script, expected) in ways {
        let bench = Bench::new();
        let sandbox = bench.raw_with(limited(Limit::WrittenBytes, ROOM)).await;
        let (answers, report) = steps(&sandbox, script.clone()).await;
        assert_eq!(Value::from(answers), expected, "{way}");
        assert!(used(&bench.workspace()).0 <= ROOM, "{way}");
        let denied = report.receipt.unwrap().denied;
        assert!(!denied.is_empty(), "{way}");
        for denial in denied {
            assert!(
                denial.reason.contains("the setting `limits.written_bytes` allows"),
                "{denial:?}"
            );
            let grant = denial.grant.unwrap();
            assert!(grant.starts_with("raw.limits.written_bytes="), "{grant}");
        }
        // With more room the same is done.
        let sandbox = bench.raw_with(limited(Limit::WrittenBytes, 1 << 41)).await;
        let (answers, report) = steps(&sandbox, script).await;
        assert_eq!(report.receipt.unwrap().denied, [], "{way}");
        assert!(!Value::from(answers).to_string().contains("quota"), "{way}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_was_used_and_allowed_and_how_to_change_it() {
    let bench = Bench::new();
    let sandbox = bench.raw_with(limited(Limit::WrittenBytes, 1 << 20)).await;
    let grow = json!([
        {"do": "open", "path": "deep", "as": "f", "with": "create write"},
        {"do": "set_size", "handle": "f", "size": 3 << 20}
    ]);
    let (_, report) = steps(&sandbox, grow).await;
    let denial = only_denial(report);
    assert_eq!((denial.operation.as_str(), denial.target.as_str()), ("write", "deep"));
    assert_eq!(
        denial.reason,
        "that would make 3MiB of the 1MiB that the setting `limits.written_bytes` allows"
    );
    assert_eq!(denial.grant.as_deref(), Some("raw.limits.written_bytes=3MiB"));
}

#[tokio::test]
async fn every_way_to_create_ends_at_the_quota() {
    let file = |n: u64| json!({"do": "open", "path": format!("f{n}"), "with": "create write"});
    let ways = [
        ("files", file(1), file(2), file(3)),
        (
            "folders",
            json!({"do": "mkdir", "path": "a"}),
            json!({"do": "mkdir", "path": "a/b"}),
            json!({"do": "mkdir", "path": "c"}),
        ),
        (
            "links",
            file(1),
            json!({"do": "link", "path": "f1", "to": "f2"}),
            json!({"do": "symlink", "target": "f1", "path": "f3"}),
        ),
        (
            "names that go again",
            json!({"do": "mkdir", "path": "a"}),
            json!({"do": "repeat", "times": 1, "steps": [{"do": "rmdir", "path": "a"}, {"do": "mkdir", "path": "a"}, {"do": "rmdir", "path": "a"}]}),
            json!({"do": "mkdir", "path": "a"}),
        ),
        (
            "temporary ones",
            json!({"do": "mkdir", "at": "/tmp", "path": "a"}),
            json!({"do": "mkdir", "at": "/tmp", "path": "b"}),
            json!({"do": "mkdir", "path": "c"}),
        ),
    ];
    for (way, first, second, third) in ways {
        let bench = Bench::new();
        let script = json!([first, second, {"do": "mkdir", "path": "missing/x"}, third]);
        let sandbox = bench.raw_with(limited(Limit::CreatedFiles, 2)).await;
        let (answers, report) = steps(&sandbox, script.clone()).await;
        assert!(answers[0]["ok"] != json!(null) || answers[0].get("ok").is_some(), "{way}");
        assert!(answers[1].get("ok").is_some(), "{way}: {answers:?}");
        assert_eq!(answers[3], json!({"error": "quota"}), "{way}");
        let denial = report.receipt.unwrap().denied.pop().unwrap();
        assert_eq!(denial.operation, "create", "{way}");
        assert_eq!(
            denial.reason,
            "that would make 3 of the 2 that the setting `limits.created_files` allows",
            "{way}"
        );
        assert_eq!(denial.grant.as_deref(), Some("raw.limits.created_files=4"), "{way}");
        // What could not be made does not count, and with what the refusal names all is done.
        let bench = Bench::new();
        let sandbox = bench.raw_with(limited(Limit::CreatedFiles, 4)).await;
        let (answers, report) = steps(&sandbox, script).await;
        assert!(answers[3].get("ok").is_some(), "{way}: {answers:?}");
        assert_eq!(report.receipt.unwrap().denied, [], "{way}");
    }
}

#[tokio::test]
async fn guests_that_fill_the_disk_leave_a_bounded_part_of_it_full() {
    let bench = Bench::new();
    bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let grant = PluginGrant {
        limits: BTreeMap::from([(Limit::WrittenBytes, 8 << 20), (Limit::CreatedFiles, 50)]),
        ..crate::support::writing()
    };
    let grants = BTreeMap::from([("hostile".to_owned(), grant)]);
    let sandbox = Sandbox::open(SandboxConfig { grants, ..bench.config() }).await.unwrap();
    for (tool, arguments) in [
        ("hostile__fill_disk", json!({"path": "big"})),
        ("hostile__many_files", json!({"folder": ".", "count": 1_000_000})),
        ("hostile__fill_disk", json!({"path": "/tmp/big"})),
    ] {
        let report = run(&sandbox, tool, arguments).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{report:?}");
        let message = &error(&report).message;
        assert!(message.contains("uota") || message.contains("the setting `limits."), "{message}");
        assert!(error(&report).remedy.is_some(), "{report:?}");
    }
    let (bytes, names) = used(&bench.workspace());
    assert!(bytes <= 8 << 20 && names <= 51, "{bytes} bytes of {names} names");
}

#[tokio::test]
async fn a_temporary_folder_is_empty_private_and_gone() {
    let bench = Bench::new();
    fs::create_dir(bench.workspace().join("tmp")).unwrap();
    bench.write("tmp/own.txt", "of the workspace");
    let sandbox = bench.raw().await;
    let write = json!([
        {"do": "preopens"},
        {"do": "list", "handle": "/tmp"},
        {"do": "open", "at": "/tmp", "path": "canary", "as": "f", "with": "create read write"},
        {"do": "write", "handle": "f", "text": "CANARY"},
        {"do": "mkdir", "at": "/tmp", "path": "folder"},
        {"do": "symlink", "at": "/tmp", "target": "canary", "path": "link"},
        {"do": "cat", "at": "/tmp", "path": "link"},
        {"do": "mkdir", "at": "/tmp", "path": ".git"},
        {"do": "open", "at": "/tmp", "path": ".git/config", "with": "create write"},
        {"do": "list", "handle": "/tmp"}
    ]);
    let listed = json!({"ok": ["directory .git", "directory folder", "regular-file canary", "symbolic-link link"]});
    for _ in 0..2 {
        let (answers, report) = steps(&sandbox, write.clone()).await;
        assert_eq!(answers[0], json!({"ok": ["/", "/tmp"]}));
        assert_eq!(answers[1], json!({"ok": []}), "another call's files are there");
        assert_eq!(answers[6], json!({"ok": "CANARY"}));
        assert_eq!(answers[9], listed);
        assert_eq!(report.receipt.unwrap().denied, []);
        assert_eq!(left_of(&bench), [("unused".to_owned(), 0)]);
    }
    // So it is for a call that only reads, which leaves everything else as it is.
    let (answers, _) = steps_read_only(&sandbox, write).await;
    assert_eq!(answers[9], listed);
    assert_eq!(fs::read_dir(bench.workspace()).unwrap().count(), 1);
    assert_eq!(bench.read("tmp/own.txt"), "of the workspace");
}

/// The folders of this run, and how much is in each.
fn left_of(bench: &Bench) -> Vec<(String, usize)> {
    let run = fs::read_dir(bench.scratch()).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::metadata(&run).unwrap().mode() & 0o777, 0o700);
    let entries = fs::read_dir(run).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let count = fs::read_dir(entry.path()).unwrap().count();
        (entry.file_name().into_string().unwrap(), count)
    });
    entries.collect()
}

#[tokio::test]
async fn nothing_moves_between_the_temporary_folder_and_others() {
    let bench = Bench::new();
    bench.write("file.txt", "content");
    let sandbox = bench.raw().await;
    let (answers, report) = steps(
        &sandbox,
        json!([
            {"do": "mkdir", "at": "/tmp", "path": "prepared"},
            {"do": "mkdir", "at": "/tmp", "path": "prepared/.git"},
            {"do": "rename", "at": "/tmp", "path": "prepared", "to": "prepared"},
            {"do": "rename", "path": "file.txt", "to_at": "/tmp", "to": "file.txt"},
            {"do": "link", "path": "file.txt", "to_at": "/tmp", "to": "file.txt"},
            {"do": "open", "at": "/tmp", "path": "f", "with": "create write"},
            {"do": "link", "at": "/tmp", "path": "f", "to": "f"},
            {"do": "open", "at": "/tmp", "path": "../file.txt", "with": "read"},
            {"do": "open", "at": "/tmp", "path": "../unused", "with": "read"},
            {"do": "symlink", "at": "/tmp", "target": "..", "path": "up"},
            {"do": "open", "at": "/tmp", "path": "up", "follow": true, "with": "read"}
        ]),
    )
    .await;
    for number in [2, 3, 4, 6] {
        assert_eq!(answers[number], json!({"error": "cross-device"}), "{number}");
    }
    for number in [7, 8, 10] {
        assert_eq!(answers[number], json!({"error": "not-permitted"}), "{number}");
    }
    assert_eq!(fs::read_dir(bench.workspace()).unwrap().count(), 1);
    assert!(report.receipt.unwrap().denied.len() >= 4);
}

#[tokio::test]
async fn two_plugins_at_a_time_have_two_temporary_folders() {
    let bench = Bench::new();
    bench.add("raw.wasm", belljar_test_guests::RAW.bytes);
    bench.add("other.wasm", belljar_test_guests::RAW.bytes);
    let sandbox = Sandbox::open(bench.config()).await.unwrap();
    let together = json!([
        {"do": "open", "at": "/tmp", "path": "canary", "as": "f", "with": "create exclusive write"},
        {"do": "repeat", "times": 2_000, "steps": [{"do": "list", "handle": "/tmp"}]}
    ]);
    let script = script(&together, None);
    let calls = ["raw__script", "other__script"].map(|tool| run(&sandbox, tool, script.clone()));
    let reports = futures::future::join_all(calls).await;
    for report in &reports {
        let answers: Value = serde_json::from_str(text(report)).unwrap();
        assert_eq!(answers[0], json!({"ok": "regular-file"}));
        let each = "0: {\"ok\":[\"regular-file canary\"]}";
        assert_eq!(answers[1], json!({"ok": {each: 2_000}}));
    }
    assert_eq!(left_of(&bench), [("unused".to_owned(), 0)]);
}

#[tokio::test]
async fn folders_nested_past_every_path_are_removed() {
    let bench = Bench::new();
    let sandbox = bench.raw().await;
    let (answers, _) =
        steps(&sandbox, json!([{"do": "nest", "at": "/tmp", "name": "n", "depth": 5_000}])).await;
    assert_eq!(answers, [json!({"ok": 5_000})]);
    assert_eq!(left_of(&bench), [("unused".to_owned(), 0)]);
}
