//! The terminal in the mode that the session needs, and back as it was: at the end, on a panic,
//! and when the session is dropped.

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
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

/// Whether the terminal is in the session's mode.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static PANICS: Once = Once::new();

/// While it lives, keys come one by one and pastes as a whole.
#[derive(Debug)]
pub(crate) struct Guard(());

impl Guard {
    /// # Errors
    ///
    /// There is no terminal, or it refuses.
    pub(crate) fn take() -> io::Result<Self> {
        PANICS.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                // What the hook before it prints is to be readable.
                restore();
                before(panic);
            }));
        });
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

fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        let mut text = String::from("\u{1b}[0m");
        let _ = DisableBracketedPaste.write_ansi(&mut text);
        let _ = Show.write_ansi(&mut text);
        // A terminal that is gone needs no restoring.
        let _ = write(&text);
        let _ = disable_raw_mode();
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
