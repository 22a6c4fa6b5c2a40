//! The temporary folder of a call: made when it is first used, gone when the call is.

use cap_primitives::fs as cap;
use rustix::fs::{FlockOperation, flock};
use std::{
    collections::VecDeque,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use wasmtime_wasi::filesystem::{Dir, FsPerms, OpenMode};

use super::mounts::IN_PLACE;

/// Where the temporary folders of one run of the program are made. What a run that crashed left
/// behind is swept by the next.
pub(crate) struct Scratch {
    /// Locked for as long as the run lives.
    run: fs::File,
    path: PathBuf,
    /// An empty folder that stands for temporary folders which nobody has used yet.
    unused: Dir,
    next: AtomicU64,
}

const UNUSED: &str = "unused";

impl Scratch {
    /// Makes a place for the temporary folders of this run, and sweeps those of runs that are over.
    ///
    /// # Errors
    ///
    /// The folder cannot be made, or is not ours alone.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        make_private(path)?;
        let all = open_folder(path)?;
        // One at a time, so that nobody sweeps a folder that is made and not yet locked.
        let lock = open_folder(path)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        sweep(&all)?;
        let name = format!("{}-{:016x}", std::process::id(), rand_name());
        let path = path.join(name);
        make_private(&path)?;
        let run = open_folder(&path)?;
        flock(&run, FlockOperation::LockExclusive)?;
        make_private(&path.join(UNUSED))?;
        let unused = writable(open_folder(&path.join(UNUSED))?);
        Ok(Self { run, path, unused, next: AtomicU64::new(0) })
    }

    fn make(self: &Arc<Self>) -> io::Result<Made> {
        let name = self.next.fetch_add(1, Relaxed).to_string();
        make_private(&self.path.join(&name))?;
        let folder = cap::open(&self.run, Path::new(&name), &folder_options())?;
        Ok(Made { scratch: Arc::clone(self), name, folder: writable(folder) })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is swept by the next run.
        let _ = empty(&self.run).and_then(|()| fs::remove_dir(&self.path));
    }
}

/// The temporary folder of one call.
pub(super) enum Temporary {
    None,
    /// The guest was told of it, or may be; nothing is there yet.
    Offered(Arc<Scratch>),
    Made(Made),
}

/// A folder on disk, emptied and removed when dropped.
pub(super) struct Made {
    scratch: Arc<Scratch>,
    name: String,
    folder: Dir,
}

impl Temporary {
    /// The folder as it is handed to the guest, before anything is there.
    pub(super) fn preopen(&self) -> Option<Dir> {
        match self {
            Self::None => None,
            Self::Offered(scratch) => Some(scratch.unused.clone()),
            Self::Made(made) => Some(made.folder.clone()),
        }
    }

    /// The folder itself in place of one that only stands for it, made now if it was not.
    pub(super) fn real(&mut self, preopen: &Dir) -> io::Result<Option<Dir>> {
        let scratch = match self {
            Self::None => return Ok(None),
            Self::Offered(scratch) => scratch,
            Self::Made(made) => &made.scratch,
        };
        if !Arc::ptr_eq(&preopen.dir, &scratch.unused.dir) {
            return Ok(None);
        }
        if let Self::Offered(scratch) = self {
            *self = Self::Made(scratch.make()?);
        }
        Ok(self.preopen())
    }
}

fn writable(folder: fs::File) -> Dir {
    Dir::new(folder, FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE, IN_PLACE)
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = empty(&self.folder.dir)
            .and_then(|()| cap::remove_dir(&self.scratch.run, Path::new(&self.name)));
    }
}

fn folder_options() -> cap::OpenOptions {
    let mut options = cap::OpenOptions::new();
    options.read(true);
    options
}

fn open_folder(path: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(path)?;
    let metadata = folder.metadata()?;
    if !metadata.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    if !is_private(&metadata) {
        let problem = "it belongs to somebody else, or others may look into it";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    Ok(folder)
}

#[cfg(unix)]
fn is_private(folder: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    folder.uid() == rustix::process::geteuid().as_raw() && folder.mode() & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_: &fs::Metadata) -> bool {
    true
}

/// Makes a folder that nobody else may look into.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).create(path)
}

/// A number that no other run has, by the keys that the standard library draws for its hash maps.
fn rand_name() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(())
}

/// Removes what runs left behind that are over: nobody holds their locks.
fn sweep(all: &fs::File) -> io::Result<()> {
    for name in names(all)? {
        let Ok(run) = cap::open(all, Path::new(&name), &folder_options()) else { continue };
        if !run.metadata()?.is_dir()
            || flock(&run, FlockOperation::NonBlockingLockExclusive).is_err()
        {
            continue;
        }
        let _ = empty(&run).and_then(|()| cap::remove_dir(all, Path::new(&name)));
    }
    Ok(())
}

/// Empties a folder, however deep it is: a guest can nest folders past what any path reaches, and a
/// walk that goes down with them runs out of stack or of handles. So what lies deeper is moved up.
fn empty(folder: &fs::File) -> io::Result<()> {
    let mut moved = 0_u64;
    let mut waiting: VecDeque<OsString> = names(folder)?.into();
    while let Some(name) = waiting.pop_front() {
        let path = Path::new(&name);
        if cap::remove_file(folder, path).is_ok() || cap::remove_dir(folder, path).is_ok() {
            continue;
        }
        let inner = cap::open(folder, path, &folder_options())?;
        for name in names(&inner)? {
            let deeper = Path::new(&name);
            if cap::remove_file(&inner, deeper).is_ok() || cap::remove_dir(&inner, deeper).is_ok() {
                continue;
            }
            let up = loop {
                let up = OsString::from(format!("up-{moved}"));
                moved += 1;
                if cap::stat(folder, Path::new(&up), cap::FollowSymlinks::No).is_err() {
                    break up;
                }
            };
            cap::rename(&inner, deeper, folder, Path::new(&up))?;
            waiting.push_back(up);
        }
        cap::remove_dir(folder, path)?;
    }
    Ok(())
}

fn names(folder: &fs::File) -> io::Result<Vec<OsString>> {
    cap::read_base_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).map_or(0, Iterator::count)
    }

    #[test]
    fn a_folder_is_made_when_it_is_used_and_removed_with_the_call() {
        let place = tempfile::TempDir::new().unwrap();
        let scratch = Arc::new(Scratch::open(&place.path().join("calls")).unwrap());
        let run = scratch.path.clone();
        let mut temporary = Temporary::Offered(Arc::clone(&scratch));
        let preopen = temporary.preopen().unwrap();
        assert_eq!(count(&run), 1, "only the folder that stands for others");
        let real = temporary.real(&preopen).unwrap().unwrap();
        assert_eq!(count(&run), 2);
        cap::create_dir(&real.dir, Path::new("made"), &cap::DirOptions::new()).unwrap();
        // It is made once, and a folder that is real stands for nothing.
        assert!(temporary.real(&real).unwrap().is_none());
        let again = temporary.real(&preopen).unwrap().unwrap();
        assert!(Arc::ptr_eq(&again.dir, &real.dir));
        drop(temporary);
        assert_eq!(count(&run), 1);
        drop((preopen, real, again, scratch));
        assert_eq!(count(&place.path().join("calls")), 0);
    }

    #[test]
    fn what_a_crash_left_is_swept_and_what_others_use_is_not() {
        let place = tempfile::TempDir::new().unwrap();
        let calls = place.path().join("calls");
        let living = Arc::new(Scratch::open(&calls).unwrap());
        let mut temporary = Temporary::Offered(Arc::clone(&living));
        let preopen = temporary.preopen().unwrap();
        let used = temporary.real(&preopen).unwrap().unwrap();
        fs::create_dir_all(calls.join("123-dead/7/deep/er")).unwrap();
        fs::write(calls.join("123-dead/7/deep/file"), "left").unwrap();
        std::os::unix::fs::symlink("/etc", calls.join("123-dead/7/link")).unwrap();
        let second = Scratch::open(&calls).unwrap();
        assert!(!calls.join("123-dead").exists());
        assert_eq!(count(&calls), 2);
        assert!(used.dir.metadata().unwrap().is_dir());
        assert_eq!(count(&living.path), 2);
        drop(second);
        assert_eq!(count(&calls), 1);
    }

    #[test]
    fn a_folder_that_others_may_look_into_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::TempDir::new().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = Scratch::open(place.path()).map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn folders_are_emptied_however_deep_they_are() {
        let place = tempfile::TempDir::new().unwrap();
        let top = fs::File::open(place.path()).unwrap();
        let mut here = top.try_clone().unwrap();
        for _ in 0..3_000 {
            cap::create_dir(&here, Path::new("n"), &cap::DirOptions::new()).unwrap();
            cap::create_dir(&here, Path::new("up-0"), &cap::DirOptions::new()).unwrap();
            here = cap::open(&here, Path::new("n"), &folder_options()).unwrap();
        }
        empty(&top).unwrap();
        assert_eq!(count(place.path()), 0);
    }
}
