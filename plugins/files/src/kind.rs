//! What a file is, judged by its first bytes. It reads nothing itself.

/// What the first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// UTF-8, or nearly: an older encoding is text too.
    Text,
    Utf16(Order),
    /// The media type, where it is known.
    Binary(Option<&'static str>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    LittleEndian,
    BigEndian,
}

/// How much of a file is judged.
pub(crate) const JUDGED: usize = 8 * 1024;

/// Judges a file by its first bytes, [`JUDGED`] of them where it has as many.
pub(crate) fn of(start: &[u8]) -> Kind {
    let start = &start[..start.len().min(JUDGED)];
    match start {
        [0xff, 0xfe, rest @ ..] if is_utf16(rest, Order::LittleEndian) => {
            return Kind::Utf16(Order::LittleEndian);
        }
        [0xfe, 0xff, rest @ ..] if is_utf16(rest, Order::BigEndian) => {
            return Kind::Utf16(Order::BigEndian);
        }
        _ => {}
    }
    let is_utf8 = match std::str::from_utf8(start) {
        Ok(_) => true,
        // The last character may go on past what is judged.
        Err(error) => error.error_len().is_none(),
    };
    // Some binary formats begin like text.
    let binary = || {
        infer::get(start)
            .filter(|found| found.matcher_type() != infer::MatcherType::Text)
            .map(|found| found.mime_type())
    };
    if start.contains(&0) {
        return Kind::Binary(binary());
    }
    if start.starts_with(b"%PDF-") {
        return Kind::Binary(Some("application/pdf"));
    }
    // Terminal output has escapes and backspaces; other control characters are no text.
    let controls = start
        .iter()
        .filter(|byte| byte.is_ascii_control() && !b"\t\n\r\x0c\x08\x1b".contains(byte))
        .count();
    if is_utf8 {
        return if controls * 3 > start.len() { Kind::Binary(binary()) } else { Kind::Text };
    }
    match binary() {
        Some(media_type) => Kind::Binary(Some(media_type)),
        None if controls * 32 > start.len() => Kind::Binary(None),
        None => Kind::Text,
    }
}

/// A text in UTF-16, without its byte order mark.
pub(crate) fn decode_utf16(bytes: &[u8], order: Order) -> String {
    let unit = |pair: [u8; 2]| match order {
        Order::LittleEndian => u16::from_le_bytes(pair),
        Order::BigEndian => u16::from_be_bytes(pair),
    };
    let units = bytes.get(2..).unwrap_or_default().chunks_exact(2);
    char::decode_utf16(units.map(|pair| unit([pair[0], pair[1]])))
        .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn is_utf16(bytes: &[u8], order: Order) -> bool {
    let mut with_mark = vec![0, 0];
    with_mark.extend_from_slice(&bytes[..bytes.len() & !1]);
    let text = decode_utf16(&with_mark, order);
    let odd = text
        .chars()
        .filter(|c| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !"\t\n\r".contains(*c)))
        .count();
    // A pair of surrogates may be cut in two at the end.
    odd * 32 <= text.len() || odd == 1
}

#[cfg(test)]
mod tests {
    use super::{Kind, Order, decode_utf16, of};

    #[test]
    fn what_first_bytes_say() {
        for (bytes, kind) in [
            (&b"fn main() {}\n"[..], Kind::Text),
            (b"", Kind::Text),
            ("gr\u{fc}n \u{1f980}\n".as_bytes(), Kind::Text),
            (b"gr\xfcn ist die Farbe\n", Kind::Text),
            (b"\x1b[31mred\x1b[0m\n", Kind::Text),
            // Starts like a bitmap, and is a text.
            (b"BMX bikes", Kind::Text),
            (b"#!/bin/sh\necho\n", Kind::Text),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>", Kind::Text),
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", Kind::Binary(Some("image/png"))),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", Kind::Binary(Some("image/jpeg"))),
            (b"GIF89a\x01\0\x01\0", Kind::Binary(Some("image/gif"))),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Kind::Binary(Some("image/webp"))),
            (b"%PDF-1.7\nplain so far", Kind::Binary(Some("application/pdf"))),
            (b"PK\x03\x04\x14\0\0\0", Kind::Binary(Some("application/zip"))),
            (b"\x1f\x8b\x08\x08\x9a\x01\x02\x03", Kind::Binary(Some("application/gzip"))),
            (b"\0asm\x01\0\0\0", Kind::Binary(Some("application/wasm"))),
            (b"a\0b", Kind::Binary(None)),
            (b"\x01\x02\x03\xf0\x9f", Kind::Binary(None)),
            (b"\xff\xfeh\0i\0\n\0", Kind::Utf16(Order::LittleEndian)),
            (b"\xfe\xff\0h\0i\0\n", Kind::Utf16(Order::BigEndian)),
        ] {
            assert_eq!(of(bytes), kind, "{}", bytes.escape_ascii());
        }
        let mut executable = b"\x7fELF\x02\x01\x01".to_vec();
        executable.resize(64, 0);
        assert_eq!(of(&executable), Kind::Binary(Some("application/x-executable")));
    }

    #[test]
    fn a_character_across_the_end_of_what_is_judged_is_text() {
        let text = "\u{fc}".repeat(super::JUDGED);
        assert_eq!(of(&text.as_bytes()[1..]), Kind::Text);
        assert_eq!(of(&text.as_bytes()[..super::JUDGED - 1]), Kind::Text);
    }

    #[test]
    fn utf16_is_decoded() {
        assert_eq!(
            decode_utf16(b"\xff\xfeh\0i\0=\xd8\x80\xde", Order::LittleEndian),
            "hi\u{1f680}"
        );
        assert_eq!(decode_utf16(b"\xfe\xff\0h\0i\xd8", Order::BigEndian), "hi");
    }
}
