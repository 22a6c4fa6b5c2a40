//! The ways of doing the work, each ready to do it again and again.

mod fresh;
mod in_process;
mod servers;

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How many calls a turn has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Microseconds: one call that is not timed, then many that are.
    Fast,
    /// Milliseconds: one call.
    Slow,
}

type Run<'a> = Box<dyn FnMut(&str) -> anyhow::Result<String> + 'a>;
type Memory<'a> = Box<dyn FnMut(&str) -> anyhow::Result<Option<u64>> + 'a>;

/// One way of doing the work.
pub(crate) struct Peer<'a> {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) pace: Pace,
    /// Takes the input and returns the answer, as text both.
    pub(crate) run: Run<'a>,
    /// The most memory that doing it takes, in bytes, where that can be told.
    pub(crate) memory: Memory<'a>,
}

impl Peer<'_> {
    pub(crate) fn answer(&mut self, input: &str) -> anyhow::Result<Value> {
        let answer = (self.run)(input)?;
        serde_json::from_str(&answer).with_context(|| format!("`{answer}` is not JSON"))
    }
}

/// A way that this machine does not have.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) name: &'static str,
    pub(crate) reason: String,
}

/// All ways that this machine has, Belljar's call first, and those that it has not.
///
/// # Errors
///
/// One that every machine has does not work.
pub(crate) fn all(runtime: &Runtime) -> anyhow::Result<(Vec<Peer<'_>>, Vec<Skipped>)> {
    let mut peers = vec![
        in_process::belljar(runtime)?,
        in_process::bare_wasmtime(runtime)?,
        in_process::quickjs(),
        in_process::native(),
    ];
    let mut skipped = Vec::new();
    let files = TempDir::new()?;
    let mut offer = |name, peer: anyhow::Result<Peer<'static>>| match peer {
        Ok(peer) => peers.push(peer),
        Err(error) => skipped.push(Skipped { name, reason: format!("{error:#}") }),
    };
    offer("warm MCP server in Python", servers::python());
    offer("warm MCP server in Node", servers::node());
    offer("native process", fresh::native());
    offer("native process in bubblewrap", fresh::bubblewrap());
    offer("`wasmtime run`, compiled before", fresh::wasmtime(files));
    offer("fresh Python process", fresh::python());
    offer("fresh Node process", fresh::node());
    Ok((peers, skipped))
}

/// The version of a crate that is built in.
fn locked(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let version = LOCK.split("[[package]]").find_map(|entry| {
        let rest = entry.trim_start().strip_prefix("name = \"")?.strip_prefix(package)?;
        rest.strip_prefix("\"\nversion = \"")?.split('"').next()
    });
    version.unwrap_or("unknown")
}

/// Where a program lies.
fn find(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
        .with_context(|| format!("`{program}` is not installed"))
}

/// What a program prints, without the blanks around it.
fn said(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("`{}` does not start", program.display()))?;
    anyhow::ensure!(
        output.status.success(),
        "`{}` fails: {}",
        program.display(),
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("no reason given")
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The interpreter itself, where what is on the path is a script that looks for it.
fn python_itself() -> anyhow::Result<(PathBuf, String)> {
    let found = find("python3")?;
    let itself = said(&found, &["-c", "import sys; print(sys.executable)"])?;
    Ok((itself.into(), said(&found, &["--version"])?))
}

fn node_itself() -> anyhow::Result<(PathBuf, String)> {
    let found = find("node")?;
    let itself = said(&found, &["-p", "process.execPath"])?;
    Ok((itself.into(), format!("Node {}", said(&found, &["--version"])?)))
}
