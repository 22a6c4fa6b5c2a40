//! The few system calls that the tests need and that have no safe form in the libraries here:
//! tracing a program, and opening a terminal.
//!
//! Each does one thing; what the tests make of it is in `trace` and `terminal`.

#![expect(unsafe_code, reason = "system calls without a safe form")]

use std::{
    fs::File,
    io,
    os::{fd::FromRawFd, unix::process::CommandExt},
    process::Command,
    ptr,
};

/// What a traced process or one of its threads stopped for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    /// A thread is about to make a system call.
    CallBegins(i32),
    /// A thread is to be given a signal.
    Signal(i32, i32),
    /// Something that asks for nothing: the end of a call, the start of a thread.
    Other(i32),
    Exited(i32, i32),
    Killed(i32),
}

/// Starts a program that stops at each of its system calls, in a process group of its own.
pub(crate) fn spawn_traced(command: &mut Command) -> i32 {
    // What is waited for is then this process and its threads, and no other test's.
    command.process_group(0);
    let trace_me = || {
        // SAFETY: it takes no pointer that is read.
        match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<()>(), 0) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec it makes one system call, and touches no memory.
    unsafe { command.pre_exec(trace_me) };
    #[expect(clippy::zombie_processes, reason = "`wait_for_group` waits for it and its threads")]
    let child = command.spawn().unwrap_or_else(|error| {
        panic!("this test needs `ptrace`, and this machine does not let it trace a child: {error}")
    });
    let process = i32::try_from(child.id()).unwrap();
    let first = wait_for_group(process);
    assert!(
        matches!(first, Stop::Signal(_, libc::SIGTRAP)),
        "this test needs `ptrace`, and the program was not traced: {first:?}"
    );
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
    // SAFETY: the options are a number, and no pointer is read.
    let set = unsafe {
        libc::ptrace(
            libc::PTRACE_SETOPTIONS,
            process,
            ptr::null_mut::<()>(),
            options as libc::c_long,
        )
    };
    assert_eq!(set, 0, "this test needs `ptrace`: {}", io::Error::last_os_error());
    go_on(process, 0);
    process
}

/// Waits for the next stop of a process or one of its threads.
pub(crate) fn wait_for_group(process: i32) -> Stop {
    let mut status = 0;
    let thread = loop {
        // SAFETY: the status is ours.
        match unsafe { libc::waitpid(-process, &raw mut status, libc::__WALL) } {
            -1 => {
                let error = io::Error::last_os_error();
                assert_eq!(error.kind(), io::ErrorKind::Interrupted, "cannot wait: {error}");
            }
            thread => break thread,
        }
    };
    if libc::WIFEXITED(status) {
        return Stop::Exited(thread, libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Stop::Killed(thread);
    }
    const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
    let is_event = status >> 16 != 0;
    match libc::WSTOPSIG(status) {
        SYSTEM_CALL if is_call_entry(thread) => Stop::CallBegins(thread),
        SYSTEM_CALL => Stop::Other(thread),
        _ if is_event => Stop::Other(thread),
        // With it a traced thread begins.
        libc::SIGSTOP => Stop::Other(thread),
        signal => Stop::Signal(thread, signal),
    }
}

fn is_call_entry(thread: i32) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most `size` bytes to a place that has as many, and any bytes
    // are a value of it.
    let (read, info) = unsafe {
        let read = libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, info.as_mut_ptr());
        (read, info.assume_init())
    };
    read > 0 && info.op == libc::PTRACE_SYSCALL_INFO_ENTRY
}

/// Lets a thread go on to its next stop, with a signal where that is not 0.
pub(crate) fn go_on(thread: i32, signal: i32) {
    // SAFETY: the signal is a number, and no pointer is read.
    let gone = unsafe {
        libc::ptrace(
            libc::PTRACE_SYSCALL,
            thread,
            ptr::null_mut::<()>(),
            libc::c_long::from(signal),
        )
    };
    // A thread that was ended meanwhile needs nothing more.
    let error = io::Error::last_os_error();
    assert!(gone == 0 || error.raw_os_error() == Some(libc::ESRCH), "cannot go on: {error}");
}

/// Ends a process at once.
pub(crate) fn kill(process: i32) {
    // SAFETY: it takes numbers.
    let killed = unsafe { libc::kill(process, libc::SIGKILL) };
    assert_eq!(killed, 0, "{}", io::Error::last_os_error());
}

/// The two sides of a new terminal of 60 lines: the person's, and the program's.
pub(crate) fn open_terminal() -> (File, File) {
    let (mut person, mut program) = (-1, -1);
    let size = libc::winsize { ws_row: 60, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both handles are written to places of ours; the name and the settings are not asked
    // for; the size is read.
    let opened = unsafe {
        libc::openpty(
            &raw mut person,
            &raw mut program,
            ptr::null_mut(),
            ptr::null(),
            &raw const size,
        )
    };
    assert_eq!(opened, 0, "no terminal can be opened: {}", io::Error::last_os_error());
    for handle in [person, program] {
        // SAFETY: it takes numbers.
        unsafe { libc::fcntl(handle, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the handles were opened just now and are nobody else's.
    unsafe { (File::from_raw_fd(person), File::from_raw_fd(program)) }
}
