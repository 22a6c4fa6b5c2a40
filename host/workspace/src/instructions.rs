//! Instruction files: `AGENTS.md` from the repository's root down to the workspace.
//!
//! Never above the root, never through a link, never a file of another user. What they say is the
//! workspace's word: it goes to the model and grants nothing.

use crate::{
    owner::Ownership,
    repository::Workspace,
    text_file::{self, Text},
};
use belljar_types::Origin;
use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};
use std::path::Path;

const NAME: &str = "AGENTS.md";
/// What one file may add to every request, in bytes.
const MAX_FILE: usize = 32 << 10;
/// What all of them together may.
const MAX_ALL: usize = 128 << 10;

/// The files that were found, from the outermost to the workspace's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    pub files: Vec<InstructionFile>,
    /// What a person should know: files that were not read and why.
    pub notices: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// From the repository's root, or from the workspace where there is none, with `/`.
    pub path: String,
    pub text: String,
    /// Bytes at the file's end that are not in `text`.
    pub left_out: u64,
}

impl InstructionFile {
    /// Where its text comes from.
    pub fn origin(&self) -> Origin {
        Origin::Workspace { path: self.path.clone() }
    }
}

impl Instructions {
    /// Reads the files as they are now. One that cannot be read becomes a notice: a run does not
    /// fail over it.
    pub fn read(workspace: &Workspace) -> Self {
        let mut found = Self::default();
        let folders = workspace.folders_down();
        let Some(top) = folders.first() else { return found };
        let mut room = MAX_ALL;
        let mut dir = match Dir::open_ambient_dir(top, ambient_authority()) {
            Ok(dir) => dir,
            Err(error) => {
                found.notices.push(format!("no `{NAME}` was read: {error}"));
                return found;
            }
        };
        for folder in &folders {
            let relative = folder.strip_prefix(top).unwrap_or(Path::new(""));
            if let (false, Some(name)) = (relative.as_os_str().is_empty(), folder.file_name()) {
                dir = match dir.open_dir_nofollow(name) {
                    Ok(dir) => dir,
                    Err(error) => {
                        let path = slashed(relative);
                        found.notices.push(format!("no `{NAME}` was read in `{path}`: {error}"));
                        break;
                    }
                };
            }
            let path = slashed(&relative.join(NAME));
            match read_file(&dir, room) {
                Ok(None) => {}
                Ok(Some(Text { text, left_out })) => {
                    if left_out > 0 {
                        found.notices.push(format!(
                            "the last {left_out} bytes of `{path}` are left out: make it shorter \
                             than {MAX_FILE} bytes, and all of them than {MAX_ALL}"
                        ));
                    }
                    room -= text.len();
                    if !text.trim().is_empty() || left_out > 0 {
                        found.files.push(InstructionFile { path, text, left_out });
                    }
                }
                Err(reason) => found.notices.push(format!("`{path}` is not read: {reason}")),
            }
        }
        found
    }
}

fn read_file(dir: &Dir, room: usize) -> Result<Option<Text>, String> {
    match text_file::open(dir, NAME, Ownership::own)? {
        Some(file) => text_file::read(file, MAX_FILE.min(room)).map(Some),
        None => Ok(None),
    }
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    /// A repository with folders `a/b`, inside a folder that is not its own.
    fn repository() -> (tempfile::TempDir, PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("repository");
        for folder in [".git/objects", ".git/refs", "a/b"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        (guard, root)
    }

    fn file(path: &str, text: &str) -> InstructionFile {
        InstructionFile { path: path.to_owned(), text: text.to_owned(), left_out: 0 }
    }

    #[test]
    fn files_are_read_from_the_root_down_and_never_above_it() {
        let (_guard, root) = repository();
        fs::write(root.join("../AGENTS.md"), "above").unwrap();
        fs::write(root.join("AGENTS.md"), "top").unwrap();
        fs::write(root.join("a/AGENTS.md"), "  \n").unwrap();
        fs::write(root.join("a/b/AGENTS.md"), "bottom").unwrap();
        fs::create_dir(root.join("a/b/below")).unwrap();
        fs::write(root.join("a/b/below/AGENTS.md"), "below").unwrap();
        let read = Instructions::read(&Workspace::open(&root.join("a/b")).unwrap());
        let files = vec![file("AGENTS.md", "top"), file("a/b/AGENTS.md", "bottom")];
        assert_eq!(read, Instructions { files, notices: Vec::new() });
        assert_eq!(read.files[1].origin(), Origin::Workspace { path: "a/b/AGENTS.md".to_owned() });

        fs::remove_dir_all(root.join(".git")).unwrap();
        let read = Instructions::read(&Workspace::open(&root.join("a/b")).unwrap());
        let files = vec![file("AGENTS.md", "bottom")];
        assert_eq!(read, Instructions { files, notices: Vec::new() });
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_folders_and_binary_files_are_not_read_and_named() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let (_guard, root) = repository();
        fs::write(root.join("../secret"), "secret").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("AGENTS.md")).unwrap();
        mknodat(CWD, root.join("a/AGENTS.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        fs::write(root.join("a/b/AGENTS.md"), b"\xff\xfe").unwrap();
        fs::create_dir_all(root.join("a/b/c/AGENTS.md")).unwrap();
        let read = Instructions::read(&Workspace::open(&root.join("a/b/c")).unwrap());
        let notices = [
            "`AGENTS.md` is not read: it is a link, and links are not followed: put the text into \
             the file itself",
            "`a/AGENTS.md` is not read: it is not a regular file",
            "`a/b/AGENTS.md` is not read: it is not UTF-8 text",
            "`a/b/c/AGENTS.md` is not read: it is not a regular file",
        ];
        let notices = notices.map(str::to_owned).to_vec();
        assert_eq!(read, Instructions { files: Vec::new(), notices });
    }

    /// Only the administrator can make a file that is somebody else's.
    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_is_not_read() {
        let (_guard, root) = repository();
        let path = root.join("AGENTS.md");
        fs::write(&path, "obey").unwrap();
        if std::os::unix::fs::chown(&path, Some(4321), None).is_err() {
            return;
        }
        let read = Instructions::read(&Workspace::open(&root).unwrap());
        let user = rustix::process::geteuid().as_raw();
        let notice =
            format!("`AGENTS.md` is not read: it belongs to user 4321, and you are user {user}");
        assert_eq!(read, Instructions { files: Vec::new(), notices: vec![notice] });
    }

    #[test]
    fn a_long_file_is_cut_between_characters_and_all_together_are_bounded() {
        let (_guard, root) = repository();
        // One byte, then characters of two: the limit falls into one.
        let long = format!("x{}", "é".repeat(MAX_FILE / 2));
        fs::write(root.join("AGENTS.md"), &long).unwrap();
        let read = Instructions::read(&Workspace::open(&root).unwrap());
        let notice = format!(
            "the last 2 bytes of `AGENTS.md` are left out: make it shorter than {MAX_FILE} bytes, \
             and all of them than {MAX_ALL}"
        );
        let cut = file("AGENTS.md", &long[..MAX_FILE - 1]);
        let files = vec![InstructionFile { left_out: 2, ..cut }];
        assert_eq!(read, Instructions { files, notices: vec![notice] });

        let mut folder = root.clone();
        for _ in 0..6 {
            fs::write(folder.join("AGENTS.md"), "y".repeat(MAX_FILE)).unwrap();
            folder.push("deeper");
            fs::create_dir(&folder).unwrap();
        }
        let read = Instructions::read(&Workspace::open(&folder).unwrap());
        let bytes: usize = read.files.iter().map(|file| file.text.len()).sum();
        assert_eq!((bytes, read.files.len(), read.notices.len()), (MAX_ALL, 6, 2));
    }
}
