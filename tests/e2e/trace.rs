//! Running the program under `ptrace`, to end it at a chosen system call.
//!
//! Every thread stops at the start of each system call, so that a number names a point of the
//! program's way and not a moment of the clock.

use crate::system::{self, Stop};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Where a run is ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Nowhere: it runs to its own end.
    Never,
    /// Before its Nth change of a file below the folder that is watched: write, flush, rename,
    /// remove; from 1.
    AtChange(usize),
    /// Before its Nth system call of any kind, from 1.
    AtCall(usize),
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Nothing where it was ended.
    pub(crate) code: Option<i32>,
    /// The changes that it came to, by the names of their system calls.
    pub(crate) changes: Vec<&'static str>,
    pub(crate) calls: usize,
}

/// System calls that change files by a handle, their first argument.
const BY_HANDLE: [(libc::c_long, &str); 8] = [
    (libc::SYS_write, "write"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
];

/// System calls that change names.
const BY_NAME: [(libc::c_long, &str); 5] = [
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_linkat, "linkat"),
];

#[cfg(target_arch = "x86_64")]
const OLD_BY_NAME: [(libc::c_long, &str); 4] = [
    (libc::SYS_rename, "rename"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_link, "link"),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_BY_NAME: [(libc::c_long, &str); 0] = [];

/// Runs a command and ends it where it is to be ended. Changes count below `watched` alone.
pub(crate) fn run(mut command: Command, watched: &Path, end: End) -> Traced {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let process = system::spawn_traced(&mut command);
    let mut traced = Traced { code: None, changes: Vec::new(), calls: 0 };
    let mut ended = false;
    loop {
        match system::wait_for_group(process) {
            Stop::CallBegins(thread) if !ended => {
                traced.calls += 1;
                traced.changes.extend(change(thread, watched));
                let here = match end {
                    End::Never => false,
                    End::AtChange(number) => traced.changes.len() == number,
                    End::AtCall(number) => traced.calls == number,
                };
                if here {
                    ended = true;
                    system::kill(process);
                } else {
                    system::go_on(thread, 0);
                }
            }
            Stop::CallBegins(thread) | Stop::Other(thread) => system::go_on(thread, 0),
            Stop::Signal(thread, signal) => system::go_on(thread, signal),
            Stop::Exited(thread, code) if thread == process => {
                traced.code = Some(code);
                return traced;
            }
            Stop::Killed(thread) if thread == process => {
                assert!(ended, "it was ended by somebody else: {traced:?}");
                return traced;
            }
            Stop::Exited(..) | Stop::Killed(_) => {}
        }
    }
}

/// The change that a thread is about to make, if it is one.
fn change(thread: i32, watched: &Path) -> Option<&'static str> {
    // The number of the call, then its arguments, in hexadecimal.
    let call = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    let mut words = call.split(' ');
    let number: libc::c_long = words.next()?.parse().ok()?;
    let named = |list: &[(libc::c_long, &'static str)]| {
        list.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    };
    if let Some(name) = named(&BY_NAME).or_else(|| named(&OLD_BY_NAME)) {
        return Some(name);
    }
    let name = named(&BY_HANDLE)?;
    let handle = i64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    let file: PathBuf = fs::read_link(format!("/proc/{thread}/fd/{handle}")).ok()?;
    file.starts_with(watched).then_some(name)
}
