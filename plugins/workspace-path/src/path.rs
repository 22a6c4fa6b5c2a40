//! One path argument: what it names, and what the model reads when it may not or cannot be used.
//!
//! Nothing here resolves links or removes `..`: `a/../b` is another file than `b` where `a` is a
//! link, and only the host's lookup may say which. The text is refused where it climbs above the
//! workspace by itself.

use crate::missing;
use belljar_sdk::Failure;
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// How many shorter spellings of a refused path are tried for one that exists.
const SPELLINGS: usize = 16;

/// The folder that all paths are relative to.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// What a tool call sees: the workspace is the guest's `/`.
    pub fn of_this_call() -> Self {
        Self::at("/")
    }

    /// A workspace at another place, for native tests.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Reads a path argument.
    ///
    /// # Errors
    ///
    /// `invalid arguments` for an empty path or one with a NUL; `denied` for one that is absolute,
    /// that climbs out of the workspace, or that starts in a home folder. The text names the
    /// spelling that would have worked, where there is one.
    pub fn path(&self, text: &str) -> Result<WorkspacePath, Failure> {
        if text.is_empty() {
            return Err(Failure::invalid_arguments(
                "the path is empty: name a file or folder relative to the workspace, or `.` for \
                 the workspace itself",
            ));
        }
        if text.contains('\0') {
            return Err(Failure::invalid_arguments(
                "the path holds a NUL character, which no file name can: write it without",
            ));
        }
        let steps: Vec<&str> =
            text.split('/').filter(|step| !step.is_empty() && *step != ".").collect();
        if text.starts_with('/') {
            return Err(self.refuse(text, "is an absolute path", &steps));
        }
        let mut depth = 0_usize;
        for step in &steps {
            depth = match (*step, depth) {
                ("..", 0) => {
                    let start = steps.iter().rposition(|step| *step == "..").map_or(0, |at| at + 1);
                    return Err(self.refuse(text, "climbs out of the workspace", &steps[start..]));
                }
                ("..", _) => depth - 1,
                _ => depth + 1,
            };
        }
        if steps.first() == Some(&"~") && !self.exists("~") {
            return Err(self.refuse(text, "starts in a home folder", &steps[1..]));
        }
        let shown = steps.join("/");
        Ok(WorkspacePath {
            place: if shown.is_empty() { self.root.clone() } else { self.root.join(&shown) },
            workspace: self.clone(),
            shown,
            is_workspace: depth == 0,
            ends_as_folder: text.ends_with('/') || text.ends_with("/.") || text == ".",
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn exists(&self, shown: &str) -> bool {
        self.root.join(shown).symlink_metadata().is_ok()
    }

    fn refuse(&self, text: &str, what: &str, steps: &[&str]) -> Failure {
        let rule = "all paths are relative to the workspace, and nothing outside it can be reached";
        let spelling = (0..steps.len().min(SPELLINGS))
            .map(|start| steps[start..].join("/"))
            .find(|spelling| self.exists(spelling));
        Failure::denied(match spelling {
            Some(spelling) => format!("`{text}` {what}: {rule}; write `{spelling}`"),
            None => format!("`{text}` {what}: {rule}; `.` is the workspace itself"),
        })
    }
}

/// A path that lies in the workspace as far as its text says.
#[derive(Clone, Debug)]
pub struct WorkspacePath {
    workspace: Workspace,
    shown: String,
    place: PathBuf,
    is_workspace: bool,
    ends_as_folder: bool,
}

impl WorkspacePath {
    /// The path to give to `std::fs`.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The workspace itself, such as `.` or `a/..`.
    pub fn is_workspace(&self) -> bool {
        self.is_workspace
    }

    /// Whether the argument was spelt as a folder, such as `src/`.
    pub fn ends_as_folder(&self) -> bool {
        self.ends_as_folder
    }

    /// Whether the last step is a name, not `..`: only then does the path say which entry of which
    /// folder to move or delete.
    pub fn ends_with_a_name(&self) -> bool {
        !self.is_workspace && self.place.file_name().is_some()
    }

    /// The last step.
    pub fn name(&self) -> &str {
        self.shown.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that holds it; none for a path of one step.
    pub fn parent(&self) -> Option<Self> {
        let (parent, _) = self.shown.rsplit_once('/')?;
        self.workspace.path(parent).ok()
    }

    /// An entry of this folder, by a name or path that came from the file system.
    pub fn entry(&self, below: &str) -> Self {
        let shown = if self.shown.is_empty() {
            below.to_owned()
        } else {
            format!("{}/{below}", self.shown)
        };
        Self {
            place: self.place.join(below),
            workspace: self.workspace.clone(),
            shown,
            is_workspace: false,
            ends_as_folder: false,
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The path without `..`, as far as its text says: for rules about names, never for opening.
    pub(crate) fn normal(&self) -> String {
        let mut steps = Vec::new();
        for step in self.steps() {
            if step == ".." {
                steps.pop();
            } else {
                steps.push(step);
            }
        }
        steps.join("/")
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = &str> {
        self.shown.split('/').filter(|step| !step.is_empty())
    }

    /// What the model reads when `doing` (a verb, such as `read`) met `error`.
    pub fn explain(&self, doing: &str, error: io::Error) -> Failure {
        use io::ErrorKind;
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                Failure::failed(missing::explain(self))
            }
            ErrorKind::PermissionDenied => Failure::denied(format!(
                "the sandbox refused to {doing} `{self}`: this call may not do so, or a link in \
                 the path leads out of the workspace"
            )),
            ErrorKind::ReadOnlyFilesystem => Failure::denied(format!(
                "the sandbox refused to {doing} `{self}`: this call may only read"
            )),
            ErrorKind::IsADirectory => Failure::failed(format!("`{self}` is a folder, not a file")),
            ErrorKind::AlreadyExists => Failure::failed(format!("`{self}` exists already")),
            ErrorKind::DirectoryNotEmpty => {
                Failure::failed(format!("`{self}` is a folder that is not empty"))
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Failure::failed(format!("there is no space left to {doing} `{self}`"))
            }
            ErrorKind::InvalidFilename => Failure::failed(format!(
                "`{self}` is not a name that can exist here: it may be too long"
            )),
            _ => Failure::failed(format!("could not {doing} `{self}`: {}", Failure::from(error))),
        }
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.shown.is_empty() { "." } else { &self.shown })
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Workspace};
    use std::{fs, io};

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/deep")).unwrap();
        fs::write(folder.path().join("README.md"), "x").unwrap();
        fs::write(folder.path().join("src/main.rs"), "x").unwrap();
        let workspace = Workspace::at(folder.path());
        (folder, workspace)
    }

    #[test]
    fn spellings_inside_the_workspace() {
        let (folder, workspace) = workspace();
        for (text, shown, below, is_workspace) in [
            (".", ".", "", true),
            ("./", ".", "", true),
            ("a", "a", "a", false),
            ("./a", "a", "a", false),
            ("a//b", "a/b", "a/b", false),
            ("a/./b", "a/b", "a/b", false),
            ("a/b/", "a/b", "a/b", false),
            ("a/..", "a/..", "a/..", true),
            ("a/b/../c", "a/b/../c", "a/b/../c", false),
            ("a/b/../..", "a/b/../..", "a/b/../..", true),
            ("..a", "..a", "..a", false),
            ("a..b/...", "a..b/...", "a..b/...", false),
            (r"..\x", r"..\x", r"..\x", false),
            ("a b/ü", "a b/ü", "a b/ü", false),
            ("-rf", "-rf", "-rf", false),
        ] {
            let path = workspace.path(text).unwrap();
            assert_eq!(
                (path.to_string().as_str(), path.place(), path.is_workspace()),
                (shown, folder.path().join(below).as_path(), is_workspace),
                "{text}"
            );
        }
    }

    #[test]
    fn paths_that_leave_are_denied_with_what_to_write() {
        let (_folder, workspace) = workspace();
        let rule = "all paths are relative to the workspace, and nothing outside it can be reached";
        for (text, what, instead) in [
            ("/etc/passwd", "is an absolute path", "`.` is the workspace itself"),
            ("/", "is an absolute path", "`.` is the workspace itself"),
            ("//etc//passwd", "is an absolute path", "`.` is the workspace itself"),
            ("/README.md", "is an absolute path", "write `README.md`"),
            ("/home/me/project/src/main.rs", "is an absolute path", "write `src/main.rs`"),
            ("..", "climbs out of the workspace", "`.` is the workspace itself"),
            ("../x", "climbs out of the workspace", "`.` is the workspace itself"),
            ("./../x", "climbs out of the workspace", "`.` is the workspace itself"),
            ("a/../../x", "climbs out of the workspace", "`.` is the workspace itself"),
            ("src/../..", "climbs out of the workspace", "`.` is the workspace itself"),
            ("../../README.md", "climbs out of the workspace", "write `README.md`"),
            ("../project/src/main.rs", "climbs out of the workspace", "write `src/main.rs`"),
            ("~/.ssh/id_rsa", "starts in a home folder", "`.` is the workspace itself"),
            ("~", "starts in a home folder", "`.` is the workspace itself"),
        ] {
            assert_eq!(
                workspace.path(text).unwrap_err(),
                Failure::denied(format!("`{text}` {what}: {rule}; {instead}")),
            );
        }
    }

    #[test]
    fn a_folder_named_like_a_home_is_a_folder() {
        let (folder, workspace) = workspace();
        fs::create_dir(folder.path().join("~")).unwrap();
        assert_eq!(workspace.path("~/x").unwrap().to_string(), "~/x");
    }

    #[test]
    fn what_is_no_path_is_an_invalid_argument() {
        let (_folder, workspace) = workspace();
        for text in ["", "a\0b"] {
            let failure = workspace.path(text).unwrap_err();
            assert!(matches!(failure, Failure::InvalidArguments(_)), "{text:?}: {failure:?}");
        }
    }

    #[test]
    fn names_and_parents() {
        let (_folder, workspace) = workspace();
        for (text, name, parent, ends_with_a_name, ends_as_folder) in [
            ("a/b/c", "c", Some("a/b"), true, false),
            ("a/b/", "b", Some("a"), true, true),
            ("a", "a", None, true, false),
            ("a/..", "..", Some("a"), false, false),
            ("a/b/..", "..", Some("a/b"), false, false),
            (".", "", None, false, true),
        ] {
            let path = workspace.path(text).unwrap();
            assert_eq!(
                (
                    path.name(),
                    path.parent().map(|parent| parent.to_string()).as_deref(),
                    path.ends_with_a_name(),
                    path.ends_as_folder(),
                ),
                (name, parent, ends_with_a_name, ends_as_folder),
                "{text}"
            );
        }
    }

    #[test]
    fn errors_read_as_what_to_do() {
        let (_folder, workspace) = workspace();
        let path = workspace.path("src").unwrap();
        for (kind, failure) in [
            (
                io::ErrorKind::PermissionDenied,
                Failure::denied(
                    "the sandbox refused to write `src`: this call may not do so, or a link in \
                     the path leads out of the workspace",
                ),
            ),
            (
                io::ErrorKind::ReadOnlyFilesystem,
                Failure::denied("the sandbox refused to write `src`: this call may only read"),
            ),
            (io::ErrorKind::IsADirectory, Failure::failed("`src` is a folder, not a file")),
            (io::ErrorKind::StorageFull, Failure::failed("there is no space left to write `src`")),
            (
                io::ErrorKind::QuotaExceeded,
                Failure::failed("there is no space left to write `src`"),
            ),
            (io::ErrorKind::AlreadyExists, Failure::failed("`src` exists already")),
            (
                io::ErrorKind::Interrupted,
                Failure::failed("could not write `src`: operation interrupted"),
            ),
        ] {
            assert_eq!(path.explain("write", io::Error::from(kind)), failure);
        }
    }
}
