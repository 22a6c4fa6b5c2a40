//! The targets, by name.

mod configuration;
mod loader;
mod manifest;
mod network;
mod paths;
mod rules;
mod streams;

use fastrand::Rng;

/// Something that reads what others wrote.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    /// Panics where a promise does not hold for these bytes.
    pub check: fn(&[u8]) -> Verdict,
    /// An input that is likely to get far.
    pub generate: fn(&mut Rng) -> Vec<u8>,
}

/// What became of an input for which all promises hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was read, or allowed: the target did all that it does.
    Taken,
    Refused,
}

pub const TARGETS: [Target; 8] = [
    manifest::SECTION,
    manifest::TOML,
    configuration::TARGET,
    rules::TARGET,
    network::TARGET,
    paths::TARGET,
    streams::TARGET,
    loader::TARGET,
];

pub fn target(name: &str) -> Option<&'static Target> {
    const ALL: &[Target] = &TARGETS;
    ALL.iter().find(|target| target.name == name)
}

/// So many lines of an input that is text, the last with all the rest; those that are not there
/// are empty.
fn lines<const COUNT: usize>(input: &[u8]) -> Option<[&str; COUNT]> {
    let mut rest = std::str::from_utf8(input).ok()?.splitn(COUNT, '\n');
    Some(std::array::from_fn(|_| rest.next().unwrap_or_default()))
}
