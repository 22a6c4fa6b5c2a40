//! `make_directory`: a folder, with those above it.

use crate::write;
use belljar_sdk::prelude::*;
use belljar_workspace_path::Workspace;
use std::fs;

#[arguments]
pub(crate) struct MakeDirectory {
    /// The folder to make, relative to the workspace.
    path: String,
}

/// Makes a folder, and those above it that are missing. A folder that is there already is left as
/// it is. `write_file` makes the folders of a new file by itself.
#[tool(idempotent, title = "Make a folder")]
pub(crate) fn make_directory(arguments: MakeDirectory) -> Result<Output, Failure> {
    make(&Workspace::of_this_call(), &arguments)
}

fn make(workspace: &Workspace, arguments: &MakeDirectory) -> Result<Output, Failure> {
    let path = workspace.path(&arguments.path)?;
    match path.place().metadata() {
        Ok(metadata) if metadata.is_dir() => {
            return Ok(Output::text(format!("the folder `{path}` is there already")));
        }
        Ok(_) => {
            return Err(Failure::failed(format!("`{path}` is a file: choose another name")));
        }
        // Whatever it is, making the folder says it better.
        Err(_) => {}
    }
    fs::create_dir_all(path.place()).map_err(|error| write::explain_parent(&path, error))?;
    Ok(Output::text(format!("made the folder `{path}`")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};

    #[test]
    fn folders_are_made_once_with_those_above() {
        let folder = Folder::with(&[("file", b"x")]);
        for (path, text) in [
            ("a/b/c/", "made the folder `a/b/c`"),
            ("a/b/c", "the folder `a/b/c` is there already"),
            (".", "the folder `.` is there already"),
        ] {
            let output = make(&folder.workspace, &arguments(json!({"path": path})));
            assert_eq!(output, Ok(texts(&[text])));
        }
        assert_eq!(folder.paths(), ["a/", "a/b/", "a/b/c/", "file"]);
    }

    #[test]
    fn what_is_in_the_way_is_said() {
        let folder = Folder::with(&[("file", b"x")]);
        for (path, failure) in [
            ("file", Failure::failed("`file` is a file: choose another name")),
            (
                "file/below",
                Failure::failed(
                    "the folder `file/below` cannot be made: something on the way is there and is \
                     no folder",
                ),
            ),
            (
                "../out",
                Failure::denied(
                    "`../out` climbs out of the workspace: all paths are relative to the \
                     workspace, and nothing outside it can be reached; `.` is the workspace itself",
                ),
            ),
        ] {
            assert_eq!(make(&folder.workspace, &arguments(json!({"path": path}))), Err(failure));
        }
    }
}
