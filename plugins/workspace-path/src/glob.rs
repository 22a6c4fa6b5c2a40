//! Globs as the tools take them. A glob without `/` is about names at any depth; one with `/` is
//! about the path below the folder that is looked at. It never reads a folder.

use belljar_sdk::Failure;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Globs that a file must fit (any of them; with none, every file does) and, with a leading `!`,
/// globs that it must not.
#[derive(Clone, Debug)]
pub struct Globs {
    include: GlobSet,
    exclude: GlobSet,
}

impl Globs {
    /// # Errors
    ///
    /// `invalid arguments` for what is not a glob, `denied` for one that leads out of the
    /// workspace.
    pub fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let mut include = GlobSetBuilder::new();
        let mut exclude = GlobSetBuilder::new();
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
                // The folder too, not only what is in it, so that it is not walked at all.
                let folder = glob.strip_suffix("/**").unwrap_or(glob).trim_end_matches('/');
                add(&mut exclude, folder, text)?;
                add(&mut exclude, glob.trim_end_matches('/'), text)?;
            } else if let Some(folder) = glob.strip_suffix('/') {
                add(&mut include, &format!("{folder}/**"), text)?;
            } else {
                add(&mut include, glob, text)?;
            }
        }
        let build = |builder: GlobSetBuilder| {
            builder.build().map_err(|error| {
                Failure::invalid_arguments(format!("the globs are too large together: {error}"))
            })
        };
        Ok(Self { include: build(include)?, exclude: build(exclude)? })
    }

    /// Whether a file fits, by its path below the folder that is looked at.
    pub fn take(&self, below: &str) -> bool {
        !self.exclude.is_match(below) && (self.include.is_empty() || self.include.is_match(below))
    }

    /// Whether a file or folder, with all that is in it, is excluded.
    pub fn exclude(&self, below: &str) -> bool {
        self.exclude.is_match(below)
    }
}

fn check(glob: &str, text: &str) -> Result<(), Failure> {
    if glob.is_empty() || glob == "/" {
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
    Ok(())
}

fn add(set: &mut GlobSetBuilder, glob: &str, text: &str) -> Result<(), Failure> {
    let at_any_depth;
    let glob = if glob.contains('/') {
        glob
    } else {
        at_any_depth = format!("**/{glob}");
        &at_any_depth
    };
    let glob = GlobBuilder::new(glob)
        .literal_separator(true)
        .empty_alternates(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| {
            Failure::invalid_arguments(format!("`{text}` is not a glob: {}", error.kind()))
        })?;
    set.add(glob);
    Ok(())
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
                    "`a[` is not a glob: unclosed character class; missing ']'",
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
