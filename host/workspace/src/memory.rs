//! The memory of a workspace: what the model keeps for later sessions in it, in a folder of the
//! user's data that no plugin sees.
//!
//! One small text a file, each replaced whole, all of them bounded. It is the model's own word and
//! nobody's order. Deciding when something is written is never done here.

use crate::{
    owner::Ownership,
    places::{Places, PlacesError, private_dir},
    text_file,
};
use async_trait::async_trait;
use belljar_types::MemoryText;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, OpenOptions};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fs::{File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Bytes of one text.
pub const MAX_MEMORY: usize = 16 << 10;
/// Bytes of all texts of a workspace.
const MAX_ALL: usize = 256 << 10;
const MAX_ENTRIES: usize = 100;
/// Characters of a name.
const MAX_NAME: usize = 64;
/// Characters of a summary.
const MAX_SUMMARY: usize = 120;
/// How long another process may take for its change.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);
const LOCK: &str = ".lock";
const TEMPORARY: &str = ".new";

/// The memory of one workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What must be there and guarded for the folder to be: each is made where it is missing.
    above: [PathBuf; 2],
    path: PathBuf,
}

/// A text in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryEntry {
    pub name: String,
    /// Its first line.
    pub summary: String,
    pub bytes: usize,
}

/// All texts of a workspace, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryIndex {
    pub entries: Vec<MemoryEntry>,
    /// What a person should know: files that were not read and why.
    pub notices: Vec<String>,
}

/// What a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Added,
    Replaced,
    /// The same text was there already.
    Unchanged,
}

/// Something that was not read or written. All but `Folder` and `Io` may be shown to the model.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("`{}` cannot be the name of a memory: use 1 to {MAX_NAME} lower-case letters, digits and hyphens", name.escape_debug())]
    Name { name: String },
    #[error("the text of the memory `{name}` is empty: write something, or remove it")]
    Empty { name: String },
    #[error("the memory `{name}` has {bytes} bytes, and {MAX_MEMORY} are allowed: make it shorter")]
    TooLong { name: String, bytes: usize },
    #[error(
        "there is no room for the memory `{name}`: a workspace keeps at most {MAX_ENTRIES} of \
         {MAX_ALL} bytes together; remove or shorten others first"
    )]
    Full { name: String },
    #[error("there is no memory `{name}`: {hint}")]
    Unknown { name: String, hint: String },
    #[error("the memory `{name}` is not read: {reason}")]
    Unreadable { name: String, reason: String },
    #[error("another belljar has been changing this workspace's memory for a while: try again")]
    Locked,
    #[error(transparent)]
    Folder(#[from] PlacesError),
    #[error("the memory in `{}` cannot be {action}: {error}", path.display())]
    Io { action: &'static str, path: PathBuf, error: io::Error },
}

#[async_trait]
impl belljar_types::Memory for Memory {
    async fn texts(&self) -> Result<Vec<MemoryText>, String> {
        let memory = self.clone();
        apart(move || {
            let index = memory.index()?;
            let read = |MemoryEntry { name, .. }: MemoryEntry| {
                memory.read(&name).map(|text| MemoryText { name, text })
            };
            index.entries.into_iter().map(read).collect()
        })
        .await
    }

    async fn write(&self, text: &MemoryText) -> Result<String, String> {
        let (memory, MemoryText { name, text }) = (self.clone(), text.clone());
        apart(move || {
            let written = memory.write(&name, &text)?;
            Ok(match written {
                Written::Added => format!("the memory `{name}` was added"),
                Written::Replaced => format!("the memory `{name}` was replaced"),
                Written::Unchanged => format!("the memory `{name}` is as it was"),
            })
        })
        .await
    }
}

/// Does what waits for the disk and a lock on a thread that may.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("the memory was given up: the program is ending".to_owned()),
    }
}

impl Memory {
    /// The memory of a workspace's folder. Nothing is made or read yet.
    pub fn new(places: &Places, workspace: &Path) -> Self {
        let path = places.memory().join(folder_name(workspace));
        Self { above: [places.data.clone(), places.memory()], path }
    }

    /// The folder, there or not.
    pub fn folder(&self) -> &Path {
        &self.path
    }

    /// What there is.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or is not the user's alone to write. A text that cannot be read is
    /// a notice.
    pub fn index(&self) -> Result<MemoryIndex, MemoryError> {
        let mut index = MemoryIndex::default();
        let Some(dir) = self.open()? else { return Ok(index) };
        for name in self.names(&dir)? {
            match read(&dir, &name) {
                Ok(Some(text)) => index.entries.push(MemoryEntry {
                    summary: summary(&text),
                    bytes: text.len(),
                    name,
                }),
                // Removed since the folder was read.
                Ok(None) => {}
                Err(reason) => {
                    index.notices.push(format!("the memory `{name}` is not read: {reason}"));
                }
            }
        }
        Ok(index)
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// There is none of that name, or it cannot be read.
    pub fn read(&self, name: &str) -> Result<String, MemoryError> {
        check_name(name)?;
        let Some(dir) = self.open()? else { return Err(self.unknown(name, &[])) };
        match read(&dir, name) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => Err(self.unknown(name, &self.names(&dir)?)),
            Err(reason) => Err(MemoryError::Unreadable { name: name.to_owned(), reason }),
        }
    }

    /// Adds a text or puts it in the place of the one that has its name. It is there whole, or what
    /// was there before is.
    ///
    /// # Errors
    ///
    /// The name or the text is not allowed, there is no room, or it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<Written, MemoryError> {
        check_name(name)?;
        let named = || name.to_owned();
        if text.trim().is_empty() {
            return Err(MemoryError::Empty { name: named() });
        }
        if text.len() > MAX_MEMORY {
            return Err(MemoryError::TooLong { name: named(), bytes: text.len() });
        }
        let dir = self.make()?;
        let _lock = self.lock(&dir)?;
        let mut sizes = BTreeMap::new();
        for known in self.names(&dir)? {
            let size = dir.symlink_metadata(file_name(&known));
            sizes.insert(known, size.map_or(0, |metadata| metadata.len()));
        }
        let before = match read(&dir, name) {
            Ok(before) => before,
            Err(reason) => return Err(MemoryError::Unreadable { name: named(), reason }),
        };
        if before.as_deref() == Some(text) {
            return Ok(Written::Unchanged);
        }
        sizes.insert(named(), text.len() as u64);
        if sizes.len() > MAX_ENTRIES || sizes.values().sum::<u64>() > MAX_ALL as u64 {
            return Err(MemoryError::Full { name: named() });
        }
        replace(&dir, &file_name(name), text).map_err(|error| self.error("written", error))?;
        Ok(if before.is_some() { Written::Replaced } else { Written::Added })
    }

    /// Removes a text for good.
    ///
    /// # Errors
    ///
    /// There is none of that name, or it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), MemoryError> {
        check_name(name)?;
        let Some(dir) = self.open()? else { return Err(self.unknown(name, &[])) };
        let _lock = self.lock(&dir)?;
        match dir.remove_file(file_name(name)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.unknown(name, &self.names(&dir)?))
            }
            Err(error) => Err(self.error("removed", error)),
        }
    }

    /// Opens the folder; nothing where it is missing.
    fn open(&self) -> Result<Option<Dir>, MemoryError> {
        match self.path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => self.make().map(Some),
        }
    }

    fn make(&self) -> Result<Dir, MemoryError> {
        for folder in &self.above {
            private_dir(folder)?;
        }
        Ok(private_dir(&self.path)?)
    }

    fn names(&self, dir: &Dir) -> Result<Vec<String>, MemoryError> {
        let error = |error| self.error("listed", error);
        let mut names = Vec::new();
        for entry in dir.entries().map_err(error)? {
            let file = entry.map_err(error)?.file_name();
            let name = file.to_str().and_then(|file| file.strip_suffix(".md"));
            names.extend(name.filter(|name| check_name(name).is_ok()).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Waits until no other process is changing anything; holds as long as what is returned.
    fn lock(&self, dir: &Dir) -> Result<File, MemoryError> {
        let mut options = private_options();
        options.write(true).create(true);
        let lock = dir.open_with(LOCK, &options).map_err(|error| self.error("locked", error))?;
        let lock = lock.into_std();
        let started = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(MemoryError::Locked),
                Err(TryLockError::Error(error)) => return Err(self.error("locked", error)),
            }
        }
    }

    fn unknown(&self, name: &str, names: &[String]) -> MemoryError {
        let near = names
            .iter()
            .map(|known| (strsim::osa_distance(name, known), known))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let hint = match near {
            Some((_, near)) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "nothing has been kept yet".to_owned(),
            None => "the index lists what there is".to_owned(),
        };
        MemoryError::Unknown { name: name.to_owned(), hint }
    }

    fn error(&self, action: &'static str, error: io::Error) -> MemoryError {
        MemoryError::Io { action, path: self.path.clone(), error }
    }
}

/// A name for a folder's path: what it is called, for people, and its digest, so that no two share
/// one.
fn folder_name(workspace: &Path) -> String {
    let called = workspace.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let called: String = called.chars().take(40).map(plain).collect();
    let digest = Sha256::digest(workspace.as_os_str().as_encoded_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{called}-{hex}")
}

fn file_name(name: &str) -> String {
    format!("{name}.md")
}

/// Nothing that could be a path, or two names for one file.
fn check_name(name: &str) -> Result<(), MemoryError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hyphens = name.starts_with('-') || name.ends_with('-');
    if name.is_empty() || name.len() > MAX_NAME || hyphens || !name.chars().all(allowed) {
        return Err(MemoryError::Name { name: name.chars().take(2 * MAX_NAME).collect() });
    }
    Ok(())
}

/// The first line that says something, without the marks of a heading.
fn summary(text: &str) -> String {
    let line = text.lines().map(|line| line.trim_start_matches('#').trim());
    let line = line.clone().find(|line| !line.is_empty()).unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(MAX_SUMMARY) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn read(dir: &Dir, name: &str) -> Result<Option<String>, String> {
    match text_file::open(dir, &file_name(name), Ownership::private)? {
        Some(file) => text_file::read_whole(file, MAX_MEMORY).map(Some),
        None => Ok(None),
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.follow(FollowSymlinks::No).nonblock(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Only while the lock is held.
fn replace(dir: &Dir, name: &str, text: &str) -> io::Result<()> {
    // Left by a process that was ended in the middle.
    match dir.remove_file(TEMPORARY) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = (|| {
        let mut options = private_options();
        options.write(true).create_new(true);
        let mut file = dir.open_with(TEMPORARY, &options)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        dir.rename(TEMPORARY, dir, name)
    })();
    if written.is_err() {
        // What cannot be removed is removed before the next change.
        let _ = dir.remove_file(TEMPORARY);
    }
    written
}

#[cfg(test)]
mod tests;
