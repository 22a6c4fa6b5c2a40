//! Operations on names: make, link, move, remove, set times. Each opens the folder that holds the
//! name, checks where that lies, and then acts on the one name in that open folder, so that nothing
//! that is swapped meanwhile leads elsewhere.

use super::{
    GuardedFilesView,
    context::{Door, check_length},
    mounts::Place,
    place::{self, Split, join},
    resolve::{self, How, Spot},
    rules::{Guarded, New, Refusal},
};
use belljar_capability::is_protected;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_primitives::fs as cap;
use std::{
    fs, io,
    path::{Path, PathBuf},
};
use wasmtime::component::Resource;
use wasmtime_wasi::{
    filesystem::Descriptor,
    p2::bindings::filesystem::types::{self, ErrorCode},
};

/// The guest paths of what was changed, for the record.
pub(super) type Changed = Vec<String>;

impl GuardedFilesView<'_> {
    pub(super) fn create_directory(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &str,
    ) -> Guarded<Changed> {
        self.check_writable(descriptor, path)?;
        let options = cap::DirOptions::new();
        let Some((spot, split)) = self.spot(descriptor, path)? else {
            // Such a path names a folder that is there, or nothing: the system says which.
            cap::create_dir(&self.dir(descriptor)?.dir, Path::new(path), &options)?;
            return Ok(Vec::new());
        };
        self.may_create(&spot, New::Folder)?;
        self.created(cap::create_dir(&spot.dir, Path::new(split.last), &options))?;
        Ok(vec![spot.shown])
    }

    pub(super) fn symlink(
        &self,
        descriptor: &Resource<Descriptor>,
        target: &str,
        path: &str,
    ) -> Guarded<Changed> {
        check_length(target)?;
        self.check_writable(descriptor, path)?;
        let Some((spot, split)) = self.spot(descriptor, path)? else {
            symlink(target, &self.dir(descriptor)?.dir, path)?;
            return Ok(Vec::new());
        };
        self.may_create(&spot, New::Link)?;
        self.created(symlink(target, &spot.dir, split.last))?;
        Ok(vec![spot.shown])
    }

    pub(super) fn remove_file(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &str,
    ) -> Guarded<Changed> {
        self.check_writable(descriptor, path)?;
        let Some((spot, split)) = self.spot(descriptor, path)? else {
            cap::remove_file(&self.dir(descriptor)?.dir, Path::new(path))?;
            return Ok(Vec::new());
        };
        self.may_remove(&spot)?;
        cap::remove_file(&spot.dir, Path::new(split.last))?;
        Ok(vec![spot.shown])
    }

    pub(super) fn remove_directory(
        &self,
        descriptor: &Resource<Descriptor>,
        path: &str,
    ) -> Guarded<Changed> {
        self.check_writable(descriptor, path)?;
        let Some((spot, split)) = self.spot(descriptor, path)? else {
            cap::remove_dir(&self.dir(descriptor)?.dir, Path::new(path))?;
            return Ok(Vec::new());
        };
        self.may_remove(&spot)?;
        cap::remove_dir(&spot.dir, Path::new(split.last))?;
        Ok(vec![spot.shown])
    }

    pub(super) fn link(
        &self,
        (from, path): (&Resource<Descriptor>, &str),
        (to, new_path): (&Resource<Descriptor>, &str),
        follow: bool,
    ) -> Guarded<Changed> {
        self.check_writable(from, path)?;
        self.check_writable(to, new_path)?;
        if follow {
            return Err(ErrorCode::Invalid.into());
        }
        let (source, target) = (self.spot(from, path)?, self.spot(to, new_path)?);
        let (Some((source, old)), Some((target, new))) = (source, target) else {
            // A folder has one name only, and what is there is not replaced.
            let (from, to) = (&self.dir(from)?.dir, &self.dir(to)?.dir);
            cap::hard_link(from, Path::new(path), to, Path::new(new_path))?;
            return Ok(Vec::new());
        };
        match (&source.place, &target.place) {
            (Some(from), Some(to)) => self.files.may_link(from, to)?,
            (None, None) => {}
            _ => return Err(across(&source, &target)),
        }
        let files = &self.files;
        files.quota.create(|| target.shown.clone(), &files.plugin)?;
        let (old, new) = (Path::new(old.last), Path::new(new.last));
        self.created(cap::hard_link(&source.dir, old, &target.dir, new))?;
        Ok(vec![target.shown])
    }

    pub(super) fn rename(
        &self,
        (from, path): (&Resource<Descriptor>, &str),
        (to, new_path): (&Resource<Descriptor>, &str),
    ) -> Guarded<Changed> {
        self.check_writable(from, path)?;
        self.check_writable(to, new_path)?;
        let (source, target) = (self.spot(from, path)?, self.spot(to, new_path)?);
        let (Some((source, old)), Some((target, new))) = (source, target) else {
            // The system moves neither `.` nor `..`, and nothing onto them.
            let (from, to) = (&self.dir(from)?.dir, &self.dir(to)?.dir);
            cap::rename(from, Path::new(path), to, Path::new(new_path))?;
            return Ok(Vec::new());
        };
        match (&source.place, &target.place) {
            (Some(from), Some(to)) => {
                self.files.may_rename(from, to)?;
                self.check_contents(&source, old.name, from, to)?;
            }
            (None, None) => {}
            _ => return Err(across(&source, &target)),
        }
        rename_one(&source.dir, old, &target.dir, new)?;
        Ok(vec![source.shown, target.shown])
    }

    pub(super) fn set_times_at(
        &self,
        descriptor: &Resource<Descriptor>,
        follow: bool,
        path: &str,
        times: [types::NewTimestamp; 2],
    ) -> Guarded<Changed> {
        check_length(path)?;
        self.check_writable(descriptor, path)?;
        let times = Times::new(times)?;
        let bare = |(_, split): &(Spot, Split<'_>)| split.is_bare();
        if !follow && let Some((spot, split)) = self.spot(descriptor, path)?.filter(bare) {
            if let Some(place) = &spot.place {
                self.files.may_write(place)?;
            }
            times.set_named(&spot.dir, split.name)?;
            return Ok(vec![spot.shown]);
        }
        let looked = resolve::open(&self.dir(descriptor)?.dir, path, How::Look { follow })?;
        let (opened, by_text) = looked;
        let held = self.files.held(descriptor.rep())?;
        let shown = match held.door {
            Door::Temporary => self.files.path(descriptor.rep(), path),
            Door::Mount(door) => {
                let metadata = opened.metadata()?;
                let mounts = &self.files.mounts;
                let identity = place::identity(&metadata);
                if mounts.get(door).is_system_state(&opened, identity)? {
                    return Err(ErrorCode::Access.into());
                }
                let typed = by_text.then_some(path);
                let place = self.place_of(held, door, &opened, &metadata, typed)?;
                self.files.may_write(&place)?;
                mounts.shown(&place)
            }
        };
        times.set(&opened)?;
        Ok(vec![shown])
    }

    /// Whether the times of what is open may be set: a handle for reading is enough for the system.
    pub(super) fn check_open(&self, descriptor: &Resource<Descriptor>) -> Guarded<()> {
        let held = self.files.held(descriptor.rep())?;
        let Door::Mount(door) = held.door else { return Ok(()) };
        self.check_writable(descriptor, "")?;
        let opened = match self.table.get(descriptor)? {
            Descriptor::File(file) => &file.file,
            Descriptor::Dir(dir) => &dir.dir,
        };
        let metadata = opened.metadata()?;
        match self.place_of(held, door, opened, &metadata, held.is_root.then_some("")) {
            Ok(place) => self.files.may_write(&place),
            // It lost its last name, so nobody obeys it any more.
            Err(fault) if fault.is(ErrorCode::NoEntry) && place::is_nameless(&metadata) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Before anything is resolved: whether the call may write here at all.
    fn check_writable(&self, descriptor: &Resource<Descriptor>, path: &str) -> Guarded<()> {
        check_length(path)?;
        let held = self.files.held(descriptor.rep())?;
        match held.door {
            Door::Mount(mount) if !self.files.has_writable(held.door) => {
                let target = self.files.path(descriptor.rep(), path);
                Err(self.files.read_only(mount, target))
            }
            _ => Ok(()),
        }
    }

    /// Whether something may come to be, and is counted if so.
    pub(super) fn may_create(&self, spot: &Spot, what: New) -> Guarded<()> {
        if let Some(place) = &spot.place {
            self.files.may_create(place, what)?;
        }
        self.files.quota.create(|| spot.shown.clone(), &self.files.plugin)
    }

    fn may_remove(&self, spot: &Spot) -> Guarded<()> {
        match &spot.place {
            Some(place) => self.files.may_remove(place),
            None => Ok(()),
        }
    }

    fn created(&self, result: io::Result<()>) -> Guarded<()> {
        result.map_err(|error| {
            self.files.quota.not_created();
            error.into()
        })
    }

    /// Whether a folder that is to be moved holds protected names: moving it would take them from
    /// where people know them, or plant them elsewhere. No guest makes such a name, so what is not
    /// there when it is looked for does not come meanwhile.
    fn check_contents(&self, spot: &Spot, name: &str, from: &Place, to: &Place) -> Guarded<()> {
        /// Names that are looked at; a folder of more is not moved in one piece.
        const LOOKED_AT: usize = 50_000;
        let mut left = LOOKED_AT;
        let mut options = cap::OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let mut waiting = vec![PathBuf::from(name)];
        while let Some(folder) = waiting.pop() {
            match cap::stat(&spot.dir, &folder, FollowSymlinks::No) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            }
            let opened = cap::open(&spot.dir, &folder, &options)?;
            for entry in cap::read_base_dir(&opened)? {
                let entry = entry?;
                let path = folder.join(entry.file_name());
                if left == 0 {
                    let reason = "it holds too many files to look through for protected ones; \
                                  move its parts";
                    return Err(Refusal::fault(
                        ErrorCode::NotPermitted,
                        "write",
                        spot.shown.clone(),
                        reason,
                    ));
                }
                left -= 1;
                let below = place::below(&path, Path::new(name)).unwrap_or_default();
                for place in [from, to] {
                    let inside = join(&place.inside, &below);
                    let place = self.files.mounts.place(place.door, inside);
                    if self.files.mounts.guest_paths(&place).any(|path| is_protected(&path)) {
                        self.files.needs_approval(&place)?;
                    }
                }
                if entry.file_type()?.is_dir() {
                    waiting.push(path);
                }
            }
        }
        Ok(())
    }
}

/// A `/` after either name means that it must be a folder's.
fn rename_one(from: &fs::File, old: Split<'_>, to: &fs::File, new: Split<'_>) -> io::Result<()> {
    let is_folder = |last: &str| last.ends_with('/');
    if !is_folder(old.last) && !is_folder(new.last) {
        return cap::rename(from, Path::new(old.last), to, Path::new(new.last));
    }
    // Linux refuses what is no folder, and follows no link, where a `/` ends the old name. Other
    // systems follow it, so they are not asked.
    #[cfg(target_os = "linux")]
    let name = if old.is_bare() { format!("{}/", old.name) } else { old.last.to_owned() };
    #[cfg(not(target_os = "linux"))]
    let name = {
        if !cap::stat(from, Path::new(old.name), FollowSymlinks::No)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        old.last.trim_end_matches('/').to_owned()
    };
    cap::rename(from, Path::new(&name), to, Path::new(new.last))
}

fn across(source: &Spot, target: &Spot) -> super::rules::Fault {
    let target = format!("{} → {}", source.shown, target.shown);
    let reason = "nothing moves between the temporary folder and others; copy it instead";
    Refusal::fault(ErrorCode::CrossDevice, "write", target, reason)
}

#[cfg(not(windows))]
fn symlink(target: &str, folder: &fs::File, name: &str) -> io::Result<()> {
    cap::symlink(Path::new(target), folder, Path::new(name))
}

#[cfg(windows)]
fn symlink(_: &str, _: &fs::File, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// When something was read and changed last, each as the guest wants it.
struct Times {
    accessed: types::NewTimestamp,
    modified: types::NewTimestamp,
}

impl Times {
    /// # Errors
    ///
    /// A time lies past what can be told.
    fn new([accessed, modified]: [types::NewTimestamp; 2]) -> Result<Self, ErrorCode> {
        for time in [&accessed, &modified] {
            if let types::NewTimestamp::Timestamp(time) = time {
                let seconds = time.seconds.checked_add(u64::from(time.nanoseconds / 1_000_000_000));
                seconds
                    .and_then(|seconds| i64::try_from(seconds).ok())
                    .ok_or(ErrorCode::Overflow)?;
            }
        }
        Ok(Self { accessed, modified })
    }

    /// Sets them on exactly what is open, which was only opened to be looked at.
    #[cfg(target_os = "linux")]
    fn set(self, opened: &fs::File) -> io::Result<()> {
        use rustix::fs::{AtFlags, utimensat};
        let handle = rustix::path::DecInt::from_fd(opened);
        let handles = rustix_linux_procfs::proc_self_fd()?;
        Ok(utimensat(handles, handle, &self.specs(), AtFlags::empty())?)
    }

    /// Sets them on a name in an open folder, and not on what a link of that name leads to.
    #[cfg(unix)]
    fn set_named(self, folder: &fs::File, name: &str) -> io::Result<()> {
        use rustix::fs::{AtFlags, utimensat};
        Ok(utimensat(folder, name, &self.specs(), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    #[cfg(not(unix))]
    fn set_named(self, _: &fs::File, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(unix)]
    fn specs(self) -> rustix::fs::Timestamps {
        use rustix::{
            fs::{Timestamps, UTIME_NOW, UTIME_OMIT},
            time::Timespec,
        };
        let spec = |time| match time {
            types::NewTimestamp::NoChange => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            types::NewTimestamp::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            types::NewTimestamp::Timestamp(time) => {
                let seconds = time.seconds + u64::from(time.nanoseconds / 1_000_000_000);
                let nanoseconds = time.nanoseconds % 1_000_000_000;
                Timespec { tv_sec: seconds.cast_signed(), tv_nsec: nanoseconds.into() }
            }
        };
        Timestamps { last_access: spec(self.accessed), last_modification: spec(self.modified) }
    }

    #[cfg(not(target_os = "linux"))]
    fn set(self, opened: &fs::File) -> io::Result<()> {
        use std::time::{Duration, SystemTime, UNIX_EPOCH};
        let mut times = fs::FileTimes::new();
        let moment = |time| match time {
            types::NewTimestamp::NoChange => None,
            types::NewTimestamp::Now => Some(SystemTime::now()),
            types::NewTimestamp::Timestamp(time) => {
                UNIX_EPOCH.checked_add(Duration::new(time.seconds, time.nanoseconds))
            }
        };
        if let Some(moment) = moment(self.accessed) {
            times = times.set_accessed(moment);
        }
        if let Some(moment) = moment(self.modified) {
            times = times.set_modified(moment);
        }
        opened.set_times(times)
    }
}
