//! Rights that hang on places: nested grants and deny globs.

use crate::support::{Bench, raw_grant, snapshot, steps, steps_read_only};
use belljar_capability::FolderGrant;
use belljar_sandbox::Sandbox;
use belljar_types::Denial;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::PathBuf};

pub(crate) const DONE: &str = "done";

/// What came of each step: `done`, or the error.
pub(crate) fn outcomes(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["error"].as_str().unwrap_or(DONE)).collect()
}

/// Each step with what should come of it, in one call.
pub(crate) async fn check(sandbox: &Sandbox, cases: &[(Value, &str)]) -> Vec<Denial> {
    let script: Vec<&Value> = cases.iter().map(|(step, _)| step).collect();
    let (answers, report) = steps(sandbox, json!(script)).await;
    let wrong: Vec<String> = cases
        .iter()
        .zip(outcomes(&answers))
        .filter(|((_, expected), outcome)| expected != outcome)
        .map(|((step, expected), outcome)| format!("{step}: {outcome}, not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    report.receipt.unwrap().denied
}

pub(crate) fn make(path: &str) -> Value {
    json!({"do": "open", "path": path, "with": "create write"})
}

pub(crate) fn make_in(at: &str, path: &str) -> Value {
    json!({"do": "open", "at": at, "path": path, "with": "create write"})
}

pub(crate) fn cat(path: &str) -> Value {
    json!({"do": "cat", "path": path})
}

pub(crate) fn rename(path: &str, to: &str) -> Value {
    json!({"do": "rename", "path": path, "to": to})
}

pub(crate) fn link(path: &str, to: &str) -> Value {
    json!({"do": "link", "path": path, "to": to})
}

pub(crate) fn mkdir(path: &str) -> Value {
    json!({"do": "mkdir", "path": path})
}

pub(crate) fn folder(path: &str, name: &str) -> Value {
    json!({"do": "open", "path": path, "as": name, "with": "read directory"})
}

pub(crate) const NO: &str = "not-permitted";
pub(crate) const NONE: &str = "no-entry";

#[tokio::test]
async fn the_deepest_of_nested_grants_holds_whatever_way_leads_there() {
    let bench = Bench::new();
    for (path, content) in [
        ("file.txt", "file"),
        ("data/in.txt", "in"),
        ("data/out/one.txt", "one"),
        ("database/x.txt", "x"),
    ] {
        bench.write(path, content);
    }
    symlink("data", bench.workspace().join("to-data")).unwrap();
    symlink("data/in.txt", bench.workspace().join("to-in")).unwrap();
    let sandbox = bench.raw_with(raw_grant(&["data"], &[".", "data/out"])).await;
    let denied = check(
        &sandbox,
        &[
            (json!({"do": "preopens"}), DONE),
            (folder("data", "data"), DONE),
            (folder("data/out", "out"), DONE),
            // For reading, through every door.
            (cat("data/in.txt"), DONE),
            (json!({"do": "cat", "at": "/data", "path": "in.txt"}), DONE),
            (make("data/new"), NO),
            (make("./data/../data/new"), NO),
            (make("to-data/new"), NO),
            (make("database/../data/new"), NO),
            (make_in("/data", "new"), NO),
            (make_in("data", "new"), NO),
            (json!({"do": "open", "path": "data/in.txt", "with": "write"}), NO),
            (json!({"do": "open", "path": "to-in", "follow": true, "with": "truncate"}), NO),
            (json!({"do": "unlink", "path": "data/in.txt"}), NO),
            (json!({"do": "set_times_at", "path": "to-in", "follow": true, "modified": 1}), NO),
            (json!({"do": "open", "path": "data/in.txt", "as": "in", "with": "read"}), DONE),
            (json!({"do": "set_times", "handle": "in", "modified": 1}), NO),
            (json!({"do": "set_times", "handle": "data", "modified": 1}), NO),
            // For writing, deeper still.
            (make("data/out/two.txt"), DONE),
            (make("to-data/out/three.txt"), DONE),
            (make_in("data", "out/four.txt"), DONE),
            (make_in("/data/out", "five.txt"), DONE),
            (make_in("out", "six.txt"), DONE),
            // Look-alikes have the rights of what they lie in.
            (make("database/new"), DONE),
            (mkdir("data2"), DONE),
            // Nothing moves across different rights, in either direction, by name or link.
            (rename("file.txt", "data/file.txt"), NO),
            (rename("data/in.txt", "in.txt"), NO),
            (rename("data/in.txt", "data/out/in.txt"), NO),
            (rename("data/out/one.txt", "data/one.txt"), NO),
            (link("data/in.txt", "in.txt"), NO),
            (link("file.txt", "data/file.txt"), NO),
            (link("to-data/in.txt", "in.txt"), NO),
            (json!({"do": "rename", "at": "/data", "path": "in.txt", "to": "in.txt"}), NO),
            (json!({"do": "link", "at": "/data", "path": "in.txt", "to_at": "/data/out", "to": "x"}), NO),
            // Across the same rights it does.
            (rename("file.txt", "data/out/file.txt"), DONE),
            (link("data/out/file.txt", "again.txt"), DONE),
            // A granted folder stays where it is, and what lies around it.
            (rename("data", "moved"), NO),
            (rename("data/out", "out"), NO),
            (rename("database", "data"), NO),
            (json!({"do": "rmdir", "path": "data/out"}), NO),
            (json!({"do": "rename", "at": "/data", "path": "out", "to": "out"}), NO),
        ],
    )
    .await;
    assert_eq!(bench.read("data/in.txt"), "in");
    assert_eq!(fs::read_dir(bench.workspace().join("data")).unwrap().count(), 2);
    let host = bench.workspace().join("data");
    let grant = Some(format!("raw.write={}:/data", host.display()));
    let refused = denied.iter().find(|denial| denial.target == "data/new").unwrap();
    assert_eq!((refused.operation.as_str(), &refused.grant), ("write", &grant));
}

#[tokio::test]
async fn a_folder_elsewhere_appears_where_its_grant_says() {
    let bench = Bench::new();
    bench.write("file.txt", "file");
    let sets = bench.root.path().join("sets");
    fs::create_dir_all(sets.join("inner")).unwrap();
    fs::write(sets.join("inner/x.txt"), "x").unwrap();
    fs::create_dir(bench.root.path().join("sets-two")).unwrap();
    let mut grant = raw_grant(&[], &[]);
    let at = |host: PathBuf, guest: &str| FolderGrant {
        host: host.display().to_string(),
        guest: Some(guest.parse().unwrap()),
    };
    grant.read = vec![at(sets.clone(), "/sets"), at(sets.join("inner"), "/again")];
    let sandbox = bench.raw_with(grant).await;
    let (answers, _) = steps(&sandbox, json!([{"do": "preopens"}])).await;
    assert_eq!(answers, [json!({"ok": ["/again", "/sets", "/tmp"]})]);
    check(
        &sandbox,
        &[
            (json!({"do": "cat", "at": "/sets", "path": "inner/x.txt"}), DONE),
            (json!({"do": "cat", "at": "/again", "path": "x.txt"}), DONE),
            (json!({"do": "cat", "at": "/sets", "path": "../workspace/file.txt"}), NO),
            (json!({"do": "cat", "at": "/again", "path": "../x.txt"}), NO),
            (make_in("/sets", "new"), NO),
            (json!({"do": "open", "path": "file.txt", "with": "read"}), "no such handle"),
        ],
    )
    .await;
    // A folder that is not there is left out, and said; the others are given.
    let mut grant = raw_grant(&["missing"], &["."]);
    grant.read.push(at("/proc/self".into(), "/self"));
    grant.read.retain(|folder| folder.guest.is_none());
    let sandbox = bench.raw_with(grant).await;
    let notice = &sandbox.notices()[0];
    assert!(
        notice.starts_with("the plugin `raw` does not get all that its grant says"),
        "{notice}"
    );
    let (answers, _) = steps(&sandbox, json!([{"do": "preopens"}])).await;
    assert_eq!(answers, [json!({"ok": ["/", "/tmp"]})]);
}

#[tokio::test]
async fn deny_globs_hold_for_what_is_opened_and_not_for_what_was_typed() {
    let bench = Bench::new();
    for path in [".env", "app/.env", "keys/id.pem", "conf/a.key", "Upper/.ENV"] {
        bench.write(path, "CANARY");
    }
    for path in ["app/config.txt", "conf/readme", "plain/x"] {
        bench.write(path, "open");
    }
    for (target, path) in [
        (".env", "link"),
        ("app", "to-app"),
        ("link", "chain"),
        ("../.env", "app/up"),
        ("keys", "to-keys"),
        ("keys/id.pem", "to-key"),
    ] {
        symlink(target, bench.workspace().join(path)).unwrap();
    }
    let mut grant = raw_grant(&[], &["."]);
    grant.deny = [".env", "keys/**", "conf/*.key"].map(str::to_owned).to_vec();
    let before = snapshot(&bench.workspace());
    let sandbox = bench.raw_with(grant).await;
    let mut cases = vec![
        (folder("app", "app"), DONE),
        (folder("keys", "keys"), DONE),
        (cat("app/config.txt"), DONE),
        (cat("conf/readme"), DONE),
    ];
    // Reading, by every way that leads there.
    for path in [
        ".env",
        "./.env",
        "app/../.env",
        "app/.env",
        "to-app/.env",
        "link",
        "chain",
        "app/up",
        "keys/id.pem",
        "to-keys/id.pem",
        "to-key",
        "conf/a.key",
        "conf/./a.key",
        "Upper/.ENV",
    ] {
        cases.push((cat(path), NO));
        cases.push((json!({"do": "stat_at", "path": path, "follow": true}), NO));
        cases.push((json!({"do": "open", "path": path, "follow": true, "with": "read write"}), NO));
        cases.push((json!({"do": "open", "path": path, "follow": true, "with": "truncate"}), NO));
        cases.push((make(path).merged("follow"), NO));
        cases
            .push((json!({"do": "set_times_at", "path": path, "follow": true, "modified": 1}), NO));
    }
    cases.extend([
        (json!({"do": "cat", "at": "app", "path": ".env"}), NO),
        (json!({"do": "cat", "at": "app", "path": "up"}), NO),
        (json!({"do": "cat", "at": "keys", "path": "id.pem"}), NO),
        (json!({"do": "same_hash", "handle": "app", "path": ".env"}), NO),
        // Making, moving, linking, removing.
        (make("plain/.env"), NO),
        (mkdir("plain/.env"), NO),
        (json!({"do": "symlink", "target": "x", "path": "plain/.env"}), NO),
        (make("keys/new"), NO),
        (rename(".env", "open"), NO),
        (rename("app/.env", "app/open"), NO),
        (rename("plain/x", "plain/.env"), NO),
        (rename("plain/x", "keys/x"), NO),
        (rename("keys/id.pem", "id.pem"), NO),
        (link(".env", "open"), NO),
        (link("app/.env", "open"), NO),
        (link("keys/id.pem", "open"), NO),
        (link("plain/x", "conf/x.key"), NO),
        (json!({"do": "link", "at": "app", "path": ".env", "to": "open"}), NO),
        (json!({"do": "unlink", "path": ".env"}), NO),
        (json!({"do": "unlink", "at": "keys", "path": "id.pem"}), NO),
        // A name that begins a glob stays, or what it closes would be open.
        (rename("keys", "open"), NO),
        (rename("conf", "open"), NO),
        (rename("plain", "keys"), NO),
        (rename("plain", "conf"), NO),
        (json!({"do": "readlink", "path": "link"}), DONE),
    ]);
    check(&sandbox, &cases).await;
    assert!(snapshot(&bench.workspace()) == before, "something has changed");
    // A folder that a floating name lies in may move, and takes it along closed.
    let moved = json!([rename("app", "moved"), cat("moved/.env"), cat("moved/config.txt")]);
    let (answers, _) = steps(&sandbox, moved).await;
    assert_eq!(outcomes(&answers), [DONE, NO, DONE]);
    // Closed names are left out of listings, and counted.
    let lists = json!([
        {"do": "list"},
        folder("moved", "m"),
        {"do": "list", "handle": "m"},
        folder("keys", "k"),
        {"do": "list", "handle": "k"}
    ]);
    let (answers, report) = steps_read_only(&sandbox, lists).await;
    let shown = Value::from(answers.clone()).to_string();
    for name in [".env", ".ENV", "id.pem"] {
        assert!(!shown.contains(name), "{shown}");
    }
    assert_eq!(answers[2], json!({"ok": ["regular-file config.txt", "symbolic-link up"]}));
    assert_eq!(answers[4], json!({"ok": []}));
    let receipt = report.receipt.unwrap();
    assert!(receipt.log.contains("3 names that a deny glob closes"), "{}", receipt.log);
    assert_eq!(receipt.denied, []);
}

/// A step with one flag more.
pub(crate) trait Merged {
    fn merged(self, flag: &str) -> Value;
}

impl Merged for Value {
    fn merged(mut self, flag: &str) -> Value {
        self[flag] = json!(true);
        self
    }
}

#[tokio::test]
async fn a_refusal_by_a_glob_names_the_real_place_and_the_glob() {
    let bench = Bench::new();
    bench.write("app/.env", "CANARY");
    symlink("app/.env", bench.workspace().join("link")).unwrap();
    let mut grant = raw_grant(&[], &["."]);
    grant.deny = vec!["**/.env".to_owned()];
    let sandbox = bench.raw_with(grant).await;
    let denied = check(&sandbox, &[(cat("link"), NO)]).await;
    let expected = Denial {
        operation: "read".to_owned(),
        target: "app/.env".to_owned(),
        reason: "the deny glob `**/.env` closes it".to_owned(),
        grant: None,
    };
    assert_eq!(denied, [expected]);
    // Without the glob it is read.
    let sandbox = bench.raw_with(raw_grant(&[], &["."])).await;
    check(&sandbox, &[(cat("link"), DONE)]).await;
}
