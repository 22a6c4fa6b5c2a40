//! What one call's files are, and what it did with them.

use crate::state::Denials;
use belljar_capability::Access;
use cap_primitives::fs as cap;
use std::{
    collections::{BTreeSet, HashMap},
    fs, io,
    path::Path,
    sync::Arc,
};
use wasmtime_wasi::{
    filesystem::{Dir, FsPerms, OpenMode, WasiFilesystemCtx},
    p2::{FsResult, bindings::filesystem::types::ErrorCode},
};

/// The longest path that a guest may name, in bytes: Linux's own limit.
const PATH: usize = 4_096;
/// The longest path kept for a record, in bytes.
const KEPT_PATH: usize = 512;
/// Paths noted for a receipt, of each kind.
const NOTED_PATHS: usize = 1_000;

/// The workspace folder: opened once, shared by every call.
#[derive(Clone)]
pub(crate) struct Workspace {
    folder: Dir,
    device: u64,
}

impl Workspace {
    /// # Errors
    ///
    /// It is not there, is no folder, or shows the system's own state instead of files.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = cap::open_ambient_dir(path, cap_primitives::ambient_authority())?;
        if is_system_state(&folder)? {
            return Err(io::Error::other("it shows the system's own state and holds no files"));
        }
        let device = device(&folder)?;
        Ok(Self { folder: Dir::new(folder, FsPerms::ReadOnly, OpenMode::READ, IN_PLACE), device })
    }

    /// The folder as a call gets it, on the handle that all calls share.
    fn preopen(&self, access: Access) -> Dir {
        let mut folder = self.folder.clone();
        if access == Access::ReadWrite {
            folder.perms = FsPerms::ReadWrite;
            folder.open_mode |= OpenMode::WRITE;
        }
        folder
    }
}

/// Whether a file lies where the kernel shows itself: `/proc/self/mem` is a regular file too.
#[cfg(target_os = "linux")]
fn is_system_state(file: &fs::File) -> io::Result<bool> {
    const PROC: u32 = 0x9fa0;
    const SYSFS: u32 = 0x6265_6572;
    const DEVPTS: u32 = 0x1cd1;
    const CGROUP: u32 = 0x0027_e0eb;
    const CGROUP2: u32 = 0x6367_7270;
    const DEBUGFS: u32 = 0x6462_6720;
    const TRACEFS: u32 = 0x7472_6163;
    const SECURITYFS: u32 = 0x7363_6673;
    const BPF: u32 = 0xcafe_4a11;
    const EFIVARFS: u32 = 0xde5e_81e4;
    let kind = rustix::fs::fstatfs(file)?.f_type;
    // The magic numbers have 32 bits on every architecture, whatever the field's type.
    let kind = u32::try_from(kind & 0xffff_ffff).unwrap_or_default();
    let state = [PROC, SYSFS, DEVPTS, CGROUP, CGROUP2, DEBUGFS, TRACEFS, SECURITYFS, BPF, EFIVARFS];
    Ok(state.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
fn is_system_state(_: &fs::File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(unix)]
fn device(file: &fs::File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.dev())
}

#[cfg(not(unix))]
fn device(_: &fs::File) -> io::Result<u64> {
    Ok(0)
}

/// Guests run on threads that may block, so file operations run in place: a hop to another thread
/// for each costs more than most of them.
pub(super) const IN_PLACE: bool = true;

/// The files that one call may reach, and what it did with them.
pub(crate) struct FilesContext {
    /// What the runtime's implementation wants to have; we hand it descriptors of our own.
    pub(super) stock: WasiFilesystemCtx,
    pub(super) preopen: Option<Dir>,
    device: u64,
    /// Guest paths of open descriptors, by their index in the table; the workspace is ``.
    pub(super) paths: HashMap<u32, Arc<str>>,
    handles: usize,
    open: usize,
    pub(super) denials: Denials,
    pub(super) checks_paths: bool,
    pub(crate) read: BTreeSet<String>,
    pub(crate) written: BTreeSet<String>,
}

impl FilesContext {
    pub(crate) fn new(
        granted: Option<(Access, &Workspace)>,
        denials: Denials,
        handles: usize,
        checks_paths: bool,
    ) -> Self {
        Self {
            stock: WasiFilesystemCtx::default(),
            preopen: granted.map(|(access, workspace)| workspace.preopen(access)),
            device: granted.map_or(0, |(_, workspace)| workspace.device),
            paths: HashMap::new(),
            handles,
            open: 0,
            denials,
            checks_paths,
            read: BTreeSet::new(),
            written: BTreeSet::new(),
        }
    }

    /// The path of something below an open folder, for a record. It is as the guest typed it, and
    /// no longer than records keep: a guest can nest folders in each other without end.
    pub(super) fn path(&self, descriptor: u32, relative: &str) -> String {
        let base = self.paths.get(&descriptor).map_or("", AsRef::as_ref);
        let path = match (base, relative) {
            ("", relative) => relative.to_owned(),
            (base, "" | ".") => base.to_owned(),
            (base, relative) => format!("{base}/{relative}"),
        };
        if path.len() <= KEPT_PATH {
            return path;
        }
        format!("…{}", &path[path.ceil_char_boundary(path.len() - KEPT_PATH)..])
    }

    pub(super) fn note_read(&mut self, path: String) {
        note(&mut self.read, path);
    }

    pub(super) fn note_written(&mut self, path: String) {
        note(&mut self.written, path);
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.preopen.as_ref().is_some_and(|dir| dir.perms == FsPerms::ReadOnly)
    }

    /// Whether what was opened shows the system's own state. Only asked where something else is
    /// mounted inside the workspace.
    pub(super) fn is_system_state(&self, opened: &fs::File) -> io::Result<bool> {
        Ok(device(opened)? != self.device && is_system_state(opened)?)
    }

    pub(super) fn take_handle(&mut self) -> FsResult<()> {
        if self.open >= self.handles {
            return Err(ErrorCode::InsufficientMemory.into());
        }
        self.open += 1;
        Ok(())
    }

    pub(super) fn give_handle_back(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// A guest's libc strips the leading `/`, so `/etc/passwd` arrives as `etc/passwd`. It was
    /// meant as a path of the host where its first part is missing here and there on the host.
    /// Plugins that look at their arguments themselves never send such a path.
    pub(super) fn means_the_host(&self, descriptor: u32, path: &str) -> bool {
        if self.checks_paths {
            return false;
        }
        let path = self.path(descriptor, path);
        let Some(first) = path.split('/').find(|part| !matches!(*part, "" | ".")) else {
            return false;
        };
        let Some(workspace) = &self.preopen else { return false };
        let here = cap::stat(&workspace.dir, Path::new(first), cap::FollowSymlinks::No);
        here.is_err() && fs::symlink_metadata(Path::new("/").join(first)).is_ok()
    }
}

/// Resolving a path costs the host time for every part of it, which no fuel pays for.
pub(super) fn check_length(path: &str) -> FsResult<()> {
    if path.len() > PATH { Err(ErrorCode::NameTooLong.into()) } else { Ok(()) }
}

fn note(paths: &mut BTreeSet<String>, path: String) {
    if paths.len() < NOTED_PATHS {
        paths.insert(path);
    }
}
