//! That a case which does not hold is told, and that every kind has cases.

use super::*;
use crate::screen::testing;
use belljar_types::ToolErrorKind::{Deadline, MemoryLimit};
use serde_json::{Value, json};
use std::{collections::BTreeSet, process::Command};

async fn ran(cases: &[Case], json: bool) -> (u8, String, String) {
    let (screen, out, err) = testing::screen(false);
    let code = run(cases, json, &screen).await.unwrap();
    (code, out.text(), err.text())
}

fn holds() -> Case {
    Case::answers(8, "an honest answer", ("count", json!({})), "1")
}

/// Each expects what does not happen.
fn broken() -> Vec<Case> {
    vec![
        Case::answers(7, "another answer", ("count", json!({})), "2"),
        Case::ends(1, "an end that does not come", ("count", json!({})), &[Deadline]),
        Case::ends(4, "another end", ("panic", json!({})), &[MemoryLimit]),
        Case::answers(5, "an answer that does not come", ("panic", json!({})), "1"),
        Case::text_not_taken(21, "state_in_global", "is no plugin"),
        Case::file(21, "a sound file", ("sound.wasm", belljar_test_guests::NOOP.bytes), ""),
        Case::file(21, "another reason", ("text.wasm", *b"hello"), "is empty"),
        Case::scene(9, "a scene", |_| Box::pin(async { anyhow::bail!("it got out") })),
    ]
}

/// Cases count what the whole process holds, so they run in one with no other test beside.
#[test]
fn a_case_that_does_not_hold_is_told_and_fails_all() {
    for test in ["one_case_that_does_not_hold_fails_all_and_is_named", "the_report_says_the_same"] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([&format!("commands::selftest::tests::{test}"), "--exact", "--ignored"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run in a process of its own by the test above"]
async fn one_case_that_does_not_hold_fails_all_and_is_named() {
    let (code, out, err) = ran(&[holds()], false).await;
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("all 1 cases held"), "{out}");
    for case in broken() {
        let name = case.name;
        let (code, out, err) = ran(&[holds(), case, holds()], false).await;
        assert_eq!(code, 1, "{name}: {out}");
        assert_eq!(out.matches("NOT HELD").count(), 1, "{name}: {out}");
        assert!(out.contains("2 of 3 cases held"), "{name}: {out}");
        let says = format!("error: 1 of 3 cases did NOT hold on this machine: `{name}`");
        assert!(err.contains(&says), "{err}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run in a process of its own by the test above"]
async fn the_report_says_the_same() {
    let cases: Vec<Case> = [holds()].into_iter().chain(broken()).collect();
    let (code, out, err) = ran(&cases, true).await;
    assert_eq!(code, 1);
    assert!(err.contains("8 of 9 cases did NOT hold"), "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["held"], false);
    let held: Vec<_> =
        report["cases"].as_array().unwrap().iter().map(|case| case["held"] == true).collect();
    let expected: Vec<_> = (0..cases.len()).map(|number| number == 0).collect();
    assert_eq!(held, expected, "{out}");
    assert_eq!(report["tests_only"][0]["row"], 26);
}

#[test]
fn every_kind_has_a_case_or_a_reason_and_names_are_unique() {
    let cases = cases::all();
    let names: BTreeSet<_> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len());
    for row in 1..=34 {
        let count = cases.iter().filter(|case| case.row == row).count();
        let is_tests_only = kinds::tests_only().any(|(only, ..)| only == row);
        assert!((count > 0) != is_tests_only, "row {row} has {count} cases");
        assert_ne!(kinds::name(row), "no kind");
    }
}
