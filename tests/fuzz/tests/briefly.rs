//! Each target for a moment, with inputs that are the same each time; `cargo run -p belljar-fuzz`
//! goes on for longer, with others.

#![expect(clippy::print_stdout, reason = "how many inputs there were is worth knowing")]

use belljar_fuzz::{Budget, TARGETS, Tried, run, target};
use std::path::Path;

/// How many inputs of each target fit into a few seconds.
const CASES: [(&str, u64); 8] = [
    ("manifest-section", 20_000),
    ("manifest-toml", 10_000),
    ("configuration", 5_000),
    ("rules", 20_000),
    ("network", 50_000),
    ("paths", 20_000),
    ("streams", 20_000),
    ("loader", 100),
];

#[test]
fn every_target_is_tried() {
    assert_eq!(TARGETS.map(|target| target.name), CASES.map(|(name, _)| name));
}

fn briefly(name: &str) {
    let cases = CASES.iter().find(|(target, _)| *target == name).map_or(0, |(_, cases)| *cases);
    let target = target(name).unwrap_or_else(|| panic!("there is no target `{name}`"));
    let failures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    match run(target, 1, Budget::Cases(cases), &failures) {
        Ok(tried) => {
            let Tried { inputs, taken } = tried;
            assert!(inputs >= cases);
            assert!(
                taken > 0 && taken < inputs,
                "{taken} of {inputs} inputs of `{name}` are taken"
            );
            println!("{name}: {inputs} inputs, {taken} of them taken");
        }
        Err(failing) => panic!("{failing}"),
    }
}

#[test]
fn manifests_in_sections() {
    briefly("manifest-section");
}

#[test]
fn manifests_in_toml() {
    briefly("manifest-toml");
}

#[test]
fn configuration() {
    briefly("configuration");
}

#[test]
fn rules() {
    briefly("rules");
}

#[test]
fn network() {
    briefly("network");
}

#[test]
fn paths() {
    briefly("paths");
}

#[test]
fn streams() {
    briefly("streams");
}

#[test]
fn loader() {
    briefly("loader");
}
