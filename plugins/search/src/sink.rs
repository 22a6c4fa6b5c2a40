//! What is taken from the matches of one file: the lines that are shown, and counts. It knows
//! neither other files nor the limits of a whole search, only the room that is left.

use belljar_workspace_path::{WorkspacePath, cut};
use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};
use std::io;

/// How much of a line is shown.
const LINE_BYTES: usize = 400;
/// How much of a longer line is shown before the match.
const BEFORE_BYTES: usize = 100;

/// How much may still be shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) matches: u64,
    pub(crate) bytes: usize,
}

/// The matches of one file.
pub(crate) struct FileMatches<'a> {
    pub(crate) text: String,
    /// How many matches are in `text`.
    pub(crate) shown: u64,
    pub(crate) found: u64,
    pub(crate) is_binary: bool,
    path: &'a WorkspacePath,
    matcher: &'a RegexMatcher,
    room: Room,
    is_full: bool,
    /// Lines before a match that is not there yet.
    before: String,
    /// Whether lines lie between what was shown last and what comes.
    is_apart: bool,
}

impl<'a> FileMatches<'a> {
    pub(crate) fn new(path: &'a WorkspacePath, matcher: &'a RegexMatcher, room: Room) -> Self {
        Self {
            text: String::new(),
            shown: 0,
            found: 0,
            is_binary: false,
            path,
            matcher,
            room,
            is_full: room.matches == 0,
            before: String::new(),
            is_apart: false,
        }
    }

    fn line(&self, sign: char, number: Option<u64>, bytes: &[u8]) -> String {
        let number = number.unwrap_or_default();
        let end = bytes.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |end| end + 1);
        format!("{}{sign}{number}{sign} {}\n", self.path, self.around(&bytes[..end]))
    }

    /// A line, or what is around the match in a long one.
    fn around(&self, line: &[u8]) -> String {
        let text = String::from_utf8_lossy(line);
        if text.len() <= LINE_BYTES {
            return text.into_owned();
        }
        let found = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
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

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found += 1;
        if self.is_full {
            return Ok(true);
        }
        let break_between = if self.is_apart { "--\n" } else { "" };
        let line = format!(
            "{break_between}{}{}",
            self.before,
            self.line(':', found.line_number(), found.bytes())
        );
        self.before.clear();
        self.is_apart = false;
        if self.shown == self.room.matches || self.text.len() + line.len() > self.room.bytes {
            self.is_full = true;
            return Ok(true);
        }
        self.text.push_str(&line);
        self.shown += 1;
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.is_full {
            return Ok(true);
        }
        let line = self.line('-', context.line_number(), context.bytes());
        if *context.kind() == SinkContextKind::Before {
            self.before.push_str(&line);
        } else if self.text.len() + line.len() <= self.room.bytes {
            self.text.push_str(&line);
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.is_apart = true;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.is_binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}
