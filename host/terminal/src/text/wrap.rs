//! Lines no wider than the terminal, broken between words or, where a word is too long, in it.

use crate::visible;
use ratatui_core::{
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns that a tab is shown as.
const TAB: &str = "    ";

/// Columns of a text.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A piece of text that fits a cell, or two.
#[derive(Clone, Debug)]
struct Cell {
    symbol: String,
    style: Style,
    width: usize,
}

/// Breaks between words. The first line begins with `first`, the others with `rest`.
pub(crate) fn words(
    line: &Line<'_>,
    first: &[Span<'static>],
    rest: &[Span<'static>],
    columns: usize,
) -> Vec<Line<'static>> {
    wrap(line, first, rest, columns, true)
}

/// Breaks where the columns end, and keeps every space.
pub(crate) fn hard(
    line: &Line<'_>,
    first: &[Span<'static>],
    rest: &[Span<'static>],
    columns: usize,
) -> Vec<Line<'static>> {
    wrap(line, first, rest, columns, false)
}

/// A text as one line of at most `columns`; what is longer ends in `…`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    let shown = visible::line(text);
    if shown.width() <= columns {
        return shown;
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in shown.graphemes(true) {
        used += grapheme.width();
        if used + 1 > columns {
            break;
        }
        out.push_str(grapheme);
    }
    out.push('…');
    out
}

fn wrap(
    line: &Line<'_>,
    first: &[Span<'static>],
    rest: &[Span<'static>],
    columns: usize,
    at_words: bool,
) -> Vec<Line<'static>> {
    let cells = cells(line);
    let room = |prefix: &[Span<'static>]| {
        columns.saturating_sub(prefix.iter().map(Span::width).sum()).max(2)
    };
    let mut lines = Vec::new();
    let mut start = 0;
    loop {
        let prefix = if lines.is_empty() { first } else { rest };
        let (end, next) = end_of_line(&cells, start, room(prefix), at_words);
        lines.push(assemble(prefix, &cells[start..end]));
        if next >= cells.len() {
            return lines;
        }
        start = next;
    }
}

/// Where the line that starts at `start` ends, and where the next one starts.
fn end_of_line(cells: &[Cell], start: usize, room: usize, at_words: bool) -> (usize, usize) {
    let mut used = 0;
    let mut end = start;
    while end < cells.len() && used + cells[end].width <= room {
        used += cells[end].width;
        end += 1;
    }
    if end >= cells.len() || !at_words {
        // A single symbol that is wider than the room still has to go somewhere.
        let end = if end == start { (start + 1).min(cells.len()) } else { end };
        return (end, end);
    }
    let is_space = |cell: &Cell| cell.symbol == " ";
    let space = (start..=end).rev().find(|index| is_space(&cells[*index]));
    match space.filter(|space| cells[start..*space].iter().any(|cell| !is_space(cell))) {
        Some(space) => {
            let text = cells[start..space].iter().rposition(|cell| !is_space(cell));
            let next = (space..cells.len()).find(|index| !is_space(&cells[*index]));
            (start + text.map_or(0, |last| last + 1), next.unwrap_or(cells.len()))
        }
        None => {
            let end = end.max(start + 1);
            (end, end)
        }
    }
}

fn cells(line: &Line<'_>) -> Vec<Cell> {
    let mut cells = Vec::new();
    for span in &line.spans {
        let style = line.style.patch(span.style);
        let content = span.content.replace('\t', TAB);
        for symbol in visible::line(&content).graphemes(true) {
            cells.push(Cell { symbol: symbol.to_owned(), style, width: symbol.width() });
        }
    }
    cells
}

fn assemble(prefix: &[Span<'static>], cells: &[Cell]) -> Line<'static> {
    let mut spans = prefix.to_vec();
    let mut open: Option<(Style, String)> = None;
    for cell in cells {
        match &mut open {
            Some((style, text)) if *style == cell.style => text.push_str(&cell.symbol),
            _ => {
                spans.extend(open.take().map(|(style, text)| Span::styled(text, style)));
                open = Some((cell.style, cell.symbol.clone()));
            }
        }
    }
    spans.extend(open.map(|(style, text)| Span::styled(text, style)));
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = words(&Line::from(text), &[Span::raw("- ")], &[Span::raw("  ")], columns);
        lines.iter().map(Line::to_string).collect()
    }

    #[test]
    fn lines_break_between_words_and_in_words_that_are_too_long() {
        assert_eq!(wrapped("", 10), ["- "]);
        assert_eq!(wrapped("one two three", 9), ["- one two", "  three"]);
        assert_eq!(wrapped("one two  three", 10), ["- one two", "  three"]);
        assert_eq!(wrapped("abcdefghijk l", 8), ["- abcdef", "  ghijk", "  l"]);
        assert_eq!(wrapped("日本語日本語", 8), ["- 日本語", "  日本語"]);
        assert_eq!(wrapped("日本", 1), ["- 日", "  本"]);
    }

    #[test]
    fn code_keeps_its_spaces() {
        let lines = hard(&Line::from("  a\tb  c"), &[], &[], 6);
        let lines: Vec<_> = lines.iter().map(Line::to_string).collect();
        assert_eq!(lines, ["  a   ", " b  c"]);
    }

    #[test]
    fn what_is_cut_fits() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語x", 6), "日本…");
        assert_eq!(cut("a\u{1b}[2J", 20), r"a\u{1b}[2J");
    }
}
