//! The figures, for people and for programs.

use crate::{machine::Machine, measure::Measured, peers::Skipped};
use serde::Serialize;
use std::fmt;

/// All that was found out. Its text is Markdown.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) work: &'static str,
    pub(crate) measured: Vec<Measured>,
    pub(crate) skipped: Vec<Skipped>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, rounds, work, measured, skipped } = self;
        writeln!(f, "The work: {work}. {rounds} rounds, in turn.")?;
        writeln!(
            f,
            "{}, {} threads, {}, load {}{}.\n",
            machine.processor,
            machine.parallelism,
            machine.system,
            machine.load,
            if machine.optimised { "" } else { "; NOT OPTIMISED, build with `--release`" },
        )?;
        writeln!(f, "| way | version | median | p99 | × Belljar | memory |")?;
        writeln!(f, "| --- | --- | ---: | ---: | ---: | ---: |")?;
        for Measured { name, version, median_us, p99_us, ratio, memory_kib, .. } in measured {
            let memory = match memory_kib {
                Some(kib) => format!("{:.1} MiB", *kib as f64 / 1024.0),
                None => String::new(),
            };
            writeln!(
                f,
                "| {name} | {version} | {} | {} | {ratio:.2} | {memory} |",
                time(*median_us),
                time(*p99_us),
            )?;
        }
        for Skipped { name, reason } in skipped {
            writeln!(f, "\nSkipped: {name}: {reason}.")?;
        }
        Ok(())
    }
}

fn time(microseconds: f64) -> String {
    match microseconds {
        us if us < 1_000.0 => format!("{us:.1} µs"),
        us => format!("{:.2} ms", us / 1_000.0),
    }
}
