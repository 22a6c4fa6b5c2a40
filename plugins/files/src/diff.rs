//! The change that an edit made, as a unified diff of bounded length. The places of the change are
//! known, so that only the lines around them are compared, whatever the file's size.

use similar::{
    DiffTag,
    algorithms::{Capture, Replace, myers},
};
use std::{fmt::Write as _, ops::Range};

/// How many lines stand around a change.
const CONTEXT: usize = 3;
/// How many lines a diff has at most.
const SHOWN: usize = 200;
/// How much text a diff has at most.
const SHOWN_BYTES: usize = 16 * 1024;
/// How much of one line is shown.
const LINE_BYTES: usize = 500;
/// Up to which size a piece is compared line by line.
const COMPARED_BYTES: usize = 256 * 1024;

/// What replacing these ranges of `before` by `new` changed.
pub(crate) fn show(before: &[u8], replaced: &[Range<usize>], new: &[u8]) -> String {
    let mut text = String::new();
    let mut shown = 0;
    let mut left_out = 0;
    // How many lines the changes so far added, or took away.
    let mut shift = 0_isize;
    let mut line = Line { number: 1, start: 0 };
    for hunk in hunks(before, replaced) {
        line.advance(before, hunk.lines.start);
        let old = &before[hunk.lines.clone()];
        let new = hunk.after(before, new);
        let counts = (count_lines(old), count_lines(&new));
        if shown >= SHOWN || text.len() >= SHOWN_BYTES || old.len().max(new.len()) > COMPARED_BYTES
        {
            left_out += 1;
        } else {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "@@ -{},{} +{},{} @@",
                line.number,
                counts.0,
                line.number.saturating_add_signed(shift),
                counts.1
            );
            shown += compare(&mut text, old, &new, SHOWN.saturating_sub(shown));
        }
        shift += counts.1 as isize - counts.0 as isize;
    }
    if left_out > 0 {
        let _ = writeln!(text, "… {} of the diff left out", parts(left_out));
    }
    text
}

fn parts(count: usize) -> String {
    belljar_workspace_path::count(count as u64, "part")
}

/// A place in the file, found by going forward.
struct Line {
    number: usize,
    start: usize,
}

impl Line {
    fn advance(&mut self, content: &[u8], start: usize) {
        self.number += memchr::memchr_iter(b'\n', &content[self.start..start]).count();
        self.start = start;
    }
}

/// Whole lines with at least one replacement in them.
struct Hunk<'a> {
    lines: Range<usize>,
    replaced: &'a [Range<usize>],
}

impl Hunk<'_> {
    fn after(&self, before: &[u8], new: &[u8]) -> Vec<u8> {
        let mut after = Vec::new();
        let mut end = self.lines.start;
        for range in self.replaced {
            after.extend_from_slice(&before[end..range.start]);
            after.extend_from_slice(new);
            end = range.end;
        }
        after.extend_from_slice(&before[end..self.lines.end]);
        after
    }
}

/// The replaced ranges with the lines around them, those that touch in one.
fn hunks<'a>(before: &[u8], replaced: &'a [Range<usize>]) -> Vec<Hunk<'a>> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    let mut first = 0;
    for (index, range) in replaced.iter().enumerate() {
        let lines = back(before, range.start)..forward(before, range.end);
        match hunks.last_mut() {
            Some(hunk) if lines.start <= hunk.lines.end => {
                hunk.lines.end = hunk.lines.end.max(lines.end);
                hunk.replaced = &replaced[first..=index];
            }
            _ => {
                first = index;
                hunks.push(Hunk { lines, replaced: &replaced[index..=index] });
            }
        }
    }
    hunks
}

/// Where the lines before `place` begin.
fn back(content: &[u8], place: usize) -> usize {
    memchr::memrchr_iter(b'\n', &content[..place]).nth(CONTEXT).map_or(0, |end| end + 1)
}

/// Where the lines after `place` end.
fn forward(content: &[u8], place: usize) -> usize {
    // Where a whole line was replaced, the next one is a line around it already.
    let own = usize::from(place == 0 || content[place - 1] != b'\n');
    memchr::memchr_iter(b'\n', &content[place..])
        .nth(CONTEXT + own - 1)
        .map_or(content.len(), |end| place + end + 1)
}

fn count_lines(bytes: &[u8]) -> usize {
    let ends = memchr::memchr_iter(b'\n', bytes).count();
    ends + usize::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// Adds the lines of one hunk, and says how many.
fn compare(text: &mut String, old: &[u8], new: &[u8], room: usize) -> usize {
    let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let changes = changes(&old, &new);
    let mut shown = 0;
    for (sign, line) in &changes {
        if shown == room || text.len() >= SHOWN_BYTES {
            let left = belljar_workspace_path::count((changes.len() - shown) as u64, "line");
            let _ = writeln!(text, "… {left} left out");
            break;
        }
        let whole = String::from_utf8_lossy(line);
        let whole = whole.trim_end_matches(['\n', '\r']);
        let cut = belljar_workspace_path::cut(whole, LINE_BYTES);
        let _ = writeln!(text, "{sign}{cut}{}", if cut.len() < whole.len() { " …" } else { "" });
        if line.last() != Some(&b'\n') {
            text.push_str("\\ No newline at end of file\n");
        }
        shown += 1;
    }
    shown
}

/// The lines with their signs. One algorithm alone, since each that is reachable is compiled into
/// the component.
fn changes<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> Vec<(char, &'a [u8])> {
    let mut capture = Replace::new(Capture::new());
    let Ok(()) = myers::diff(&mut capture, old, 0..old.len(), new, 0..new.len());
    let mut changes = Vec::new();
    for change in capture.into_inner().into_ops() {
        let (tag, before, after) = change.as_tag_tuple();
        match tag {
            DiffTag::Equal => changes.extend(old[before].iter().map(|line| (' ', *line))),
            _ => {
                changes.extend(old[before].iter().map(|line| ('-', *line)));
                changes.extend(new[after].iter().map(|line| ('+', *line)));
            }
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::show;

    fn numbered(count: usize) -> String {
        (1..=count).map(|line| format!("line {line}\n")).collect()
    }

    fn replace(before: &str, old: &str, new: &str) -> String {
        let replaced: Vec<_> =
            before.match_indices(old).map(|(at, found)| at..at + found.len()).collect();
        show(before.as_bytes(), &replaced, new.as_bytes())
    }

    #[test]
    fn a_change_has_three_lines_around_it() {
        assert_eq!(
            replace(&numbered(20), "line 10\n", "ten\nten and a half\n"),
            "@@ -7,7 +7,8 @@\n line 7\n line 8\n line 9\n-line 10\n+ten\n+ten and a half\n line 11\n \
             line 12\n line 13\n"
        );
    }

    #[test]
    fn changes_apart_have_their_own_places() {
        let before = "x\n1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n";
        assert_eq!(
            replace(before, "x", "y\nz"),
            "@@ -1,4 +1,5 @@\n-x\n+y\n+z\n 1\n 2\n 3\n@@ -8,4 +9,5 @@\n 7\n 8\n 9\n-x\n+y\n+z\n"
        );
    }

    #[test]
    fn changes_that_touch_are_one() {
        assert_eq!(replace("x\n1\n2\nx\n", "x", "y"), "@@ -1,4 +1,4 @@\n-x\n+y\n 1\n 2\n-x\n+y\n");
    }

    #[test]
    fn a_missing_line_end_is_said() {
        assert_eq!(
            replace("a\nb", "b", "c"),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let before = "x\n".repeat(5_000);
        let diff = replace(&before, "x", "y");
        assert!(diff.starts_with("@@ -1,5000 +1,5000 @@\n-x\n"), "{diff}");
        assert!(diff.ends_with("… 9,800 lines left out\n"), "{diff}");
        let apart = format!("x\n{}", "-\n".repeat(20)).repeat(200);
        let diff = replace(&apart, "x", "y");
        assert!(diff.ends_with("parts of the diff left out\n"), "{diff}");
        assert!(diff.len() < 20 * 1024);
    }
}
