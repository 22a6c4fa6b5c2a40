//! Times the same small work as a Belljar call and in the other ways that agents run their tools,
//! side by side: results are compared first, then all are timed in turn, round after round. A way
//! that is not installed is skipped, and said. It never judges the times.

#[path = "../../../host/sandbox/benches/support/bare.rs"]
#[expect(clippy::unwrap_used, reason = "shared with benches, which panic as tests do")]
mod bare;
mod machine;
mod measure;
mod peers;
mod report;

use anyhow::Context;
use clap::Parser;
use report::Report;
use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

/// Times the same small work as a Belljar call and in the other ways that agents run tools.
///
/// Prints a table in Markdown. What is not installed is skipped by name.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many rounds; in each, every way has its turn
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Write the figures to this file as JSON too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (peers, skipped) = peers::all(&runtime)?;
    let machine = machine::describe();
    let measured = measure::in_turn(peers, arguments.rounds)?;
    let report =
        Report { machine, rounds: arguments.rounds, work: measure::WORK, measured, skipped };
    if let Some(file) = &arguments.json {
        let json = serde_json::to_string_pretty(&report)? + "\n";
        fs::write(file, json).with_context(|| format!("cannot write `{}`", file.display()))?;
    }
    Ok(write!(io::stdout(), "{report}")?)
}
