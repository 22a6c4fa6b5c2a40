//! What one call's files are, and what it did with them.

use super::{
    mounts::Mounts,
    place,
    quota::Quota,
    rules::{Fault, Guarded, ONLY_READ, Refusal},
    temporary::{Scratch, Temporary},
};
use crate::{limits::size, state::Denials};
use belljar_capability::{Access, GuestPath, Limits, World};
use cap_primitives::fs as cap;
use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::Path,
    sync::Arc,
};
use wasmtime_wasi::{
    filesystem::WasiFilesystemCtx,
    p2::{FsError, FsResult, bindings::filesystem::types::ErrorCode},
};

/// The longest path that a guest may name, in bytes: Linux's own limit.
const PATH: usize = 4_096;
/// The longest path kept for a record, in bytes.
const KEPT_PATH: usize = 512;
/// Paths noted for a receipt, of each kind.
const NOTED_PATHS: usize = 1_000;

/// What a call's files are made of.
pub(crate) struct FilesSetup<'a> {
    pub(crate) mounts: Arc<Mounts>,
    pub(crate) world: &'a World,
    /// Where the call's temporary folder is made, if it gets one.
    pub(crate) scratch: Option<Arc<Scratch>>,
    pub(crate) limits: &'a Limits,
    pub(crate) plugin: Arc<str>,
    pub(crate) denials: Denials,
    /// The plugin looks at the paths in its arguments itself and refuses those that leave.
    pub(crate) checks_paths: bool,
}

/// Which folder a descriptor came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Mount(usize),
    Temporary,
}

/// What is known of an open descriptor.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) door: Door,
    /// The granted folder whose rights it was opened with; nothing in the temporary one.
    pub(super) mount: Option<usize>,
    /// It is the folder itself, and not one below.
    pub(super) is_root: bool,
    /// The guest path that it was opened by, for the record.
    pub(super) path: Arc<str>,
}

/// The files that one call may reach, and what it did with them.
pub(crate) struct FilesContext {
    /// What the runtime's implementation wants to have; we hand it descriptors of our own.
    pub(super) stock: WasiFilesystemCtx,
    pub(super) mounts: Arc<Mounts>,
    read_only: bool,
    /// Protected paths that a person said yes to.
    pub(super) approved: Vec<GuestPath>,
    pub(super) plugin: Arc<str>,
    pub(super) temporary: Temporary,
    /// By their index in the table.
    pub(super) held: HashMap<u32, Held>,
    handles: usize,
    open: usize,
    pub(super) quota: Arc<Quota>,
    pub(super) denials: Denials,
    checks_paths: bool,
    pub(crate) read: BTreeSet<String>,
    pub(crate) written: BTreeSet<String>,
    /// Names that were left out of listings because a glob closes them.
    pub(crate) left_out: u64,
}

/// What an operation means to do, for the record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Read,
    Write,
}

impl Intent {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl FilesContext {
    pub(crate) fn new(setup: FilesSetup<'_>) -> Self {
        let FilesSetup { mounts, world, scratch, limits, plugin, denials, checks_paths } = setup;
        Self {
            stock: WasiFilesystemCtx::default(),
            mounts,
            read_only: world.read_only,
            approved: world.approved.protected.clone(),
            plugin,
            temporary: scratch.map_or(Temporary::None, Temporary::Offered),
            held: HashMap::new(),
            handles: size(limits.open_files),
            open: 0,
            quota: Arc::new(Quota::new(limits)),
            denials,
            checks_paths,
            read: BTreeSet::new(),
            written: BTreeSet::new(),
            left_out: 0,
        }
    }

    pub(super) fn narrowed(&self, access: Access) -> Access {
        if self.read_only { Access::Read } else { access }
    }

    /// What is known of a descriptor. All that is open is known.
    pub(super) fn held(&self, descriptor: u32) -> FsResult<&Held> {
        let unknown = || FsError::from(ErrorCode::BadDescriptor);
        self.held.get(&descriptor).ok_or_else(unknown)
    }

    /// Whether anything behind a descriptor may be written, wherever it lies.
    pub(super) fn has_writable(&self, door: Door) -> bool {
        match door {
            Door::Temporary => true,
            Door::Mount(mount) => !self.read_only && self.mounts.has_writable(mount),
        }
    }

    /// The path of something below an open folder, for a record. It is as the guest typed it, and
    /// no longer than records keep: a guest can nest folders in each other without end.
    pub(super) fn path(&self, descriptor: u32, relative: &str) -> String {
        let base = self.held.get(&descriptor).map_or("", |held| &held.path);
        let relative = if relative == "." { "" } else { relative };
        kept(place::join(base, relative))
    }

    pub(super) fn note_read(&mut self, path: String) {
        note(&mut self.read, kept(path));
    }

    pub(super) fn note_written(&mut self, path: String) {
        note(&mut self.written, kept(path));
    }

    /// Notes what was refused, and says it in the guest's terms.
    pub(super) fn settle<T>(
        &self,
        intent: Intent,
        descriptor: u32,
        path: &str,
        result: Guarded<T>,
    ) -> FsResult<T> {
        result.map_err(|fault| match fault {
            Fault::Refused(refusal) => self.refuse(*refusal),
            Fault::System(error) => {
                self.note_system_refusal(intent, descriptor, path, &error);
                error
            }
        })
    }

    pub(super) fn refuse(&self, refusal: Refusal) -> FsError {
        let Refusal { code, operation, target, reason, grant } = refusal;
        self.denials.note_with_grant(operation, &kept(target), &reason, grant);
        code.into()
    }

    /// The system's own refusals say little; some of them are attempts to leave.
    fn note_system_refusal(&self, intent: Intent, descriptor: u32, path: &str, error: &FsError) {
        let reason = match (error.downcast_ref(), intent) {
            (Some(ErrorCode::NotPermitted), Intent::Write) if self.read_only => ONLY_READ,
            (Some(ErrorCode::NotPermitted), _) => {
                "it leads out of the workspace, or the system protects it"
            }
            (Some(ErrorCode::NoEntry), _) if self.means_the_host(descriptor, path) => {
                "it is not in the workspace, and nothing outside it can be reached"
            }
            _ => return,
        };
        self.denials.note(intent.name(), &self.path(descriptor, path), reason);
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
    fn means_the_host(&self, descriptor: u32, path: &str) -> bool {
        if self.checks_paths {
            return false;
        }
        let path = self.path(descriptor, path);
        let Some(first) = path.split('/').find(|part| !matches!(*part, "" | ".")) else {
            return false;
        };
        let root = self.mounts.list().iter().find(|mount| mount.guest.is_root());
        let Some(root) = root else { return false };
        let here = cap::stat(root.root(), Path::new(first), cap::FollowSymlinks::No);
        here.is_err() && fs::symlink_metadata(Path::new("/").join(first)).is_ok()
    }
}

/// Resolving a path costs the host time for every part of it, which no fuel pays for.
pub(super) fn check_length(path: &str) -> FsResult<()> {
    if path.len() > PATH { Err(ErrorCode::NameTooLong.into()) } else { Ok(()) }
}

fn kept(path: String) -> String {
    if path.len() <= KEPT_PATH {
        return path;
    }
    format!("…{}", &path[path.ceil_char_boundary(path.len() - KEPT_PATH)..])
}

fn note(paths: &mut BTreeSet<String>, path: String) {
    if paths.len() < NOTED_PATHS {
        paths.insert(path);
    }
}
