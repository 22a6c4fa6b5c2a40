//! The terminal in the mode that the session needs, and back as it was: at the end, on a panic,
//! and when the session is dropped.
//!
//! A panic of another thread, such as one that ends a single call, neither ends the session nor
//! writes into its screen: the session shows it.

use crate::visible;
use crossterm::{
    Command,
    cursor::Show,
    event::{DisableBracketedPaste, EnableBracketedPaste},
    terminal::{disable_raw_mode, enable_raw_mode},
};
use std::{
    io::{self, Write},
    panic,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
};

/// Whether the terminal is in the session's mode.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();
/// The thread that the session runs on.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);
/// Panics of other threads that nobody was shown yet.
static ELSEWHERE: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// More of them are not kept.
const MOST: usize = 20;

/// While it lives, keys come one by one and pastes as a whole.
#[derive(Debug)]
pub(crate) struct Guard(());

impl Guard {
    /// # Errors
    ///
    /// There is no terminal, or it refuses.
    pub(crate) fn take() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                let owner = *OWNER.lock().unwrap_or_else(PoisonError::into_inner);
                if !IS_TAKEN.load(Ordering::SeqCst) || owner == Some(thread::current().id()) {
                    // What the hook before it prints is to be readable.
                    restore();
                    before(panic);
                } else {
                    let mut elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
                    if elsewhere.len() < MOST {
                        elsewhere.push(panic.to_string());
                    }
                }
            }));
        });
        *OWNER.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current().id());
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let guard = Self(());
        let mut text = String::new();
        let _ = EnableBracketedPaste.write_ansi(&mut text);
        write(&text)?;
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        restore();
    }
}

/// The panics of other threads since this was asked last.
pub(crate) fn take_panics() -> Vec<String> {
    std::mem::take(&mut *ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner))
}

fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let mut text = String::from("\u{1b}[0m");
        let _ = DisableBracketedPaste.write_ansi(&mut text);
        let _ = Show.write_ansi(&mut text);
        // A terminal that is gone needs no restoring.
        let _ = write(&text);
        let _ = disable_raw_mode();
        for panic in take_panics() {
            let _ = writeln!(io::stderr(), "{}", visible::lines(&panic));
        }
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
