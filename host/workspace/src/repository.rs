//! The workspace's folder and the repository around it, read with a library.
//!
//! Never starts git or anything that a repository names, never follows what a repository's own configuration says about where its
//! files are, and never looks above the repository's root.

mod work_tree;

use gix::discover::{repository, upwards};
use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// The folder that a run works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    folder: PathBuf,
    repository: Option<PathBuf>,
}

/// A workspace that cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("there is no folder `{}` to work in: name one that exists with `--workspace`", path.display())]
    Missing { path: PathBuf },
    #[error("`{}` is not a folder: name one with `--workspace`", path.display())]
    NotAFolder { path: PathBuf },
    #[error("the workspace `{}` cannot be opened: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl Workspace {
    /// Opens a folder and finds the root of the repository that it lies in.
    ///
    /// A repository that belongs to somebody else counts as none: git would not read it either.
    ///
    /// # Errors
    ///
    /// The folder is missing, is no folder or cannot be reached.
    pub fn open(path: &Path) -> Result<Self, WorkspaceError> {
        let io_error = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => WorkspaceError::Missing { path: path.to_owned() },
            _ => WorkspaceError::Io { path: path.to_owned(), error },
        };
        let folder = std::fs::canonicalize(path).map_err(io_error)?;
        if !std::fs::metadata(&folder).map_err(io_error)?.is_dir() {
            return Err(WorkspaceError::NotAFolder { path: path.to_owned() });
        }
        let repository = find_root(&folder);
        Ok(Self { folder, repository })
    }

    /// The folder, absolute and free of links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The root of the repository's working tree: the folder itself or one above it.
    pub fn repository(&self) -> Option<&Path> {
        self.repository.as_deref()
    }

    /// The folders from the repository's root, or from the workspace where there is none, down to
    /// the workspace.
    pub fn folders_down(&self) -> Vec<&Path> {
        let top = self.repository.as_deref().unwrap_or(&self.folder);
        let mut folders: Vec<_> =
            self.folder.ancestors().take_while(|folder| folder.starts_with(top)).collect();
        folders.reverse();
        folders
    }

    /// What the repository is like now; nothing without a repository, or with one that cannot be
    /// read. Bounded in time, so that it can be asked in every round.
    pub fn state(&self) -> Option<Repository> {
        let root = self.repository.as_deref()?;
        let repository = open(root)?;
        let head = head(&repository)?;
        Some(Repository {
            head,
            work_tree: work_tree::look(&repository, root, work_tree::PATIENCE),
        })
    }

    /// What the repository's `HEAD` is now; nothing without a repository, or with one that cannot
    /// be read.
    pub fn head(&self) -> Option<Head> {
        head(&open(self.repository.as_deref()?)?)
    }
}

fn open(root: &Path) -> Option<gix::Repository> {
    Some(gix::open::Options::isolated().open(root).ok()?.to_thread_local())
}

fn head(repository: &gix::Repository) -> Option<Head> {
    let head = repository.head().ok()?;
    let commit = head.id().map(|id| id.to_hex_with_len(SHORT_ID).to_string());
    Some(match (head.referent_name(), commit) {
        (Some(name), commit) => {
            let name = name.shorten().to_string();
            let name = match name.char_indices().nth(MAX_BRANCH) {
                Some((end, _)) => format!("{}…", &name[..end]),
                None => name,
            };
            Head::Branch { name, commit }
        }
        (None, Some(commit)) => Head::Detached { commit },
        (None, None) => return None,
    })
}

const SHORT_ID: usize = 8;
/// Characters of a branch's name: whoever made the repository chose it, and the model reads it.
const MAX_BRANCH: usize = 100;

/// A repository at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    pub head: Head,
    pub work_tree: WorkTree,
}

/// Whether tracked files differ from the last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkTree {
    Clean,
    Changed,
    /// Not told in time, or not without running what the repository names.
    NotKnown,
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { head, work_tree } = self;
        match work_tree {
            WorkTree::Clean => write!(f, "{head}, no uncommitted changes"),
            WorkTree::Changed => write!(f, "{head}, with uncommitted changes"),
            WorkTree::NotKnown => write!(f, "{head}"),
        }
    }
}

/// What a repository has checked out. Commits are shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch; without a commit where it has none yet.
    Branch {
        name: String,
        commit: Option<String>,
    },
    Detached {
        commit: String,
    },
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Branch { name, commit: Some(commit) } => {
                write!(f, "branch `{name}` at commit {commit}")
            }
            Self::Branch { name, commit: None } => write!(f, "branch `{name}` without a commit"),
            Self::Detached { commit } => write!(f, "no branch, at commit {commit}"),
        }
    }
}

/// The root is where `.git` lies, whatever `core.worktree` in it says: a cloned repository must
/// not be able to name a folder above itself.
fn find_root(folder: &Path) -> Option<PathBuf> {
    let options = upwards::Options {
        trust: upwards::TrustPolicy::Required(gix::sec::Trust::Full),
        dot_git_only: true,
        ..upwards::Options::default()
    };
    let (found, _) = gix::discover::upwards_opts(folder, options).ok()?;
    let root = match found {
        repository::Path::WorkTree(root) => root,
        repository::Path::LinkedWorkTree { work_dir, .. } => work_dir,
        repository::Path::Repository(_) => return None,
    };
    let root = std::fs::canonicalize(root).ok()?;
    folder.starts_with(&root).then_some(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// The least that is a repository.
    fn repository(root: &Path, head: &str) {
        for folder in ["objects", "refs/heads"] {
            fs::create_dir_all(root.join(".git").join(folder)).unwrap();
        }
        fs::write(root.join(".git/HEAD"), head).unwrap();
        fs::write(root.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
    }

    fn temp() -> (tempfile::TempDir, PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let path = guard.path().canonicalize().unwrap();
        (guard, path)
    }

    #[test]
    fn head_is_read_in_every_state() {
        let branch = |name: &str, commit: Option<&str>| {
            Some(Head::Branch { name: name.to_owned(), commit: commit.map(str::to_owned) })
        };
        let cases = [
            ("ref: refs/heads/main\n", branch("main", Some("01234567"))),
            ("ref: refs/heads/fix/one\n", branch("fix/one", None)),
            (
                "0123456789abcdef0123456789abcdef01234567\n",
                Some(Head::Detached { commit: "01234567".to_owned() }),
            ),
            (
                &format!("ref: refs/heads/{}\n", "é".repeat(101)),
                branch(&format!("{}…", "é".repeat(100)), None),
            ),
            ("what is this\n", None),
        ];
        for (text, head) in cases {
            let (_guard, root) = temp();
            repository(&root, text);
            fs::write(root.join(".git/refs/heads/main"), format!("{COMMIT}\n")).unwrap();
            assert_eq!(Workspace::open(&root).unwrap().head(), head, "{text}");
        }
    }

    #[test]
    fn the_root_is_found_from_below_and_nothing_is_found_without_a_repository() {
        let (_guard, root) = temp();
        let inner = root.join("repository/a/b");
        fs::create_dir_all(&inner).unwrap();
        let alone = Workspace::open(&inner).unwrap();
        assert_eq!(alone, Workspace { folder: inner.clone(), repository: None });
        assert_eq!((alone.head(), alone.folders_down()), (None, vec![inner.as_path()]));

        let top = root.join("repository");
        repository(&top, "ref: refs/heads/main\n");
        let inside = Workspace::open(&inner).unwrap();
        assert_eq!(inside, Workspace { folder: inner.clone(), repository: Some(top.clone()) });
        assert_eq!(inside.folders_down(), [top.as_path(), &top.join("a"), &inner]);
    }

    #[test]
    fn a_repository_cannot_name_a_root_above_itself() {
        let (_guard, root) = temp();
        let inner = root.join("cloned");
        fs::create_dir_all(&inner).unwrap();
        repository(&inner, "ref: refs/heads/main\n");
        fs::write(
            inner.join(".git/config"),
            "[core]\n\trepositoryformatversion = 0\n\tworktree = ../..\n",
        )
        .unwrap();
        assert_eq!(Workspace::open(&inner).unwrap().repository(), Some(inner.as_path()));
    }

    #[test]
    fn a_workspace_that_is_not_there_is_an_error_that_names_it() {
        let (_guard, root) = temp();
        let missing = root.join("missing");
        let file = root.join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(
            [&missing, &file].map(|path| Workspace::open(path).unwrap_err().to_string()),
            [
                format!(
                    "there is no folder `{}` to work in: name one that exists with `--workspace`",
                    missing.display()
                ),
                format!("`{}` is not a folder: name one with `--workspace`", file.display()),
            ]
        );
    }
}
