//! `delete_path`: a file, a link, or a folder. It never follows a link, and never deletes the
//! workspace.

use belljar_sdk::prelude::*;
use belljar_workspace_path::{Workspace, WorkspacePath, count, number};
use std::{fs, io};

/// How far the entries of a folder that is not deleted are counted.
const COUNTED: u64 = 10_000;

#[arguments]
pub(crate) struct DeletePath {
    /// The file or folder to delete, relative to the workspace.
    path: String,
    /// Whether to delete a folder with all that is in it.
    #[serde(default)]
    recursive: bool,
}

/// Deletes a file, a link (not what it leads to) or an empty folder; with `recursive` a folder and
/// all that is in it. It cannot be undone. Returns how much was deleted.
#[tool(destructive, title = "Delete")]
pub(crate) fn delete_path(arguments: DeletePath) -> Result<Output, Failure> {
    delete(&Workspace::of_this_call(), &arguments)
}

fn delete(workspace: &Workspace, arguments: &DeletePath) -> Result<Output, Failure> {
    let path = workspace.path(&arguments.path)?;
    if path.is_workspace() {
        return Err(Failure::denied(format!(
            "`{path}` is the workspace itself, which is never deleted: name what is in it"
        )));
    }
    if !path.ends_with_a_name() {
        return Err(Failure::invalid_arguments(format!(
            "`{path}` does not end in a name: name the file or folder to delete itself"
        )));
    }
    let failed = |error| path.explain("delete", error);
    let metadata = path.place().symlink_metadata().map_err(failed)?;
    if !metadata.is_dir() {
        fs::remove_file(path.place()).map_err(failed)?;
        let what = if metadata.is_symlink() { "the link" } else { "the file" };
        return Ok(Output::text(format!("deleted {what} `{path}`")));
    }
    if arguments.recursive {
        return delete_all(&path);
    }
    let entries = entries(&path);
    if entries > 0 {
        let more = if entries == COUNTED { " or more" } else { "" };
        return Err(Failure::failed(format!(
            "`{path}` is a folder with {}{more} in it: set `recursive` to delete it with all of \
             them",
            count(entries, "entry")
        )));
    }
    fs::remove_dir(path.place()).map_err(failed)?;
    Ok(Output::text(format!("deleted the empty folder `{path}`")))
}

/// How many files and folders are below, as far as they are counted.
fn entries(path: &WorkspacePath) -> u64 {
    let mut folders = vec![path.clone()];
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        // What may not be read is counted by its folder.
        for entry in fs::read_dir(folder.place()).into_iter().flatten().flatten() {
            entries += 1;
            if entries == COUNTED {
                return entries;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(folder.entry(&entry.file_name().to_string_lossy()));
            }
        }
    }
    entries
}

/// Deletes a folder and all that is in it. A list in place of recursion: a guest's stack is small
/// and folders may be deep.
fn delete_all(path: &WorkspacePath) -> Result<Output, Failure> {
    let mut deleted = Deleted::default();
    let mut waiting = vec![path.clone()];
    let mut emptied = Vec::new();
    while let Some(folder) = waiting.pop() {
        let listing = fs::read_dir(folder.place())
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(|error| deleted.stopped(&folder, "list", error))?;
        for entry in listing {
            let below = folder.entry(&entry.file_name().to_string_lossy());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(below);
            } else {
                fs::remove_file(below.place())
                    .map_err(|error| deleted.stopped(&below, "delete", error))?;
                deleted.files += 1;
            }
        }
        emptied.push(folder);
    }
    // A folder comes after the one that holds it.
    for folder in emptied.iter().rev() {
        fs::remove_dir(folder.place()).map_err(|error| deleted.stopped(folder, "delete", error))?;
        deleted.folders += 1;
    }
    Ok(Output::text(format!("deleted `{path}`: {}", deleted.counts())))
}

#[derive(Default)]
struct Deleted {
    files: u64,
    folders: u64,
}

impl Deleted {
    fn counts(&self) -> String {
        format!("{}, {}", count(self.files, "file"), count(self.folders, "folder"))
    }

    fn stopped(&self, at: &WorkspacePath, doing: &str, error: io::Error) -> Failure {
        let before = match self.files + self.folders {
            0 => "nothing was deleted before".to_owned(),
            deleted => format!("{} of what was asked for were deleted before", number(deleted)),
        };
        match at.explain(doing, error) {
            Failure::Denied(text) => Failure::denied(format!("{text}; {before}")),
            failure => Failure::failed(format!("{failure}; {before}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};

    fn folder() -> Folder {
        let folder = Folder::with(&[("a", b"a"), ("dir/x/y", b"i"), ("dir/z", b"z")]);
        fs::create_dir(folder.place("empty")).unwrap();
        folder
    }

    #[test]
    fn files_and_folders_are_deleted() {
        for (path, recursive, text, paths) in [
            ("a", false, "deleted the file `a`", "dir/ dir/x/ dir/x/y dir/z empty/"),
            ("./a", true, "deleted the file `a`", "dir/ dir/x/ dir/x/y dir/z empty/"),
            ("empty/", false, "deleted the empty folder `empty`", "a dir/ dir/x/ dir/x/y dir/z"),
            ("dir", true, "deleted `dir`: 2 files, 2 folders", "a empty/"),
            ("dir/x/../z", false, "deleted the file `dir/x/../z`", "a dir/ dir/x/ dir/x/y empty/"),
        ] {
            let folder = folder();
            let call = json!({"path": path, "recursive": recursive});
            assert_eq!(delete(&folder.workspace, &arguments(call)), Ok(texts(&[text])));
            assert_eq!(folder.paths().join(" "), paths);
        }
    }

    #[test]
    fn what_was_not_meant_is_refused() {
        for (path, failure) in [
            (
                "dir",
                Failure::failed(
                    "`dir` is a folder with 3 entries in it: set `recursive` to delete it with all \
                     of them",
                ),
            ),
            (
                ".",
                Failure::denied(
                    "`.` is the workspace itself, which is never deleted: name what is in it",
                ),
            ),
            (
                "dir/..",
                Failure::denied(
                    "`dir/..` is the workspace itself, which is never deleted: name what is in it",
                ),
            ),
            (
                "dir/x/..",
                Failure::invalid_arguments(
                    "`dir/x/..` does not end in a name: name the file or folder to delete itself",
                ),
            ),
            ("aa", Failure::failed("`aa` does not exist; did you mean `a`?")),
            (
                "../a",
                Failure::denied(
                    "`../a` climbs out of the workspace: all paths are relative to the workspace, \
                     and nothing outside it can be reached; write `a`",
                ),
            ),
        ] {
            let folder = folder();
            let before = folder.paths();
            assert_eq!(delete(&folder.workspace, &arguments(json!({"path": path}))), Err(failure));
            assert_eq!(folder.paths(), before);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_deleted_and_never_followed() {
        let folder = Folder::with(&[("kept/file", b"x"), ("dir/file", b"x")]);
        std::os::unix::fs::symlink("../kept", folder.place("dir/link")).unwrap();
        std::os::unix::fs::symlink("kept", folder.place("link")).unwrap();
        let call = json!({"path": "dir", "recursive": true});
        let output = delete(&folder.workspace, &arguments(call));
        assert_eq!(output, Ok(texts(&["deleted `dir`: 2 files, 1 folder"])));
        let call = json!({"path": "link", "recursive": true});
        let output = delete(&folder.workspace, &arguments(call));
        assert_eq!(output, Ok(texts(&["deleted the link `link`"])));
        assert_eq!(folder.paths(), ["kept/", "kept/file"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_deeper_than_a_stack_is_deleted() {
        let folder = Folder::with(&[]);
        let deep = vec!["d"; 1_000].join("/");
        fs::create_dir_all(folder.place(&deep)).unwrap();
        let call = json!({"path": "d", "recursive": true});
        let output = delete(&folder.workspace, &arguments(call));
        assert_eq!(output, Ok(texts(&["deleted `d`: 0 files, 1,000 folders"])));
        assert_eq!(folder.paths(), Vec::<String>::new());
    }
}
