//! `write_file`: a whole file, new or over an old one.

use belljar_sdk::prelude::*;
use belljar_workspace_path::{Workspace, WorkspacePath, bytes, count};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};

#[arguments]
pub(crate) struct WriteFile {
    /// The file, relative to the workspace.
    path: String,
    /// The whole new content of the file.
    content: String,
}

/// Writes a whole file: creates it, with missing parent folders, or overwrites all that it held.
/// To change a part of a file use `edit_file`. Returns what was created or overwritten, and the
/// size.
#[tool(destructive, idempotent, title = "Write a file")]
pub(crate) fn write_file(arguments: WriteFile) -> Result<Output, Failure> {
    write(&Workspace::of_this_call(), &arguments)
}

fn write(workspace: &Workspace, arguments: &WriteFile) -> Result<Output, Failure> {
    let path = workspace.path(&arguments.path)?;
    if path.ends_as_folder() || !path.ends_with_a_name() {
        return Err(Failure::invalid_arguments(format!(
            "`{}` names a folder: give the path of a file, or use `make_directory`",
            arguments.path
        )));
    }
    let before = match path.place().metadata() {
        Ok(metadata) if metadata.is_dir() => {
            return Err(Failure::failed(format!("`{path}` is a folder: give the path of a file")));
        }
        Ok(metadata) if !metadata.is_file() => {
            return Err(Failure::failed(format!(
                "`{path}` is neither a file nor a folder, and cannot be written"
            )));
        }
        Ok(metadata) => Some(metadata.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(path.explain("write", error)),
    };
    if before.is_none() {
        make_parents(&path)?;
    }
    replace(&path, arguments.content.as_bytes())?;
    let size = size(&arguments.content);
    Ok(Output::text(match before {
        None => format!("created `{path}`: {size}"),
        Some(before) => format!("overwrote `{path}`: {size}, before {}", bytes(before)),
    }))
}

/// Makes the folders that are missing above `path`.
pub(crate) fn make_parents(path: &WorkspacePath) -> Result<(), Failure> {
    match path.parent() {
        Some(parent) => {
            fs::create_dir_all(parent.place()).map_err(|error| explain_parent(&parent, error))
        }
        None => Ok(()),
    }
}

/// What the model reads when a folder could not be made.
pub(crate) fn explain_parent(folder: &WorkspacePath, error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => Failure::failed(format!(
            "the folder `{folder}` cannot be made: something on the way is there and is no folder"
        )),
        _ => folder.explain("make", error),
    }
}

/// Gives the file, which keeps its permissions where it is there already, this content.
pub(crate) fn replace(path: &WorkspacePath, content: &[u8]) -> Result<(), Failure> {
    let mut file = File::create(path.place()).map_err(|error| path.explain("write", error))?;
    file.write_all(content).map_err(|error| match path.explain("write", error) {
        Failure::Failed(text) => {
            Failure::failed(format!("{text}; the file is incomplete: write it again"))
        }
        failure => failure,
    })
}

/// `3 lines, 120 bytes`.
fn size(content: &str) -> String {
    format!("{}, {}", count(content.lines().count() as u64, "line"), bytes(content.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};

    #[test]
    fn a_file_is_created_with_its_folders_or_overwritten() {
        let folder = Folder::with(&[("old", b"something longer")]);
        for (path, content, text) in [
            ("new", "a\nb\n", "created `new`: 2 lines, 4 bytes"),
            ("x/y/z.txt", "", "created `x/y/z.txt`: 0 lines, 0 bytes"),
            ("./old", "n\u{e4}", "overwrote `old`: 1 line, 3 bytes, before 16 bytes"),
        ] {
            let output =
                write(&folder.workspace, &arguments(json!({"path": path, "content": content})));
            assert_eq!(output, Ok(texts(&[text])));
            assert_eq!(folder.text(path), content);
        }
        assert_eq!(folder.paths(), ["new", "old", "x/", "x/y/", "x/y/z.txt"]);
    }

    #[cfg(unix)]
    #[test]
    fn an_overwritten_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::with(&[("run.sh", b"old")]);
        let executable = fs::Permissions::from_mode(0o750);
        fs::set_permissions(folder.place("run.sh"), executable).unwrap();
        let new = json!({"path": "run.sh", "content": "new"});
        write(&folder.workspace, &arguments(new)).unwrap();
        let mode = folder.place("run.sh").metadata().unwrap().permissions().mode();
        assert_eq!((mode & 0o777, folder.text("run.sh").as_str()), (0o750, "new"));
    }

    #[test]
    fn what_cannot_be_written_is_left_alone() {
        let folder = Folder::with(&[("src/main.rs", b"x")]);
        let failed = |text: &str| Failure::failed(text);
        let invalid = |text: &str| Failure::invalid_arguments(text);
        for (path, failure) in [
            ("src", failed("`src` is a folder: give the path of a file")),
            (
                "new/",
                invalid("`new/` names a folder: give the path of a file, or use `make_directory`"),
            ),
            (".", invalid("`.` names a folder: give the path of a file, or use `make_directory`")),
            (
                "src/..",
                invalid(
                    "`src/..` names a folder: give the path of a file, or use `make_directory`",
                ),
            ),
            (
                "src/main.rs/x",
                failed("`src/main.rs/x` does not exist: `src/main.rs` is a file, not a folder"),
            ),
            (
                "../x",
                Failure::denied(
                    "`../x` climbs out of the workspace: all paths are relative to the workspace, \
                     and nothing outside it can be reached; `.` is the workspace itself",
                ),
            ),
        ] {
            let output =
                write(&folder.workspace, &arguments(json!({"path": path, "content": "y"})));
            assert_eq!(output, Err(failure));
        }
        assert_eq!(folder.paths(), ["src/", "src/main.rs"]);
        assert_eq!(folder.text("src/main.rs"), "x");
    }
}
