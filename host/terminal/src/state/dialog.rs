//! Something that the person is asked: a call's approval, page by page, or whether to go on.

use crate::{arguments, style, text};
use belljar_types::{ApprovalAnswer, ApprovalQuestion};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui_core::text::{Line, Span};
use std::time::Duration;

/// Keys that come within this time after a question was first on the screen were meant for
/// something else.
const UNSEEN: Duration = Duration::from_millis(400);
/// Rows of the dialog beside its title, the arguments and the keys.
const AROUND: usize = 4;

/// What a key in a dialog did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    Nothing,
    Answer(ApprovalAnswer),
    /// A yes for good, which has to be written first.
    Always,
}

/// Which keys are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    All,
    /// No yes before all was seen.
    MorePages,
    /// No yes to what cannot be shown.
    TooSmall,
}

/// A call that waits for an answer.
#[derive(Debug)]
pub(super) struct Dialog {
    pub(super) question: ApprovalQuestion,
    /// What a yes for good would write, and where.
    always: Option<String>,
    /// When it was first on the screen.
    drawn_at: Option<Duration>,
    page: usize,
    /// Every page was on the screen, in this width.
    has_seen_all: bool,
    /// The reason of a no, while it is typed.
    reason: Option<String>,
    problem: Option<String>,
}

impl Dialog {
    pub(super) fn new(question: ApprovalQuestion, always: Option<String>) -> Self {
        let always = always.filter(|_| question.question.always.is_some());
        Self {
            question,
            always,
            drawn_at: None,
            page: 0,
            has_seen_all: false,
            reason: None,
            problem: None,
        }
    }

    /// The dialog is on the screen now.
    pub(super) fn drawn(&mut self, now: Duration, columns: usize, rows: usize) {
        self.drawn_at.get_or_insert(now);
        let is_last = self.page + 1 >= self.pages(columns, rows).len();
        if is_last && self.room(columns, rows) > 0 {
            self.has_seen_all = true;
        }
    }

    /// Another size has other pages.
    pub(super) fn resized(&mut self) {
        self.page = 0;
        self.has_seen_all = false;
    }

    pub(super) fn problem(&mut self, text: String) {
        self.problem = Some(text);
    }

    /// Whether a reason is being typed; Esc ends that.
    pub(super) fn stop_typing(&mut self) -> bool {
        self.reason.take().is_some()
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(reason) = &mut self.reason {
            reason.push_str(&crate::visible::line(text));
        }
    }

    pub(super) fn key(
        &mut self,
        key: KeyEvent,
        now: Duration,
        columns: usize,
        rows: usize,
    ) -> Chosen {
        let is_seen = self.drawn_at.is_some_and(|drawn| now.saturating_sub(drawn) >= UNSEEN);
        if !is_seen {
            return Chosen::Nothing;
        }
        self.problem = None;
        if self.reason.is_some() {
            return self.reason_key(key);
        }
        let pages = self.pages(columns, rows).len();
        match key.code {
            KeyCode::PageDown | KeyCode::Down | KeyCode::Enter | KeyCode::Char(' ') => {
                self.page = (self.page + 1).min(pages.saturating_sub(1));
            }
            KeyCode::PageUp | KeyCode::Up => self.page = self.page.saturating_sub(1),
            KeyCode::Home => self.page = 0,
            KeyCode::Char('n' | 'N') => return Chosen::Answer(ApprovalAnswer::No),
            KeyCode::Char('b' | 'B') => self.reason = Some(String::new()),
            KeyCode::Char('y' | 'Y' | 's' | 'S' | 'a' | 'A') if !self.has_seen_all => {
                let problem = match self.room(columns, rows) {
                    0 => "this terminal is too small to show the call",
                    _ => "a yes counts once every page was seen",
                };
                self.problem = Some(problem.to_owned());
            }
            KeyCode::Char('y' | 'Y') => return Chosen::Answer(ApprovalAnswer::Once),
            KeyCode::Char('s' | 'S') => {
                if self.question.question.session {
                    return Chosen::Answer(ApprovalAnswer::Session);
                }
                self.problem = Some("this is asked each time".to_owned());
            }
            KeyCode::Char('a' | 'A') => {
                if self.always.is_some() {
                    return Chosen::Always;
                }
                self.problem = Some("there is no yes for good to this".to_owned());
            }
            _ => {}
        }
        Chosen::Nothing
    }

    fn reason_key(&mut self, key: KeyEvent) -> Chosen {
        let Some(reason) = &mut self.reason else { return Chosen::Nothing };
        match key.code {
            KeyCode::Enter => {
                let reason = reason.trim().to_owned();
                return Chosen::Answer(match reason.is_empty() {
                    true => ApprovalAnswer::No,
                    false => ApprovalAnswer::NoBecause(reason),
                });
            }
            KeyCode::Backspace => {
                reason.pop();
            }
            KeyCode::Char(c) => reason.push_str(&crate::visible::line(c.encode_utf8(&mut [0; 4]))),
            _ => {}
        }
        Chosen::Nothing
    }

    /// The rows of the dialog, and where the cursor is in them.
    pub(super) fn rows(
        &self,
        waiting: usize,
        columns: usize,
        rows: usize,
    ) -> (Vec<Line<'static>>, (u16, u16)) {
        let mut lines = self.title(columns);
        if waiting > 0 {
            lines.push(Line::styled(format!("  {waiting} more to answer after it"), style::FAINT));
        }
        let source = format!(
            "{}/{}  {}",
            self.question.source.plugin,
            self.question.call.tool,
            short_digest(&self.question.source.digest)
        );
        let source = text::cut(&source, columns.saturating_sub(2));
        lines.push(Line::styled(format!("  {source}"), style::FAINT));
        let pages = self.pages(columns, rows);
        let page = self.page.min(pages.len().saturating_sub(1));
        lines.extend(pages.get(page).cloned().unwrap_or_default());
        if pages.len() > 1 {
            let text = format!("  page {} of {} · Enter next · PgUp back", page + 1, pages.len());
            lines.push(Line::styled(text, style::FAINT));
        }
        if let Some(problem) = &self.problem {
            lines.push(Line::styled(text::cut(problem, columns), style::BAD));
        }
        if let Some(reason) = &self.reason {
            let line = Line::raw(reason.clone());
            let mark = [Span::styled("no, because: ", style::QUESTION)];
            lines.extend(text::hard(&line, &mark, &[], columns));
            let column = lines.last().map_or(0, Line::width).min(columns.saturating_sub(1));
            let row = lines.len() - 1;
            return (lines, (as_u16(column), as_u16(row)));
        }
        let is_last = page + 1 >= pages.len();
        let keys = match self.room(columns, rows) {
            0 => Keys::TooSmall,
            _ if self.has_seen_all || is_last => Keys::All,
            _ => Keys::MorePages,
        };
        lines.extend(self.foot(columns, keys));
        let column = lines.last().map_or(0, Line::width).min(columns.saturating_sub(1));
        let row = lines.len() - 1;
        (lines, (as_u16(column), as_u16(row)))
    }

    fn title(&self, columns: usize) -> Vec<Line<'static>> {
        let mark = [Span::styled("? ", style::QUESTION)];
        let text = crate::visible::lines(&self.question.question.text);
        let lines = text.split('\n').map(|line| Line::styled(line.to_owned(), style::QUESTION));
        lines
            .enumerate()
            .flat_map(|(index, line)| {
                let first = if index == 0 { mark.clone() } else { [Span::raw("  ")] };
                text::words(&line, &first, &[Span::raw("  ")], columns)
            })
            .collect()
    }

    /// What a yes for good would write, and the keys.
    fn foot(&self, columns: usize, keys: Keys) -> Vec<Line<'static>> {
        let indent = [Span::raw("  ")];
        let mut lines = Vec::new();
        if let Some(always) = &self.always {
            let line = Line::styled(format!("a writes {always}"), style::FAINT);
            lines.extend(text::words(&line, &indent, &indent, columns));
        }
        let keys = Line::styled(self.keys(keys), style::QUESTION);
        lines.extend(text::words(&keys, &[], &[], columns));
        lines
    }

    fn keys(&self, keys: Keys) -> String {
        let session = if self.question.question.session { " · s this session" } else { "" };
        let always = if self.always.is_some() { " · a always" } else { "" };
        match keys {
            Keys::All => {
                format!("allow? y once{session}{always} · n no · b no, because … ")
            }
            Keys::MorePages => {
                "allow? Enter shows the next page · n no · b no, because … ".to_owned()
            }
            Keys::TooSmall => "make the terminal larger to see the call · n no ".to_owned(),
        }
    }

    /// Rows that a page of arguments has; none where the terminal is too small to show any of them
    /// beside the question.
    fn room(&self, columns: usize, rows: usize) -> usize {
        let around = self.title(columns).len() + self.foot(columns, Keys::All).len() + AROUND;
        rows.saturating_sub(around)
    }

    /// Every byte of the arguments, in pages that fit.
    fn pages(&self, columns: usize, rows: usize) -> Vec<Vec<Line<'static>>> {
        let indent = [Span::raw("  ")];
        let deep = [Span::raw("    ")];
        let lines: Vec<_> = arguments::whole(&self.question.call)
            .iter()
            .flat_map(|line| text::hard(line, &indent, &deep, columns))
            .collect();
        let room = self.room(columns, rows).max(1);
        lines.chunks(room).map(<[_]>::to_vec).collect()
    }
}

fn short_digest(digest: &str) -> String {
    let end = digest.char_indices().nth("sha256:".len() + 12).map_or(digest.len(), |(at, _)| at);
    digest[..end].to_owned()
}

fn as_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
