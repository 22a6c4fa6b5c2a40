//! `search_text`: the lines of many files that fit a pattern.

use crate::{
    answer::Answer,
    lines::{self, Searched},
    pattern::Pattern,
    sink::{FileMatches, Room},
};
use belljar_sdk::prelude::*;
use belljar_workspace_path::{Globs, Walk, Workspace, WorkspacePath};
use std::{fs::File, ops::ControlFlow, time::Duration};

/// How many matches are shown where no limit was given.
const MATCHES: u64 = 200;
/// How many matches may be asked for.
const MOST_MATCHES: u64 = 2_000;
/// How many lines may be shown around a match.
const MOST_CONTEXT: usize = 50;
/// How many matches are counted when no more are shown.
const COUNTED: u64 = 100_000;
/// How much text is shown: below what a result may have, with room for the counts.
const TEXT_BYTES: usize = 50 * 1024;
/// Up to which size a file that was not named itself is searched.
const FILE_BYTES: u64 = 64 * 1024 * 1024;
/// After how many files people hear how far the search is.
const PROGRESS: u64 = 1_000;

#[arguments]
pub(crate) struct SearchText {
    /// A regular expression (Rust syntax, without look-around), matched within one line.
    pattern: String,
    /// The file or folder to search, relative to the workspace. Default: `.`, all of it.
    path: Option<String>,
    /// Which files to search: a glob such as `*.rs` or `src/**/*.rs`, or several. A leading `!`
    /// excludes: `!*.lock`, `!docs/**`.
    glob: Option<GlobArgument>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Whether `pattern` is a plain text, not a regular expression.
    #[serde(default)]
    literal: bool,
    /// How many lines to show before and after each match. Default: 0.
    #[serde(default)]
    context: usize,
    /// Whether to return only the files that have matches, with their number.
    #[serde(default)]
    files_only: bool,
    /// Whether to search names that begin with a dot too.
    #[serde(default)]
    hidden: bool,
    /// Whether to search what `.gitignore` files leave out too.
    #[serde(default)]
    ignored: bool,
    /// How many matches to show at most. Default: 200.
    limit: Option<u64>,
}

/// One glob or several.
#[arguments]
#[serde(untagged, expecting = "expected a glob, or an array of globs")]
pub(crate) enum GlobArgument {
    One(String),
    Many(Vec<String>),
}

/// Searches the text of files for a pattern. Returns the lines that match as `path:line: text`,
/// those around them (`context`) as `path-line- text`, sorted by path, then in brackets how many
/// matches and files there are. What `.gitignore` files leave out, hidden names, `.git` and binary
/// files are skipped unless asked for. To find files by name, use `find_files`.
#[tool(read_only, idempotent, title = "Search text")]
pub(crate) fn search_text(arguments: SearchText) -> Result<Output, Failure> {
    search(&Workspace::of_this_call(), &arguments, &host::remaining)
}

fn search(
    workspace: &Workspace,
    arguments: &SearchText,
    remaining: &dyn Fn() -> Duration,
) -> Result<Output, Failure> {
    let path = workspace.path(arguments.path.as_deref().unwrap_or("."))?;
    let limit = arguments.limit.unwrap_or(MATCHES);
    if limit == 0 || limit > MOST_MATCHES {
        return Err(Failure::invalid_arguments(format!(
            "`limit` is 1 to {MOST_MATCHES}, was {limit}"
        )));
    }
    if arguments.context > MOST_CONTEXT {
        return Err(Failure::invalid_arguments(format!(
            "`context` is at most {MOST_CONTEXT} lines, was {}: read the file instead",
            arguments.context
        )));
    }
    let globs = match &arguments.glob {
        None => Globs::new([])?,
        Some(GlobArgument::One(glob)) => Globs::new([glob.as_str()])?,
        Some(GlobArgument::Many(globs)) => Globs::new(globs.iter().map(String::as_str))?,
    };
    let pattern = Pattern::new(&arguments.pattern, arguments.literal, arguments.ignore_case)?;
    let walk =
        Walk { start: &path, globs: &globs, hidden: arguments.hidden, ignored: arguments.ignored };
    // An answer in time with what was found is worth more than none.
    let reserve = remaining() / 10;
    let mut search = Search {
        pattern,
        answer: Answer::default(),
        files_only: arguments.files_only,
        context: arguments.context,
        limit,
    };
    let unreadable = walk.visit(|found| {
        let is_named = !path.is_workspace() && found.path.to_string() == path.to_string();
        if !found.kind.is_file() || !(is_named || globs.take(&found.below)) {
            return ControlFlow::Continue(());
        }
        if remaining() < reserve {
            search.answer.out_of_time = true;
            return ControlFlow::Break(());
        }
        search.file(&found.path, is_named);
        if search.answer.found >= COUNTED {
            search.answer.counted_in_part = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    search.answer.unreadable.extend(unreadable);
    Ok(Output::text(search.answer.text(arguments.pattern.as_str(), &path, limit)))
}

struct Search {
    pattern: Pattern,
    answer: Answer,
    files_only: bool,
    context: usize,
    limit: u64,
}

impl Search {
    fn file(&mut self, path: &WorkspacePath, is_named: bool) {
        let answer = &mut self.answer;
        let Ok(file) = File::open(path.place()) else {
            return answer.unreadable.add(path.to_string());
        };
        if !is_named && file.metadata().is_ok_and(|file| file.len() > FILE_BYTES) {
            answer.too_large += 1;
            return;
        }
        let room = if self.files_only || answer.is_full {
            Room { matches: 0, bytes: 0, context: 0 }
        } else {
            Room {
                matches: self.limit - answer.shown,
                bytes: TEXT_BYTES.saturating_sub(answer.text.len()),
                context: self.context,
            }
        };
        let mut matches = FileMatches::new(path, &self.pattern, room);
        match lines::search(&file, &self.pattern, &mut matches) {
            Ok(Searched::ToItsEnd) => {
                answer.add(path, &matches, self.files_only, self.limit, TEXT_BYTES);
            }
            Ok(Searched::Binary) => answer.binary += 1,
            Ok(Searched::TooLarge) => answer.too_large += 1,
            Err(_) => answer.unreadable.add(path.to_string()),
        }
        if answer.searched > 0 && answer.searched.is_multiple_of(PROGRESS) {
            host::progress(answer.searched, None, "files searched");
        }
    }
}

#[cfg(test)]
mod tests;
