//! Results that are too large for a conversation, kept whole beside their session.
//!
//! A folder of plain files, readable by their owner alone, which goes with the session. What the
//! model is shown of one is an excerpt; the rest is read in pieces, by the host here or by a tool
//! that finds the folder at `/results/`. Nothing that is kept is ever changed.

use super::SessionError;
use crate::{owner::Ownership, places::PlacesError, text_file};
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirBuilder, OpenOptions};
use std::{
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Where tools find the folder.
pub const RESULTS_MOUNT: &str = "/results";

/// What may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResultLimits {
    /// Bytes of one result.
    pub result: u64,
    /// Bytes of all results of a session.
    pub all: u64,
    /// Results of a session.
    pub count: u32,
}

impl Default for ResultLimits {
    fn default() -> Self {
        Self { result: 64 << 20, all: 512 << 20, count: 10_000 }
    }
}

/// The large results of one session.
#[derive(Debug)]
pub struct SessionResults {
    dir: Dir,
    path: PathBuf,
    limits: ResultLimits,
    kept: Mutex<Kept>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    /// The highest number that was given out.
    last: u32,
    bytes: u64,
}

/// A result that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptResult {
    /// Of its file, such as `0007-read_file.txt`.
    pub name: String,
    pub bytes: u64,
}

impl KeptResult {
    /// Where a tool finds it.
    pub fn guest_path(&self) -> String {
        format!("{RESULTS_MOUNT}/{}", self.name)
    }
}

/// A piece of a result, which ends between two characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// Where the next piece begins; nothing at the end.
    pub next: Option<u64>,
    /// Of the whole result.
    pub bytes: u64,
}

/// Something that was not kept or read. For the model: it names no host path.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("a result of {bytes} bytes is not kept: {most} are the most")]
    TooLarge { bytes: u64, most: u64 },
    #[error("no more results are kept: this session has {count} of them with {bytes} bytes")]
    Full { count: u32, bytes: u64 },
    #[error("there is no result `{}`", name.escape_debug())]
    Unknown { name: String },
    #[error("the result `{name}` is not read: {reason}")]
    Unreadable { name: String, reason: String },
    #[error("a result cannot be {action}: {error}")]
    Io { action: &'static str, error: io::Error },
}

/// The beginning and the end of a text, and how much lies between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt<'a> {
    pub head: &'a str,
    /// Bytes between them.
    pub left_out: usize,
    pub tail: &'a str,
}

impl<'a> Excerpt<'a> {
    /// At most so many bytes of both ends, cut between characters. A text that is no longer than
    /// both is all head.
    pub fn of(text: &'a str, head: usize, tail: usize) -> Self {
        if text.len() <= head.saturating_add(tail) {
            return Self { head: text, left_out: 0, tail: "" };
        }
        let head = text.floor_char_boundary(head);
        let tail = text.ceil_char_boundary(text.len() - tail);
        Self { head: &text[..head], left_out: tail - head, tail: &text[tail..] }
    }
}

impl SessionResults {
    /// Opens the folder of a session below the folder of sessions, and makes it where it is
    /// missing.
    pub(super) fn open(
        sessions: &Dir,
        folder: &Path,
        id: &str,
        limits: ResultLimits,
    ) -> Result<Self, SessionError> {
        let name = folder_name(id);
        let path = folder.join(&name);
        let error = |error| SessionError::Places(PlacesError::Io { path: path.clone(), error });
        let mut builder = DirBuilder::new();
        builder.recursive(false);
        #[cfg(unix)]
        {
            use cap_std::fs::DirBuilderExt;
            builder.mode(0o700);
        }
        match sessions.create_dir_with(&name, &builder) {
            Err(failed) if failed.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error(failed));
            }
            _ => {}
        }
        let dir = sessions.open_dir_nofollow(&name).map_err(error)?;
        let metadata = dir.dir_metadata().map_err(error)?;
        Ownership::from(&metadata)
            .private()
            .map_err(|fault| SessionError::Refused { path: path.clone(), fault })?;
        let mut kept = Kept::default();
        for entry in dir.entries().map_err(error)? {
            let entry = entry.map_err(error)?;
            if let Some(number) = entry.file_name().to_str().and_then(number) {
                kept.last = kept.last.max(number);
                kept.bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        Ok(Self { dir, path, limits, kept: Mutex::new(kept) })
    }

    /// The folder, to be mounted for reading alone.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// Keeps a result of a tool.
    ///
    /// # Errors
    ///
    /// It or all of them are too large, or it cannot be written. Nothing of it is left then.
    pub fn keep(&self, tool: &str, text: &str) -> Result<KeptResult, ResultsError> {
        let bytes = text.len() as u64;
        let ResultLimits { result, all, count } = self.limits;
        if bytes > result {
            return Err(ResultsError::TooLarge { bytes, most: result });
        }
        // Held while writing: two results never share a number or a byte of room.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.last >= count || kept.bytes.saturating_add(bytes) > all {
            return Err(ResultsError::Full { count: kept.last, bytes: kept.bytes });
        }
        let number = kept.last + 1;
        let name = file_name(number, tool);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let io_error = |error| ResultsError::Io { action: "kept", error };
        let mut file = self.dir.open_with(&name, &options).map_err(io_error)?;
        kept.last = number;
        if let Err(error) = file.write_all(text.as_bytes()) {
            let _ = self.dir.remove_file(&name);
            return Err(io_error(error));
        }
        kept.bytes += bytes;
        Ok(KeptResult { name, bytes })
    }

    /// Reads at most `length` bytes from `offset` on. An offset in the middle of a character is
    /// taken back to its beginning.
    ///
    /// # Errors
    ///
    /// There is no such result, or it cannot be read.
    pub fn read(&self, name: &str, offset: u64, length: usize) -> Result<Piece, ResultsError> {
        let unknown = || ResultsError::Unknown { name: name.chars().take(100).collect() };
        if number(name).is_none() {
            return Err(unknown());
        }
        let unreadable = |reason| ResultsError::Unreadable { name: name.to_owned(), reason };
        let file = text_file::open(&self.dir, name, Ownership::private).map_err(unreadable)?;
        let mut file = file.ok_or_else(unknown)?;
        let io_error = |error| ResultsError::Io { action: "read", error };
        let bytes = file.metadata().map_err(io_error)?.len();
        let offset = offset.min(bytes);
        // The offset may lie in a character that begins before it.
        let start = offset.saturating_sub(MAX_CHARACTER as u64 - 1);
        file.seek(SeekFrom::Start(start)).map_err(io_error)?;
        // At least a character: a caller that asks for less would never come to the end.
        let wanted = (length.max(MAX_CHARACTER) as u64).saturating_add(offset - start);
        let mut read = Vec::new();
        file.take(wanted).read_to_end(&mut read).map_err(io_error)?;
        let at = read.len().min(usize::try_from(offset - start).unwrap_or(MAX_CHARACTER));
        let begins = |at: &usize| read.get(*at).is_none_or(|byte| byte & 0xc0 != 0x80);
        let from = (0..=at).rev().find(begins).unwrap_or(at);
        let text = match str::from_utf8(&read[from..]) {
            Ok(text) => text,
            // A character that the end of the piece fell into.
            Err(error) if error.error_len().is_none() => {
                str::from_utf8(&read[from..from + error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Err(unreadable("it is not UTF-8 text".to_owned())),
        };
        let end = start + (from + text.len()) as u64;
        let next = (end < bytes && !text.is_empty()).then_some(end);
        Ok(Piece { text: text.to_owned(), next, bytes })
    }
}

/// Bytes of the longest character.
const MAX_CHARACTER: usize = 4;

pub(super) fn folder_name(id: &str) -> String {
    format!("{id}.results")
}

/// The number tells results apart, the tool's name is for people and for the model.
fn file_name(number: u32, tool: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let tool: String = tool.chars().take(40).map(plain).collect();
    format!("{number:04}-{tool}.txt")
}

/// The number of a file that has a name as they are made here: nothing that could be a path.
fn number(name: &str) -> Option<u32> {
    let (number, tool) = name.strip_suffix(".txt")?.split_once('-')?;
    let is_number = number.len() >= 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_tool = tool.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if is_number && is_tool { number.parse().ok() } else { None }
}
