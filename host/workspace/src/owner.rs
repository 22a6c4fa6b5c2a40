//! Who owns a file and who else may touch it.
//!
//! Only ever looks at metadata of a handle that is already open, so that what was checked is what
//! is read. Where files have no such owners (Windows), the account's own folders are all there is
//! to rely on, and nothing is refused here.

use std::fmt;

/// Owner and permission bits of an open file or folder; nothing where the platform has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ownership(Option<(u32, u32)>);

impl From<&std::fs::Metadata> for Ownership {
    #[cfg(unix)]
    fn from(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(Some((metadata.uid(), metadata.mode() & 0o7777)))
    }

    #[cfg(not(unix))]
    fn from(_: &std::fs::Metadata) -> Self {
        Self(None)
    }
}

impl From<&cap_std::fs::Metadata> for Ownership {
    #[cfg(unix)]
    fn from(metadata: &cap_std::fs::Metadata) -> Self {
        use cap_std::fs::MetadataExt;
        Self(Some((metadata.uid(), metadata.mode() & 0o7777)))
    }

    #[cfg(not(unix))]
    fn from(_: &cap_std::fs::Metadata) -> Self {
        Self(None)
    }
}

/// Why a file or folder is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It belongs to another user.
    ForeignOwner { owner: u32, user: u32 },
    /// Others may write to it.
    WritableByOthers { mode: u32 },
    /// Others may read or write it, and it must be private.
    NotPrivate { mode: u32 },
}

/// Continues a sentence that began with what is refused: "`PATH` …".
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignOwner { owner, user } => {
                write!(f, "belongs to user {owner}, and you are user {user}")
            }
            Self::WritableByOthers { mode } => {
                write!(f, "can be written by others (mode {mode:04o})")
            }
            Self::NotPrivate { mode } => {
                write!(f, "can be read or written by others (mode {mode:04o})")
            }
        }
    }
}

impl Ownership {
    /// Must belong to this user.
    pub(crate) fn own(self) -> Result<(), Fault> {
        let (Some((owner, _)), Some(user)) = (self.0, current_user()) else { return Ok(()) };
        if owner == user { Ok(()) } else { Err(Fault::ForeignOwner { owner, user }) }
    }

    /// Must belong to this user, and nobody else may write to it.
    pub(crate) fn guarded(self) -> Result<(), Fault> {
        self.own()?;
        self.not_writable_by_others()
    }

    /// Must belong to this user or to the administrator, who may change anything anyway, and
    /// nobody else may write to it.
    pub(crate) fn guarded_or_administrators(self) -> Result<(), Fault> {
        if !matches!(self.0, Some((0, _))) {
            self.own()?;
        }
        self.not_writable_by_others()
    }

    /// Must belong to this user, and nobody else may read or write it.
    pub(crate) fn private(self) -> Result<(), Fault> {
        self.own()?;
        match self.0 {
            Some((_, mode)) if mode & 0o077 != 0 => Err(Fault::NotPrivate { mode }),
            _ => Ok(()),
        }
    }

    fn not_writable_by_others(self) -> Result<(), Fault> {
        match self.0 {
            Some((_, mode)) if mode & 0o022 != 0 => Err(Fault::WritableByOthers { mode }),
            _ => Ok(()),
        }
    }
}

#[cfg(unix)]
fn current_user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn current_user() -> Option<u32> {
    None
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn ownership_is_judged_by_owner_and_mode() {
        let user = current_user().unwrap();
        let other = user + 1;
        let foreign = Err(Fault::ForeignOwner { owner: other, user });
        let cases = [
            ((user, 0o600), Ok(()), Ok(())),
            ((user, 0o644), Ok(()), Err(Fault::NotPrivate { mode: 0o644 })),
            (
                (user, 0o620),
                Err(Fault::WritableByOthers { mode: 0o620 }),
                Err(Fault::NotPrivate { mode: 0o620 }),
            ),
            (
                (user, 0o602),
                Err(Fault::WritableByOthers { mode: 0o602 }),
                Err(Fault::NotPrivate { mode: 0o602 }),
            ),
            ((other, 0o600), foreign, foreign),
        ];
        for (values, guarded, private) in cases {
            let ownership = Ownership(Some(values));
            assert_eq!((ownership.guarded(), ownership.private()), (guarded, private));
        }
        assert_eq!(Ownership(Some((0, 0o444))).guarded_or_administrators(), Ok(()));
        assert_eq!(Ownership(Some((other, 0o444))).guarded_or_administrators(), foreign);
    }
}
