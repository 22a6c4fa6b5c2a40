//! Dependencies that must not be older than the release that mended them.

use crate::support::repository;
use cargo_metadata::{MetadataCommand, semver::Version};

/// The oldest release of each that is taken, and none may be missing: a dependency that went away
/// would make its floor worthless.
const FLOORS: [(&str, &str); 4] = [
    ("wasmtime", "48.0.8"),
    ("wasmtime-wasi", "48.0.8"),
    ("cap-std", "4.0.3"),
    ("cap-primitives", "4.0.3"),
];

#[test]
fn nothing_is_below_its_floor() {
    let metadata = MetadataCommand::new()
        .manifest_path(repository().join("Cargo.toml"))
        .other_options(["--locked".to_owned()])
        .exec()
        .unwrap();
    for (name, floor) in FLOORS {
        let floor = Version::parse(floor).unwrap();
        let found: Vec<_> = metadata
            .packages
            .iter()
            .filter(|package| package.name.as_str() == name)
            .map(|package| package.version.clone())
            .collect();
        assert!(!found.is_empty(), "`{name}` is no dependency");
        for version in found {
            assert!(version >= floor, "`{name}` is {version}, and must be {floor} or later");
        }
    }
}
