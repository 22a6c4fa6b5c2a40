//! Runs a command and tells on stderr, in bytes, the most memory that it held.
//!
//! A small program of its own, since the system counts the memory of whoever starts a process as
//! that process's.

use std::{
    env,
    io::{self, Write},
    process::{Command, ExitCode, Stdio},
};
use wait4::Wait4;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let peak = arguments.next().and_then(|program| {
        let child = Command::new(program).args(arguments).stderr(Stdio::null()).spawn().ok()?;
        let ended = child.wait4().ok()?;
        ended.status.success().then_some(ended.rusage.maxrss)
    });
    let written = peak.map(|bytes| write!(io::stderr(), "{bytes}"));
    if let Some(Ok(())) = written { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
