//! Finding what a path leads to, and where that lies. The kernel resolves, or cap-std where it met
//! a link or cannot; nothing here changes anything.

use super::{
    GuardedFilesView,
    context::{Door, Held, check_length},
    mounts::Place,
    place::{self, Split, below, plain, real_path},
    rules::{Fault, Guarded, NO_FILE, Refusal},
};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_primitives::fs as cap;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use wasmtime::component::Resource;
use wasmtime_wasi::{
    filesystem::{Descriptor, Dir},
    p2::{FsResult, bindings::filesystem::types::ErrorCode},
};

/// What a path is opened as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// A file or folder, to be used.
    Use { read: bool, write: bool, follow: bool },
    /// Whatever it is, to be looked at: it is not opened, so nothing happens to it.
    Look { follow: bool },
    /// A folder in which a name is.
    Folder,
}

/// Opens what a path leads to, and says whether the path's text alone tells where that lies: no
/// link was on the way.
pub(super) fn open(from: &fs::File, path: &str, how: How) -> io::Result<(fs::File, bool)> {
    if let Some(opened) = system::without_links(from, path, how)? {
        return Ok((opened, true));
    }
    let path = Path::new(path);
    let opened = match how {
        How::Folder => cap::open_dir(from, path)?,
        How::Use { read, write, follow } => {
            let mut options = cap::OpenOptions::new();
            // A FIFO without a partner must not hold the thread. Files and folders ignore this.
            options.read(read).write(write).follow(followed(follow)).nonblock(true);
            system::no_terminal(&mut options);
            cap::open(from, path, &options)?
        }
        How::Look { follow } => {
            let mut options = cap::OpenOptions::new();
            options.read(true).follow(followed(follow));
            system::look_only(&mut options);
            cap::open(from, path, &options)?
        }
    };
    Ok((opened, false))
}

fn followed(follow: bool) -> FollowSymlinks {
    if follow { FollowSymlinks::Yes } else { FollowSymlinks::No }
}

#[cfg(target_os = "linux")]
mod system {
    use super::How;
    use cap_primitives::fs::{OpenOptions, OpenOptionsExt};
    use rustix::{
        fs::{Mode, OFlags, ResolveFlags, openat2},
        io::Errno,
    };
    use std::{
        fs, io,
        sync::atomic::{AtomicBool, Ordering::Relaxed},
    };

    /// Opens a path on which no link lies. Nothing where there is one, where the path leads out, or
    /// where the kernel cannot do this: the other way decides what that means.
    pub(super) fn without_links(
        from: &fs::File,
        path: &str,
        how: How,
    ) -> io::Result<Option<fs::File>> {
        static MISSING: AtomicBool = AtomicBool::new(false);
        /// The kernel wants to be asked again when something was renamed meanwhile.
        const ATTEMPTS: usize = 4;
        if MISSING.load(Relaxed) {
            return Ok(None);
        }
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        for _ in 0..ATTEMPTS {
            match openat2(from, path, flags(how) | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Ok(opened) => return Ok(Some(opened.into())),
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS) => {
                    MISSING.store(true, Relaxed);
                    return Ok(None);
                }
                // Some sandboxes answer so to what they do not know.
                Err(Errno::LOOP | Errno::XDEV | Errno::PERM | Errno::INVAL) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    fn flags(how: How) -> OFlags {
        let (flags, follow) = match how {
            How::Folder => return OFlags::PATH | OFlags::DIRECTORY,
            How::Look { follow } => (OFlags::PATH, follow),
            How::Use { read, write, follow } => {
                let access = match (read, write) {
                    (_, false) => OFlags::RDONLY,
                    (false, true) => OFlags::WRONLY,
                    (true, true) => OFlags::RDWR,
                };
                (access | OFlags::NONBLOCK | OFlags::NOCTTY, follow)
            }
        };
        if follow { flags } else { flags | OFlags::NOFOLLOW }
    }

    pub(super) fn no_terminal(options: &mut OpenOptions) {
        options.custom_flags(OFlags::NOCTTY.bits().cast_signed());
    }

    pub(super) fn look_only(options: &mut OpenOptions) {
        options.custom_flags(OFlags::PATH.bits().cast_signed());
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::How;
    use cap_primitives::fs::OpenOptions;
    use std::{fs, io};

    pub(super) fn without_links(_: &fs::File, _: &str, _: How) -> io::Result<Option<fs::File>> {
        Ok(None)
    }

    pub(super) fn no_terminal(_: &mut OpenOptions) {}

    /// Such a system opens what it looks at, so it must not wait for it.
    pub(super) fn look_only(options: &mut OpenOptions) {
        use cap_fs_ext::OpenOptionsSyncExt;
        options.nonblock(true);
    }
}

/// A name in an open folder, and where it lies.
pub(super) struct Spot {
    pub(super) dir: Arc<fs::File>,
    /// Nothing in a call's temporary folder, where no place has rights of its own.
    pub(super) place: Option<Place>,
    /// The guest path.
    pub(super) shown: String,
}

impl GuardedFilesView<'_> {
    pub(super) fn dir(&self, descriptor: &Resource<Descriptor>) -> FsResult<&Dir> {
        match self.table.get(descriptor)? {
            Descriptor::Dir(dir) => Ok(dir),
            Descriptor::File(_) => Err(ErrorCode::NotDirectory.into()),
        }
    }

    /// Opens the folder that holds the last name of a path. Nothing where the path ends in no name
    /// of its own.
    pub(super) fn spot<'p>(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &'p str,
    ) -> Guarded<Option<(Spot, Split<'p>)>> {
        check_length(path)?;
        let dir = self.dir(descriptor)?;
        let held = self.files.held(descriptor.rep())?;
        let Some(split) = place::split(path) else { return Ok(None) };
        let (dir, by_text) = if split.folder.is_empty() {
            (Arc::clone(&dir.dir), true)
        } else {
            let (dir, by_text) = open(&dir.dir, split.folder, How::Folder)?;
            (Arc::new(dir), by_text)
        };
        let Door::Mount(door) = held.door else {
            let shown = self.files.path(descriptor.rep(), path);
            return Ok(Some((Spot { dir, place: None, shown }, split)));
        };
        let metadata = dir.metadata()?;
        if self.files.mounts.get(door).is_system_state(&dir, place::identity(&metadata))? {
            let target = self.files.path(descriptor.rep(), path);
            return Err(Refusal::fault(ErrorCode::Access, "open", target, NO_FILE));
        }
        let typed = by_text.then_some(split.folder);
        let folder = self.place_of(held, door, &dir, &metadata, typed)?;
        let inside = place::join(&folder.inside, split.name);
        let mut place = self.files.mounts.place(door, inside);
        place.own |= folder.own;
        let shown = self.files.mounts.shown(&place);
        Ok(Some((Spot { dir, place: Some(place), shown }, split)))
    }

    /// Where something that was opened from a descriptor lies. `typed` is the path from that
    /// descriptor, if no link was on it.
    pub(super) fn place_of(
        &self,
        held: &Held,
        door: usize,
        opened: &fs::File,
        metadata: &fs::Metadata,
        typed: Option<&str>,
    ) -> Guarded<Place> {
        let mounts = &self.files.mounts;
        // A folder that is open may have been renamed since, so only the root's own is known.
        let typed = typed.filter(|_| held.is_root).and_then(plain);
        let is_root = |typed: &str| typed.is_empty();
        match typed {
            Some(typed) if is_root(&typed) || !mounts.asks_the_kernel(door) => {
                Ok(mounts.place(door, typed.into_owned()))
            }
            _ => {
                let (real, inside) = self.whereabouts(door, opened)?;
                let mut place = mounts.place(door, inside);
                place.own |= mounts.is_own(metadata) || mounts.is_below_own(door, &real);
                Ok(place)
            }
        }
    }

    /// Where an open file lies: on the host, and in the folder that it was reached through.
    pub(super) fn whereabouts(&self, door: usize, opened: &fs::File) -> Guarded<(PathBuf, String)> {
        let real = real_path(opened)?;
        let root = real_path(self.files.mounts.get(door).root())?;
        // It was moved out by somebody else while it was open.
        let inside = below(&real, &root).ok_or(Fault::from(ErrorCode::NotPermitted))?;
        Ok((real, inside))
    }

    /// Looks at what a path leads to, where rights hang on places, and checks that it is there for
    /// this call. Nothing where all of the folder may be seen.
    pub(super) fn look(
        &self,
        descriptor: &Resource<Descriptor>,
        follow: bool,
        path: &str,
    ) -> Guarded<Option<fs::File>> {
        check_length(path)?;
        let held = self.files.held(descriptor.rep())?;
        let door = match held.door {
            Door::Mount(door) if !self.files.mounts.is_plain(door) => door,
            Door::Mount(_) | Door::Temporary => return Ok(None),
        };
        // As the runtime does: of a name alone, what follows it says nothing.
        let alone = place::split(path).filter(|split| !follow && split.folder.is_empty());
        let path = alone.map_or(path, |split| split.name);
        let (opened, by_text) = open(&self.dir(descriptor)?.dir, path, How::Look { follow })?;
        let metadata = opened.metadata()?;
        let place = self.place_of(held, door, &opened, &metadata, by_text.then_some(path))?;
        self.files.may_see(&place, "read")?;
        Ok(Some(opened))
    }
}
