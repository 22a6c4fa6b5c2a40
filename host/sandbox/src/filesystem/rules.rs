//! What a call may do at a place: the verdicts, and the words for those that are refusals.

use super::{
    context::FilesContext,
    mounts::{Mount, Place},
};
use belljar_capability::{
    Access, FolderGrant, GrantPart, GrantSpec, begins_protected, is_protected,
};
use std::io;
use wasmtime::component::ResourceTableError;
use wasmtime_wasi::p2::{FsError, bindings::filesystem::types::ErrorCode};

/// Why an operation did not happen.
#[derive(Debug)]
pub(super) enum Fault {
    /// The system or the runtime says so.
    System(FsError),
    /// We say so.
    Refused(Box<Refusal>),
}

pub(super) type Guarded<T> = Result<T, Fault>;

/// A refusal of ours: what the guest is told, and what is kept for people.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: ErrorCode,
    pub(super) operation: &'static str,
    /// A guest path.
    pub(super) target: String,
    pub(super) reason: String,
    pub(super) grant: Option<String>,
}

impl Refusal {
    /// One that no grant would help against.
    pub(super) fn fault(
        code: ErrorCode,
        operation: &'static str,
        target: String,
        reason: impl Into<String>,
    ) -> Fault {
        let reason = reason.into();
        Fault::Refused(Box::new(Self { code, operation, target, reason, grant: None }))
    }
}

impl Fault {
    /// Whether the system says exactly this.
    pub(super) fn is(&self, code: ErrorCode) -> bool {
        matches!(self, Self::System(error) if error.downcast_ref() == Some(&code))
    }
}

impl From<FsError> for Fault {
    fn from(error: FsError) -> Self {
        Self::System(error)
    }
}

impl From<ErrorCode> for Fault {
    fn from(code: ErrorCode) -> Self {
        Self::System(code.into())
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::System(error.into())
    }
}

impl From<ResourceTableError> for Fault {
    fn from(error: ResourceTableError) -> Self {
        Self::System(error.into())
    }
}

pub(super) const ONLY_READ: &str = "this call may only read";
pub(super) const NO_FILE: &str = "only regular files and folders of a disk can be opened";
const OWN: &str = "it belongs to Belljar itself, which no plugin sees";
const PROTECTED: &str = "it is protected, since other programs obey what stands there: writing it \
                         needs the user's own yes to exactly this path";
const FIXED: &str =
    "a folder with rights of its own lies here or below, so this name stays as it is";

/// The verdicts. Each names the place in what it refuses.
impl FilesContext {
    /// How far a place is open to this call.
    pub(super) fn access(&self, place: &Place) -> Access {
        self.narrowed(self.mounts.get(place.mount).access)
    }

    /// Whether what lies at a place is there for this call at all.
    pub(super) fn may_see(&self, place: &Place, operation: &'static str) -> Guarded<()> {
        if place.own {
            let target = self.mounts.shown(place);
            return Err(Refusal::fault(ErrorCode::NoEntry, operation, target, OWN));
        }
        if let Some(glob) = self.mounts.closed_by(place) {
            let reason = format!("the deny glob `{glob}` closes it");
            let target = self.mounts.shown(place);
            return Err(Refusal::fault(ErrorCode::NotPermitted, operation, target, reason));
        }
        Ok(())
    }

    /// Whether what lies at a place may be changed.
    pub(super) fn may_write(&self, place: &Place) -> Guarded<()> {
        self.may_see(place, "write")?;
        if self.access(place) == Access::Read {
            return Err(self.read_only(place.mount, self.mounts.shown(place)));
        }
        let mut paths = self.mounts.guest_paths(place);
        if paths.any(|path| is_protected(&path)) {
            return self.needs_approval(place);
        }
        Ok(())
    }

    /// Whether a new name may come to be at a place. A folder may where only a folder can lie: on
    /// the way to one of ours that is not there yet.
    pub(super) fn may_create(&self, place: &Place, what: New) -> Guarded<()> {
        if place.own {
            let target = self.mounts.shown(place);
            return Err(Refusal::fault(ErrorCode::NotPermitted, "create", target, OWN));
        }
        self.may_write(place)?;
        if what == New::Folder {
            return Ok(());
        }
        if place.fixed {
            let target = self.mounts.shown(place);
            return Err(Refusal::fault(ErrorCode::NotPermitted, "create", target, FIXED));
        }
        if what == New::Link && self.mounts.guest_paths(place).any(|path| begins_protected(&path)) {
            return self.needs_approval(place);
        }
        Ok(())
    }

    /// Whether a name may go from a place, or be replaced there.
    pub(super) fn may_remove(&self, place: &Place) -> Guarded<()> {
        self.may_write(place)?;
        if place.fixed {
            let target = self.mounts.shown(place);
            return Err(Refusal::fault(ErrorCode::NotPermitted, "write", target, FIXED));
        }
        Ok(())
    }

    /// Whether a name may be moved from one place to another. What lies below it moves along, so
    /// nothing below may have rights that hang on the name.
    pub(super) fn may_rename(&self, from: &Place, to: &Place) -> Guarded<()> {
        self.may_remove(from)?;
        if to.own {
            let target = self.mounts.shown(to);
            return Err(Refusal::fault(ErrorCode::NotPermitted, "write", target, OWN));
        }
        self.may_remove(to)?;
        self.have_same_rights(from, to)?;
        for place in [from, to] {
            if let Some(glob) = self.mounts.glob_begun_by(place) {
                let reason = format!(
                    "the deny glob `{glob}` begins with this name, and would close other files \
                     after a move"
                );
                let target = self.mounts.shown(place);
                return Err(Refusal::fault(ErrorCode::NotPermitted, "write", target, reason));
            }
            if self.mounts.guest_paths(place).any(|path| begins_protected(&path)) {
                self.needs_approval(place)?;
            }
        }
        Ok(())
    }

    /// Whether a file may get a second name. What is protected would be written through it.
    pub(super) fn may_link(&self, from: &Place, to: &Place) -> Guarded<()> {
        self.may_write(from)?;
        self.may_create(to, New::Link)?;
        self.have_same_rights(from, to)
    }

    fn have_same_rights(&self, from: &Place, to: &Place) -> Guarded<()> {
        // Two folders have globs of their own, matched from their own roots.
        if from.mount == to.mount || self.access(from) == self.access(to) && !self.mounts.denies() {
            return Ok(());
        }
        let target = format!("{} → {}", self.mounts.shown(from), self.mounts.shown(to));
        let reason = "the two places have different rights; copy it instead";
        Err(Refusal::fault(ErrorCode::CrossDevice, "write", target, reason))
    }

    /// A yes of a person holds for exactly the path that they were shown.
    pub(super) fn needs_approval(&self, place: &Place) -> Guarded<()> {
        let is_approved = |path: String| self.approved.iter().any(|yes| yes.as_str() == path);
        if self.mounts.guest_paths(place).any(is_approved) {
            return Ok(());
        }
        let target = self.mounts.shown(place);
        Err(Refusal::fault(ErrorCode::NotPermitted, "write", target, PROTECTED))
    }

    /// Writing where only reading is granted, and what would grant it.
    pub(super) fn read_only(&self, mount: usize, target: String) -> Fault {
        let granted = self.mounts.get(mount).access;
        let refusal = |reason: &str, grant| Refusal {
            code: ErrorCode::NotPermitted,
            operation: "write",
            target,
            reason: reason.to_owned(),
            grant,
        };
        let refusal = if granted == Access::ReadWrite {
            refusal(ONLY_READ, None)
        } else {
            let Mount { host, guest, .. } = self.mounts.get(mount);
            let folder =
                FolderGrant { host: host.display().to_string(), guest: Some(guest.clone()) };
            let part = GrantPart::Write(folder);
            let grant = GrantSpec { plugin: self.plugin.to_string(), part };
            refusal("its folder is granted for reading only", Some(grant.to_string()))
        };
        Fault::Refused(Box::new(refusal))
    }
}

/// What comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum New {
    File,
    Folder,
    /// A symbolic link or another name of a file: it leads elsewhere.
    Link,
}
