//! A text in pages of lines.

use belljar_sdk::prelude::*;
use belljar_workspace_path::{count, cut};

/// How many lines are shown where no limit was given.
const LINES: u64 = 2_000;
/// How much of one line is shown.
const LINE_BYTES: usize = 10_000;
/// How much text is shown: below what a result may have, with room for the notes.
const TEXT_BYTES: usize = 50 * 1024;

/// Which lines are wanted, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    offset: u64,
    limit: u64,
}

impl Range {
    pub(crate) fn new(offset: Option<u64>, limit: Option<u64>) -> Result<Self, Failure> {
        let (offset, limit) = (offset.unwrap_or(1), limit.unwrap_or(LINES));
        if offset == 0 {
            return Err(Failure::invalid_arguments("`offset` is 0: lines are counted from 1"));
        }
        if limit == 0 {
            return Err(Failure::invalid_arguments("`limit` is 0: ask for one line or more"));
        }
        Ok(Self { offset, limit })
    }

    /// Everything from the first line.
    pub(crate) fn from_start() -> Self {
        Self { offset: 1, limit: u64::MAX }
    }
}

/// The lines of a range, and what was left out of them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) note: Option<String>,
}

/// Shows a range of a text.
///
/// # Errors
///
/// There is nothing at the offset.
pub(crate) fn show(text: &str, range: Range) -> Result<Page, Failure> {
    let Range { offset, limit } = range;
    let total = text.lines().count() as u64;
    if offset > 1 && offset > total {
        return Err(Failure::failed(format!(
            "it has {}: there is nothing from line {offset} on",
            count(total, "line")
        )));
    }
    let mut page = String::new();
    let mut shown = 0;
    let mut long = 0_u64;
    let first = usize::try_from(offset - 1).unwrap_or(usize::MAX);
    for line in text.lines().skip(first) {
        let part = cut(line, LINE_BYTES);
        if shown == limit || page.len() + part.len() + 1 > TEXT_BYTES {
            break;
        }
        page.push_str(part);
        if part.len() < line.len() {
            long += 1;
            page.push_str(" …");
        }
        page.push('\n');
        shown += 1;
    }
    let last = offset + shown - 1;
    let mut notes = Vec::new();
    if shown > 0 && (offset > 1 || last < total) {
        notes.push(format!("lines {offset} to {last} of {total}"));
    }
    if last < total {
        notes.push(format!("read on with `offset` {}", last + 1));
    }
    if long > 0 {
        notes.push(format!("{} cut at {LINE_BYTES} bytes", count(long, "line")));
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok(Page { text: page, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str, offset: Option<u64>, limit: Option<u64>) -> Result<Page, Failure> {
        show(text, Range::new(offset, limit)?)
    }

    fn shown(text: &str, note: Option<&str>) -> Result<Page, Failure> {
        Ok(Page { text: text.to_owned(), note: note.map(str::to_owned) })
    }

    #[test]
    fn pages_together_are_the_whole() {
        let text = "a\nb\n\nc\n";
        assert_eq!(page(text, None, None), shown(text, None));
        assert_eq!(
            page(text, None, Some(2)),
            shown("a\nb\n", Some("lines 1 to 2 of 4; read on with `offset` 3"))
        );
        assert_eq!(page(text, Some(3), None), shown("\nc\n", Some("lines 3 to 4 of 4")));
        assert_eq!(page("", None, None), shown("", None));
        assert!(page(text, Some(5), None).is_err());
        assert!(page(text, Some(0), None).is_err());
        assert!(page(text, None, Some(0)).is_err());
    }

    #[test]
    fn a_page_and_its_lines_are_bounded() {
        let text = format!("{}\n", "x".repeat(1_000)).repeat(100);
        let first = page(&text, None, None).unwrap();
        assert_eq!(first.text.lines().count(), 51);
        assert_eq!(first.note.as_deref(), Some("lines 1 to 51 of 100; read on with `offset` 52"));
        let long = page(&"ä".repeat(20_000), None, None).unwrap();
        assert_eq!(long.text.len(), LINE_BYTES + " …\n".len());
        assert_eq!(long.note.as_deref(), Some("1 line cut at 10000 bytes"));
    }
}
