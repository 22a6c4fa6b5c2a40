//! The answer to a search: what is shown, what is only counted, and what was not searched.

use crate::sink::FileMatches;
use belljar_workspace_path::{Unreadable, WorkspacePath, count, number};

#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Matches in `text`, or with files only the files in it.
    pub(crate) shown: u64,
    pub(crate) found: u64,
    pub(crate) files: u64,
    pub(crate) searched: u64,
    pub(crate) binary: u64,
    pub(crate) too_large: u64,
    pub(crate) unreadable: Unreadable,
    /// Nothing more is shown: matches are only counted.
    pub(crate) is_full: bool,
    pub(crate) out_of_time: bool,
    pub(crate) counted_in_part: bool,
    files_only: bool,
}

impl Answer {
    /// Adds a file that was searched to its end.
    pub(crate) fn add(
        &mut self,
        path: &WorkspacePath,
        matches: &FileMatches<'_>,
        files_only: bool,
        limit: u64,
        bytes: usize,
    ) {
        self.files_only = files_only;
        self.searched += 1;
        self.found += matches.found;
        self.files += u64::from(matches.found > 0);
        if files_only && matches.found > 0 && !self.is_full {
            let line = format!("{path}: {}\n", count(matches.found, "match"));
            self.is_full = self.shown == limit || self.text.len() + line.len() > bytes;
            if !self.is_full {
                self.text.push_str(&line);
                self.shown += 1;
            }
        } else if !files_only {
            self.text.push_str(&matches.text);
            self.shown += matches.shown;
            self.is_full |= matches.shown < matches.found;
        }
    }

    pub(crate) fn text(mut self, pattern: &str, path: &WorkspacePath, limit: u64) -> String {
        let mut notes = vec![self.counts(pattern, path, limit)];
        if self.out_of_time {
            notes.push(
                "the time for this call was nearly over, and the rest was not searched: narrow \
                 down with `path` or `glob`"
                    .to_owned(),
            );
        }
        if self.binary > 0 {
            notes.push(format!("{} skipped", count(self.binary, "binary file")));
        }
        if self.too_large > 0 {
            notes.push(format!("{} skipped", count(self.too_large, "very large file")));
        }
        notes.extend(self.unreadable.note());
        self.text.push_str(&format!("[{}]", notes.join("; ")));
        self.text
    }

    fn counts(&self, pattern: &str, path: &WorkspacePath, limit: u64) -> String {
        let searched = count(self.searched, "file");
        if self.found == 0 {
            return match self.searched {
                0 => format!("nothing was searched: no file below `{path}` was taken"),
                _ => format!("no match for `{pattern}` in {searched}"),
            };
        }
        let at_least = if self.counted_in_part || self.out_of_time { "at least " } else { "" };
        let files = count(self.files, "file");
        let total = if self.files_only { self.files } else { self.found };
        if self.shown == total {
            return format!(
                "{at_least}{} in {files}, of {} searched",
                count(self.found, "match"),
                number(self.searched)
            );
        }
        let (noun, within) = if self.files_only {
            ("files with matches", String::new())
        } else {
            ("matches", format!(", in {at_least}{files}"))
        };
        let advice = if self.shown == limit { ", or raise `limit`" } else { "" };
        format!(
            "{} of {at_least}{} {noun} shown{within}, of {} searched: narrow down with `path` or \
             `glob`{advice}",
            number(self.shown),
            number(total),
            number(self.searched)
        )
    }
}
