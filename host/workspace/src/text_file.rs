//! Opening a file that somebody else may have put there: never through a link, only a regular
//! file, only after its owner was looked at, and without ever waiting for one (a pipe in the place
//! of the file cannot make the run wait).
//!
//! The reasons are sentences about "it", for a caller who names the file.

use crate::owner::{Fault, Ownership};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Read};

/// What a file begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Bytes behind it that were not read.
    pub(crate) left_out: u64,
}

/// Opens a file for reading; nothing where there is none.
pub(crate) fn open(
    dir: &Dir,
    name: &str,
    owner: impl FnOnce(Ownership) -> Result<(), Fault>,
) -> Result<Option<File>, String> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    let file = match dir.open_with(name, &options) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let is_link = dir.symlink_metadata(name).is_ok_and(|metadata| metadata.is_symlink());
            return Err(if is_link {
                "it is a link, and links are not followed: put the text into the file itself"
                    .to_owned()
            } else {
                error.to_string()
            });
        }
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    owner(Ownership::from(&metadata)).map_err(|fault| format!("it {fault}"))?;
    Ok(Some(file))
}

/// Reads at most `limit` bytes of an open file, and ends between two characters.
pub(crate) fn read(file: File, limit: usize) -> Result<Text, String> {
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let cut = bytes.len() > limit;
    bytes.truncate(limit);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // A character that the limit fell into.
        Err(error) if cut && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).map_err(|error| error.to_string())?
        }
        Err(_) => return Err("it is not UTF-8 text".to_owned()),
    };
    // A file may be longer than it says.
    let left_out = if cut { size.saturating_sub(text.len() as u64).max(1) } else { 0 };
    Ok(Text { text, left_out })
}

/// Reads a whole file; one that is longer than `limit` bytes is refused.
pub(crate) fn read_whole(file: File, limit: usize) -> Result<String, String> {
    match read(file, limit)? {
        Text { text, left_out: 0 } => Ok(text),
        Text { .. } => Err(format!("it is longer than {limit} bytes")),
    }
}
