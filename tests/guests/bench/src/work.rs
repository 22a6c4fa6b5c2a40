//! The work itself, which is the same in a guest and natively.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The words of a text, as all programs of the comparison answer: `{"words":3}`.
pub fn words_as_json(text: &str) -> String {
    format!("{{\"words\":{}}}", text.split_whitespace().count())
}

/// The bytes of a file.
///
/// # Errors
///
/// It cannot be read.
pub fn read_file(path: &Path) -> io::Result<usize> {
    Ok(fs::read(path)?.len())
}

/// The bytes of all files below a folder.
///
/// # Errors
///
/// One of them cannot be read.
pub fn read_all(folder: &Path) -> io::Result<usize> {
    let mut bytes = 0;
    for path in files(folder)? {
        bytes += read_file(&path)?;
    }
    Ok(bytes)
}

/// The lines with a text in all files below a folder.
///
/// # Errors
///
/// One of them cannot be read, or is no text.
pub fn grep(folder: &Path, wanted: &str) -> io::Result<usize> {
    let mut found = 0;
    for path in files(folder)? {
        found += fs::read_to_string(path)?.lines().filter(|line| line.contains(wanted)).count();
    }
    Ok(found)
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let to = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
            to.push(entry.path());
        }
    }
    Ok(files)
}
