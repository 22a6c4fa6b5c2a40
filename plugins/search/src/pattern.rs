//! The pattern of a search, and what the model reads when it is none.

use belljar_sdk::Failure;
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};

/// How large a compiled pattern may be.
const COMPILED_BYTES: usize = 16 * 1024 * 1024;

/// # Errors
///
/// `invalid arguments` that say what is wrong, and at which character.
pub(crate) fn compile(
    pattern: &str,
    literal: bool,
    ignore_case: bool,
) -> Result<RegexMatcher, Failure> {
    if pattern.is_empty() {
        return Err(Failure::invalid_arguments(
            "`pattern` is empty, which every line would fit: say what to look for",
        ));
    }
    if literal && pattern.contains(['\n', '\r']) {
        return Err(across_lines());
    }
    if !literal {
        check(pattern)?;
    }
    RegexMatcherBuilder::new()
        .fixed_strings(literal)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        // So that `$` fits at the end of a line whatever ends it.
        .crlf(true)
        .size_limit(COMPILED_BYTES)
        .build(pattern)
        .map_err(|error| match error.kind() {
            ErrorKind::NotAllowed(_) => across_lines(),
            _ => Failure::invalid_arguments(format!("`pattern` cannot be used: {error}")),
        })
}

/// The same parse that the matcher does, for the place of an error.
fn check(pattern: &str) -> Result<(), Failure> {
    let (problem, offset) = match regex_syntax::parse(pattern) {
        Ok(_) => return Ok(()),
        Err(regex_syntax::Error::Parse(error)) => {
            (error.kind().to_string(), error.span().start.offset)
        }
        Err(regex_syntax::Error::Translate(error)) => {
            (error.kind().to_string(), error.span().start.offset)
        }
        Err(error) => (error.to_string(), 0),
    };
    let character = pattern[..pattern.floor_char_boundary(offset)].chars().count() + 1;
    Err(Failure::invalid_arguments(format!(
        "`{pattern}` is not a regular expression: {problem}, at character {character}; escape it \
         with `\\`, or set `literal` to search for the text as it is"
    )))
}

fn across_lines() -> Failure {
    Failure::invalid_arguments(
        "`pattern` holds a line end: files are searched line by line, so look for a part that \
         stands in one line",
    )
}

#[cfg(test)]
mod tests {
    use super::{Failure, compile};
    use grep_matcher::Matcher as _;

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
            ("\u{e4}", false, true, "\u{c4}", true),
        ] {
            let matcher = compile(pattern, literal, ignore_case).unwrap();
            assert_eq!(matcher.is_match(line.as_bytes()).unwrap(), fits, "{pattern} {line:?}");
        }
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
            ("a\nb", true, across.to_owned()),
        ] {
            let failure = compile(pattern, literal, false).unwrap_err();
            assert_eq!(failure, Failure::invalid_arguments(text));
        }
    }
}
