//! Every file below a folder, in the order of names, as the ignore files say. It follows no links
//! and goes on past what it may not read.

use crate::{Globs, WorkspacePath, number};
use belljar_sdk::Failure;
use ignore::WalkBuilder;
use std::{
    ffi::OsStr,
    fs::FileType,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

/// How many of the places that could not be read are named.
const NAMED: usize = 3;

/// What to walk.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    pub start: &'a WorkspacePath,
    pub globs: &'a Globs,
    /// Whether names that begin with a dot are walked too. `.git` never is, unless it is the start.
    pub hidden: bool,
    /// Whether what `.gitignore` and `.ignore` files name is walked too.
    pub ignored: bool,
}

/// A file, folder or link that the walk came to.
#[derive(Debug)]
pub struct Found {
    pub path: WorkspacePath,
    /// The path below the start, or the name where the start is a file.
    pub below: String,
    pub kind: FileType,
}

/// What the walk could not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable {
    pub count: u64,
    /// The first few of them.
    pub named: Vec<String>,
}

impl Unreadable {
    pub fn add(&mut self, path: impl Into<String>) {
        self.count += 1;
        if self.named.len() < NAMED {
            self.named.push(path.into());
        }
    }

    /// Adds what another part of the work could not read.
    pub fn extend(&mut self, other: Self) {
        self.count += other.count;
        let room = NAMED.saturating_sub(self.named.len());
        self.named.extend(other.named.into_iter().take(room));
    }

    /// What to tell the model of them, where there are any.
    pub fn note(&self) -> Option<String> {
        if self.count == 0 {
            return None;
        }
        let mut named: Vec<String> = self.named.iter().map(|path| format!("`{path}`")).collect();
        if self.count > named.len() as u64 {
            named.push("…".to_owned());
        }
        Some(format!("{} could not be read: {}", number(self.count), named.join(", ")))
    }
}

impl Walk<'_> {
    /// Visits everything below the start, until the visitor breaks.
    ///
    /// # Errors
    ///
    /// Where the start itself cannot be looked at.
    pub fn visit(
        &self,
        mut visit: impl FnMut(Found) -> ControlFlow<()>,
    ) -> Result<Unreadable, Failure> {
        let start = self.start.place().to_path_buf();
        let kind = start.metadata().map_err(|error| self.start.explain("look at", error))?;
        if kind.is_dir() {
            // Without this a start that may not be listed looks like an empty one.
            std::fs::read_dir(&start).map_err(|error| self.start.explain("list", error))?;
        }
        let mut unreadable = Unreadable::default();
        for entry in self.builder(start.clone()).build() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    // A broken line of an ignore file is not something that could not be read.
                    if error.io_error().is_some() {
                        unreadable.add(place_of(&error).map_or_else(String::new, |place| {
                            self.start.entry(&below(&start, place)).to_string()
                        }));
                    }
                    continue;
                }
            };
            let found = if entry.depth() > 0 {
                let below = below(&start, entry.path());
                let Some(kind) = entry.file_type() else { continue };
                Found { path: self.start.entry(&below), below, kind }
            } else if kind.is_dir() {
                continue;
            } else {
                Found {
                    path: self.start.clone(),
                    below: self.start.name().to_owned(),
                    kind: kind.file_type(),
                }
            };
            if visit(found).is_break() {
                break;
            }
        }
        Ok(unreadable)
    }

    fn builder(&self, start: PathBuf) -> WalkBuilder {
        let mut builder = WalkBuilder::new(&start);
        builder
            .hidden(!self.hidden)
            .ignore(!self.ignored)
            .git_ignore(!self.ignored)
            .git_exclude(!self.ignored)
            // In a tool call the climb ends at the workspace, which is the guest's `/`.
            .parents(!self.ignored)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(OsStr::cmp);
        let globs = self.globs.clone();
        builder.filter_entry(move |entry| {
            entry.depth() == 0
                || (entry.file_name() != ".git" && !globs.exclude(&below(&start, entry.path())))
        });
        builder
    }
}

fn below(start: &Path, place: &Path) -> String {
    place.strip_prefix(start).unwrap_or(place).to_string_lossy().into_owned()
}

fn place_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            place_of(err)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Globs, Unreadable, Walk};
    use crate::Workspace;
    use std::{fs, ops::ControlFlow};

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in [
            (".gitignore", "/target\n*.log\n!keep.log\n"),
            (".ignore", "private\n"),
            (".git/config", "x"),
            (".github/ci.yml", "x"),
            ("README.md", "x"),
            ("a.log", "x"),
            ("keep.log", "x"),
            ("private/key", "x"),
            ("src/.gitignore", "gen/\n"),
            ("src/b.rs", "x"),
            ("src/a.rs", "x"),
            ("src/c.log", "x"),
            ("src/gen/made.rs", "x"),
            ("target/debug/out.rs", "x"),
            ("x/target/kept.rs", "x"),
        ] {
            let place = folder.path().join(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        folder
    }

    fn files(
        folder: &tempfile::TempDir,
        start: &str,
        globs: &[&str],
        flags: (bool, bool),
    ) -> String {
        let start = Workspace::at(folder.path()).path(start).unwrap();
        let globs = Globs::new(globs.iter().copied()).unwrap();
        let mut files = Vec::new();
        let (hidden, ignored) = flags;
        Walk { start: &start, globs: &globs, hidden, ignored }
            .visit(|found| {
                if !found.kind.is_dir() {
                    files.push(found.path.to_string());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        files.join(" ")
    }

    #[test]
    fn ignore_files_hold_at_every_level() {
        let folder = tree();
        for (start, globs, flags, expected) in [
            (".", &[][..], (false, false), "README.md keep.log src/a.rs src/b.rs x/target/kept.rs"),
            (
                ".",
                &[],
                (true, false),
                ".github/ci.yml .gitignore .ignore README.md keep.log src/.gitignore src/a.rs \
                 src/b.rs x/target/kept.rs",
            ),
            (
                ".",
                &[],
                (false, true),
                "README.md a.log keep.log private/key src/a.rs src/b.rs src/c.log src/gen/made.rs \
                 target/debug/out.rs x/target/kept.rs",
            ),
            (".", &["!src", "!x/**"], (false, false), "README.md keep.log"),
            // The rules of the folders above hold for a start inside.
            ("src", &[], (false, false), "src/a.rs src/b.rs"),
            // What is named is walked, ignored, hidden or not.
            ("target", &[], (false, false), "target/debug/out.rs"),
            (".github", &[], (false, false), ".github/ci.yml"),
            ("src/c.log", &[], (false, false), "src/c.log"),
        ] {
            assert_eq!(
                files(&folder, start, globs, flags),
                expected,
                "{start} {globs:?} {flags:?}"
            );
        }
    }

    #[test]
    fn a_visitor_ends_the_walk() {
        let folder = tree();
        let start = Workspace::at(folder.path()).path(".").unwrap();
        let mut seen = 0;
        let globs = Globs::new([]).unwrap();
        let unreadable = Walk { start: &start, globs: &globs, hidden: false, ignored: false }
            .visit(|_| {
                seen += 1;
                ControlFlow::Break(())
            })
            .unwrap();
        assert_eq!((seen, unreadable), (1, Unreadable::default()));
    }

    #[test]
    fn a_start_that_is_missing_says_so() {
        let folder = tree();
        let start = Workspace::at(folder.path()).path("srk").unwrap();
        let globs = Globs::new([]).unwrap();
        let failure = Walk { start: &start, globs: &globs, hidden: false, ignored: false }
            .visit(|_| ControlFlow::Continue(()))
            .unwrap_err();
        assert_eq!(failure, Failure::failed("`srk` does not exist; did you mean `src`?"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_seen_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/file"), "x").unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("a/loop")).unwrap();
        std::os::unix::fs::symlink("a", folder.path().join("b")).unwrap();
        assert_eq!(files(&folder, ".", &[], (false, false)), "a/file a/loop b");
        // A start that is a link was asked for by name.
        assert_eq!(files(&folder, "b", &[], (false, false)), "b/file b/loop");
    }
}
