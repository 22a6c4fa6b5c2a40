//! `belljar call`: one tool, no model.

use crate::support::Machine;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink};

#[test]
fn a_file_is_printed() {
    let machine = Machine::new();
    machine.write("README.md", "# Title\n\nText with ä.\n");
    let ended = machine.run(["call", "read_file", r#"{"path":"README.md"}"#]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "# Title\n\nText with ä.\n"), "{ended:?}");
}

#[test]
fn arguments_come_from_standard_input_too() {
    let machine = Machine::new();
    machine.write("a.txt", "text\n");
    let ended = machine.run_with_input(["call", "read_file", "-"], r#"{"path":"a.txt"}"#);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "text\n"), "{ended:?}");
}

#[test]
fn a_tool_without_arguments_needs_none() {
    let machine = Machine::new();
    machine.write("a.txt", "text\n");
    let ended = machine.run(["call", "list_directory"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("a.txt"), "{ended:?}");
}

#[test]
fn what_leads_out_exits_7_and_names_what_was_refused() {
    let machine = Machine::new();
    machine.write_at("x", "outside");
    symlink("/etc/passwd", machine.workspace().join("link")).unwrap();
    symlink("../x", machine.workspace().join("relative")).unwrap();
    for path in ["/etc/passwd", "../x", "link", "relative", "a/../../x", "//etc/passwd"] {
        let ended = machine.run(["call", "read_file", &json!({"path": path}).to_string()]);
        assert_eq!((ended.code, ended.stdout.as_str()), (7, ""), "{path}: {ended:?}");
        assert!(ended.stderr.contains(path), "{path}: {ended:?}");
        assert!(ended.stderr.contains("denied"), "{path}: {ended:?}");
    }
}

#[test]
fn a_tools_own_failure_exits_6() {
    let machine = Machine::new();
    for arguments in [json!({"path": "missing.txt"}), json!({"path": "."}), json!({"pat": "x"})] {
        let ended = machine.run(["call", "read_file", &arguments.to_string()]);
        assert_eq!((ended.code, ended.stdout.as_str()), (6, ""), "{arguments}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn arguments_that_do_not_fit_say_where_and_what() {
    let machine = Machine::new();
    let cases = [
        (r#"{"path": 5}"#, "path"),
        (r#"{"pth": "a"}"#, "pth"),
        (r#"{"path": "a", "limit": -1}"#, "limit"),
        ("{}", "path"),
    ];
    for (arguments, says) in cases {
        let ended = machine.run(["call", "read_file", arguments]);
        assert_eq!(ended.code, 6, "{arguments}: {ended:?}");
        assert!(ended.stderr.contains(says), "{arguments}: {ended:?}");
    }
}

#[test]
fn what_is_no_json_object_is_a_usage_error() {
    let machine = Machine::new();
    for arguments in ["{", "[]", "5", "path=a"] {
        let ended = machine.run(["call", "read_file", arguments]);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments}: {ended:?}");
    }
}

#[test]
fn an_unknown_tool_names_a_close_one() {
    let machine = Machine::new();
    let ended = machine.run(["call", "read_fil", "{}"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("`read_file`"), "{ended:?}");
}

#[test]
fn a_call_changes_what_it_is_told_to_and_a_deny_rule_holds() {
    let machine = Machine::new();
    let arguments = r#"{"path":"new.txt","content":"new\n"}"#;
    let denied = machine.run(["call", "--deny", "write_file", "write_file", arguments]);
    assert_eq!(denied.code, 7, "{denied:?}");
    assert!(!machine.workspace().join("new.txt").exists());
    let ended = machine.run(["call", "write_file", arguments]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(machine.read("new.txt"), "new\n");
}

#[test]
fn every_bundled_tool_does_its_work() {
    let machine = Machine::new();
    machine.write(".gitignore", "ignored/\n");
    machine.write("ignored/needle.txt", "needle\n");
    machine.write("src/a.rs", "fn main() {\n    needle();\n}\n");
    machine.write("src/b.rs", "fn other() {}\n");
    fs::create_dir(machine.workspace().join(".git")).unwrap();
    let call = |tool: &str, arguments: Value| {
        let ended = machine.run(["call", tool, &arguments.to_string()]);
        assert_eq!(ended.code, 0, "{tool}: {ended:?}");
        ended.stdout
    };
    let found = call("find_files", json!({"pattern": "*.rs"}));
    assert!(found.contains("src/a.rs") && found.contains("src/b.rs"), "{found}");
    let found = call("search_text", json!({"pattern": "needle"}));
    assert!(found.contains("src/a.rs") && found.contains('2'), "{found}");
    assert!(!found.contains("ignored"), "{found}");
    call("edit_file", json!({"path": "src/a.rs", "old_text": "needle()", "new_text": "thread()"}));
    assert_eq!(machine.read("src/a.rs"), "fn main() {\n    thread();\n}\n");
    call("make_directory", json!({"path": "deep/er"}));
    call("write_file", json!({"path": "deep/er/file.txt", "content": "x"}));
    call("move_path", json!({"from": "deep/er/file.txt", "to": "deep/moved.txt"}));
    assert_eq!(machine.read("deep/moved.txt"), "x");
    let listed = call("list_directory", json!({"path": "deep"}));
    assert!(listed.contains("moved.txt") && listed.contains("er"), "{listed}");
    call("delete_path", json!({"path": "deep/moved.txt"}));
    assert!(!machine.workspace().join("deep/moved.txt").exists());
}

#[test]
fn the_result_as_json_has_the_shape_of_the_event() {
    let machine = Machine::new();
    machine.write("a.txt", "text\n");
    let ended = machine.run(["call", "-o", "json", "read_file", r#"{"path":"a.txt"}"#]);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&result["ok"], &result["tool"]), (&json!(true), &json!("read_file")), "{result}");
    assert_eq!(result["content"][0]["text"], "text\n", "{result}");
    let ended = machine.run(["call", "-o", "json", "read_file", r#"{"path":"missing"}"#]);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(ended.code, 6);
    assert_eq!((&result["ok"], &result["error"]["kind"]), (&json!(false), &json!("failed")));
}
