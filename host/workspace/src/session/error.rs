//! Why a session cannot be made, read or continued.

use crate::{owner::Fault, places::PlacesError};
use std::{
    io,
    path::{Path, PathBuf},
};

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error("the session file `{}` cannot be {action}: {error}", path.display())]
    Io { action: &'static str, path: PathBuf, error: io::Error },
    #[error("`{}` is not a regular file, so it is not read as a session", path.display())]
    NotAFile { path: PathBuf },
    #[error(
        "the session file `{}` {fault}, so it is not read: {}", path.display(),
        remedy(path, fault)
    )]
    Refused { path: PathBuf, fault: Fault },
    #[error(
        "the session file `{}` is of version {version}, and this belljar reads version {known}: \
         use the newer belljar that wrote it", path.display()
    )]
    Newer { path: PathBuf, version: u64, known: u32 },
    #[error("there is no session `{id}`: {hint}")]
    Unknown { id: String, hint: String },
    #[error(
        "the session `{id}` is in use by another belljar: end that one first, or start a new session"
    )]
    Busy { id: String },
    #[error("the session `{id}` holds nothing to go on from: start a new one")]
    Empty { id: String },
}

fn remedy(path: &Path, fault: &Fault) -> String {
    match fault {
        Fault::ForeignOwner { .. } => "continue it as the user it belongs to".to_owned(),
        Fault::WritableByOthers { .. } | Fault::NotPrivate { .. } => {
            format!("if nobody else wrote to it, run `chmod 600 '{}'`", path.display())
        }
    }
}
