//! `belljar selftest`: hostile plugins against this very build and machine.
//!
//! Each case is one attack by an embedded guest, by the same way through the sandbox as a model's
//! call, and what must come of it; after each, the next call must be served and the process be
//! back at its level of threads, handles and memory. It needs no network, reads no configuration
//! and writes to a temporary folder only.

mod case;
mod cases;
mod kinds;
mod levels;
mod server;
mod stage;

use crate::{arguments::SelftestArguments, exit, screen::SharedScreen, visible};
use anyhow::Context as _;
use case::Case;
use serde::Serialize;
use std::{
    io,
    time::{Duration, Instant},
};

/// What came of one case.
#[derive(Debug, Serialize)]
struct Ran {
    row: u8,
    kind: &'static str,
    case: &'static str,
    held: bool,
    /// What happened; where it was not held, what should have.
    happened: String,
    ms: u64,
}

/// Everything, for `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    held: bool,
    cases: &'a [Ran],
    tests_only: Vec<TestsOnly>,
    ms: u64,
}

#[derive(Debug, Serialize)]
struct TestsOnly {
    row: u8,
    kind: &'static str,
    why: &'static str,
}

pub(crate) async fn selftest(
    arguments: SelftestArguments,
    screen: SharedScreen,
) -> anyhow::Result<u8> {
    run(&cases::all(), arguments.json, &screen).await
}

/// Runs cases one after the other, since each looks at what the process is left with.
async fn run(cases: &[Case], json: bool, screen: &SharedScreen) -> anyhow::Result<u8> {
    let started = Instant::now();
    // What is compiled for one case serves the others.
    let shared = tempfile::tempdir().context("no temporary folder can be made")?;
    let mut ran = Vec::new();
    for case in cases {
        let (row, kind) = (case.row, kinds::name(case.row));
        let began = Instant::now();
        let outcome = case.run(shared.path()).await;
        let ms = millis(began.elapsed());
        let held = outcome.is_ok();
        let happened = outcome.unwrap_or_else(|broken| format!("{broken:#}"));
        let one = Ran { row, kind, case: case.name, held, happened, ms };
        if !json && let Err(error) = show(&one, screen) {
            return exit::of_write_error(error);
        }
        ran.push(one);
    }
    let held = ran.iter().all(|one| one.held);
    let shown = if json {
        let tests_only = kinds::tests_only();
        let tests_only = tests_only.map(|(row, kind, why)| TestsOnly { row, kind, why }).collect();
        let ms = millis(started.elapsed());
        screen.lock().json(&Report { held, cases: &ran, tests_only, ms })
    } else {
        show_end(&ran, started.elapsed(), screen)
    };
    warn(&ran, screen);
    match shown {
        Err(error) => exit::of_write_error(error),
        Ok(()) => Ok(if held { exit::COMPLETED } else { exit::FAILED }),
    }
}

fn show(one: &Ran, screen: &SharedScreen) -> io::Result<()> {
    const HAPPENED: usize = 400;
    let Ran { row, kind, case, held, happened, ms } = one;
    let verdict = if *held { "held" } else { "NOT HELD" };
    let happened = visible::short(happened, HAPPENED);
    screen
        .lock()
        .product(&format!("{row:>2}  {kind:<24}  {case:<34}  {verdict}: {happened}  ({ms} ms)\n"))
}

fn show_end(ran: &[Ran], time: Duration, screen: &SharedScreen) -> io::Result<()> {
    let mut screen = screen.lock();
    for (row, kind, why) in kinds::tests_only() {
        screen.product(&format!("{row:>2}  {kind:<24}  runs in the tests only: {why}\n"))?;
    }
    let (held, total) = (ran.iter().filter(|one| one.held).count(), ran.len());
    let all = if held == total { format!("all {total}") } else { format!("{held} of {total}") };
    screen.product(&format!("{all} cases held, in {:.1} s\n", time.as_secs_f64()))
}

/// Says what was not held, for people, whatever standard output carries.
fn warn(ran: &[Ran], screen: &SharedScreen) {
    let broken = ran.iter().filter(|one| !one.held);
    let names: Vec<_> = broken.map(|one| format!("`{}`", one.case)).collect();
    if !names.is_empty() {
        screen.lock().error(&format!(
            "{} of {} cases did NOT hold on this machine: {}; do not run plugins that you do not \
             trust with this build, and report it as SECURITY.md says",
            names.len(),
            ran.len(),
            names.join(", ")
        ));
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
