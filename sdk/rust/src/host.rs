//! What the host offers a plugin beyond WASI: the log, progress, output as it comes, and the
//! call's clock. Natively nothing is sent anywhere; [`crate::testing::record`] shows what would be.

use std::{fmt, time::Duration};

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// Writes to the run's log. The model never sees it.
pub fn log(level: Level, message: impl fmt::Display) {
    backend::log(level, message.to_string());
}

/// Says how far long work is, for a progress bar. `total` is absent where it is not known.
pub fn progress(done: u64, total: Option<u64>, message: impl fmt::Display) {
    backend::progress(done, total, message.to_string());
}

/// Shows output as it comes, to people who watch. The model reads the result only.
pub fn emit(text: impl fmt::Display) {
    backend::emit(text.to_string());
}

/// The time until the call's deadline. Natively it never ends.
pub fn remaining() -> Duration {
    backend::remaining()
}

/// Whole milliseconds, as the contract counts time.
#[cfg(target_family = "wasm")]
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(target_family = "wasm")]
mod backend {
    use super::Level;
    use crate::bindings::generated::belljar::plugin::host;
    use std::time::Duration;

    pub(super) fn log(level: Level, message: String) {
        let level = match level {
            Level::Trace => host::Level::Trace,
            Level::Debug => host::Level::Debug,
            Level::Info => host::Level::Info,
            Level::Warn => host::Level::Warn,
            Level::Error => host::Level::Error,
        };
        host::log(level, &message);
    }

    pub(super) fn progress(done: u64, total: Option<u64>, message: String) {
        host::progress(done, total, &message);
    }

    pub(super) fn emit(text: String) {
        host::emit(&text);
    }

    pub(super) fn remaining() -> Duration {
        Duration::from_millis(host::remaining_ms())
    }
}

#[cfg(not(target_family = "wasm"))]
mod backend {
    use super::Level;
    use crate::testing::{HostCall, take_note};
    use std::time::Duration;

    pub(super) fn log(level: Level, message: String) {
        take_note(HostCall::Log { level, message });
    }

    pub(super) fn progress(done: u64, total: Option<u64>, message: String) {
        take_note(HostCall::Progress { done, total, message });
    }

    pub(super) fn emit(text: String) {
        take_note(HostCall::Emit { text });
    }

    pub(super) fn remaining() -> Duration {
        Duration::MAX
    }
}
