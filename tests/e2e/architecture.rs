//! The house: which crate may depend on which.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};

use crate::support::repository;

/// What each of the host's crates may depend on among ours, at run time.
const ARROWS: [(&str, &[&str]); 8] = [
    ("belljar-types", &[]),
    ("belljar-capability", &["belljar-types"]),
    ("belljar-agent", &["belljar-types", "belljar-capability"]),
    ("belljar-model", &["belljar-types", "belljar-capability"]),
    ("belljar-sandbox", &["belljar-types", "belljar-capability"]),
    ("belljar-workspace", &["belljar-types", "belljar-capability"]),
    ("belljar-terminal", &["belljar-types"]),
    (
        "belljar",
        &[
            "belljar-types",
            "belljar-capability",
            "belljar-agent",
            "belljar-model",
            "belljar-sandbox",
            "belljar-workspace",
            "belljar-terminal",
            "belljar-plugins",
            "belljar-test-guests",
        ],
    ),
];

/// Crates that must not see what another layer is made of.
const NEVER: [(&str, &[&str]); 6] = [
    ("belljar-types", &["wasmtime", "reqwest", "clap", "cap-std"]),
    ("belljar-capability", &["wasmtime", "reqwest", "clap", "cap-std", "tokio"]),
    ("belljar-agent", &["wasmtime", "reqwest", "clap", "cap-std"]),
    ("belljar-model", &["wasmtime", "clap", "cap-std"]),
    ("belljar-workspace", &["wasmtime", "reqwest", "clap"]),
    ("belljar-terminal", &["wasmtime", "reqwest", "clap", "cap-std"]),
];

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(repository().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    metadata
        .packages
        .iter()
        .map(|package| {
            let names = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind == DependencyKind::Normal)
                .map(|dependency| dependency.name.clone())
                .collect();
            (package.name.to_string(), names)
        })
        .collect()
}

#[test]
fn the_arrows_between_the_hosts_crates_hold() {
    let dependencies = dependencies();
    for (name, allowed) in ARROWS {
        let ours = dependencies[name].iter().filter(|name| name.starts_with("belljar"));
        let wrong: Vec<_> = ours.filter(|name| !allowed.contains(&name.as_str())).collect();
        assert!(wrong.is_empty(), "`{name}` must not depend on {wrong:?}");
    }
}

#[test]
fn no_layer_names_what_another_is_made_of() {
    let dependencies = dependencies();
    for (name, never) in NEVER {
        for other in never {
            assert!(!dependencies[name].contains(*other), "`{name}` must not depend on `{other}`");
        }
    }
}

#[test]
fn guests_depend_on_nothing_of_the_host() {
    for (name, dependencies) in dependencies() {
        if name.starts_with("belljar-plugin-") || name.starts_with("belljar-guest-") {
            let host: Vec<_> = dependencies
                .iter()
                .filter(|name| ARROWS.iter().any(|(host, _)| host == name))
                .collect();
            assert!(host.is_empty(), "`{name}` must not depend on {host:?}");
        }
    }
}
