//! Adding to a session.

use super::line;
use async_trait::async_trait;
use belljar_types::{Journal, JournalError, Record};
use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A session that is being written. It holds the file's lock: no other process adds to it.
#[derive(Debug)]
pub struct SessionJournal {
    id: String,
    path: PathBuf,
    file: Mutex<WholeLines>,
}

impl SessionJournal {
    pub(super) fn new(id: String, path: PathBuf, file: WholeLines) -> Self {
        Self { id, path, file: Mutex::new(file) }
    }

    /// The session's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[async_trait]
impl Journal for SessionJournal {
    fn session(&self) -> &str {
        &self.id
    }

    /// Writes in place, without a hop to another thread: handing a line to the kernel takes
    /// microseconds, and without an await point inside, no cancelled run can leave a record that
    /// nobody knows to be written or not.
    async fn append(&self, record: &Record) -> Result<(), JournalError> {
        let line = line::format(record).map_err(|error| JournalError {
            message: format!("a record of session `{}` cannot be written: {error}", self.id),
        })?;
        // What a panic left half done, the next append takes back.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.append(&line).map_err(|error| JournalError {
            message: format!(
                "cannot write the session file `{}`: {error}: {}; what was written before is \
                 unharmed",
                self.path.display(),
                remedy(&error)
            ),
        })
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or set `XDG_STATE_HOME` to a folder on another disk"
        }
        io::ErrorKind::FileTooLarge => {
            "start a new session, or raise the limit on file sizes (`ulimit -f`)"
        }
        _ => "check the disk, or set `XDG_STATE_HOME` to a folder on another one",
    }
}

/// A file that grows by whole lines: one that was written in part is taken back, at once or
/// before the next one.
#[derive(Debug)]
pub(super) struct WholeLines {
    file: File,
    /// Bytes up to the end of the last whole line.
    whole: u64,
    /// Part of a line may follow.
    torn: bool,
}

impl WholeLines {
    /// The file must be open for appending and hold `whole` bytes of whole lines.
    pub(super) fn new(file: File, whole: u64, torn: bool) -> Self {
        Self { file, whole, torn }
    }

    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            self.take_back()?;
        }
        self.torn = true;
        match self.file.write_all(line) {
            Ok(()) => {
                self.whole += line.len() as u64;
                self.torn = false;
                Ok(())
            }
            Err(error) => {
                // If even this fails, the next append tries again before it writes.
                let _ = self.take_back();
                Err(error)
            }
        }
    }

    fn take_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.whole)?;
        self.torn = false;
        Ok(())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    /// A device that is always full and cannot be cut back either.
    #[tokio::test]
    async fn a_full_disk_is_named_with_what_to_do_each_time() {
        let path = PathBuf::from("/dev/full");
        let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        let journal = SessionJournal::new("id".to_owned(), path, WholeLines::new(file, 0, false));
        let record = Record::CallStarted { call_id: "1".to_owned() };
        assert_eq!(
            journal.append(&record).await.unwrap_err().message,
            "cannot write the session file `/dev/full`: No space left on device (os error 28): \
             free some space, or set `XDG_STATE_HOME` to a folder on another disk; what was \
             written before is unharmed"
        );
        assert_eq!(
            journal.append(&record).await.unwrap_err().message,
            "cannot write the session file `/dev/full`: Invalid argument (os error 22): check the \
             disk, or set `XDG_STATE_HOME` to a folder on another one; what was written before is \
             unharmed"
        );
    }
}
