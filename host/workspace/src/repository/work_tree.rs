//! Whether tracked files differ from the last commit, by the index, the files and, where it must
//! be, the trees.
//!
//! No filter and no other program that a repository names is ever run, so a file that git would
//! convert first is compared as it is, and where that could mislead nothing is said. All work is
//! bounded, since the repository may be anybody's. Files that git does not know do not count.

use super::WorkTree;
use cap_std::{
    ambient_authority,
    fs::{Dir, Metadata},
};
use gix::{
    ObjectId,
    bstr::{BString, ByteSlice},
    index::{
        Entry,
        entry::{Flags, Mode, Stage},
    },
    objs::{Kind, tree::EntryKind},
};
use std::{
    borrow::Cow,
    io::{self, Read},
    path::Path,
    time::{Duration, Instant},
};

/// How long one look may take: it is taken in every round.
pub(super) const PATIENCE: Duration = Duration::from_millis(250);
/// Bytes of an index, which are read at once.
const MAX_INDEX: u64 = 32 << 20;
/// Bytes of files that are read.
const MAX_READ: u64 = 32 << 20;
/// Bytes of a commit or of one folder's tree.
const MAX_OBJECT: u64 = 4 << 20;

/// Looks at the working tree below `root`.
pub(super) fn look(repository: &gix::Repository, root: &Path, patience: Duration) -> WorkTree {
    let look = Look::new(repository, root, Instant::now() + patience);
    look.and_then(|look| look.run()).unwrap_or(WorkTree::NotKnown)
}

struct Look<'a> {
    repository: &'a gix::Repository,
    root: Dir,
    index: gix::index::File,
    /// Files are converted between the repository and the disk, so that what differs byte for byte
    /// may be the same.
    converts: bool,
    /// The bit of executable files means something.
    executable: bool,
    until: Instant,
}

/// What is known of one file.
enum Compared {
    Same,
    Differs,
    NotKnown,
}

impl<'a> Look<'a> {
    /// Nothing where there is no index that could be read.
    fn new(repository: &'a gix::Repository, root: &Path, until: Instant) -> Option<Self> {
        let path = repository.index_path();
        let index = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let state = gix::index::State::new(repository.object_hash());
                gix::index::File::from_state(state, path)
            }
            // Anything but a plain file, a pipe say, could make the round wait.
            Ok(metadata) if metadata.is_file() && metadata.len() <= MAX_INDEX => {
                repository.open_index().ok()?
            }
            _ => return None,
        };
        let root = Dir::open_ambient_dir(root, ambient_authority()).ok()?;
        let config = repository.config_snapshot();
        let ends = config.string("core.autocrlf");
        let attributes = |entry: &Entry| entry.path(&index).ends_with(b".gitattributes");
        let converts = ends.is_some_and(|ends| !ends.eq_ignore_ascii_case(b"false"))
            || index.entries().iter().any(attributes)
            || root.symlink_metadata(".gitattributes").is_ok()
            || repository.git_dir().join("info/attributes").exists();
        let executable = cfg!(unix) && config.boolean("core.fileMode").unwrap_or(true);
        Some(Self { repository, root, index, converts, executable, until })
    }

    /// Nothing where the time is over, or something is not as it should be.
    fn run(&self) -> Option<WorkTree> {
        let mut known = true;
        let mut room = MAX_READ;
        for entry in self.index.entries() {
            self.in_time()?;
            match self.compare(entry, &mut room) {
                Compared::Same => {}
                Compared::Differs => return Some(WorkTree::Changed),
                Compared::NotKnown => known = false,
            }
        }
        if self.is_staged()? {
            return Some(WorkTree::Changed);
        }
        known.then_some(WorkTree::Clean)
    }

    fn in_time(&self) -> Option<()> {
        (Instant::now() < self.until).then_some(())
    }

    fn compare(&self, entry: &Entry, room: &mut u64) -> Compared {
        if entry.stage() != Stage::Unconflicted || entry.flags.contains(Flags::INTENT_TO_ADD) {
            return Compared::Differs;
        }
        let elsewhere = entry.mode.intersects(Mode::DIR) && !entry.mode.contains(Mode::FILE);
        let elsewhere = elsewhere && !entry.mode.contains(Mode::SYMLINK);
        if elsewhere || entry.flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID) {
            return Compared::Same;
        }
        let Ok(path) = gix::path::from_bstr(entry.path(&self.index)) else {
            return Compared::NotKnown;
        };
        let metadata = match self.root.symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Compared::Differs,
            Err(_) => return Compared::NotKnown,
        };
        if !self.is_kind(entry.mode, &metadata) {
            return Compared::Differs;
        }
        match self.seems_same(entry, &metadata) {
            Some(true) => Compared::Same,
            Some(false) => Compared::Differs,
            None => self.compare_content(entry, &path, &metadata, room),
        }
    }

    fn is_kind(&self, mode: Mode, metadata: &Metadata) -> bool {
        if mode == Mode::SYMLINK {
            return metadata.is_symlink();
        }
        if !metadata.is_file() {
            return false;
        }
        #[cfg(unix)]
        {
            use cap_std::fs::MetadataExt;
            let is_executable = metadata.mode() & 0o100 != 0;
            !self.executable || is_executable == (mode == Mode::FILE_EXECUTABLE)
        }
        #[cfg(not(unix))]
        true
    }

    /// By size and time alone, as far as these say.
    fn seems_same(&self, entry: &Entry, metadata: &Metadata) -> Option<bool> {
        let size = u32::try_from(metadata.len() & u64::from(u32::MAX)).unwrap_or_default();
        if entry.stat.size != size {
            // A size of 0 asks for a look at the content.
            return if entry.stat.size == 0 { None } else { Some(false) };
        }
        let time = metadata.modified().ok()?.into_std();
        let time = gix::index::entry::stat::Time::try_from(time).ok()?;
        let options = gix::index::entry::stat::Options::default();
        let is_racy = entry.stat.is_racy(self.index.timestamp(), options);
        (entry.stat.mtime == time && !is_racy).then_some(true)
    }

    fn compare_content(
        &self,
        entry: &Entry,
        path: &Path,
        metadata: &Metadata,
        room: &mut u64,
    ) -> Compared {
        let content = if entry.mode == Mode::SYMLINK {
            let target = self.root.read_link_contents(path).ok();
            target.and_then(|target| gix::path::into_bstr(target).ok().map(Cow::into_owned))
        } else {
            self.read(path, metadata, room)
        };
        let Some(content) = content else { return Compared::NotKnown };
        match gix::objs::compute_hash(self.repository.object_hash(), Kind::Blob, &content) {
            Ok(id) if id == entry.id => Compared::Same,
            Ok(_) if !self.converts => Compared::Differs,
            _ => Compared::NotKnown,
        }
    }

    fn read(&self, path: &Path, metadata: &Metadata, room: &mut u64) -> Option<BString> {
        *room = room.checked_sub(metadata.len())?;
        let mut content = Vec::new();
        let file = self.root.open(path).ok()?;
        file.take(metadata.len() + 1).read_to_end(&mut content).ok()?;
        Some(content.into())
    }

    /// Whether the index differs from the commit.
    fn is_staged(&self) -> Option<bool> {
        let head = self.repository.head().ok()?;
        let Some(commit) = head.id() else { return Some(!self.index.entries().is_empty()) };
        self.fits(commit.detach())?;
        let tree = self.repository.find_commit(commit.detach()).ok()?.tree_id().ok()?.detach();
        if let Some(cached) = self.index.tree()
            && cached.num_entries.is_some()
            && cached.id == tree
        {
            return Some(false);
        }
        self.differs(tree)
    }

    /// Whether the files of a tree are others than those of the index. A tree that goes on without
    /// end is left as soon as it has more than the index has.
    fn differs(&self, tree: ObjectId) -> Option<bool> {
        let mut found = 0;
        let mut visited = 0;
        let most = 2 * self.index.entries().len() + 1000;
        let mut trees = vec![(BString::default(), tree)];
        while let Some((folder, id)) = trees.pop() {
            self.fits(id)?;
            for entry in self.repository.find_tree(id).ok()?.iter() {
                self.in_time()?;
                visited += 1;
                if visited > most {
                    return None;
                }
                let entry = entry.ok()?;
                let mut path = folder.clone();
                path.extend_from_slice(entry.filename().as_bytes());
                let id = entry.object_id();
                if entry.mode().kind() == EntryKind::Tree {
                    path.push(b'/');
                    trees.push((path, id));
                    continue;
                }
                let known = self.index.entry_by_path(path.as_ref());
                let mode = Mode::from(entry.mode());
                if !known.is_some_and(|known| known.id == id && known.mode == mode) {
                    return Some(true);
                }
                found += 1;
            }
        }
        Some(found != self.index.entries().len())
    }

    /// An object that is small enough to be read.
    fn fits(&self, id: ObjectId) -> Option<()> {
        (self.repository.find_header(id).ok()?.size() <= MAX_OBJECT).then_some(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
