//! Ways that start a process for each call.

use super::{Pace, Peer, find, node_itself, python_itself, said};
use anyhow::{Context, ensure};
use belljar_test_guests::COMMAND;
use std::{
    ffi::OsString,
    fs,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};
use tempfile::TempDir;

pub(super) fn native() -> anyhow::Result<Peer<'static>> {
    let program = native_program()?;
    let version = format!("rust {}", env!("CARGO_PKG_RUST_VERSION"));
    peer("native process", version, vec![program.into()], ())
}

/// The same process in namespaces of its own, with nothing but the system's folders to read.
pub(super) fn bubblewrap() -> anyhow::Result<Peer<'static>> {
    let bwrap = find("bwrap")?;
    let version = said(&bwrap, &["--version"])?;
    let program = native_program()?;
    let options = [
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ];
    let mut command = vec![OsString::from(bwrap)];
    command.extend(options.map(OsString::from));
    command.push(program.into());
    peer("native process in bubblewrap", version, command, ())
}

/// Compiled before, as nobody who measures would let it compile each time.
pub(super) fn wasmtime(files: TempDir) -> anyhow::Result<Peer<'static>> {
    let wasmtime = find("wasmtime")?;
    let version = said(&wasmtime, &["--version"])?;
    let component = files.path().join("words.wasm");
    let compiled = files.path().join("words.cwasm");
    fs::write(&component, COMMAND.bytes)?;
    let path = |path: &PathBuf| path.display().to_string();
    said(&wasmtime, &["compile", &path(&component), "-o", &path(&compiled)])?;
    let mut command = vec![OsString::from(wasmtime)];
    command.extend(["run", "--allow-precompiled"].map(OsString::from));
    command.push(compiled.into());
    // Version, commit and date; the version is enough.
    let version = version.split(" (").next().unwrap_or_default().to_owned();
    peer("`wasmtime run`, compiled before", version, command, files)
}

pub(super) fn python() -> anyhow::Result<Peer<'static>> {
    let (python, version) = python_itself()?;
    let command = [python.into(), "-c".into(), include_str!("../scripts/words.py").into()];
    peer("fresh Python process", version, command.into(), ())
}

pub(super) fn node() -> anyhow::Result<Peer<'static>> {
    let (node, version) = node_itself()?;
    let command = [node.into(), "-e".into(), include_str!("../scripts/words.js").into()];
    peer("fresh Node process", version, command.into(), ())
}

/// The work as a program.
fn native_program() -> anyhow::Result<PathBuf> {
    beside("count-words")
}

/// A program that is built with this one.
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    ensure!(
        program.is_file(),
        "the program `{name}` is not beside this one: build all with `cargo build --release -p \
         belljar-side-by-side`"
    );
    Ok(program)
}

/// A way that runs a command with the input on stdin and the answer on stdout. What it needs on
/// disk lives as long as it does.
fn peer(
    name: &'static str,
    version: String,
    command: Vec<OsString>,
    needs: impl Sized + 'static,
) -> anyhow::Result<Peer<'static>> {
    let watched = match beside("peak-memory") {
        Ok(watcher) => Some([vec![watcher.into()], command.clone()].concat()),
        Err(_) => None,
    };
    let mut peer = Peer {
        name,
        version,
        pace: Pace::Slow,
        run: Box::new(move |input| {
            let _ = &needs;
            Ok(exchange(&command, input)?.0)
        }),
        memory: Box::new(move |input| match &watched {
            Some(command) => Ok(Some(exchange(command, input)?.1.parse()?)),
            None => Ok(None),
        }),
    };
    // One that is installed may still not work here: namespaces may be forbidden.
    (peer.run)(r#"{"text": ""}"#).context("it does not work here")?;
    Ok(peer)
}

/// What a command says to the input, on stdout and on stderr.
fn exchange(command: &[OsString], input: &str) -> anyhow::Result<(String, String)> {
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no stdin")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "it fails: {said}");
    Ok((String::from_utf8(output.stdout)?, said))
}
