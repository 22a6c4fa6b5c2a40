//! `move_path`: a file or folder under another name.

use crate::write;
use belljar_sdk::prelude::*;
use belljar_workspace_path::{Workspace, WorkspacePath};
use std::{
    fs::{self, Metadata},
    io::ErrorKind,
};

#[arguments]
pub(crate) struct MovePath {
    /// The file or folder to move or rename, relative to the workspace.
    from: String,
    /// Its new path, last name included, relative to the workspace.
    to: String,
    /// Whether to replace a file or empty folder that is there already.
    #[serde(default)]
    overwrite: bool,
}

/// Moves or renames a file or folder, with all that is in it. Missing parent folders of the new
/// path are made. What is there already is replaced only with `overwrite`. A link is moved itself,
/// not what it leads to.
#[tool(destructive, title = "Move or rename")]
pub(crate) fn move_path(arguments: MovePath) -> Result<Output, Failure> {
    rename(&Workspace::of_this_call(), &arguments)
}

fn rename(workspace: &Workspace, arguments: &MovePath) -> Result<Output, Failure> {
    let from = workspace.path(&arguments.from)?;
    let to = workspace.path(&arguments.to)?;
    for path in [&from, &to] {
        if !path.ends_with_a_name() {
            return Err(Failure::invalid_arguments(format!(
                "`{path}` does not end in a name: give the path of what to move, and its new path \
                 with the last name"
            )));
        }
    }
    let moved = from.place().symlink_metadata().map_err(|error| from.explain("move", error))?;
    if from.to_string() == to.to_string() {
        return Err(Failure::invalid_arguments(format!("`{from}` has this name already")));
    }
    if moved.is_dir() && to.place().starts_with(from.place()) {
        return Err(Failure::invalid_arguments(format!(
            "`{to}` lies in `{from}`: a folder cannot be moved into itself"
        )));
    }
    let replaces = match to.place().symlink_metadata() {
        Ok(there) => {
            check_replaced(&from, &moved, &to, &there, arguments.overwrite)?;
            true
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            write::make_parents(&to)?;
            false
        }
        Err(error) => return Err(to.explain("move to", error)),
    };
    fs::rename(from.place(), to.place()).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty => Failure::failed(format!(
            "`{to}` is a folder that is not empty: it is not replaced; move what is in it, or \
             delete it first"
        )),
        // The parents are there by now: what is missing is the source, or it was refused.
        _ => from.explain("move", error),
    })?;
    let replaced = if replaces { ", in place of what was there" } else { "" };
    Ok(Output::text(format!("moved `{from}` to `{to}`{replaced}")))
}

fn check_replaced(
    from: &WorkspacePath,
    moved: &Metadata,
    to: &WorkspacePath,
    there: &Metadata,
    overwrite: bool,
) -> Result<(), Failure> {
    if there.is_dir() && !overwrite {
        return Err(Failure::failed(format!(
            "`{to}` is a folder already: to move into it write `{to}/{}`",
            from.name()
        )));
    }
    if !overwrite {
        return Err(Failure::failed(format!(
            "`{to}` exists already: choose another name, or set `overwrite` to replace it"
        )));
    }
    match (moved.is_dir(), there.is_dir()) {
        (true, false) => Err(Failure::failed(format!(
            "`{to}` is a file and `{from}` a folder: delete the file first"
        ))),
        (false, true) => Err(Failure::failed(format!(
            "`{to}` is a folder and `{from}` is not: to move into it write `{to}/{}`",
            from.name()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};

    fn folder() -> Folder {
        let folder =
            Folder::with(&[("a", b"a"), ("b", b"b"), ("dir/inner", b"i"), ("full/x", b"x")]);
        fs::create_dir(folder.place("empty")).unwrap();
        folder
    }

    #[test]
    fn files_and_folders_are_moved() {
        for (from, to, overwrite, text, paths) in [
            ("a", "c", false, "moved `a` to `c`", "b c dir/ dir/inner empty/ full/ full/x"),
            (
                "a",
                "new/deep/a",
                false,
                "moved `a` to `new/deep/a`",
                "b dir/ dir/inner empty/ full/ full/x new/ new/deep/ new/deep/a",
            ),
            (
                "dir/",
                "renamed",
                false,
                "moved `dir` to `renamed`",
                "a b empty/ full/ full/x renamed/ renamed/inner",
            ),
            (
                "a",
                "b",
                true,
                "moved `a` to `b`, in place of what was there",
                "b dir/ dir/inner empty/ full/ full/x",
            ),
            (
                "dir",
                "empty",
                true,
                "moved `dir` to `empty`, in place of what was there",
                "a b empty/ empty/inner full/ full/x",
            ),
        ] {
            let folder = folder();
            let call = json!({"from": from, "to": to, "overwrite": overwrite});
            assert_eq!(rename(&folder.workspace, &arguments(call)), Ok(texts(&[text])));
            assert_eq!(folder.paths().join(" "), paths);
        }
    }

    #[test]
    fn what_would_lose_something_is_refused() {
        let failed = |text: &str| Failure::failed(text);
        let invalid = |text: &str| Failure::invalid_arguments(text);
        for (from, to, overwrite, failure) in [
            (
                "a",
                "b",
                false,
                failed("`b` exists already: choose another name, or set `overwrite` to replace it"),
            ),
            ("a", "dir", false, failed("`dir` is a folder already: to move into it write `dir/a`")),
            (
                "a",
                "dir",
                true,
                failed("`dir` is a folder and `a` is not: to move into it write `dir/a`"),
            ),
            ("dir", "a", true, failed("`a` is a file and `dir` a folder: delete the file first")),
            (
                "dir",
                "full",
                true,
                failed(
                    "`full` is a folder that is not empty: it is not replaced; move what is in \
                     it, or delete it first",
                ),
            ),
            ("a", "./a", true, invalid("`a` has this name already")),
            (
                "dir",
                "dir/in/it",
                false,
                invalid("`dir/in/it` lies in `dir`: a folder cannot be moved into itself"),
            ),
            (
                ".",
                "x",
                false,
                invalid(
                    "`.` does not end in a name: give the path of what to move, and its new path \
                     with the last name",
                ),
            ),
            (
                "a",
                "dir/..",
                true,
                invalid(
                    "`dir/..` does not end in a name: give the path of what to move, and its new \
                     path with the last name",
                ),
            ),
            (
                "c",
                "d",
                false,
                failed("`c` does not exist; look with `list_directory` or `find_files`"),
            ),
            (
                "a",
                "b/c",
                false,
                failed(
                    "the folder `b` cannot be made: something on the way is there and is no folder",
                ),
            ),
            (
                "a",
                "/tmp/a",
                false,
                Failure::denied(
                    "`/tmp/a` is an absolute path: all paths are relative to the workspace, and \
                     nothing outside it can be reached; write `a`",
                ),
            ),
        ] {
            let folder = folder();
            let before = folder.paths();
            let call = json!({"from": from, "to": to, "overwrite": overwrite});
            assert_eq!(rename(&folder.workspace, &arguments(call)), Err(failure));
            assert_eq!(folder.paths(), before);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_moved_itself() {
        let folder = Folder::with(&[("a", b"a")]);
        std::os::unix::fs::symlink("/nowhere", folder.place("link")).unwrap();
        let call = json!({"from": "link", "to": "other"});
        rename(&folder.workspace, &arguments(call)).unwrap();
        assert_eq!(fs::read_link(folder.place("other")).unwrap().to_str(), Some("/nowhere"));
        assert_eq!(folder.paths(), ["a", "other"]);
    }
}
