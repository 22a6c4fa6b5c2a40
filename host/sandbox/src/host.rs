//! The interface `belljar:plugin/host`: log, progress, emitted text, time left.

use crate::{
    bindings::host::{Host, Level},
    limits::size,
    state::CallState,
    stdio::BoundedText,
};
use belljar_capability::Limits;
use belljar_types::{CallObserver, CallUpdate};
use std::time::{Duration, Instant};

/// Progress is passed on at most this often: a guest may report in a tight loop.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
/// The longest progress message passed on, in characters.
const PROGRESS_MESSAGE: usize = 200;

pub(crate) struct HostContext {
    observer: CallObserver,
    log: BoundedText,
    /// Bytes of output that may still be shown.
    emit_left: usize,
    emit_cut: bool,
    last_progress: Option<Instant>,
    last_step_shown: bool,
}

impl HostContext {
    pub(crate) fn new(limits: &Limits, observer: CallObserver) -> Self {
        Self {
            observer,
            log: BoundedText::new(size(limits.log)),
            emit_left: size(limits.log),
            emit_cut: false,
            last_progress: None,
            last_step_shown: false,
        }
    }

    pub(crate) fn log(&self) -> &BoundedText {
        &self.log
    }
}

impl Host for CallState {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Trace => "trace",
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        for bytes in [level, ": ", message.as_str(), "\n"] {
            self.host.log.push(bytes.as_bytes());
        }
        Ok(())
    }

    fn progress(&mut self, done: u64, total: Option<u64>, message: String) -> wasmtime::Result<()> {
        self.crossings.add(message.len())?;
        let now = Instant::now();
        let too_soon = |last: Instant| now.duration_since(last) < PROGRESS_INTERVAL;
        // The last step is shown however soon it comes, once.
        let last_step = total == Some(done) && !self.host.last_step_shown;
        if !last_step && self.host.last_progress.is_some_and(too_soon) {
            return Ok(());
        }
        self.host.last_step_shown |= last_step;
        self.host.last_progress = Some(now);
        let message = message.chars().take(PROGRESS_MESSAGE).collect();
        (self.host.observer)(CallUpdate::Progress { done, total, message });
        Ok(())
    }

    fn emit(&mut self, text: String) -> wasmtime::Result<()> {
        let mut shown = text;
        if shown.len() > self.host.emit_left {
            if self.host.emit_cut {
                return Ok(());
            }
            self.host.emit_cut = true;
            shown.truncate(shown.floor_char_boundary(self.host.emit_left));
            self.host.emit_left = 0;
            shown.push_str(&format!("\n[more output was dropped: {}]\n", self.host.log.allows()));
        } else {
            self.host.emit_left -= shown.len();
        }
        if !shown.is_empty() {
            (self.host.observer)(CallUpdate::Output { text: shown });
        }
        Ok(())
    }

    fn remaining_ms(&mut self) -> wasmtime::Result<u64> {
        Ok(u64::try_from(self.clock.left().as_millis()).unwrap_or(u64::MAX))
    }
}
