//! Replacing a file's content whole: lock, write beside it, rename.
//!
//! The text is on the disk under another name before it takes the file's name, so that whatever
//! ends the program or the machine leaves the old file or the new one. A lock that its holder did
//! not give back is given back by the kernel.

use super::StoreError;
use crate::owner::Ownership;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::{
    ambient_authority,
    fs::{Dir, OpenOptions},
};
use std::{
    fs::{File, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long another process may take for its change.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// No configuration is longer.
const MAX_FILE: u64 = 1 << 20;

/// The file that is written, which is not the one that was named where that is a link.
#[derive(Debug)]
pub(super) struct Target {
    folder: Dir,
    path: PathBuf,
    name: String,
}

impl Target {
    /// Finds the file, following links as its owner made them.
    pub(super) fn find(file: &Path) -> Result<Self, StoreError> {
        let not_a_file = |what| StoreError::NotAFile { path: file.to_owned(), what };
        let found = |error| StoreError::Io { action: "found", path: file.to_owned(), error };
        let path = match file.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if file.symlink_metadata().is_ok() {
                    return Err(not_a_file("is a link to nothing"));
                }
                let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = parent.unwrap_or(Path::new(".")).canonicalize().map_err(found)?;
                parent.join(file.file_name().ok_or_else(|| not_a_file("is no file's name"))?)
            }
            Err(error) => return Err(found(error)),
        };
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(not_a_file("is a folder"));
        };
        let name =
            name.to_str().ok_or_else(|| StoreError::NotUtf8 { path: path.clone() })?.to_owned();
        let folder = Dir::open_ambient_dir(parent, ambient_authority()).map_err(found)?;
        let metadata = folder.dir_metadata().map_err(found)?;
        // Whoever can write the folder can put another file in the place of ours.
        Ownership::from(&metadata)
            .guarded()
            .map_err(|fault| StoreError::Refused { path: parent.to_owned(), fault })?;
        Ok(Self { folder, path, name })
    }

    /// Waits until no other process is changing the file; holds as long as what is returned.
    pub(super) fn lock(&self) -> Result<File, StoreError> {
        let io_error = |error| self.error("locked", error);
        let mut options = OpenOptions::new();
        options.write(true).create(true).follow(FollowSymlinks::No).nonblock(true);
        private(&mut options);
        // It stays: were it removed, two processes could hold locks on two files of its name.
        let lock = self.folder.open_with(format!(".{}.lock", self.name), &options);
        let lock = lock.map_err(io_error)?.into_std();
        let started = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                    std::thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(StoreError::Locked { path: self.path.clone() });
                }
                Err(TryLockError::Error(error)) => return Err(io_error(error)),
            }
        }
    }

    /// What stands in the file; nothing where it is missing.
    pub(super) fn read(&self) -> Result<String, StoreError> {
        let io_error = |error| self.error("read", error);
        let not_a_file = |what| StoreError::NotAFile { path: self.path.clone(), what };
        let mut options = OpenOptions::new();
        // Not blocking, so that a pipe in the place of the file cannot make anybody wait.
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = match self.folder.open_with(&self.name, &options) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(io_error(error)),
        };
        let metadata = file.metadata().map_err(io_error)?;
        if !metadata.is_file() {
            return Err(not_a_file("is not a regular file"));
        }
        Ownership::from(&metadata)
            .guarded()
            .map_err(|fault| StoreError::Refused { path: self.path.clone(), fault })?;
        let mut text = String::new();
        file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(io_error)?;
        if text.len() as u64 > MAX_FILE {
            return Err(not_a_file("is longer than 1 MiB"));
        }
        Ok(text)
    }

    /// Puts a text in the place of what stands there. Only while the lock is held.
    pub(super) fn replace(&self, text: &str) -> Result<(), StoreError> {
        let temporary = format!(".{}.new", self.name);
        let written = self.write(&temporary, text).map_err(|error| self.error("written", error));
        if written.is_err() {
            // What cannot be removed is removed before the next change.
            let _ = self.folder.remove_file(&temporary);
        }
        written
    }

    fn write(&self, temporary: &str, text: &str) -> io::Result<()> {
        // Left by a process that was ended in the middle: nobody else writes while we hold the lock.
        match self.folder.remove_file(temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        private(&mut options);
        let mut file = self.folder.open_with(temporary, &options)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        self.folder.rename(temporary, &self.folder, &self.name)?;
        self.sync_folder()
    }

    /// Until the folder is on the disk too, a power cut may bring the old name back.
    #[cfg(unix)]
    fn sync_folder(&self) -> io::Result<()> {
        self.folder.open(".")?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_folder(&self) -> io::Result<()> {
        Ok(())
    }

    fn error(&self, action: &'static str, error: io::Error) -> StoreError {
        StoreError::Io { action, path: self.path.clone(), error }
    }
}

/// For its owner alone.
fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = options;
}
