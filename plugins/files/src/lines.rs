//! Lines of a file of any size, in bounded memory. It never holds more of a line than is shown.

use std::io::{self, BufRead};

/// A line, or as much of one as was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// With its line end, where it was not cut.
    pub(crate) bytes: Vec<u8>,
    /// How long the whole line is, with its line end.
    pub(crate) length: u64,
}

impl Line {
    pub(crate) fn is_cut(&self) -> bool {
        self.length > self.bytes.len() as u64
    }
}

/// The next line, of which at most `keep` bytes; none at the end.
pub(crate) fn next(reader: &mut impl BufRead, keep: usize) -> io::Result<Option<Line>> {
    let mut line = Line { bytes: Vec::new(), length: 0 };
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((line.length > 0).then_some(line));
        }
        let end = memchr::memchr(b'\n', buffer);
        let piece = &buffer[..end.map_or(buffer.len(), |end| end + 1)];
        let room = keep.saturating_sub(line.bytes.len());
        line.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        line.length += piece.len() as u64;
        let used = piece.len();
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

/// Goes past `count` lines, and says how many there were.
pub(crate) fn skip(reader: &mut impl BufRead, count: u64) -> io::Result<u64> {
    for skipped in 0..count {
        if reader.skip_until(b'\n')? == 0 {
            return Ok(skipped);
        }
    }
    Ok(count)
}

/// How many lines are left; none where there is more than `limit` bytes to look at.
pub(crate) fn count(reader: &mut impl BufRead, limit: u64) -> io::Result<Option<u64>> {
    let mut lines = 0;
    let mut looked_at = 0;
    let mut ended = true;
    loop {
        let buffer = reader.fill_buf()?;
        let Some(last) = buffer.last() else {
            return Ok(Some(lines + u64::from(!ended)));
        };
        ended = *last == b'\n';
        lines += memchr::memchr_iter(b'\n', buffer).count() as u64;
        let used = buffer.len();
        reader.consume(used);
        looked_at += used as u64;
        if looked_at > limit {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, count, next, skip};
    use std::io::BufReader;

    #[test]
    fn lines_come_whole_or_cut_from_any_buffer() {
        for capacity in [1, 2, 3, 64] {
            let mut reader = BufReader::with_capacity(capacity, &b"ab\nlonger\n\nend"[..]);
            let mut lines = Vec::new();
            while let Some(line) = next(&mut reader, 4).unwrap() {
                lines.push(line);
            }
            let line = |bytes: &[u8], length| Line { bytes: bytes.to_vec(), length };
            assert_eq!(
                lines,
                [line(b"ab\n", 3), line(b"long", 7), line(b"\n", 1), line(b"end", 3)]
            );
            assert_eq!(
                lines.iter().map(Line::is_cut).collect::<Vec<_>>(),
                [false, true, false, false]
            );
        }
    }

    #[test]
    fn skipping_says_how_far_it_came() {
        let mut reader = BufReader::new(&b"1\n2\n3"[..]);
        assert_eq!(skip(&mut reader, 2).unwrap(), 2);
        assert_eq!(next(&mut reader, 9).unwrap().unwrap().bytes, b"3");
        assert_eq!(skip(&mut BufReader::new(&b"1\n2\n3"[..]), 7).unwrap(), 3);
    }

    #[test]
    fn counting_stops_at_its_limit() {
        for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
            let counted = count(&mut BufReader::with_capacity(1, text.as_bytes()), 100).unwrap();
            assert_eq!(counted, Some(lines), "{text:?}");
        }
        assert_eq!(count(&mut BufReader::with_capacity(1, &b"a\nb\n"[..]), 2).unwrap(), None);
    }
}
