//! The pattern of a search: a regular expression that never reaches across lines, and what the
//! model reads when it is none.

use belljar_sdk::Failure;
use regex_automata::{Input, meta::Regex};
use regex_syntax::{
    ParserBuilder,
    hir::{Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind},
};
use std::ops::Range;

/// How large a compiled pattern may be.
const COMPILED_BYTES: usize = 16 * 1024 * 1024;
/// How much memory the search itself may use for states that it meets.
const CACHE_BYTES: usize = 8 * 1024 * 1024;

/// A pattern to search lines for.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Whether `\A` or `\z` are in it, which mean the ends of a line here.
    has_text_anchors: bool,
}

impl Pattern {
    /// # Errors
    ///
    /// `invalid arguments` that say what is wrong, and at which character.
    pub(crate) fn new(text: &str, literal: bool, ignore_case: bool) -> Result<Self, Failure> {
        if text.is_empty() {
            return Err(Failure::invalid_arguments(
                "`pattern` is empty, which every line would fit: say what to look for",
            ));
        }
        let escaped;
        let expression = if literal {
            escaped = regex_syntax::escape(text);
            &escaped
        } else {
            text
        };
        let parsed = ParserBuilder::new()
            .utf8(false)
            .multi_line(true)
            // So that `$` fits at the end of a line whatever ends it.
            .crlf(true)
            .case_insensitive(ignore_case)
            .build()
            .parse(expression)
            .map_err(|error| no_expression(text, &error))?;
        let has_text_anchors = parsed.properties().look_set().contains_anchor_haystack();
        let limits = Regex::config()
            .utf8_empty(false)
            .nfa_size_limit(Some(COMPILED_BYTES))
            .hybrid_cache_capacity(CACHE_BYTES);
        let regex =
            Regex::builder().configure(limits).build_from_hir(&within_a_line(parsed)?).map_err(
                |error| Failure::invalid_arguments(format!("`pattern` cannot be used: {error}")),
            )?;
        Ok(Self { regex, has_text_anchors })
    }

    /// Where in a line, which may have its line end, the first match begins.
    pub(crate) fn start(&self, line: &[u8]) -> Option<usize> {
        self.regex.find(without_end(line)).map(|found| found.start())
    }

    /// The first line from `from` on, where a line begins, that has a match.
    pub(crate) fn line(&self, lines: &[u8], from: usize) -> Option<Range<usize>> {
        if self.has_text_anchors {
            let mut start = from;
            return lines[from..].split_inclusive(|byte| *byte == b'\n').find_map(|line| {
                let range = start..start + line.len();
                start = range.end;
                self.regex.is_match(without_end(line)).then_some(range)
            });
        }
        // After the last line there is none, though an empty match fits there.
        if from == lines.len() {
            return None;
        }
        // Many lines at once: no match reaches across a line end.
        let at = self.regex.search_half(&Input::new(lines).span(from..lines.len()))?.offset();
        let start = memchr::memrchr(b'\n', &lines[..at]).map_or(0, |end| end + 1);
        if start == lines.len() {
            return None;
        }
        let end = memchr::memchr(b'\n', &lines[at..]).map_or(lines.len(), |end| at + end + 1);
        Some(start..end)
    }
}

/// A line without its LF or CRLF.
pub(crate) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn no_expression(pattern: &str, error: &regex_syntax::Error) -> Failure {
    let (problem, offset) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), error.span().start.offset),
        regex_syntax::Error::Translate(error) => {
            (error.kind().to_string(), error.span().start.offset)
        }
        error => (error.to_string(), 0),
    };
    let character = pattern[..pattern.floor_char_boundary(offset)].chars().count() + 1;
    Failure::invalid_arguments(format!(
        "`{pattern}` is not a regular expression: {problem}, at character {character}; escape it \
         with `\\`, or set `literal` to search for the text as it is"
    ))
}

/// The same expression without the line ends that classes such as `\s` hold.
fn within_a_line(expression: Hir) -> Result<Hir, Failure> {
    let all = |parts: Vec<Hir>| parts.into_iter().map(within_a_line).collect::<Result<_, _>>();
    Ok(match expression.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Literal(literal) if literal.0.iter().any(|byte| b"\r\n".contains(byte)) => {
            return Err(across_lines());
        }
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class_within_a_line(class)?),
        HirKind::Repetition(mut repetition) => {
            *repetition.sub = within_a_line(*repetition.sub)?;
            Hir::repetition(repetition)
        }
        HirKind::Capture(mut capture) => {
            *capture.sub = within_a_line(*capture.sub)?;
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(all(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
    })
}

fn class_within_a_line(class: Class) -> Result<Class, Failure> {
    let had_any = !is_nothing(&class);
    let class = match class {
        Class::Unicode(mut class) => {
            class.difference(&ClassUnicode::new(
                ['\r', '\n'].map(|end| ClassUnicodeRange::new(end, end)),
            ));
            Class::Unicode(class)
        }
        Class::Bytes(mut class) => {
            class.difference(&ClassBytes::new(
                [b'\r', b'\n'].map(|end| ClassBytesRange::new(end, end)),
            ));
            Class::Bytes(class)
        }
    };
    if had_any && is_nothing(&class) { Err(across_lines()) } else { Ok(class) }
}

fn is_nothing(class: &Class) -> bool {
    match class {
        Class::Unicode(class) => class.ranges().is_empty(),
        Class::Bytes(class) => class.ranges().is_empty(),
    }
}

fn across_lines() -> Failure {
    Failure::invalid_arguments(
        "`pattern` holds a line end: files are searched line by line, so look for a part that \
         stands in one line",
    )
}

#[cfg(test)]
mod tests {
    use super::{Failure, Pattern};
    #[test]
    fn what_patterns_fit() {
        for (pattern, literal, ignore_case, line, fits) in [
            ("fo+", false, false, "xfoo", true),
            ("fo+", false, false, "FOO", false),
            ("fo+", false, true, "FOO", true),
            ("fo+", true, false, "foo", false),
            ("fo+(", true, false, "a fo+(b", true),
            ("^b", false, false, "ab", false),
            ("b$", false, false, "ab\r\n", true),
            (r"\bfoo\b", false, false, "a foo b", true),
            (r"\s$", false, false, "a\n", false),
            (r"a\sb", false, false, "a\nb", false),
            (r"a[^x]b", false, false, "a\nb", false),
            (r"a[^x]b", false, false, "a-b", true),
            (r"(?s)a.b", false, false, "a\nb", false),
            (r"x(?:\s+|y){2}z", false, false, "x  yz", true),
            (r"^\w\d$", false, false, "\u{c4}1", true),
            (r"(?-u:\xff)", false, false, "\u{ff}", false),
            ("\u{e4}", false, true, "\u{c4}", true),
        ] {
            let found = Pattern::new(pattern, literal, ignore_case).unwrap();
            let found = found.line(line.as_bytes(), 0).is_some();
            assert_eq!(found, fits, "{pattern} {line:?}");
        }
    }

    #[test]
    fn lines_are_found_one_after_the_other() {
        let lines = b"one\ntwo\r\n\nthree one\nlast";
        for (pattern, found) in [
            ("one", &[(0, 4), (10, 20)][..]),
            ("^", &[(0, 4), (4, 9), (9, 10), (10, 20), (20, 24)][..]),
            ("$", &[(0, 4), (4, 9), (9, 10), (10, 20), (20, 24)][..]),
            ("^$", &[(9, 10)][..]),
            ("o$", &[(4, 9)][..]),
            (r"\Ao", &[(0, 4)][..]),
            (r"e\z", &[(0, 4), (10, 20)][..]),
            ("x*", &[(0, 4), (4, 9), (9, 10), (10, 20), (20, 24)][..]),
            (r"\s", &[(10, 20)][..]),
        ] {
            let pattern_text = pattern;
            let pattern = Pattern::new(pattern, false, false).unwrap();
            let mut from = 0;
            let mut ranges = Vec::new();
            while let Some(range) = pattern.line(lines, from) {
                assert!(range.end > from, "{pattern_text}: no way forward from {from}");
                from = range.end;
                ranges.push((range.start, range.end));
            }
            assert_eq!(ranges, found, "{pattern_text}");
        }
        assert_eq!(Pattern::new("^", false, false).unwrap().line(b"a\n", 2), None);
        assert_eq!(Pattern::new("^", false, false).unwrap().line(b"", 0), None);
    }

    #[test]
    fn what_is_no_pattern_says_where() {
        let advice = "escape it with `\\`, or set `literal` to search for the text as it is";
        let across = "`pattern` holds a line end: files are searched line by line, so look for a \
                      part that stands in one line";
        for (pattern, literal, text) in [
            (
                "foo(",
                false,
                format!(
                    "`foo(` is not a regular expression: unclosed group, at character 4; {advice}"
                ),
            ),
            (
                "\u{e4}[z-a]",
                false,
                format!(
                    "`\u{e4}[z-a]` is not a regular expression: invalid character class range, the \
                     start must be <= the end, at character 3; {advice}"
                ),
            ),
            (
                "a(?=b)",
                false,
                format!(
                    "`a(?=b)` is not a regular expression: look-around, including look-ahead and \
                     look-behind, is not supported, at character 2; {advice}"
                ),
            ),
            (
                r"\p{Nonsense}",
                false,
                format!(
                    r"`\p{{Nonsense}}` is not a regular expression: Unicode property not found, at character 1; {advice}"
                ),
            ),
            (
                "",
                false,
                "`pattern` is empty, which every line would fit: say what to look for".to_owned(),
            ),
            (r"a\nb", false, across.to_owned()),
            (r"a[\r\n]b", false, across.to_owned()),
            (r"a\rb", false, across.to_owned()),
            ("a\nb", true, across.to_owned()),
        ] {
            let failure = Pattern::new(pattern, literal, false).unwrap_err();
            assert_eq!(failure, Failure::invalid_arguments(text));
        }
    }
}
