//! Rows and columns, in the width that there is.

use super::wrap;
use crate::style;
use ratatui_core::text::{Line, Span};

/// Columns between two cells.
const GAP: &str = "  ";
/// A column is not made narrower than this.
const NARROWEST: usize = 6;

/// The cells of a table; the first row may be its head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    pub(crate) has_head: bool,
    pub(crate) rows: Vec<Vec<Line<'static>>>,
}

/// The table as lines of at most `columns`, as long as its columns are not too many for that.
pub(crate) fn table(cells: &Cells, columns: usize) -> Vec<Line<'static>> {
    let widths = widths(cells, columns);
    let mut lines = Vec::new();
    for (index, row) in cells.rows.iter().enumerate() {
        let is_head = cells.has_head && index == 0;
        let wrapped: Vec<_> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let cell = row.get(column).cloned().unwrap_or_default();
                let cell = if is_head { cell.style(style::STRONG) } else { cell };
                wrap::words(&cell, &[], &[], *width)
            })
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..height {
            let mut spans = Vec::new();
            for (column, width) in widths.iter().enumerate() {
                let piece = wrapped[column].get(at).cloned().unwrap_or_default();
                let missing = width.saturating_sub(piece.width());
                spans.extend(piece.spans);
                if column + 1 < widths.len() {
                    spans.push(Span::raw(format!("{}{GAP}", " ".repeat(missing))));
                }
            }
            lines.push(Line::from(spans));
        }
        if is_head {
            let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(Line::styled(rule.join(GAP), style::FAINT));
        }
    }
    lines
}

/// The width of each column: what it needs, the widest made narrower until all fit.
fn widths(cells: &Cells, columns: usize) -> Vec<usize> {
    let count = cells.rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = cells.rows.iter().filter_map(|row| row.get(column));
            cells.map(Line::width).max().unwrap_or_default().max(1)
        })
        .collect();
    let room = columns.saturating_sub(GAP.len() * count.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width) else { break };
        if *widest <= NARROWEST {
            break;
        }
        *widest -= 1;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_its_width() {
        let row =
            |cells: &[&str]| cells.iter().map(|cell| Line::from((*cell).to_owned())).collect();
        let cells = Cells {
            has_head: true,
            rows: vec![
                row(&["name", "what it is"]),
                row(&["日本", "a text that is long"]),
                row(&["b"]),
            ],
        };
        let shown = |columns| {
            let lines = table(&cells, columns);
            lines.iter().map(Line::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(80),
            [
                "name  what it is",
                "────  ───────────────────",
                "日本  a text that is long",
                "b     ",
            ]
        );
        assert_eq!(
            shown(18),
            [
                "name  what it is",
                "────  ────────────",
                "日本  a text that",
                "      is long",
                "b     ",
            ]
        );
    }
}
