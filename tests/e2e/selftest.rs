//! `belljar selftest` as it is: every case holds on this build and machine.

use crate::support::Machine;
use serde_json::Value;
use std::collections::BTreeMap;

#[test]
fn every_case_holds_and_every_kind_is_told() {
    let machine = Machine::new();
    let ended = machine.run(["selftest", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let cases = report["cases"].as_array().unwrap();
    let broken: Vec<_> = cases.iter().filter(|case| case["held"] != true).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!((ended.code, &report["held"]), (0, &Value::Bool(true)), "{}", ended.stderr);

    let mut by_row = BTreeMap::<u64, usize>::new();
    for case in cases {
        *by_row.entry(case["row"].as_u64().unwrap()).or_default() += 1;
        for field in ["kind", "case", "happened"] {
            assert!(!case[field].as_str().unwrap().is_empty(), "{case}");
        }
        assert!(case["ms"].is_u64(), "{case}");
    }
    let tests_only = report["tests_only"].as_array().unwrap();
    for row in 1..=34 {
        let is_told = tests_only.iter().any(|kind| kind["row"] == row);
        assert!(by_row.contains_key(&row) || is_told, "row {row}");
    }
}

#[test]
fn nothing_of_the_users_is_read_or_written() {
    let machine = Machine::new();
    // Were it read, it would be an error.
    machine.write_at("config/belljar/config.toml", "this is no configuration");
    let ended = machine.run(["selftest"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let last = ended.stdout.lines().last().unwrap();
    assert!(last.starts_with("all ") && last.contains(" cases held, in "), "{last}");
    assert!(ended.stdout.contains("runs in the tests only"), "{}", ended.stdout);
    for folder in ["home", "data", "state"] {
        assert!(!machine.path(folder).exists(), "`{folder}` was made");
    }
}
