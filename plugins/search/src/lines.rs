//! One file, read in pieces and searched line by line, in bounded memory. It knows what a line is
//! and which lines are around a match; what is shown of them is the caller's.

use crate::{pattern::Pattern, sink::FileMatches};
use std::{
    collections::VecDeque,
    io::{self, Read},
};

/// How much is read at once.
const CHUNK: usize = 256 * 1024;
/// How much of a line, or of a text that is decoded as a whole, is held in memory.
const HELD_BYTES: usize = 16 * 1024 * 1024;

/// How the search of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Searched {
    ToItsEnd,
    /// There is a NUL in it: what was found before is worth nothing.
    Binary,
    /// A line of it is longer than what is held in memory.
    TooLarge,
}

/// Searches what `file` gives.
///
/// # Errors
///
/// Where it cannot be read on.
pub(crate) fn search(
    mut file: impl Read,
    pattern: &Pattern,
    matches: &mut FileMatches<'_>,
) -> io::Result<Searched> {
    let context = matches.context();
    let mut lines = Lines { pattern, context, matches, next: 1, after: 0, before: VecDeque::new() };
    let mut buffer = Vec::new();
    let mut is_start = true;
    loop {
        let kept = buffer.len();
        let is_end = file.by_ref().take(CHUNK as u64).read_to_end(&mut buffer)? < CHUNK;
        if is_start {
            is_start = false;
            if let Some(unit) = utf16(&buffer) {
                return search_utf16(file, buffer, unit, lines);
            }
            if buffer.starts_with("\u{feff}".as_bytes()) {
                buffer.drain(..3);
            }
        }
        if memchr::memchr(0, &buffer[kept.min(buffer.len())..]).is_some() {
            return Ok(Searched::Binary);
        }
        if is_end {
            lines.search(&buffer);
            return Ok(Searched::ToItsEnd);
        }
        let whole = memchr::memrchr(b'\n', &buffer).map_or(0, |end| end + 1);
        lines.search(&buffer[..whole]);
        buffer.drain(..whole);
        if buffer.len() > HELD_BYTES {
            return Ok(Searched::TooLarge);
        }
    }
}

/// How two bytes make a unit, where the text begins with the mark of UTF-16.
fn utf16(start: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    match start {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

fn search_utf16(
    file: impl Read,
    mut bytes: Vec<u8>,
    unit: fn([u8; 2]) -> u16,
    mut lines: Lines<'_, '_>,
) -> io::Result<Searched> {
    file.take(HELD_BYTES as u64).read_to_end(&mut bytes)?;
    if bytes.len() > HELD_BYTES {
        return Ok(Searched::TooLarge);
    }
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units)
        .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    if text.contains('\0') {
        return Ok(Searched::Binary);
    }
    lines.search(text.as_bytes());
    Ok(Searched::ToItsEnd)
}

/// Where the search of a file stands.
struct Lines<'a, 'b> {
    pattern: &'a Pattern,
    context: usize,
    matches: &'a mut FileMatches<'b>,
    /// The number of the line that comes next.
    next: u64,
    /// How many of the lines that come are to be shown after a match.
    after: usize,
    /// The lines that came last, to be shown before a match.
    before: VecDeque<(u64, Vec<u8>)>,
}

impl Lines<'_, '_> {
    /// Searches whole lines, the next ones of the file.
    fn search(&mut self, lines: &[u8]) {
        let mut from = 0;
        while let Some(line) = self.pattern.line(lines, from) {
            self.pass(&lines[from..line.start]);
            self.matches.add(self.next, &lines[line.clone()], &self.before);
            self.before.clear();
            self.after = self.context;
            self.next += 1;
            from = line.end;
        }
        self.pass(&lines[from..]);
    }

    /// Goes past lines without a match.
    fn pass(&mut self, lines: &[u8]) {
        if self.context == 0 {
            // A last line without an end has no line after it that would need its number.
            self.next += memchr::memchr_iter(b'\n', lines).count() as u64;
            return;
        }
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if self.after > 0 {
                self.after -= 1;
                self.matches.add_after(self.next, line);
            } else {
                // The oldest line's memory serves the newest.
                let oldest = (self.before.len() == self.context).then(|| self.before.pop_front());
                let mut kept = oldest.flatten().map(|(_, line)| line).unwrap_or_default();
                kept.clear();
                kept.extend_from_slice(line);
                self.before.push_back((self.next, kept));
            }
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, HELD_BYTES, Searched, search};
    use crate::{
        pattern::Pattern,
        sink::{FileMatches, Room},
    };
    use belljar_workspace_path::Workspace;
    use std::io::Read;

    fn run(bytes: impl Read, context: usize) -> (Searched, u64, String) {
        let path = Workspace::at("/").path("f").unwrap();
        let pattern = Pattern::new("hit", false, false).unwrap();
        let room = Room { matches: 100, bytes: 1 << 20, context };
        let mut matches = FileMatches::new(&path, &pattern, room);
        let searched = search(bytes, &pattern, &mut matches).unwrap();
        (searched, matches.found, matches.text)
    }

    #[test]
    fn lines_and_their_context_reach_across_pieces() {
        // Pieces end in the middle of the first line, and between lines that belong together.
        for shift in [0, 1, 2, 3, 5, 8] {
            let filler = format!("{}\n", "x".repeat(CHUNK - 6 - shift));
            let text = format!("{filler}a\nb\nhit 1\nc\nd\n{filler}e\nhit 2\nf\n");
            let expected = "f-2- a\nf-3- b\nf:4: hit 1\nf-5- c\nf-6- d\n";
            let (searched, found, shown) = run(text.as_bytes(), 2);
            assert_eq!((searched, found), (Searched::ToItsEnd, 2));
            assert!(shown.starts_with(expected), "{shift}: {}", &shown[..200]);
            assert!(shown.ends_with("\nf-8- e\nf:9: hit 2\nf-10- f\n"), "{shift}");
        }
    }

    #[test]
    fn line_numbers_hold_over_many_pieces() {
        let text = "line\n".repeat(200_000) + "hit";
        let (_, found, shown) = run(text.as_bytes(), 0);
        assert_eq!((found, shown.as_str()), (1, "f:200001: hit\n"));
    }

    #[test]
    fn what_is_no_text_or_too_long_is_told_apart() {
        let endless = std::io::repeat(b'x').take(HELD_BYTES as u64 + 2 * CHUNK as u64);
        assert_eq!(run(endless, 0).0, Searched::TooLarge);
        let late = "hit\n".repeat(CHUNK).into_bytes();
        assert_eq!(run(late.chain(&b"\0"[..]), 0).0, Searched::Binary);
        assert_eq!(run(&b"\xff\xfeh\0i\0t\0\0\0"[..], 0).0, Searched::Binary);
        assert_eq!(run(&b""[..], 1), (Searched::ToItsEnd, 0, String::new()));
    }

    #[test]
    fn the_mark_of_an_encoding_is_no_part_of_the_first_line() {
        let path = Workspace::at("/").path("f").unwrap();
        let pattern = Pattern::new("^hit", false, false).unwrap();
        for bytes in [&b"\xef\xbb\xbfhit\n"[..], b"\xff\xfeh\0i\0t\0\n\0", b"\xfe\xff\0h\0i\0t\0\n"]
        {
            let mut matches =
                FileMatches::new(&path, &pattern, Room { matches: 9, bytes: 1 << 20, context: 0 });
            search(bytes, &pattern, &mut matches).unwrap();
            assert_eq!(matches.text, "f:1: hit\n");
        }
    }
}
