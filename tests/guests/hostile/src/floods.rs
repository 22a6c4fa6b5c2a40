//! More data than the host asked for: on the streams, in the log, in one value.

use belljar_sdk::{host::Level, prelude::*};
use std::io::{self, Write};

const BLOCK: usize = 64 << 10;

#[derive(Deserialize, JsonSchema)]
struct Flood {
    /// How many bytes; without it, without end.
    bytes: Option<u64>,
}

impl Flood {
    /// Sends blocks until enough is sent, and says how much was.
    fn run(&self, mut send: impl FnMut(&str) -> io::Result<()>) -> Result<String, Failure> {
        let block = format!("{}\n", "flood ".repeat(BLOCK / 6));
        let mut sent = 0_u64;
        while self.bytes.is_none_or(|bytes| sent < bytes) {
            send(&block).with_context(|| format!("stopped after {sent} bytes"))?;
            sent += block.len() as u64;
        }
        Ok(format!("sent {sent} bytes"))
    }
}

/// Writes to stdout without end.
#[tool(read_only)]
fn flood_stdout(args: Flood) -> Result<String, Failure> {
    args.run(|block| io::stdout().write_all(block.as_bytes()))
}

/// Writes to stderr without end.
#[tool(read_only)]
fn flood_stderr(args: Flood) -> Result<String, Failure> {
    args.run(|block| io::stderr().write_all(block.as_bytes()))
}

/// Writes to the log without end.
#[tool(read_only)]
fn flood_log(args: Flood) -> Result<String, Failure> {
    args.run(|block| {
        host::log(Level::Error, block);
        Ok(())
    })
}

/// Shows output without end.
#[tool(read_only)]
fn flood_emit(args: Flood) -> Result<String, Failure> {
    args.run(|block| {
        host::emit(block);
        Ok(())
    })
}

#[derive(Deserialize, JsonSchema)]
struct FloodProgress {
    /// How many reports; without it, without end.
    reports: Option<u64>,
}

/// Reports progress without end.
#[tool(read_only)]
fn flood_progress(args: FloodProgress) -> String {
    let mut done = 0;
    while args.reports.is_none_or(|reports| done < reports) {
        done += 1;
        host::progress(done, args.reports, "working");
    }
    format!("reported {done} times")
}

#[derive(Deserialize, JsonSchema)]
struct Print {
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    log: String,
    #[serde(default)]
    emit: String,
}

/// Writes each text to its stream, as it is.
#[tool(read_only)]
fn print(args: Print) -> Result<&'static str, Failure> {
    io::stdout().write_all(args.stdout.as_bytes())?;
    io::stdout().flush()?;
    io::stderr().write_all(args.stderr.as_bytes())?;
    if !args.log.is_empty() {
        host::log(Level::Info, args.log);
    }
    if !args.emit.is_empty() {
        host::emit(args.emit);
    }
    Ok("written")
}

#[derive(Deserialize, JsonSchema)]
struct Huge {
    bytes: usize,
}

/// Returns one huge text.
#[tool(read_only)]
fn huge_text(args: Huge) -> String {
    "x".repeat(args.bytes)
}

/// Writes one huge line to the log.
#[tool(read_only)]
fn huge_log(args: Huge) -> &'static str {
    host::log(Level::Info, "x".repeat(args.bytes));
    "logged"
}

/// Returns one huge structured value.
#[tool(read_only)]
fn huge_structured(args: Huge) -> Json<Vec<String>> {
    Json(vec!["x".repeat(args.bytes)])
}

#[derive(Deserialize, JsonSchema)]
struct ManyPieces {
    pieces: usize,
}

/// Returns a great many pieces of content.
#[tool(read_only)]
fn many_pieces(args: ManyPieces) -> Output {
    (0..args.pieces).fold(Output::new(), |output, _| output.with_text("x"))
}

#[derive(Deserialize, JsonSchema)]
struct HugeProgress {
    bytes: usize,
    /// How many reports of that size.
    times: usize,
}

/// Reports progress in huge messages.
#[tool(read_only)]
fn huge_progress(args: HugeProgress) -> String {
    let message = "x".repeat(args.bytes);
    for done in 0..args.times {
        host::progress(done as u64, None, &message);
    }
    format!("reported {} times", args.times)
}
