//! Opening: the rights first, then only what a call may hold, and never in a way that can block.

use super::{
    GuardedFilesView,
    context::Door,
    mounts::IN_PLACE,
    place::{self, join, plain},
    resolve::{self, How},
    rules::{Guarded, NO_FILE, New, Refusal},
};
use belljar_capability::{Access, is_protected};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_primitives::fs as cap;
use std::{fs, io, path::Path};
use wasmtime::component::Resource;
use wasmtime_wasi::{
    filesystem::{Descriptor, Dir, File, FsPerms, OpenMode},
    p2::bindings::filesystem::types::{self, ErrorCode},
};

/// What a guest asks for when it opens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    follow: bool,
    creates: bool,
    exclusive: bool,
    truncates: bool,
    directory: bool,
    reads: bool,
    pub(super) writes: bool,
}

impl Wish {
    pub(super) fn new(
        follow: bool,
        create: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> Result<Self, ErrorCode> {
        use types::{DescriptorFlags as Flag, OpenFlags as Open};
        let synchronous =
            Flag::FILE_INTEGRITY_SYNC | Flag::DATA_INTEGRITY_SYNC | Flag::REQUESTED_WRITE_SYNC;
        if flags.intersects(synchronous) {
            return Err(ErrorCode::Unsupported);
        }
        let directory = create.contains(Open::DIRECTORY);
        if directory && create.intersects(Open::CREATE | Open::TRUNCATE | Open::EXCLUSIVE) {
            return Err(ErrorCode::Invalid);
        }
        let creates = create.contains(Open::CREATE);
        let truncates = create.contains(Open::TRUNCATE);
        Ok(Self {
            follow,
            creates,
            exclusive: create.contains(Open::EXCLUSIVE),
            truncates,
            directory,
            reads: flags.contains(Flag::READ) || !flags.contains(Flag::WRITE),
            writes: creates || truncates || flags.contains(Flag::WRITE),
        })
    }

    /// Whether it is about what a file holds, and not only about writing it.
    pub(super) fn reads_files(&self, flags: types::DescriptorFlags) -> bool {
        !self.writes || flags.contains(types::DescriptorFlags::READ)
    }
}

/// What was opened.
pub(super) struct Opened {
    pub(super) descriptor: Descriptor,
    /// The guest path of where it lies.
    pub(super) shown: String,
    /// The granted folder whose rights it has; nothing in the temporary one.
    pub(super) mount: Option<usize>,
}

impl GuardedFilesView<'_> {
    pub(super) fn open(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &str,
        wish: Wish,
    ) -> Guarded<Opened> {
        /// Another call may make or remove the name between two looks at it.
        const ATTEMPTS: usize = 8;
        let held = self.files.held(descriptor.rep())?;
        if wish.writes
            && let Door::Mount(mount) = held.door
            && !self.files.has_writable(held.door)
        {
            self.dir(descriptor)?;
            return Err(self.files.read_only(mount, self.files.path(descriptor.rep(), path)));
        }
        if wish.creates && path.ends_with('/') {
            self.spot(descriptor, path)?;
            return Err(ErrorCode::IsDirectory.into());
        }
        for _ in 0..ATTEMPTS {
            if !(wish.creates && wish.exclusive) {
                match self.open_existing(descriptor, path, wish) {
                    Err(fault) if wish.creates && fault.is(ErrorCode::NoEntry) => {}
                    other => return other,
                }
            }
            if let Some(made) = self.make_file(descriptor, path, wish)? {
                return Ok(made);
            }
        }
        let target = self.files.path(descriptor.rep(), path);
        let reason = "it is a link that leads nowhere, and no file is made through a link";
        Err(Refusal::fault(ErrorCode::NotPermitted, "create", target, reason))
    }

    fn open_existing(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &str,
        wish: Wish,
    ) -> Guarded<Opened> {
        let Wish { follow, reads, writes, .. } = wish;
        let dir = self.dir(descriptor)?;
        let how = How::Use { read: reads, write: writes, follow };
        let (file, by_text) = match resolve::open(&dir.dir, path, how) {
            Ok(opened) => opened,
            Err(error) => {
                // What the call does not see does not show by its errors either.
                if error.kind() != io::ErrorKind::NotFound {
                    self.look(descriptor, follow, path)?;
                }
                return Err(error.into());
            }
        };
        let metadata = file.metadata()?;
        let held = self.files.held(descriptor.rep())?;
        let typed = by_text.then_some(path);
        let (mount, shown) = match held.door {
            Door::Temporary => (None, join(&held.path, &plain(path).unwrap_or_default())),
            Door::Mount(door) => {
                let mounts = &self.files.mounts;
                let is_state =
                    mounts.get(door).is_system_state(&file, place::identity(&metadata))?;
                if is_state {
                    return self.no_file(descriptor, path);
                }
                if writes || !mounts.is_plain(door) {
                    let place = self.place_of(held, door, &file, &metadata, typed)?;
                    if writes {
                        self.files.may_write(&place)?;
                        self.check_typed(held.path.as_ref(), path, by_text, &place)?;
                    } else {
                        self.files.may_see(&place, "read")?;
                    }
                    (Some(place.mount), mounts.shown(&place))
                } else {
                    let shown = match typed.and_then(plain) {
                        Some(typed) => join(&held.path, &typed),
                        // Only for the record: nothing hangs on it here.
                        None => match self.whereabouts(door, &file) {
                            Ok((_, inside)) => mounts.shown(&mounts.place(door, inside)),
                            Err(_) => self.files.path(descriptor.rep(), path),
                        },
                    };
                    (Some(door), shown)
                }
            }
        };
        if wish.directory && !metadata.is_dir() {
            return Err(ErrorCode::NotDirectory.into());
        }
        if !metadata.is_dir() && !metadata.is_file() {
            return self.no_file(descriptor, path);
        }
        // Truncated here and not by the open itself: only what was checked may be changed.
        if wish.truncates {
            file.set_len(0)?;
        }
        let access = self.access_of(mount);
        let descriptor = descriptor_of(file, metadata.is_dir(), access, wish);
        Ok(Opened { descriptor, shown, mount })
    }

    fn no_file<T>(&self, descriptor: &Resource<Descriptor>, path: &str) -> Guarded<T> {
        let target = self.files.path(descriptor.rep(), path);
        Err(Refusal::fault(ErrorCode::Access, "open", target, NO_FILE))
    }

    /// A protected name stays protected where it is a link: what the link leads to is what others
    /// obey.
    fn check_typed(
        &self,
        folder: &str,
        path: &str,
        by_text: bool,
        place: &super::mounts::Place,
    ) -> Guarded<()> {
        if by_text {
            return Ok(());
        }
        let Some(typed) = plain(path).map(|path| join(folder, &path)) else { return Ok(()) };
        if !is_protected(&typed) || self.files.approved.iter().any(|yes| yes.as_str() == typed) {
            return Ok(());
        }
        self.files.needs_approval(place)
    }

    /// Makes a file under a name that is free. Nothing where the name is taken meanwhile.
    fn make_file(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &str,
        wish: Wish,
    ) -> Guarded<Option<Opened>> {
        let Some((spot, split)) = self.spot(descriptor, path)? else {
            // Such a path names a folder that is there, or nothing.
            return Err(match path {
                "" => ErrorCode::NoEntry,
                _ if wish.exclusive => ErrorCode::Exist,
                _ => ErrorCode::IsDirectory,
            }
            .into());
        };
        self.may_create(&spot, New::File)?;
        let mut options = cap::OpenOptions::new();
        options
            .read(wish.reads)
            .write(true)
            .create_new(true)
            .follow(FollowSymlinks::No)
            .nonblock(true);
        let file = match cap::open(&spot.dir, Path::new(split.last), &options) {
            Ok(file) => file,
            Err(error) => {
                self.files.quota.not_created();
                let is_taken = error.kind() == io::ErrorKind::AlreadyExists && !wish.exclusive;
                return if is_taken { Ok(None) } else { Err(error.into()) };
            }
        };
        let mount = spot.place.as_ref().map(|place| place.mount);
        let descriptor = descriptor_of(file, false, self.access_of(mount), wish);
        Ok(Some(Opened { descriptor, shown: spot.shown, mount }))
    }

    fn access_of(&self, mount: Option<usize>) -> Access {
        let mounts = &self.files.mounts;
        mount.map_or(Access::ReadWrite, |mount| self.files.narrowed(mounts.get(mount).access))
    }
}

fn descriptor_of(file: fs::File, is_dir: bool, access: Access, wish: Wish) -> Descriptor {
    let mut mode = OpenMode::empty();
    mode.set(OpenMode::READ, wish.reads);
    mode.set(OpenMode::WRITE, wish.writes);
    let perms = match access {
        Access::Read => FsPerms::ReadOnly,
        Access::ReadWrite => FsPerms::ReadWrite,
    };
    if is_dir {
        Descriptor::Dir(Dir::new(file, perms, mode, IN_PLACE))
    } else {
        Descriptor::File(File::new(file, perms, mode, IN_PLACE))
    }
}
