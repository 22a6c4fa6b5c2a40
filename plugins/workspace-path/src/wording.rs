//! How numbers and cut texts read. It never looks at a file.

/// `1,234,567`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 line`, `2 lines`, `3 matches`, `4 entries`.
pub fn count(value: u64, noun: &str) -> String {
    if value == 1 {
        return format!("1 {noun}");
    }
    let plural = match noun.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with("ch") => format!("{noun}es"),
        None => format!("{noun}s"),
    };
    format!("{} {plural}", number(value))
}

/// `1 byte`, `12,345 bytes`.
pub fn bytes(value: u64) -> String {
    count(value, "byte")
}

/// The longest start of `text` that has at most `limit` bytes and ends between characters.
pub fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::{bytes, count, cut, number};

    #[test]
    fn numbers_have_separators() {
        let written = [0, 7, 999, 1_000, 65_536, 1_234_567].map(number);
        assert_eq!(written, ["0", "7", "999", "1,000", "65,536", "1,234,567"]);
    }

    #[test]
    fn counts_agree_with_their_noun() {
        let written = [count(1, "match"), count(2, "match"), count(0, "entry"), bytes(4_096)];
        assert_eq!(written, ["1 match", "2 matches", "0 entries", "4,096 bytes"]);
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!([cut("añb", 2), cut("añb", 3), cut("añb", 9)], ["a", "añ", "añb"]);
    }
}
