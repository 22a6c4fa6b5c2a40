//! Receipts and sessions as people and scripts look at them afterwards.

use crate::support::{Machine, calls, json_lines, says};
use serde_json::{Value, json};
use std::fs;

fn ran(machine: &Machine) -> String {
    machine.write("a.txt", "content of a\n");
    let model = machine.script(&[
        calls("read_file", json!({"path": "a.txt"})),
        calls("read_file", json!({"path": "/etc/passwd"})),
        calls("write_file", json!({"path": "b.txt", "content": "x"})),
        calls("write_file", json!({"path": "c.txt", "content": "x"})),
        says("The answer."),
    ]);
    let rules = ["--allow", "files/write_file(path=b.txt)"];
    let ended = machine.run([&["run", "-m", &model][..], &rules, &["the task"]].concat());
    assert_eq!(ended.code, 0, "{ended:?}");
    machine.session()[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn receipts_are_a_table_for_people() {
    let machine = Machine::new();
    let id = ran(&machine);
    let last = machine.run(["audit"]);
    assert_eq!(last.code, 0, "{last:?}");
    let named = machine.run(["audit", &id]);
    assert_eq!((named.code, &named.stdout), (0, &last.stdout));
    let lines: Vec<_> = last.stdout.lines().collect();
    let folder = machine.workspace().canonicalize().unwrap();
    assert_eq!(lines[0], format!("session {id} in {}", folder.display()));
    let columns: Vec<_> = lines[1].split_whitespace().collect();
    let expected =
        ["#", "tool", "end", "total", "wait", "start", "guest", "host", "fuel", "memory"];
    assert_eq!(columns, expected);
    let rows: Vec<Vec<_>> = lines
        .iter()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    let expected = [
        ["1", "read_file", "ok"],
        ["2", "read_file", "denied"],
        ["3", "write_file", "ok"],
        ["4", "write_file", "denied"],
    ];
    assert_eq!(rows, expected, "{}", last.stdout);
    for detail in [
        "allowed by the permission mode `dont-ask`; plugin files sha256:",
        "read a.txt",
        "refused: ",
        "allowed by the rule `files/write_file(path=b.txt)`",
        "wrote b.txt",
        "`--allow files/write_file` allows it",
    ] {
        assert!(last.stdout.contains(detail), "{detail}: {}", last.stdout);
    }
}

#[test]
fn receipts_are_json_lines_for_scripts() {
    let machine = Machine::new();
    ran(&machine);
    let ended = machine.run(["audit", "--json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let calls: Vec<Value> = json_lines(&ended.stdout);
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            json!([
                call["tool"],
                call["ok"],
                call["error"]["kind"],
                call["receipt"]["files_read"],
                call["receipt"]["files_written"],
                call["receipt"]["decision"]["rule"],
            ])
        })
        .collect();
    let rule = "files/write_file(path=b.txt)";
    let expected = [
        json!(["read_file", true, null, ["a.txt"], [], null]),
        json!(["read_file", false, "denied", [], [], null]),
        json!(["write_file", true, null, [], ["b.txt"], rule]),
        json!(["write_file", false, "denied", null, null, null]),
    ];
    assert_eq!(told, expected, "{calls:#?}");
    assert!(calls[0]["receipt"]["fuel_used"].as_u64().unwrap() > 0);
    assert_eq!(calls[3]["error"]["remedy"], "--allow files/write_file");
}

#[test]
fn sessions_are_listed_shown_and_removed() {
    let machine = Machine::new();
    let none = machine.run(["sessions", "list"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none:?}");
    let none = machine.run(["audit"]);
    assert!(none.code == 1 && none.stderr.contains("belljar sessions list"), "{none:?}");

    let id = ran(&machine);
    let listed = machine.run(["sessions", "list"]);
    let folder = machine.workspace().canonicalize().unwrap().display().to_string();
    assert_eq!((listed.code, listed.stdout.lines().count()), (0, 1), "{listed:?}");
    assert!(listed.stdout.starts_with(&id) && listed.stdout.contains(&folder), "{listed:?}");

    let shown = machine.run(["sessions", "show", &id]);
    assert_eq!(shown.code, 0, "{shown:?}");
    for part in [
        "person:\n  the task\n",
        "  → read_file path=\"a.txt\"\n",
        "read_file:\n",
        "content of a",
        "read_file failed:\n",
        "model:\n  The answer.\n",
        "── completed",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }

    let nobody = machine.run(["sessions", "remove", &id]);
    assert!(nobody.code == 1 && nobody.stderr.contains("--yes"), "{nobody:?}");
    let removed = machine.run(["sessions", "remove", &id, "--yes"]);
    assert_eq!(removed.code, 0, "{removed:?}");
    for line in [
        vec!["sessions", "show", &id],
        vec!["audit", &id],
        vec!["sessions", "remove", &id, "--yes"],
    ] {
        let gone = machine.run(&line);
        assert!(gone.code == 1 && gone.stderr.contains("there is no session"), "{gone:?}");
    }
    assert_eq!(fs::read_dir(machine.path("state/belljar/sessions")).unwrap().count(), 0);
}

#[test]
fn a_session_in_use_is_not_removed() {
    let machine = Machine::new();
    let id = ran(&machine);
    let file = machine.path(&format!("state/belljar/sessions/{id}.jsonl"));
    let open = fs::File::open(&file).unwrap();
    open.lock().unwrap();
    let ended = machine.run(["sessions", "remove", &id, "--yes"]);
    assert!(ended.code == 1 && ended.stderr.contains("is in use"), "{ended:?}");
    assert!(file.exists());
}

#[test]
fn hostile_sessions_are_shown_and_not_obeyed() {
    let machine = Machine::new();
    let model = machine.script(&[
        calls("read\u{1b}[2J", json!({"p\u{7}": "\u{202e}x"})),
        says("\u{1b}]0;owned\u{7} and \u{202e}text"),
    ]);
    machine.run(["run", "-m", &model, "x"]);
    let id = machine.session()[0]["id"].as_str().unwrap().to_owned();
    for line in [vec!["sessions", "show", &id], vec!["audit", &id], vec!["audit", "--json", &id]] {
        let ended = machine.run(&line);
        assert_eq!(ended.code, 0, "{ended:?}");
        for hostile in ['\u{1b}', '\u{7}', '\u{202e}'] {
            assert!(!ended.stdout.contains(hostile), "{hostile:?} in {ended:?}");
        }
    }
}
