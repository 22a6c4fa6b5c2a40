//! What is left of other calls, and what can be seen of the host.

use belljar_sdk::prelude::*;
use std::{
    env, fs,
    sync::atomic::{AtomicU64, Ordering},
};

static CALLS: AtomicU64 = AtomicU64::new(0);

/// Counts the calls that this instance has served.
#[tool(read_only)]
fn count() -> String {
    (CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}

/// Shows environment variables and arguments, sorted, one a line.
#[tool(read_only)]
fn environment() -> String {
    let mut lines: Vec<_> = env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    lines.extend(env::args().map(|argument| format!("argument {argument}")));
    lines.sort();
    lines.join("\n")
}

/// Lists every folder that it was given, by the name it has here, and what is in it.
#[tool(read_only)]
fn look_around() -> Result<String, Failure> {
    let mut lines = Vec::new();
    for (_, name) in wasip2::filesystem::preopens::get_directories() {
        lines.push(name.clone());
        for entry in fs::read_dir(&name).context("refused")? {
            lines.push(format!("{name} {}", entry?.file_name().to_string_lossy()));
        }
    }
    lines.sort();
    Ok(lines.join("\n"))
}
