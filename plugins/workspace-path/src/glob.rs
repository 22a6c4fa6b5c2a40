//! Globs as the tools take them. A glob without `/` is about names at any depth; one with `/` is
//! about the path below the folder that is looked at. It never reads a folder.

use belljar_sdk::Failure;

/// Globs that a file must fit (any of them; with none, every file does) and, with a leading `!`,
/// globs that it must not.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl Globs {
    /// # Errors
    ///
    /// `invalid arguments` for what is not a glob, `denied` for one that leads out of the
    /// workspace.
    pub fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let mut set = Self::default();
        for text in globs {
            let (glob, excludes) = match text.strip_prefix('!') {
                Some(rest) => (rest, true),
                None => (text, false),
            };
            check(glob, text)?;
            let mut glob = glob;
            while let Some(rest) = glob.strip_prefix("./") {
                glob = rest;
            }
            if excludes {
                let glob = glob.trim_end_matches('/');
                // The folder too, not only what is in it, so that it is not walked at all.
                let folder = glob.strip_suffix("/**").filter(|folder| !folder.is_empty());
                set.exclude.extend(folder.map(at_its_depth));
                set.exclude.push(at_its_depth(glob));
            } else if let Some(folder) = glob.strip_suffix('/') {
                set.include.push(format!("{folder}/**"));
            } else {
                set.include.push(at_its_depth(glob));
            }
        }
        Ok(set)
    }

    /// Whether a file fits, by its path below the folder that is looked at.
    pub fn take(&self, below: &str) -> bool {
        !self.exclude(below) && (self.include.is_empty() || fits(&self.include, below))
    }

    /// Whether a file or folder, with all that is in it, is excluded.
    pub fn exclude(&self, below: &str) -> bool {
        fits(&self.exclude, below)
    }
}

fn fits(globs: &[String], below: &str) -> bool {
    globs.iter().any(|glob| fast_glob::glob_match(glob, below))
}

fn at_its_depth(glob: &str) -> String {
    if glob.contains('/') { glob.to_owned() } else { format!("**/{glob}") }
}

fn check(glob: &str, text: &str) -> Result<(), Failure> {
    if glob.trim_matches(['.', '/']).is_empty() || glob.starts_with('!') {
        return Err(Failure::invalid_arguments(format!(
            "`{text}` is no glob: write one such as `*.rs` or `src/**/*.rs`"
        )));
    }
    if glob.starts_with('/') || glob.split('/').any(|step| step == "..") {
        return Err(Failure::denied(format!(
            "`{text}` leads out of the folder that is looked at: write the glob relative to it, \
             such as `src/**/*.rs`"
        )));
    }
    fast_glob::validate(glob)
        .map_err(|error| Failure::invalid_arguments(format!("`{text}` is not a glob: {error}")))
}

#[cfg(test)]
mod tests {
    use super::{Failure, Globs};

    #[test]
    fn what_globs_take() {
        let files =
            ["a.rs", "b.md", "src/a.rs", "src/deep/c.rs", "target/x.rs", ".env", "src/.env"];
        for (globs, taken) in [
            (vec![], files.to_vec()),
            (vec!["*.rs"], vec!["a.rs", "src/a.rs", "src/deep/c.rs", "target/x.rs"]),
            (vec!["**/*.rs"], vec!["a.rs", "src/a.rs", "src/deep/c.rs", "target/x.rs"]),
            (vec!["a.rs"], vec!["a.rs", "src/a.rs"]),
            (vec!["./a.rs"], vec!["a.rs", "src/a.rs"]),
            (vec!["src/*.rs"], vec!["src/a.rs"]),
            (vec!["src/**"], vec!["src/a.rs", "src/deep/c.rs", "src/.env"]),
            (vec!["src/"], vec!["src/a.rs", "src/deep/c.rs", "src/.env"]),
            (vec!["*/*.rs"], vec!["src/a.rs", "target/x.rs"]),
            (vec!["*.{rs,md}", "!target"], vec!["a.rs", "b.md", "src/a.rs", "src/deep/c.rs"]),
            (vec!["*.rs", "!a.rs"], vec!["src/deep/c.rs", "target/x.rs"]),
            (vec!["!*.rs"], vec!["b.md", ".env", "src/.env"]),
            (vec!["?.md"], vec!["b.md"]),
            (vec!["[ab].rs"], vec!["a.rs", "src/a.rs"]),
            (vec!["*"], files.to_vec()),
            (vec!["nothing"], vec![]),
        ] {
            let set = Globs::new(globs.iter().copied()).unwrap();
            let found: Vec<&str> = files
                .into_iter()
                .filter(|file| {
                    set.take(file) && !file.split_once('/').is_some_and(|(top, _)| set.exclude(top))
                })
                .collect();
            assert_eq!(found, taken, "{globs:?}");
        }
    }

    #[test]
    fn an_excluded_folder_is_not_entered_however_it_is_spelt() {
        for glob in ["!target", "!target/", "!target/**"] {
            let set = Globs::new([glob]).unwrap();
            assert_eq!((set.exclude("target"), set.exclude("target/x"), set.exclude("src")), {
                // The walk stops at the folder; only `/**` speaks of its files too.
                (true, glob == "!target/**", false)
            });
        }
    }

    #[test]
    fn what_is_no_glob_says_why() {
        for (glob, failure) in [
            (
                "",
                Failure::invalid_arguments(
                    "`` is no glob: write one such as `*.rs` or `src/**/*.rs`",
                ),
            ),
            (
                "a[",
                Failure::invalid_arguments(
                    "`a[` is not a glob: unclosed character class at byte 1; missing ']' (to match a \
                     literal '[', escape it as '\\[' or '[[]')",
                ),
            ),
            (
                "/etc/*",
                Failure::denied(
                    "`/etc/*` leads out of the folder that is looked at: write the glob relative \
                     to it, such as `src/**/*.rs`",
                ),
            ),
            (
                "../*",
                Failure::denied(
                    "`../*` leads out of the folder that is looked at: write the glob relative to \
                     it, such as `src/**/*.rs`",
                ),
            ),
        ] {
            assert_eq!(Globs::new([glob]).unwrap_err(), failure);
        }
    }
}
