//! `belljar demo`: what a person sees first.

use crate::support::{Machine, of_type};
use std::fs;

#[test]
fn the_demo_says_what_is_scripted_and_does_the_rest() {
    let machine = Machine::new();
    let ended = machine.run(["demo"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let shown = format!("{}{}", ended.stderr, ended.stdout);
    let first = ended.stderr.lines().next().unwrap();
    assert!(first.contains("scripted"), "{first}");
    for part in ["find_files", "read_file", "search_text", "edit_file", "/etc/passwd", "denied"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let last: Vec<_> = ended.stderr.lines().rev().take(6).collect();
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        assert!(last.iter().any(|line| line.contains(key)), "{key} in {last:#?}");
    }
    // Nothing of it stays in the folder that it was started in, nor among the user's sessions.
    assert_eq!(fs::read_dir(machine.workspace()).unwrap().count(), 0);
    assert!(!machine.path("state/belljar/sessions").exists());
}

#[test]
fn the_demos_events_are_those_of_any_run() {
    let machine = Machine::new();
    let ended = machine.run(["demo", "-o", "stream-json"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let events = ended.events();
    let results = of_type(&events, "tool_result");
    let denied: Vec<_> =
        results.iter().filter(|result| result["error"]["kind"] == "denied").collect();
    assert_eq!(denied.len(), 1, "{results:#?}");
    assert!(results.iter().filter(|result| result["ok"] == true).count() >= 4, "{results:#?}");
    let done = of_type(&events, "tool_call_done");
    let written: Vec<_> = done
        .iter()
        .filter(|done| {
            done["receipt"]["files_written"].as_array().is_some_and(|files| !files.is_empty())
        })
        .collect();
    assert_eq!(written.len(), 1, "{done:#?}");
    assert_eq!(events.last().unwrap()["denials"], 1);
}
