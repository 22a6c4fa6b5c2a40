//! Makes text safe to show: what a terminal would obey, or what nobody could see, becomes visible.
//!
//! Knows no terminal and no colour; takes nothing away.

use std::fmt::Write as _;

/// Text of several lines: newlines and tabs stay.
pub fn lines(text: &str) -> String {
    let mut stream = Stream::default();
    let mut shown = stream.push(text);
    shown.push_str(&stream.end());
    shown
}

/// Text for one line: newlines and tabs become visible too.
pub fn line(text: &str) -> String {
    lines(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// One line of at most `limit` characters; what is longer ends in `…`.
pub fn short(text: &str, limit: usize) -> String {
    // Cut first, so that a huge text is not made visible as a whole.
    let cut: String = text.chars().take(limit + 1).collect();
    let shown = line(&cut);
    if shown.chars().count() <= limit {
        return shown;
    }
    shown.chars().take(limit.saturating_sub(1)).chain(['…']).collect()
}

/// JSON with the characters that nobody could see in the escaped spelling of JSON itself.
pub fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        // JSON has escaped what is below; such characters stand in strings only.
        if c > '~' && is_unseen(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Text that arrives in pieces.
#[derive(Debug, Default)]
pub struct Stream {
    /// A carriage return whose next character is not known yet.
    held_return: bool,
    previous: Option<char>,
}

impl Stream {
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            if std::mem::take(&mut self.held_return) && c != '\n' {
                shown.push_str("\\r");
            }
            match c {
                '\n' | '\t' => shown.push(c),
                // Before a newline it is the other half of a line's end.
                '\r' => self.held_return = true,
                // Picks the coloured form of the character before it.
                '\u{fe0e}' | '\u{fe0f}' if self.previous.is_some_and(takes_a_selector) => {
                    shown.push(c);
                }
                c if is_unseen(c) => {
                    let _ = write!(shown, "{}", c.escape_unicode());
                }
                c => shown.push(c),
            }
            self.previous = Some(c);
        }
        shown
    }

    /// Whether nothing was pushed since the last newline.
    pub fn is_at_line_start(&self) -> bool {
        matches!(self.previous, None | Some('\n'))
    }

    /// What was still held back.
    pub fn end(&mut self) -> String {
        self.previous = None;
        if std::mem::take(&mut self.held_return) { "\\r".to_owned() } else { String::new() }
    }
}

fn takes_a_selector(c: char) -> bool {
    !c.is_ascii() && !is_unseen(c)
}

/// Control, formatting, bidirectional and zero-width characters, fillers and tags.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        let cases = [
            ("\u{1b}[31mred\u{1b}[0m", r"\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{9b}2J\u{90}q\u{9c}", r"\u{9b}2J\u{90}q\u{9c}"),
            ("back\u{8}\u{8}\u{7f}\0", r"back\u{8}\u{8}\u{7f}\u{0}"),
            ("over\rwritten\r", r"over\rwritten\r"),
            ("\u{202e}gnp.exe\u{2066}x\u{2069}", r"\u{202e}gnp.exe\u{2066}x\u{2069}"),
            ("a\u{200b}b\u{feff}c\u{2060}d\u{ad}", r"a\u{200b}b\u{feff}c\u{2060}d\u{ad}"),
            ("tag\u{e0041}\u{e0100}", r"tag\u{e0041}\u{e0100}"),
            ("a\u{fe0f}\u{2028}", r"a\u{fe0f}\u{2028}"),
        ];
        for (text, shown) in cases {
            assert_eq!(lines(text), shown);
            assert_eq!(lines(&lines(text)), shown, "safe text stays as it is");
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["two\nlines\tand a tab", "naïve 日本語 עברית e\u{301}", "✔\u{fe0f} 🙂"]
        {
            assert_eq!(lines(text), text);
        }
        assert_eq!(lines("dos\r\nlines\r\n"), "dos\nlines\n");
        assert_eq!(line("two\r\nlines\tx"), r"two\nlines\tx");
    }

    #[test]
    fn pieces_are_shown_as_the_whole_would_be() {
        let text = "a\r\nb\rc\u{1b}✔\u{fe0f}\u{fe0f}\r";
        let mut stream = Stream::default();
        let mut shown: String =
            text.chars().map(|c| stream.push(c.encode_utf8(&mut [0; 4]))).collect();
        shown.push_str(&stream.end());
        assert_eq!(shown, lines(text));
        assert_eq!(shown, "a\nb\\rc\\u{1b}✔\u{fe0f}\\u{fe0f}\\r");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({"a": "x\u{1b}\u{9b}\u{202e}\u{e0041}é"});
        let text = json(&value.to_string());
        assert_eq!(text, r#"{"a":"x\u001b\u009b\u202e\udb40\udc41é"}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn long_lines_are_cut() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde…");
        assert_eq!(short("a\nb\u{1b}", 6), "a\\nb\\…");
    }
}
