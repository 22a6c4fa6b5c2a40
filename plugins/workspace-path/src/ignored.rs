//! What `.gitignore` and `.ignore` files leave out. The rules are git's own, by gitoxide; which
//! files of rules hold where is settled here. It reads nothing but those files.

use crate::WorkspacePath;
use gix_ignore::{
    Search,
    glob::{
        pattern::Case,
        search::{Pattern as _, pattern::List},
    },
    search::Ignore,
};
use std::{fs, path::Path};

/// Later ones win over earlier ones, and those of a folder over those above it.
const FILES: [&str; 2] = [".gitignore", ".ignore"];
/// What a repository's owner ignores without saying so in a file of the repository.
const EXCLUDE: &str = ".git/info/exclude";
/// Up to which size such a file is read.
const FILE_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Ignored {
    search: Search,
}

impl Ignored {
    /// The rules that hold in a folder, without its own.
    pub(crate) fn above(start: &WorkspacePath) -> Self {
        let mut ignored = Self::default();
        let root = start.workspace().root();
        ignored.add(&root.join(EXCLUDE), "");
        let normal = start.normal();
        // `a/b/c` has the workspace, `a` and `a/b` above it.
        let above = normal.match_indices('/').map(|(end, _)| &normal[..end]);
        let workspace = (!normal.is_empty()).then_some("");
        for folder in workspace.into_iter().chain(above) {
            for file in FILES {
                ignored.add(&root.join(folder).join(file), folder);
            }
        }
        ignored
    }

    /// Takes on the rules of a folder that has these entries, and says how many lists they are.
    pub(crate) fn enter<'a>(
        &mut self,
        folder: &WorkspacePath,
        names: impl Iterator<Item = &'a str>,
    ) -> usize {
        let before = self.search.patterns.len();
        let mut found = [false; FILES.len()];
        for name in names {
            if let Some(index) = FILES.iter().position(|file| *file == name) {
                found[index] = true;
            }
        }
        let normal = folder.normal();
        for (file, _) in FILES.iter().zip(found).filter(|(_, found)| *found) {
            self.add(&folder.place().join(file), &normal);
        }
        self.search.patterns.len() - before
    }

    /// Gives up the rules of the folder entered last.
    pub(crate) fn leave(&mut self, rules: usize) {
        self.search.patterns.truncate(self.search.patterns.len() - rules);
    }

    /// Whether the rules leave this path out. The folders above it are not asked about.
    pub(crate) fn has(&self, path: &WorkspacePath, is_folder: bool) -> bool {
        let normal = path.normal();
        self.search
            .pattern_matching_relative_path(
                normal.as_str().into(),
                Some(is_folder),
                Case::Sensitive,
            )
            .is_some_and(|found| !found.pattern.is_negative())
    }

    /// With a folder, a path relative to the workspace, the rules hold in it only.
    fn add(&mut self, place: &Path, folder: &str) {
        // A file of rules that cannot be read leaves nothing out.
        let is_small =
            place.metadata().is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES);
        if let Some(rules) = is_small.then(|| fs::read(place).ok()).flatten() {
            self.search.patterns.push(List {
                patterns: Ignore::default().bytes_to_patterns(&rules, place),
                source: None,
                base: (!folder.is_empty()).then(|| format!("{folder}/").into()),
            });
        }
    }
}
