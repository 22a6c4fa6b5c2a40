//! What an edit changes, as lines taken out and lines put in.

use crate::{style, visible};
use ratatui_core::text::Line;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Lines that did not change, around those that did.
const AROUND: usize = 2;
/// Past this time a change is shown coarser than it could be.
const PATIENCE: Duration = Duration::from_millis(200);

/// The lines of a change. Every byte of it is there, as far as `limit` lines go.
pub(crate) fn change(old: &str, new: &str, limit: usize) -> Vec<Line<'static>> {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let mut lines = Vec::new();
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            lines.push(Line::styled("  ⋮", style::FAINT));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (mark, style) = match change.tag() {
                ChangeTag::Delete => ("- ", style::BAD),
                ChangeTag::Insert => ("+ ", style::GOOD),
                ChangeTag::Equal => ("  ", style::FAINT),
            };
            let text = change.value();
            let text = text.strip_suffix('\n').unwrap_or(text);
            lines.push(Line::styled(format!("{mark}{}", visible::lines(text)), style));
        }
    }
    let count = lines.len();
    if count > limit {
        lines.truncate(limit);
        lines.push(Line::styled(format!("  … {} more lines", count - limit), style::FAINT));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str, limit: usize) -> Vec<String> {
        change(old, new, limit).iter().map(Line::to_string).collect()
    }

    #[test]
    fn a_change_shows_what_goes_and_what_comes() {
        assert_eq!(
            shown("a\nb\nc\nd\ne\n", "a\nb\nX\u{1b}\nd\ne\n", 9),
            ["  a", "  b", "- c", r"+ X\u{1b}", "  d", "  e"]
        );
        assert_eq!(shown("", "one\ntwo", 9), ["+ one", "+ two"]);
        assert_eq!(shown("", "1\n2\n3\n4\n", 2), ["+ 1", "+ 2", "  … 2 more lines"]);
        assert!(shown("same", "same", 9).is_empty());
    }
}
