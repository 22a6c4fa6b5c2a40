//! Markdown that arrives in pieces: blocks are handed out once nothing that comes can change them.
//!
//! Looks at whole lines only, so that what is handed out is the same however the text was cut.

use super::{
    highlight::Highlighter,
    markdown::{self, CODE_INDENT},
};
use crate::visible;
use ratatui_core::text::{Line, Span};

/// A line, or a block, of this many bytes is taken as ended: a text without an end must not cost
/// more with every piece.
const LONGEST: usize = 16 << 10;
/// A block of up to this many bytes is looked at with every line; a longer one when it has grown by
/// a sixteenth, so that a long list does not cost more with every item.
const SHORT: usize = 2 << 10;

/// A text that is still being written.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    visible: visible::Stream,
    /// Whole lines of blocks that are not finished.
    block: String,
    /// The line that has not ended.
    line: String,
    /// How long the block was when it was looked at last.
    looked_at: usize,
    code: Option<Code>,
    /// A block was handed out, so that the next one stands apart.
    has_begun: bool,
}

/// Fenced code, handed out line by line.
#[derive(Debug)]
struct Code {
    highlighter: Highlighter,
    fence: char,
    length: usize,
    indent: usize,
}

impl MarkdownStream {
    /// Takes a piece; what is finished comes back as lines of at most `columns`.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let shown = self.visible.push(text);
        for c in shown.chars() {
            self.line.push(c);
            if c == '\n' || self.line.len() >= LONGEST {
                self.end_line(columns, &mut lines);
            }
        }
        lines
    }

    /// The end of the text.
    pub(crate) fn end(&mut self, columns: usize) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let rest = self.visible.end();
        self.line.push_str(&rest);
        if !self.line.is_empty() {
            self.end_line(columns, &mut lines);
        }
        let block = std::mem::take(&mut self.block);
        self.hand_out(&block, columns, &mut lines);
        *self = Self::default();
        lines
    }

    /// What is not finished, as it would look if it ended here.
    pub(crate) fn tail(&self, columns: usize) -> Vec<Line<'static>> {
        if let Some(code) = &self.code {
            if self.line.is_empty() {
                return Vec::new();
            }
            let mut plain = Highlighter::new("");
            let text = strip_indent(&self.line, code.indent);
            return markdown::code_line(&mut plain, text, &[Span::raw(CODE_INDENT)], columns);
        }
        let mut lines = Vec::new();
        let rendered = markdown::render(&format!("{}{}", self.block, self.line), columns);
        if !rendered.is_empty() && self.has_begun {
            lines.push(Line::default());
        }
        lines.extend(rendered);
        lines
    }

    fn end_line(&mut self, columns: usize, lines: &mut Vec<Line<'static>>) {
        let line = std::mem::take(&mut self.line);
        if let Some(code) = &mut self.code {
            let text = line.strip_suffix('\n').unwrap_or(&line);
            if code.is_end(text) {
                self.code = None;
            } else {
                let text = strip_indent(text, code.indent);
                let prefix = [Span::raw(CODE_INDENT)];
                lines.extend(markdown::code_line(&mut code.highlighter, text, &prefix, columns));
            }
            return;
        }
        self.block.push_str(&line);
        let grown = self.block.len().saturating_sub(self.looked_at);
        let is_due = self.block.len() <= SHORT || grown >= self.block.len() / 16;
        if !is_due && !is_fence(&line) && self.block.len() < LONGEST {
            return;
        }
        let blocks = markdown::blocks(&self.block);
        let Some(last) = blocks.last() else {
            self.block.clear();
            return;
        };
        let start = last.range.start;
        let fenced = last.fenced.clone();
        if start > 0 && blocks.len() > 1 {
            let finished: String = self.block.drain(..start).collect();
            self.hand_out(&finished, columns, lines);
        }
        if let Some(language) = fenced {
            self.begin_code(&language, &line, lines);
        } else if self.block.len() >= LONGEST {
            let block = std::mem::take(&mut self.block);
            self.hand_out(&block, columns, lines);
        }
        self.looked_at = self.block.len();
    }

    /// `line`, the last of the block, opens fenced code.
    fn begin_code(&mut self, language: &str, line: &str, lines: &mut Vec<Line<'static>>) {
        self.block.clear();
        let opening = line.trim_start_matches(' ');
        let fence = opening.chars().next().unwrap_or('`');
        self.stand_apart(lines);
        self.code = Some(Code {
            highlighter: Highlighter::new(language),
            fence,
            length: opening.chars().take_while(|c| *c == fence).count(),
            indent: line.len() - opening.len(),
        });
    }

    fn hand_out(&mut self, text: &str, columns: usize, lines: &mut Vec<Line<'static>>) {
        let rendered = markdown::render(text, columns);
        if !rendered.is_empty() {
            self.stand_apart(lines);
            lines.extend(rendered);
        }
    }

    fn stand_apart(&mut self, lines: &mut Vec<Line<'static>>) {
        if std::mem::replace(&mut self.has_begun, true) {
            lines.push(Line::default());
        }
    }
}

impl Code {
    fn is_end(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let length = text.chars().take_while(|c| *c == self.fence).count();
        line.len() - text.len() <= 3
            && length >= self.length
            && text.trim_start_matches(self.fence).trim().is_empty()
    }
}

/// Whether the line may open fenced code.
fn is_fence(line: &str) -> bool {
    let text = line.trim_start_matches(' ');
    line.len() - text.len() <= 3 && (text.starts_with("```") || text.starts_with("~~~"))
}

fn strip_indent(line: &str, indent: usize) -> &str {
    let spaces = line.len() - line.trim_start_matches(' ').len();
    &line[spaces.min(indent)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Head\n\nSome *text* that\nis long &#27; ok.\n| a | b |\n|---|---|\n\
        | x | y |\n\n1. one\n\n   ```sh\n   in a list\n   ```\n2. two\n\n\n  ````rust\n  fn a() {}\n\
        ```\n\n    deep\n  ````\nafter\n===\n> q\n\n~~~\nopen \u{1b}[2J 日本\r\nend";

    fn whole(pieces: &[&str]) -> Vec<Line<'static>> {
        let mut stream = MarkdownStream::default();
        let mut lines: Vec<_> = pieces.iter().flat_map(|piece| stream.push(piece, 30)).collect();
        lines.extend(stream.end(30));
        lines
    }

    #[test]
    fn a_text_looks_the_same_however_it_was_cut() {
        let expected = whole(&[TEXT]);
        for (at, _) in TEXT.char_indices() {
            assert_eq!(whole(&[&TEXT[..at], &TEXT[at..]]), expected, "cut at {at}");
        }
        let pieces: Vec<_> = TEXT.split_inclusive(|_| true).collect();
        assert_eq!(whole(&pieces), expected);
    }

    #[test]
    fn what_is_handed_out_in_pieces_is_what_the_whole_would_be() {
        let texts = |lines: &[Line<'_>]| {
            lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&whole(&[TEXT])), texts(&markdown::render(&visible::lines(TEXT), 30)));
    }

    #[test]
    fn blocks_come_when_they_are_finished_and_code_line_by_line() {
        let mut stream = MarkdownStream::default();
        let mut push = |text: &str| {
            let lines = stream.push(text, 30);
            let lines: Vec<_> = lines.iter().map(Line::to_string).collect();
            let tail = stream.tail(30);
            (lines, tail.iter().map(Line::to_string).collect::<Vec<_>>())
        };
        let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(push("one *tw"), (vec![], strings(&["one *tw"])));
        assert_eq!(push("o*\n\n"), (vec![], strings(&["one two"])));
        assert_eq!(push("next\n"), (strings(&["one two"]), strings(&["", "next"])));
        assert_eq!(push("```rs\nlet a"), (strings(&["", "next", ""]), strings(&["  let a"])));
        assert_eq!(push(" = 1;\n"), (strings(&["  let a = 1;"]), vec![]));
        assert_eq!(push("```\nend"), (vec![], strings(&["", "end"])));
    }

    #[test]
    fn a_text_without_an_end_does_not_cost_more_and_more() {
        let mut stream = MarkdownStream::default();
        for _ in 0..10_000 {
            stream.push("word without end\n", 80);
            assert!(stream.block.len() <= LONGEST);
        }
        for _ in 0..5_000 {
            stream.push("word without any newline ", 80);
            assert!(stream.line.len() <= LONGEST);
        }
    }
}
