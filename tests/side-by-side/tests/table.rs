//! The program measures or names each way, and all of them come to the same.

use serde_json::{Value, json};
use std::{fs, process::Command};

/// Those that every machine has come first.
const WAYS: [&str; 11] = [
    "Belljar tool call",
    "the same component on bare wasmtime",
    "fresh QuickJS in-process",
    "native code in-process, no sandbox",
    "native process",
    "warm MCP server in Python",
    "warm MCP server in Node",
    "native process in bubblewrap",
    "`wasmtime run`, compiled before",
    "fresh Python process",
    "fresh Node process",
];

#[test]
fn each_way_is_measured_or_named_as_skipped_and_all_answers_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let output = Command::new(env!("CARGO_BIN_EXE_side-by-side"))
        .args(["--rounds", "1", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    let figures: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let of = |list: &str| figures[list].as_array().unwrap().clone();
    let names = |list: &str| -> Vec<String> {
        of(list).iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };

    let (measured, skipped) = (names("measured"), names("skipped"));
    let mut all = [measured.clone(), skipped.clone()].concat();
    all.sort();
    let mut expected = WAYS.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(all, expected);
    for way in &WAYS[..5] {
        assert!(measured.iter().any(|name| name == way), "`{way}` needs nothing: {skipped:?}");
    }
    for one in of("measured") {
        assert_eq!(one["answer"], json!({"words": 171}), "{one}");
    }
    for way in &measured {
        assert!(table.contains(&format!("\n| {way} | ")), "`{way}` is not in {table}");
    }
    for way in &skipped {
        assert!(table.contains(&format!("\nSkipped: {way}: ")), "`{way}` is not in {table}");
    }
}
