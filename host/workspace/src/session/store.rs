//! The folder of sessions: making, finding, listing and opening them.

use super::{
    LoadedSession, ResultLimits, SessionError, SessionHeader, SessionJournal, SessionResults,
    line::{self, VERSION},
    reader::{self, Tail},
    results,
    writer::WholeLines,
};
use crate::{
    owner::Ownership,
    places::{Places, private_dir},
    prompt::Clock,
};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, OpenOptions};
use std::{
    fs::{File, TryLockError},
    io::{self, BufReader},
    path::{Path, PathBuf},
};
use uuid::Uuid;

/// All sessions of a user. Files are opened below a handle of the folder, and no link is followed.
#[derive(Debug)]
pub struct SessionStore {
    dir: Dir,
    path: PathBuf,
}

/// One session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSummary {
    pub id: String,
    /// Nothing where the first line was lost.
    pub header: Option<SessionHeader>,
    /// When it was last written to.
    pub modified: std::time::SystemTime,
    /// The size of its file.
    pub bytes: u64,
}

/// All sessions, the one written to last first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionList {
    pub sessions: Vec<SessionSummary>,
    /// Why others are not in the list.
    pub notices: Vec<String>,
}

impl SessionStore {
    /// Opens the folder, and makes it where it is missing.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, is somebody else's or open to others.
    pub fn open(places: &Places) -> Result<Self, SessionError> {
        private_dir(&places.state)?;
        let path = places.sessions();
        Ok(Self { dir: private_dir(&path)?, path })
    }

    /// Makes a new session, readable by its owner alone, and writes its header.
    ///
    /// # Errors
    ///
    /// The file cannot be made or written.
    pub fn create(&self, workspace: &Path, clock: &Clock) -> Result<SessionJournal, SessionError> {
        let id = Uuid::now_v7().to_string();
        let path = self.file_path(&id);
        let error = |action| {
            let path = path.clone();
            move |error| SessionError::Io { action, path, error }
        };
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).follow(FollowSymlinks::No);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let file = self.dir.open_with(file_name(&id), &options).map_err(error("made"))?.into_std();
        lock(&file, &id, &path)?;
        let header = SessionHeader {
            version: VERSION,
            id: id.clone(),
            workspace: workspace.to_string_lossy().into_owned(),
            created: clock.now().timestamp().to_string(),
            belljar: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut lines = WholeLines::new(file, 0, false);
        let written = line::format(&header).map_err(io::Error::from);
        written.and_then(|line| lines.append(&line)).map_err(|failed| {
            // Nothing is in it: an empty file would only be in the way.
            let _ = self.dir.remove_file(file_name(&id));
            error("written")(failed)
        })?;
        Ok(SessionJournal::new(id, path, lines))
    }

    /// Reads a session.
    ///
    /// # Errors
    ///
    /// There is none of that name, its file is not this user's alone, or a newer version wrote it.
    /// Damage inside is no error.
    pub fn load(&self, id: &str) -> Result<LoadedSession, SessionError> {
        let file = self.open_file(id, OpenOptions::new().read(true))?;
        Ok(reader::read(id, &self.file_path(id), BufReader::new(file))?.session)
    }

    /// Reads a session and opens it to go on. A torn last line is taken out of the file.
    ///
    /// # Errors
    ///
    /// As for `load`; another process has it open; nothing is in it.
    pub fn resume(&self, id: &str) -> Result<(SessionJournal, LoadedSession), SessionError> {
        let path = self.file_path(id);
        let file = self.open_file(id, OpenOptions::new().read(true).append(true))?;
        lock(&file, id, &path)?;
        let reader::Read { session, end } = reader::read(id, &path, BufReader::new(&file))?;
        if session.header.is_none() && session.records.is_empty() {
            return Err(SessionError::Empty { id: id.to_owned() });
        }
        let mut lines = WholeLines::new(file, end.whole, end.tail == Tail::Torn);
        // Even an empty addition takes back what is torn.
        let ending: &[u8] = if end.tail == Tail::MissingNewline { b"\n" } else { b"" };
        lines.append(ending).map_err(|error| SessionError::Io {
            action: "written",
            path: path.clone(),
            error,
        })?;
        Ok((SessionJournal::new(id.to_owned(), path, lines), session))
    }

    /// The large results of a session, in a folder that is made where it is missing.
    ///
    /// # Errors
    ///
    /// There is no such session, or its folder cannot be made, belongs to another user or is open
    /// to others.
    pub fn results(&self, id: &str, limits: ResultLimits) -> Result<SessionResults, SessionError> {
        self.open_file(id, OpenOptions::new().read(true))?;
        SessionResults::open(&self.dir, &self.path, id, limits)
    }

    /// Removes a session for good, with its large results.
    ///
    /// # Errors
    ///
    /// There is none of that name, another process has it open, or its file is not this user's
    /// alone.
    pub fn remove(&self, id: &str) -> Result<(), SessionError> {
        let path = self.file_path(id);
        let file = self.open_file(id, OpenOptions::new().read(true))?;
        lock(&file, id, &path)?;
        let error =
            |path: PathBuf| move |error| SessionError::Io { action: "removed", path, error };
        // The results first: what is left of a removal that did not end can be removed again.
        let folder = results::folder_name(id);
        match self.dir.remove_dir_all(&folder) {
            Err(failed) if failed.kind() != io::ErrorKind::NotFound => {
                return Err(error(self.path.join(folder))(failed));
            }
            _ => {}
        }
        self.dir.remove_file(file_name(id)).map_err(error(path))
    }

    /// Lists the sessions.
    ///
    /// # Errors
    ///
    /// The folder cannot be read. A file that is refused is a notice.
    pub fn list(&self) -> Result<SessionList, SessionError> {
        let mut list = SessionList::default();
        for id in self.ids()? {
            match self.summary(&id) {
                Ok(summary) => list.sessions.push(summary),
                // Removed since the folder was read.
                Err(SessionError::Unknown { .. }) => {}
                Err(error) => list.notices.push(error.to_string()),
            }
        }
        list.sessions.sort_by(|a, b| (b.modified, &b.id).cmp(&(a.modified, &a.id)));
        list.notices.sort();
        Ok(list)
    }

    /// The sessions of one workspace, the one written to last first, with what is to be said of
    /// files that were left out: the session that is looked for may be one of them.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn of_workspace(&self, workspace: &Path) -> Result<SessionList, SessionError> {
        let workspace = workspace.to_string_lossy();
        let mut list = self.list()?;
        list.sessions.retain(|session| {
            session.header.as_ref().is_some_and(|header| header.workspace == workspace)
        });
        Ok(list)
    }

    /// The session of this workspace that was written to last.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn latest(&self, workspace: &Path) -> Result<Option<String>, SessionError> {
        let list = self.of_workspace(workspace)?;
        Ok(list.sessions.into_iter().next().map(|session| session.id))
    }

    fn summary(&self, id: &str) -> Result<SessionSummary, SessionError> {
        let path = self.file_path(id);
        let file = self.open_file(id, OpenOptions::new().read(true))?;
        let io_error = |error| SessionError::Io { action: "read", path: path.clone(), error };
        let metadata = file.metadata().map_err(io_error)?;
        Ok(SessionSummary {
            id: id.to_owned(),
            modified: metadata.modified().map_err(io_error)?,
            bytes: metadata.len(),
            header: reader::read_header(&path, BufReader::new(&file))?,
        })
    }

    /// The ids of all files that look like sessions.
    fn ids(&self) -> Result<Vec<String>, SessionError> {
        let error = |error| SessionError::Io { action: "listed", path: self.path.clone(), error };
        let mut ids = Vec::new();
        for entry in self.dir.entries().map_err(error)? {
            let name = entry.map_err(error)?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            ids.extend(id.filter(|id| is_id(id)).map(str::to_owned));
        }
        ids.sort();
        Ok(ids)
    }

    /// Opens a session's file after looking at whose it is.
    fn open_file(&self, id: &str, options: &mut OpenOptions) -> Result<File, SessionError> {
        if !is_id(id) {
            return Err(self.unknown(id));
        }
        let path = self.file_path(id);
        let error = |error| SessionError::Io { action: "opened", path: path.clone(), error };
        // Not blocking, so that a pipe in the place of the file cannot make the run wait.
        options.follow(FollowSymlinks::No).nonblock(true);
        let file = match self.dir.open_with(file_name(id), options) {
            Ok(file) => file,
            Err(failed) if failed.kind() == io::ErrorKind::NotFound => {
                return Err(self.unknown(id));
            }
            Err(failed) => {
                let found = self.dir.symlink_metadata(file_name(id));
                return Err(match found {
                    Ok(metadata) if !metadata.is_file() => SessionError::NotAFile { path },
                    _ => error(failed),
                });
            }
        };
        let metadata = file.metadata().map_err(error)?;
        if !metadata.is_file() {
            return Err(SessionError::NotAFile { path });
        }
        Ownership::from(&metadata)
            .private()
            .map_err(|fault| SessionError::Refused { path: path.clone(), fault })?;
        Ok(file.into_std())
    }

    fn unknown(&self, id: &str) -> SessionError {
        let ids = self.ids().unwrap_or_default();
        let near = ids
            .iter()
            .find(|known| id.len() >= 8 && known.starts_with(id))
            .or_else(|| ids.iter().find(|known| strsim::osa_distance(id, known) <= 4));
        let hint = match (near, ids.last()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(latest)) => format!("the latest one is `{latest}`"),
            (None, None) => format!("none has been kept yet in `{}`", self.path.display()),
        };
        SessionError::Unknown { id: id.to_owned(), hint }
    }

    fn file_path(&self, id: &str) -> PathBuf {
        self.path.join(file_name(id))
    }
}

fn file_name(id: &str) -> String {
    format!("{id}.jsonl")
}

/// Only what this version writes is an id: nothing that could be a path.
fn is_id(id: &str) -> bool {
    Uuid::try_parse(id).is_ok_and(|uuid| uuid.to_string() == id)
}

fn lock(file: &File, id: &str, path: &Path) -> Result<(), SessionError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => SessionError::Busy { id: id.to_owned() },
        TryLockError::Error(error) => {
            SessionError::Io { action: "locked", path: path.to_owned(), error }
        }
    })
}
