//! What is taken from the matches of one file: the lines that are shown, and counts. It knows
//! neither other files nor the limits of a whole search, only the room that is left.

use crate::pattern::{Pattern, without_end};
use belljar_workspace_path::{WorkspacePath, cut};
use std::collections::VecDeque;

/// How much of a line is shown.
const LINE_BYTES: usize = 400;
/// How much of a longer line is shown before the match.
const BEFORE_BYTES: usize = 100;

/// How much may still be shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) matches: u64,
    pub(crate) bytes: usize,
    /// How many lines around each match.
    pub(crate) context: usize,
}

/// The matches of one file.
pub(crate) struct FileMatches<'a> {
    pub(crate) text: String,
    /// How many matches are in `text`.
    pub(crate) shown: u64,
    pub(crate) found: u64,
    path: &'a WorkspacePath,
    pattern: &'a Pattern,
    room: Room,
    is_full: bool,
    /// The line that was shown last.
    last: Option<u64>,
}

impl<'a> FileMatches<'a> {
    pub(crate) fn new(path: &'a WorkspacePath, pattern: &'a Pattern, room: Room) -> Self {
        Self {
            text: String::new(),
            shown: 0,
            found: 0,
            path,
            pattern,
            room,
            is_full: room.matches == 0,
            last: None,
        }
    }

    pub(crate) fn context(&self) -> usize {
        self.room.context
    }

    /// Adds a match, after the lines around it that were not shown yet.
    pub(crate) fn add(&mut self, number: u64, line: &[u8], before: &VecDeque<(u64, Vec<u8>)>) {
        self.found += 1;
        if self.is_full {
            return;
        }
        let first = before.front().map_or(number, |(number, _)| *number);
        let mut text = String::new();
        // Only blocks of lines are set apart, not single matches.
        if self.room.context > 0 && self.last.is_some_and(|last| last + 1 < first) {
            text.push_str("--\n");
        }
        for (number, line) in before {
            text.push_str(&self.line('-', *number, line));
        }
        text.push_str(&self.line(':', number, line));
        if self.shown == self.room.matches || self.text.len() + text.len() > self.room.bytes {
            self.is_full = true;
            return;
        }
        self.text.push_str(&text);
        self.shown += 1;
        self.last = Some(number);
    }

    /// Adds a line after a match.
    pub(crate) fn add_after(&mut self, number: u64, line: &[u8]) {
        let text = self.line('-', number, line);
        if !self.is_full && self.text.len() + text.len() <= self.room.bytes {
            self.text.push_str(&text);
            self.last = Some(number);
        }
    }

    fn line(&self, sign: char, number: u64, bytes: &[u8]) -> String {
        format!("{}{sign}{number}{sign} {}\n", self.path, self.around(without_end(bytes)))
    }

    /// A line, or what is around the match in a long one.
    fn around(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        if text.len() <= LINE_BYTES {
            return text.into_owned();
        }
        let found = self.pattern.start(line).unwrap_or(0);
        // Where bytes were replaced, places in the text lie further back than in the line.
        let start = String::from_utf8_lossy(&line[..found]).len().saturating_sub(BEFORE_BYTES);
        let start = text.floor_char_boundary(start);
        let shown = cut(&text[start..], LINE_BYTES);
        let (head, tail) = (
            if start > 0 { "… " } else { "" },
            if start + shown.len() < text.len() { " …" } else { "" },
        );
        format!("{head}{shown}{tail}")
    }
}
