//! Waiting for what never comes.

use belljar_sdk::prelude::*;
use std::{
    fs::File,
    io::{self, Read},
    thread,
    time::{Duration, Instant},
};
use wasip2::{clocks::monotonic_clock, io::poll};

/// Sleeps for a year.
#[tool(read_only)]
fn sleep_for_ever() -> &'static str {
    thread::sleep(Duration::from_secs(365 * 24 * 60 * 60));
    "slept"
}

/// Sleeps for a year, a little at a time.
#[tool(read_only)]
fn sleep_in_pieces() -> &'static str {
    for _ in 0..365 * 24 * 60 * 60 * 1_000_u64 {
        thread::sleep(Duration::from_millis(1));
    }
    "slept"
}

/// Waits for the last moment that the clock knows.
#[tool(read_only)]
fn wait_for_the_end() -> &'static str {
    monotonic_clock::subscribe_instant(u64::MAX).block();
    "the end has come"
}

/// Waits for the first of a hundred moments, none of which comes.
#[tool(read_only)]
fn wait_for_many() -> String {
    let year = 365 * 24 * 60 * 60 * 1_000_000_000;
    let clocks: Vec<_> =
        (0..100).map(|more| monotonic_clock::subscribe_duration(year + more)).collect();
    let list: Vec<_> = clocks.iter().collect();
    format!("{} are ready", poll::poll(&list).len())
}

/// Waits for nothing at all.
#[tool(read_only)]
fn wait_for_nothing() -> String {
    format!("{} are ready", poll::poll(&[]).len())
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    milliseconds: u64,
}

/// Sleeps for a while, and says whether that much time went by.
#[tool(read_only)]
fn sleep(args: Sleep) -> String {
    let start = Instant::now();
    let time = Duration::from_millis(args.milliseconds);
    thread::sleep(time);
    let verdict = if start.elapsed() >= time { "slept" } else { "woken early" };
    verdict.to_owned()
}

/// Reads all of stdin.
#[tool(read_only)]
fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(format!("read {text:?}"))
}

#[derive(Deserialize, JsonSchema)]
struct ReadForEver {
    path: String,
}

/// Reads a file that may have no end, and keeps nothing of it.
#[tool(read_only)]
fn read_for_ever(args: ReadForEver) -> Result<String, Failure> {
    let mut file = File::open(&args.path).context("open")?;
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0_u64;
    loop {
        match file.read(&mut buffer).with_context(|| format!("stopped after {total} bytes"))? {
            0 => return Ok(format!("ended after {total} bytes")),
            read => total += read as u64,
        }
    }
}
