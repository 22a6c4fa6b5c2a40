//! Worlds for reading: nothing changes, whatever operation of the interface is tried.

use crate::support::{
    Bench, raw_grant, snapshot, steps as in_writing_world, steps_read_only as in_reading_world,
};
use belljar_types::CallReport;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink};

fn fixture(bench: &Bench) {
    bench.write("file.txt", "content");
    bench.write("folder/inside.txt", "inside");
    fs::create_dir(bench.workspace().join("empty")).unwrap();
    symlink("file.txt", bench.workspace().join("link")).unwrap();
    symlink("folder", bench.workspace().join("to-folder")).unwrap();
    symlink("nowhere", bench.workspace().join("dangling")).unwrap();
    fs::hard_link(bench.workspace().join("file.txt"), bench.workspace().join("hard")).unwrap();
}

/// Every operation that changes something, on names, on handles for reading and from a folder.
fn changes() -> Vec<Value> {
    let mut changes = Vec::new();
    for path in ["file.txt", "new", "folder/inside.txt", "folder/new", "./folder/../file.txt"] {
        for with in [
            "write",
            "read write",
            "create",
            "create read",
            "create exclusive write",
            "truncate",
            "truncate read",
            "create truncate write",
        ] {
            changes.push(json!({"do": "open", "path": path, "with": with}));
        }
    }
    for path in ["link", "dangling", "to-folder/inside.txt"] {
        for with in ["write", "create write", "truncate write"] {
            changes.push(json!({"do": "open", "path": path, "with": with, "follow": true}));
        }
    }
    changes.extend([
        json!({"do": "mkdir", "path": "new"}),
        json!({"do": "mkdir", "path": "folder/new/"}),
        json!({"do": "mkdir", "at": "folder", "path": "new"}),
        json!({"do": "rmdir", "path": "empty"}),
        json!({"do": "rmdir", "path": "empty/"}),
        json!({"do": "unlink", "path": "file.txt"}),
        json!({"do": "unlink", "path": "link"}),
        json!({"do": "unlink", "at": "folder", "path": "inside.txt"}),
        json!({"do": "rename", "path": "file.txt", "to": "new"}),
        json!({"do": "rename", "path": "folder", "to": "empty"}),
        json!({"do": "rename", "at": "folder", "path": "inside.txt", "to": "new"}),
        json!({"do": "rename", "path": "file.txt", "to_at": "folder", "to": "new"}),
        json!({"do": "link", "path": "file.txt", "to": "new"}),
        json!({"do": "link", "path": "file.txt", "to_at": "folder", "to": "new"}),
        json!({"do": "symlink", "target": "file.txt", "path": "new"}),
        json!({"do": "symlink", "at": "folder", "target": "x", "path": "new"}),
        json!({"do": "set_times", "handle": "/", "modified": 1}),
        json!({"do": "set_times", "handle": "file", "accessed": 1}),
        json!({"do": "set_times", "handle": "folder", "modified": 1}),
        json!({"do": "set_times_at", "path": "file.txt", "modified": 1}),
        json!({"do": "set_times_at", "path": "link", "modified": 1}),
        json!({"do": "set_times_at", "path": "link", "follow": true, "modified": 1}),
        json!({"do": "set_times_at", "path": ".", "modified": 1}),
        json!({"do": "set_times_at", "at": "folder", "path": "inside.txt", "accessed": 1}),
        json!({"do": "set_size", "handle": "file", "size": 0}),
        json!({"do": "set_size", "handle": "file", "size": 1000}),
        json!({"do": "write", "handle": "file", "text": "x"}),
        json!({"do": "stream_write", "handle": "file", "text": "x"}),
        json!({"do": "stream_append", "handle": "file", "text": "x"}),
        json!({"do": "stream_zeros", "handle": "file", "bytes": 10}),
    ]);
    changes
}

fn script(changes: &[Value]) -> Value {
    let mut steps = vec![
        json!({"do": "open", "path": "file.txt", "as": "file", "with": "read"}),
        json!({"do": "open", "path": "folder", "as": "folder", "with": "read"}),
    ];
    steps.extend(changes.iter().cloned());
    Value::from(steps)
}

fn check(bench: &Bench, before: &impl PartialEq<Snapshot>, (answers, report): Answers) {
    let changes = changes();
    assert_eq!(answers.len(), changes.len() + 2);
    for (change, answer) in changes.iter().zip(&answers[2..]) {
        assert_eq!(*answer, json!({"error": "not-permitted"}), "{change}");
    }
    assert!(*before == snapshot(&bench.workspace()), "something has changed");
    let receipt = report.receipt.unwrap();
    assert_eq!(receipt.files_written, Vec::<String>::new());
    assert!(!receipt.denied.is_empty());
}

type Answers = (Vec<Value>, CallReport);
type Snapshot = std::collections::BTreeMap<String, crate::support::Facts>;

#[tokio::test]
async fn a_reading_world_of_a_writable_folder_stays_as_it_was() {
    let bench = Bench::new();
    fixture(&bench);
    let before = snapshot(&bench.workspace());
    let sandbox = bench.raw().await;
    let (answers, report) = in_reading_world(&sandbox, script(&changes())).await;
    let reasons: Vec<_> = report.receipt.as_ref().unwrap().denied.clone();
    assert!(reasons.iter().all(|denial| denial.reason == "this call may only read"), "{reasons:?}");
    check(&bench, &before, (answers, report));
}

#[tokio::test]
async fn a_folder_granted_for_reading_stays_as_it_was() {
    let bench = Bench::new();
    fixture(&bench);
    let before = snapshot(&bench.workspace());
    let sandbox = bench.raw_with(raw_grant(&["."], &[])).await;
    let ended = in_writing_world(&sandbox, script(&changes())).await;
    let grant = Some(format!("raw.write={}:/", bench.workspace().display()));
    for denial in &ended.1.receipt.as_ref().unwrap().denied {
        let told = (denial.reason.as_str(), denial.grant.clone());
        assert_eq!(told, ("its folder is granted for reading only", grant.clone()), "{denial:?}");
    }
    check(&bench, &before, ended);
}

/// The refusal names a grant; with exactly that, the same operations are done.
#[tokio::test]
async fn the_grant_that_a_refusal_names_permits_it() {
    let bench = Bench::new();
    fixture(&bench);
    let workspace = bench.workspace().display().to_string();
    let sandbox = bench.raw_with(raw_grant(&["."], &[&workspace])).await;
    let change = json!([{"do": "open", "path": "new", "with": "create write"}]);
    let (answers, _) = in_writing_world(&sandbox, change).await;
    assert_eq!(answers, [json!({"ok": "regular-file"})]);
    assert!(bench.workspace().join("new").exists());
}

#[tokio::test]
async fn a_folder_for_reading_around_one_for_writing_stays_as_it_was() {
    let bench = Bench::new();
    fixture(&bench);
    fs::create_dir(bench.workspace().join("out")).unwrap();
    let before = snapshot(&bench.workspace());
    let sandbox = bench.raw_with(raw_grant(&["."], &["out"])).await;
    let (answers, report) = in_writing_world(&sandbox, script(&changes())).await;
    for (change, answer) in changes().iter().zip(&answers[2..]) {
        // Such a world looks at the name first, and may find that there is nothing to refuse.
        let answer = answer["error"].as_str().unwrap_or("done");
        assert!(matches!(answer, "not-permitted" | "no-entry"), "{change}: {answer}");
    }
    assert_eq!(snapshot(&bench.workspace()), before);
    assert_eq!(report.receipt.unwrap().files_written, Vec::<String>::new());
}
