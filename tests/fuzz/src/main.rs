//! Fuzzing by hand: one target, for as long as wanted.

use anyhow::Context;
use belljar_fuzz::{Budget, TARGETS, Tried, run, target};
use clap::Parser;
use std::{
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

/// Tries many inputs on a target, and keeps the first that fails.
#[derive(Debug, Parser)]
#[command(after_help = format!("Targets: {}", names().join(", ")))]
struct Arguments {
    target: String,

    /// For how long
    #[arg(long, default_value_t = 1)]
    minutes: u64,

    /// What the inputs are made from: the same seed makes the same inputs in the same order
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Try only this many inputs
    #[arg(long, conflicts_with = "minutes")]
    cases: Option<u64>,

    /// Where an input that fails is written to
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir().join("belljar-fuzz"))]
    failures: PathBuf,
}

fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

fn main() -> anyhow::Result<()> {
    let Arguments { target: name, minutes, seed, cases, failures } = Arguments::parse();
    let target = target(&name).with_context(|| {
        format!("there is no target `{name}`: choose one of {}", names().join(", "))
    })?;
    let budget = match cases {
        Some(cases) => Budget::Cases(cases),
        None => Budget::Time(Duration::from_secs(minutes.saturating_mul(60))),
    };
    let Tried { inputs, taken } = run(target, seed, budget, &failures)?;
    Ok(writeln!(
        io::stdout(),
        "{name}: {inputs} inputs of seed {seed}, {taken} of them taken: all as promised"
    )?)
}
