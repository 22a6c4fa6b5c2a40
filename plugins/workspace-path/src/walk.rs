//! Every file below a folder, in the order of names, as the ignore files say. It follows no links
//! and goes on past what it may not read.

use crate::{Globs, WorkspacePath, ignored::Ignored, number};
use belljar_sdk::Failure;
use std::{
    fs::{self, FileType},
    io,
    ops::ControlFlow,
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
        let mut unreadable = Unreadable::default();
        let kind =
            self.start.place().metadata().map_err(|error| self.start.explain("look at", error))?;
        if !kind.is_dir() {
            // What was named itself is visited, whatever the ignore files say.
            let _ = visit(Found {
                path: self.start.clone(),
                below: self.start.name().to_owned(),
                kind: kind.file_type(),
            });
            return Ok(unreadable);
        }
        let mut ignored = (!self.ignored).then(|| Ignored::above(self.start));
        let start = list(self.start).map_err(|error| self.start.explain("list", error))?;
        let mut folders = vec![Folder::enter(self.start.clone(), None, start, &mut ignored)];
        while let Some(folder) = folders.last_mut() {
            let Some((name, kind)) = folder.entries.next() else {
                if let (Some(ignored), Some(left)) = (&mut ignored, folders.pop()) {
                    ignored.leave(left.rules);
                }
                continue;
            };
            let path = folder.path.entry(&name);
            let below = match &folder.below {
                Some(folder) => format!("{folder}/{name}"),
                None => name.clone(),
            };
            if self.skips(&name, &below, kind, &path, ignored.as_ref()) {
                continue;
            }
            if visit(Found { path: path.clone(), below: below.clone(), kind }).is_break() {
                break;
            }
            if kind.is_dir() {
                match list(&path) {
                    Ok(entries) => {
                        folders.push(Folder::enter(path, Some(below), entries, &mut ignored));
                    }
                    Err(_) => unreadable.add(path.to_string()),
                }
            }
        }
        Ok(unreadable)
    }

    fn skips(
        &self,
        name: &str,
        below: &str,
        kind: FileType,
        path: &WorkspacePath,
        ignored: Option<&Ignored>,
    ) -> bool {
        name == ".git"
            || (!self.hidden && name.starts_with('.'))
            || self.globs.exclude(below)
            || ignored.is_some_and(|ignored| ignored.has(path, kind.is_dir()))
    }
}

type Entries = Vec<(String, FileType)>;

/// A folder that is being walked.
struct Folder {
    path: WorkspacePath,
    /// The path below the start; none for the start itself.
    below: Option<String>,
    entries: std::vec::IntoIter<(String, FileType)>,
    /// How many lists of rules it brought.
    rules: usize,
}

impl Folder {
    fn enter(
        path: WorkspacePath,
        below: Option<String>,
        entries: Entries,
        ignored: &mut Option<Ignored>,
    ) -> Self {
        let names = entries.iter().map(|(name, _)| name.as_str());
        let rules = ignored.as_mut().map_or(0, |ignored| ignored.enter(&path, names));
        Self { path, below, entries: entries.into_iter(), rules }
    }
}

/// The entries of a folder, sorted by name.
fn list(path: &WorkspacePath) -> io::Result<Entries> {
    let mut entries = fs::read_dir(path.place())?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?))
        })
        .collect::<io::Result<Entries>>()?;
    entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(entries)
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
            ("x/../src", &[], (false, false), "x/../src/a.rs x/../src/b.rs"),
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
    fn rules_read_as_git_reads_them() {
        for (rules, left) in [
            ("", "a.log b/a.log b/c/a.log b/c/x"),
            ("*.log", "b/c/x"),
            ("/a.log", "b/a.log b/c/a.log b/c/x"),
            ("c/", "a.log b/a.log"),
            ("b/c", "a.log b/a.log"),
            ("b/*.log", "a.log b/c/a.log b/c/x"),
            ("**/c/*.log", "a.log b/a.log b/c/x"),
            ("b/**", "a.log"),
            ("*.log\n!b/a.log", "b/a.log b/c/x"),
            // What lies in a folder that is left out cannot come back.
            ("b/\n!b/a.log", "a.log"),
            ("# *.log\n\n\\#x\n", "a.log b/a.log b/c/a.log b/c/x"),
            ("\u{feff}*.log  \r\n", "b/c/x"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("b/c")).unwrap();
            for file in ["a.log", "b/a.log", "b/c/a.log", "b/c/x"] {
                fs::write(folder.path().join(file), "x").unwrap();
            }
            for place in [".gitignore", ".ignore", ".git/info/exclude"] {
                let place = folder.path().join(place);
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                fs::write(&place, rules).unwrap();
                assert_eq!(files(&folder, ".", &[], (false, false)), left, "{place:?}: {rules:?}");
                fs::remove_file(place).unwrap();
            }
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
