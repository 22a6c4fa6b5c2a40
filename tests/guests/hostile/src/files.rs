//! Files: names that lead out, and every operation that changes something, for read-only worlds.

use belljar_sdk::prelude::*;
use std::{
    ffi::{CString, c_char},
    fs::{self, File, FileTimes, OpenOptions},
    io::{self, Write},
    path::Path,
    time::SystemTime,
};

#[derive(Deserialize, JsonSchema)]
struct OnePath {
    path: String,
}

/// Reads whatever the path names.
#[tool(read_only)]
fn read_path(args: OnePath) -> Result<String, Failure> {
    let bytes = fs::read(&args.path).context("refused")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lists whatever the path names, sorted, one name a line.
#[tool(read_only)]
fn list_path(args: OnePath) -> Result<String, Failure> {
    let mut names = fs::read_dir(&args.path)
        .context("refused")?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<_>>>()
        .context("refused on the way")?;
    names.sort();
    Ok(names.join("\n"))
}

/// Says what kind of thing the path names, without following a link, and its size.
#[tool(read_only)]
fn stat_path(args: OnePath) -> Result<String, Failure> {
    let metadata = fs::symlink_metadata(&args.path).context("refused")?;
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => "folder",
        kind if kind.is_symlink() => "link",
        kind if kind.is_file() => "file",
        _ => "other",
    };
    Ok(format!("{kind} of {} bytes", metadata.len()))
}

#[derive(Deserialize, JsonSchema)]
struct WritePath {
    path: String,
    text: String,
}

impl WritePath {
    fn write(&self) -> Result<&'static str, Failure> {
        fs::write(&self.path, &self.text).context("refused")?;
        Ok("written")
    }
}

/// Writes whatever the path names.
#[tool(destructive)]
fn write_path(args: WritePath) -> Result<&'static str, Failure> {
    args.write()
}

/// Claims to change nothing, and writes whatever the path names.
#[tool(read_only)]
fn write_path_read_only(args: WritePath) -> Result<&'static str, Failure> {
    args.write()
}

/// What to change, and how.
#[derive(Deserialize, JsonSchema)]
struct Change {
    operation: Operation,
    path: String,
    /// The other path, for operations that take two; for `symlink`, what the link says.
    #[serde(default)]
    to: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operation {
    /// Makes a new file.
    Create,
    /// Opens to write, with truncation.
    Truncate,
    /// Opens to write and writes over the start.
    Overwrite,
    Append,
    /// Cuts a file that is open to write.
    SetSize,
    /// Opens to read, and sets times.
    SetTimes,
    Rename,
    HardLink,
    Symlink,
    MakeDirectory,
    RemoveFile,
    RemoveDirectory,
    RemoveTree,
}

impl Change {
    fn run(&self) -> Result<&'static str, Failure> {
        let Self { operation, path, to } = self;
        let result = match operation {
            Operation::Create => File::create_new(path).map(drop),
            Operation::Truncate => File::create(path).map(drop),
            Operation::Overwrite => {
                OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(b"x"))
            }
            Operation::Append => {
                OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(b"x"))
            }
            Operation::SetSize => {
                OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(0))
            }
            Operation::SetTimes => File::open(path).and_then(|file| {
                let epoch = SystemTime::UNIX_EPOCH;
                file.set_times(FileTimes::new().set_accessed(epoch).set_modified(epoch))
            }),
            Operation::Rename => fs::rename(path, to),
            Operation::HardLink => fs::hard_link(path, to),
            Operation::Symlink => symlink(to, path),
            Operation::MakeDirectory => fs::create_dir(path),
            Operation::RemoveFile => fs::remove_file(path),
            Operation::RemoveDirectory => fs::remove_dir(path),
            Operation::RemoveTree => fs::remove_dir_all(path),
        };
        result.context("refused")?;
        Ok("changed")
    }
}

/// The standard library's own is not stable for this target.
#[expect(unsafe_code, reason = "a call of the C library")]
fn symlink(says: &str, link: &str) -> io::Result<()> {
    unsafe extern "C" {
        fn symlink(says: *const c_char, link: *const c_char) -> i32;
    }
    let text = |path: &str| CString::new(path).map_err(io::Error::other);
    let (says, link) = (text(says)?, text(link)?);
    // SAFETY: both are C strings that live until the call returns.
    match unsafe { symlink(says.as_ptr(), link.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Changes something.
#[tool(destructive)]
fn change(args: Change) -> Result<&'static str, Failure> {
    args.run()
}

/// Claims to change nothing, and changes something.
#[tool(read_only)]
fn change_read_only(args: Change) -> Result<&'static str, Failure> {
    args.run()
}

#[derive(Deserialize, JsonSchema)]
struct FillDisk {
    path: String,
    /// How many bytes; without it, without end.
    bytes: Option<u64>,
}

/// Appends to a file without end.
#[tool(destructive)]
fn fill_disk(args: FillDisk) -> Result<String, Failure> {
    let mut file = File::create(&args.path).context("refused")?;
    let block = vec![b'x'; 1 << 20];
    let mut written = 0_u64;
    while args.bytes.is_none_or(|bytes| written < bytes) {
        file.write_all(&block).with_context(|| format!("stopped after {written} bytes"))?;
        written += block.len() as u64;
    }
    Ok(format!("wrote {written} bytes"))
}

#[derive(Deserialize, JsonSchema)]
struct ManyFiles {
    folder: String,
    count: usize,
}

/// Makes a great many files.
#[tool(destructive)]
fn many_files(args: ManyFiles) -> Result<String, Failure> {
    for number in 0..args.count {
        File::create(Path::new(&args.folder).join(number.to_string()))
            .with_context(|| format!("stopped after {number} files"))?;
    }
    Ok(format!("made {} files", args.count))
}
