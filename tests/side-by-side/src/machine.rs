//! What the figures were taken on.

use serde::Serialize;
use std::{fs, thread};

/// The machine, as far as it tells.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    /// How many threads run at a time.
    pub(crate) parallelism: usize,
    pub(crate) system: String,
    /// Over the last minute before the measurement; how quiet the machine was.
    pub(crate) load: String,
    /// A build without optimisation says little.
    pub(crate) optimised: bool,
}

pub(crate) fn describe() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let version = read("/proc/version");
    let load = read("/proc/loadavg");
    Machine {
        processor: model.map_or_else(unknown, |(_, model)| model.to_owned()),
        parallelism: thread::available_parallelism().map_or(1, usize::from),
        system: version
            .split_whitespace()
            .nth(2)
            .map_or_else(|| std::env::consts::OS.to_owned(), |release| format!("Linux {release}")),
        load: load.split_whitespace().next().map_or_else(unknown, str::to_owned),
        optimised: !cfg!(debug_assertions),
    }
}
