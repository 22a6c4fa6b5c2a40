//! `find_files`: files by their names, in all folders below one.

use belljar_sdk::prelude::*;
use belljar_workspace_path::{Globs, Unreadable, Walk, Workspace, WorkspacePath, count, number};
use std::ops::ControlFlow;

/// How many paths are shown where no limit was given.
const SHOWN: usize = 500;
/// How many paths may be asked for.
const MOST: usize = 5_000;
/// How much text is shown: below what a result may have.
const TEXT_BYTES: usize = 50 * 1024;
/// How many files and folders are looked at.
const LOOKED_AT: u64 = 1_000_000;

#[arguments]
pub(crate) struct FindFiles {
    /// A glob: `*.rs` fits names at any depth, `src/**/*.rs` fits paths below `path`. `{a,b}` and
    /// `[ab]` work too; one that ends in `/` finds folders.
    pattern: String,
    /// The folder to look in, relative to the workspace. Default: `.`, all of it.
    path: Option<String>,
    /// Whether to look at names that begin with a dot too.
    #[serde(default)]
    hidden: bool,
    /// Whether to look at what `.gitignore` files leave out too.
    #[serde(default)]
    ignored: bool,
    /// How many paths to return at most. Default: 500.
    limit: Option<usize>,
}

/// Finds files by a glob, in a folder and all below it. What `.gitignore` files leave out, hidden
/// names and `.git` are skipped unless asked for. Returns paths relative to the workspace, sorted,
/// one a line, and how many more there are. To find files by what is in them, use `search_text`.
#[tool(read_only, idempotent, title = "Find files")]
pub(crate) fn find_files(arguments: FindFiles) -> Result<Output, Failure> {
    find(&Workspace::of_this_call(), &arguments)
}

fn find(workspace: &Workspace, arguments: &FindFiles) -> Result<Output, Failure> {
    let path = workspace.path(arguments.path.as_deref().unwrap_or("."))?;
    let limit = arguments.limit.unwrap_or(SHOWN);
    if limit == 0 || limit > MOST {
        return Err(Failure::invalid_arguments(format!("`limit` is 1 to {MOST}, was {limit}")));
    }
    let (pattern, folders) = match arguments.pattern.strip_suffix('/') {
        Some(folder) => (folder, true),
        None => (arguments.pattern.as_str(), false),
    };
    if pattern.starts_with('!') {
        return Err(Failure::invalid_arguments(
            "`pattern` begins with `!`: say what to find, not what to leave out",
        ));
    }
    let globs = Globs::new([pattern])?;
    let walk =
        Walk { start: &path, globs: &globs, hidden: arguments.hidden, ignored: arguments.ignored };
    let mut found = Found { limit, ..Found::default() };
    let unreadable = walk.visit(|entry| {
        if found.looked_at == LOOKED_AT {
            found.is_cut_short = true;
            return ControlFlow::Break(());
        }
        found.looked_at += 1;
        if entry.kind.is_dir() == folders && globs.take(&entry.below) {
            found.add(&entry.path, folders);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Output::text(found.answer(arguments, &path, &unreadable)))
}

#[derive(Default)]
struct Found {
    text: String,
    shown: u64,
    fitting: u64,
    looked_at: u64,
    is_cut_short: bool,
    limit: usize,
}

impl Found {
    fn add(&mut self, path: &WorkspacePath, is_folder: bool) {
        self.fitting += 1;
        let line = format!("{path}{}\n", if is_folder { "/" } else { "" });
        // The paths shown are the first ones: none after one that was left out.
        let fits = self.text.len() + line.len() <= TEXT_BYTES;
        if self.shown == self.fitting - 1 && self.shown < self.limit as u64 && fits {
            self.text.push_str(&line);
            self.shown += 1;
        }
    }

    fn answer(
        self,
        arguments: &FindFiles,
        path: &WorkspacePath,
        unreadable: &Unreadable,
    ) -> String {
        let mut notes = Vec::new();
        if self.fitting == 0 {
            notes.push(format!("nothing below `{path}` fits `{}`", arguments.pattern));
            let skipped = match (arguments.hidden, arguments.ignored) {
                (false, false) => "; names with a leading dot and ignored ones were skipped",
                (false, true) => "; names with a leading dot were skipped",
                (true, false) => "; ignored ones were skipped",
                (true, true) => "",
            };
            notes.push(format!("{} looked at{skipped}", count(self.looked_at, "name")));
        } else if self.shown < self.fitting {
            notes.push(format!(
                "{} of {} shown: narrow the glob or the folder down, or raise `limit`",
                number(self.shown),
                number(self.fitting)
            ));
        } else {
            notes.push(format!("{} found", number(self.fitting)));
        }
        if self.is_cut_short {
            notes.push("there is more, which was not looked at: narrow the folder down".to_owned());
        }
        notes.extend(unreadable.note());
        format!("{}[{}]", self.text, notes.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};
    use belljar_sdk::serde_json::Value;

    fn folder() -> Folder {
        Folder::with(&[
            (".gitignore", b"/target\n"),
            (".github/ci.yml", b""),
            (".git/config", b""),
            ("README.md", b""),
            ("src/main.rs", b""),
            ("src/net/tcp.rs", b""),
            ("src/net/notes.md", b""),
            ("target/out.rs", b""),
        ])
    }

    #[test]
    fn globs_find_files_at_their_depths() {
        let folder = folder();
        for (call, text) in [
            (json!({"pattern": "*.rs"}), "src/main.rs\nsrc/net/tcp.rs\n[2 found]"),
            (json!({"pattern": "**/*.rs"}), "src/main.rs\nsrc/net/tcp.rs\n[2 found]"),
            (json!({"pattern": "src/*.rs"}), "src/main.rs\n[1 found]"),
            (
                json!({"pattern": "*.{md,rs}", "path": "src/net"}),
                "src/net/notes.md\nsrc/net/tcp.rs\n[2 found]",
            ),
            (json!({"pattern": "net/*.rs", "path": "src"}), "src/net/tcp.rs\n[1 found]"),
            (json!({"pattern": "README.md"}), "README.md\n[1 found]"),
            (json!({"pattern": "n*/"}), "src/net/\n[1 found]"),
            (json!({"pattern": "*.yml", "hidden": true}), ".github/ci.yml\n[1 found]"),
            (
                json!({"pattern": "*.rs", "ignored": true}),
                "src/main.rs\nsrc/net/tcp.rs\ntarget/out.rs\n[3 found]",
            ),
            (
                json!({"pattern": "*.rs", "limit": 1}),
                "src/main.rs\n[1 of 2 shown: narrow the glob or the folder down, or raise `limit`]",
            ),
            (
                json!({"pattern": "config", "hidden": true}),
                "[nothing below `.` fits `config`; 9 names looked at; ignored ones were skipped]",
            ),
            (
                json!({"pattern": "*.py"}),
                "[nothing below `.` fits `*.py`; 6 names looked at; names with a leading dot and \
                 ignored ones were skipped]",
            ),
        ] {
            let output = find(&folder.workspace, &arguments(call.clone()));
            assert_eq!(output, Ok(texts(&[text])), "{call}");
        }
    }

    #[test]
    fn many_files_are_capped_and_counted() {
        let folder = Folder::with(&[]);
        for number in 0..520 {
            std::fs::write(folder.place(&format!("f{number:04}")), "").unwrap();
        }
        let lines: String = (0..500).map(|number| format!("f{number:04}\n")).collect();
        let note = "[500 of 520 shown: narrow the glob or the folder down, or raise `limit`]";
        let output = find(&folder.workspace, &arguments(json!({"pattern": "f*"})));
        assert_eq!(output, Ok(texts(&[&format!("{lines}{note}")])));
    }

    #[test]
    fn what_cannot_be_looked_for_says_why() {
        let folder = folder();
        let invalid = |text: &str| Failure::invalid_arguments(text);
        let cases: [(Value, Failure); 6] = [
            (
                json!({"pattern": ""}),
                invalid("`` is no glob: write one such as `*.rs` or `src/**/*.rs`"),
            ),
            (
                json!({"pattern": "a{b"}),
                invalid(
                    "`a{b` is not a glob: unclosed brace expansion at byte 1; missing '}' (to match \
                     a literal '{', escape it as '\\{' or '[{]')",
                ),
            ),
            (
                json!({"pattern": "!*.rs"}),
                invalid("`pattern` begins with `!`: say what to find, not what to leave out"),
            ),
            (json!({"pattern": "*", "limit": 0}), invalid("`limit` is 1 to 5000, was 0")),
            (
                json!({"pattern": "*", "path": "scr"}),
                Failure::failed("`scr` does not exist; did you mean `src`?"),
            ),
            (
                json!({"pattern": "/etc/*"}),
                Failure::denied(
                    "`/etc/*` leads out of the folder that is looked at: write the glob relative \
                     to it, such as `src/**/*.rs`",
                ),
            ),
        ];
        for (call, failure) in cases {
            assert_eq!(find(&folder.workspace, &arguments(call)), Err(failure));
        }
    }
}
