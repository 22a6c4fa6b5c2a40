//! Reading a person's answer from the terminal, line by line.
//!
//! Changes no terminal setting, so that there is none to restore however the program ends. What
//! was typed before a question is thrown away: it cannot have been an answer.

use std::io;

/// The terminal that answers come from.
#[derive(Debug)]
pub(crate) struct Tty {
    #[cfg(unix)]
    file: std::sync::Arc<std::fs::File>,
}

#[cfg(unix)]
impl Tty {
    /// Standard input where it is a terminal, else the terminal that the program was started
    /// from; nothing where there is none.
    pub(crate) fn open() -> Option<Self> {
        use std::{io::IsTerminal as _, os::fd::AsFd as _};
        let stdin = io::stdin();
        let file = if stdin.is_terminal() {
            stdin.as_fd().try_clone_to_owned().ok()?.into()
        } else {
            std::fs::File::open("/dev/tty").ok()?
        };
        Some(Self { file: std::sync::Arc::new(file) })
    }

    /// The next line, without its end; nothing where the person ended the input. Dropping this
    /// ends the reading at once.
    ///
    /// # Errors
    ///
    /// The terminal went away.
    pub(crate) async fn line(&self) -> io::Result<Option<String>> {
        // Dropped with this future, which wakes the thread.
        let (wake, _dropped_to_wake) = io::pipe()?;
        let file = std::sync::Arc::clone(&self.file);
        tokio::task::spawn_blocking(move || read_line(&file, &wake)).await?
    }

    /// Throws away what was typed so far: right before a question is shown, since it cannot have
    /// been an answer.
    pub(crate) fn forget_typed(&self) {
        // Where the terminal went away, reading says so.
        let _ = rustix::termios::tcflush(&*self.file, rustix::termios::QueueSelector::IFlush);
    }

    /// How many lines it shows at a time.
    pub(crate) fn height(&self) -> usize {
        let size = rustix::termios::tcgetwinsize(&*self.file);
        size.ok().map_or(0, |size| size.ws_row.into())
    }
}

#[cfg(unix)]
fn read_line(mut file: &std::fs::File, wake: &io::PipeReader) -> io::Result<Option<String>> {
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::Read as _;
    const LONGEST: usize = 64 << 10;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let mut ready = [PollFd::new(&file, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled?,
        };
        if !ready[1].revents().is_empty() {
            return Ok(None);
        }
        let length = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        bytes.extend_from_slice(&buffer[..length]);
        if length == 0 && bytes.is_empty() {
            return Ok(None);
        }
        if length == 0 || bytes.ends_with(b"\n") || bytes.len() > LONGEST {
            let line = String::from_utf8_lossy(&bytes);
            return Ok(Some(line.trim_end_matches(['\n', '\r']).to_owned()));
        }
    }
}

#[cfg(not(unix))]
impl Tty {
    /// This platform has no way here to call a read off, so nobody is asked.
    pub(crate) fn open() -> Option<Self> {
        None
    }

    pub(crate) async fn line(&self) -> io::Result<Option<String>> {
        Ok(None)
    }

    pub(crate) fn forget_typed(&self) {}

    pub(crate) fn height(&self) -> usize {
        0
    }
}
