//! Code in colours, line by line as it comes.
//!
//! Takes the grammars of `bat` and none of its themes: kinds of words get the terminal's own
//! colours. A line that is too long, or that a grammar fails on, stays plain.

use crate::style;
use ratatui_core::{
    style::{Color, Style},
    text::{Line, Span},
};
use std::sync::LazyLock;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

/// Bytes of a line that a grammar is tried on.
const LONGEST_LINE: usize = 2_000;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// Kinds of words, the more particular ones first.
static KINDS: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let kinds = [
        ("comment", style::FAINT),
        ("string", style::PLAIN.fg(Color::Green)),
        ("constant.character.escape", style::PLAIN.fg(Color::Cyan)),
        ("constant", style::PLAIN.fg(Color::Magenta)),
        ("keyword.operator", style::PLAIN),
        ("keyword", style::PLAIN.fg(Color::Blue)),
        ("storage", style::PLAIN.fg(Color::Blue)),
        ("entity.name.tag", style::PLAIN.fg(Color::Blue)),
        ("entity.name.function", style::PLAIN.fg(Color::Yellow)),
        ("entity.name", style::PLAIN.fg(Color::Cyan)),
        ("entity.other.attribute-name", style::PLAIN.fg(Color::Cyan)),
        ("support.function", style::PLAIN.fg(Color::Yellow)),
        ("support", style::PLAIN.fg(Color::Cyan)),
        ("markup.inserted", style::GOOD),
        ("markup.deleted", style::BAD),
        ("markup.heading", style::STRONG),
    ];
    kinds.into_iter().filter_map(|(name, style)| Some((Scope::new(name).ok()?, style))).collect()
});

/// A block of code that is being shown.
#[derive(Debug)]
pub(crate) struct Highlighter(Option<(ParseState, ScopeStack)>);

impl Highlighter {
    /// For the language that a fence names; an unknown one stays plain.
    pub(crate) fn new(language: &str) -> Self {
        let token = language.split([',', ' ', '{']).next().unwrap_or_default();
        if token.is_empty() {
            return Self(None);
        }
        let syntax = SYNTAXES.find_syntax_by_token(token);
        Self(syntax.map(|syntax| (ParseState::new(syntax), ScopeStack::new())))
    }

    /// The next line, without its newline.
    pub(crate) fn line(&mut self, text: &str) -> Line<'static> {
        let Some((state, stack)) = self.0.as_mut().filter(|_| text.len() <= LONGEST_LINE) else {
            return Line::raw(text.to_owned());
        };
        let whole = format!("{text}\n");
        let Ok(operations) = state.parse_line(&whole, &SYNTAXES) else {
            self.0 = None;
            return Line::raw(text.to_owned());
        };
        let mut spans = Vec::new();
        let mut start = 0;
        for (at, operation) in operations {
            let at = at.min(text.len());
            spans.extend(span(text, start, at, stack));
            start = at.max(start);
            if stack.apply(&operation).is_err() {
                self.0 = None;
                return Line::raw(text.to_owned());
            }
        }
        spans.extend(span(text, start, text.len(), stack));
        Line::from(spans)
    }
}

fn span(text: &str, start: usize, end: usize, stack: &ScopeStack) -> Option<Span<'static>> {
    let piece = text.get(start..end).filter(|piece| !piece.is_empty())?;
    let kind = stack.as_slice().iter().rev().find_map(|scope| {
        KINDS.iter().find(|(kind, _)| kind.is_prefix_of(*scope)).map(|(_, style)| *style)
    });
    Some(Span::styled(piece.to_owned(), kind.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_coloured_and_never_changed() {
        let mut rust = Highlighter::new("rust,ignore");
        let line = rust.line("fn main() { let x = \"a\"; } // end");
        assert_eq!(line.to_string(), "fn main() { let x = \"a\"; } // end");
        let style_of =
            |text: &str| line.spans.iter().find(|span| span.content == text).map(|span| span.style);
        assert_eq!(style_of("fn"), Some(style::PLAIN.fg(Color::Blue)));
        assert_eq!(style_of("main"), Some(style::PLAIN.fg(Color::Yellow)));
        for language in ["toml", "typescript", "py", "sh", "json", "no-such-language", ""] {
            let line = Highlighter::new(language).line("a = \"日本\"");
            assert_eq!(line.to_string(), "a = \"日本\"", "{language}");
        }
    }

    #[test]
    fn a_comment_goes_on_in_the_next_line_and_a_long_line_stays_plain() {
        let mut rust = Highlighter::new("rs");
        rust.line("/* one");
        assert!(rust.line("fn two").spans.iter().all(|span| span.style == style::FAINT));
        let long = "x".repeat(LONGEST_LINE + 1);
        assert_eq!(rust.line(&long), Line::raw(long));
    }
}
