//! The line that the person writes: editing, what was typed before, and what it may go on as.

use crate::{command::COMMANDS, history::History, style, text, visible};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget as _,
};
use ratatui_textarea::{CursorMove, Input, Key, TextArea, WrapMode};

/// Rows of text that are shown.
const ROWS: u16 = 8;
/// Bytes of one paste.
const LONGEST_PASTE: usize = 1 << 20;
/// Candidates that are shown, and those that are kept.
const SHOWN: usize = 6;
const KEPT: usize = 100;
const MARK: &str = "› ";

/// What a key did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Nothing,
    /// The text, or where the cursor is in it, may have changed.
    Edited,
    Sent(String),
}

/// What the word at the cursor may become.
#[derive(Debug)]
struct Completion {
    /// Characters before the cursor that a candidate replaces.
    replaces: usize,
    candidates: Vec<Candidate>,
    chosen: usize,
    /// The person moved in the list, so that Enter takes what is chosen.
    is_moved: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    insert: String,
    about: String,
}

#[derive(Debug)]
pub(super) struct Prompt {
    editor: TextArea<'static>,
    history: History,
    completion: Option<Completion>,
    /// The files that were asked for last, by number and prefix.
    asked: (u64, Option<String>),
    /// The list was closed for this text.
    closed_for: Option<String>,
}

impl Prompt {
    pub(super) fn new(history: &str) -> Self {
        Self {
            editor: editor(""),
            history: History::read(history),
            completion: None,
            asked: (0, None),
            closed_for: None,
        }
    }

    pub(super) fn text(&self) -> String {
        self.editor.lines().join("\n")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.editor.is_empty()
    }

    pub(super) fn set(&mut self, text: &str) {
        self.editor = editor(&visible::lines(text).replace('\t', "    "));
        self.completion = None;
    }

    /// Takes what was sent as typed; the line for the history file.
    pub(super) fn remember(&mut self, text: &str) -> Option<String> {
        self.history.add(text)
    }

    /// What is pasted is shown as it will be sent, so hostile characters are spelled out.
    pub(super) fn paste(&mut self, text: &str) {
        let mut end = text.len().min(LONGEST_PASTE);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // Some terminals end the lines of a paste with a return alone.
        let text = text[..end].replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        self.editor.insert_str(visible::lines(&text));
        self.completion = None;
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Did {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt || shift || ctrl => self.editor.insert_newline(),
            KeyCode::Char('j') if ctrl => self.editor.insert_newline(),
            KeyCode::Enter => {
                if self.completion.as_ref().is_some_and(|completion| completion.is_moved) {
                    self.complete();
                    return Did::Edited;
                }
                // A backslash at the end asks for another line, where a terminal has no key for it.
                if self.editor.lines().last().is_some_and(|line| line.ends_with('\\')) {
                    self.editor.move_cursor(CursorMove::Bottom);
                    self.editor.move_cursor(CursorMove::End);
                    self.editor.delete_char();
                    self.editor.insert_newline();
                    return Did::Edited;
                }
                let text = self.text();
                if text.trim().is_empty() {
                    return Did::Nothing;
                }
                self.set("");
                return Did::Sent(text);
            }
            KeyCode::Tab if self.completion.is_some() => self.complete(),
            KeyCode::Tab => return Did::Nothing,
            KeyCode::Up | KeyCode::Down if self.completion.is_some() => {
                self.choose(key.code == KeyCode::Down);
                return Did::Nothing;
            }
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            KeyCode::Char('p') if ctrl => self.up(),
            KeyCode::Char('n') if ctrl => self.down(),
            KeyCode::Char('u') if ctrl => {
                self.editor.delete_line_by_head();
            }
            KeyCode::Char('z' | '_') if ctrl => {
                self.editor.undo();
            }
            // A symbol that would move something must not come in by a key either.
            KeyCode::Char(c) if visible::line(c.encode_utf8(&mut [0; 4])).chars().count() > 1 => {
                return Did::Nothing;
            }
            _ => match input(key, ctrl, alt, shift) {
                Some(input) => {
                    self.editor.input(input);
                }
                None => return Did::Nothing,
            },
        }
        Did::Edited
    }

    /// Closes the list of candidates; whether one was open.
    pub(super) fn close(&mut self) -> bool {
        self.closed_for = self.completion.as_ref().map(|_| self.text());
        self.completion.take().is_some()
    }

    /// Looks at the word at the cursor; files that are to be asked for.
    pub(super) fn look(&mut self) -> Option<(u64, String)> {
        if self.closed_for.as_ref().is_some_and(|text| *text == self.text()) {
            return None;
        }
        self.closed_for = None;
        let word = self.word();
        if let Some(prefix) = word.strip_prefix('@') {
            let prefix = prefix.trim_start_matches('"').to_owned();
            if self.asked.1.as_ref() == Some(&prefix) {
                return None;
            }
            self.asked = (self.asked.0 + 1, Some(prefix.clone()));
            return Some((self.asked.0, prefix));
        }
        self.asked.1 = None;
        self.completion = None;
        let is_command = self.editor.lines().len() == 1 && self.text().starts_with('/');
        if is_command && word.starts_with('/') && self.editor.cursor().1 == word.chars().count() {
            let candidates = COMMANDS.iter().filter(|(name, ..)| name.starts_with(&word));
            let candidates = candidates
                .map(|(name, takes, about)| {
                    let space = if takes.is_empty() { "" } else { " " };
                    let about = if takes.is_empty() {
                        (*about).to_owned()
                    } else {
                        format!("{takes}  {about}")
                    };
                    Candidate { insert: format!("{name}{space}"), about }
                })
                .filter(|candidate| candidate.insert != word)
                .collect();
            self.offer(word.chars().count(), candidates);
        }
        None
    }

    /// Files that fit what was asked for.
    pub(super) fn files(&mut self, number: u64, names: Vec<String>) {
        let word = self.word();
        if number != self.asked.0 || !word.starts_with('@') {
            return;
        }
        let is_plain = |name: &String| visible::line(name) == *name && !name.contains('"');
        let candidates = names.into_iter().filter(is_plain).take(KEPT).map(|name| {
            let has_space = name.contains(char::is_whitespace);
            let insert = if has_space { format!("@\"{name}\" ") } else { format!("@{name} ") };
            Candidate { insert, about: String::new() }
        });
        let candidates = candidates.collect();
        self.offer(word.chars().count(), candidates);
    }

    /// The rows of the text, where its cursor is in them, and the candidates below.
    pub(super) fn rows(&self, columns: usize) -> (Vec<Line<'static>>, (u16, u16)) {
        let width =
            u16::try_from(columns.saturating_sub(text::width(MARK))).unwrap_or(u16::MAX).max(4);
        let area = Rect::new(0, 0, width, ROWS);
        let mut buffer = Buffer::empty(area);
        (&self.editor).render(area, &mut buffer);
        let cursor = self.editor.screen_cursor();
        let (top, _) = self.editor.scroll_offset();
        let row = u16::try_from(cursor.row).unwrap_or(u16::MAX).saturating_sub(top).min(ROWS - 1);
        let column = u16::try_from(cursor.col).unwrap_or(u16::MAX).min(width - 1);
        let mut rows: Vec<String> = (0..ROWS).map(|y| row_text(&buffer, y, width)).collect();
        let used = rows.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1);
        rows.truncate(used.max(usize::from(row) + 1));
        let lines = rows.into_iter().enumerate().map(|(index, text)| {
            let mark = if index == 0 { MARK } else { "  " };
            Line::from(vec![Span::styled(mark, style::PERSON), Span::raw(text)])
        });
        (lines.collect(), (column + 2, row))
    }

    /// The candidates, a row each.
    pub(super) fn candidates(&self, columns: usize) -> Vec<Line<'static>> {
        let Some(completion) = &self.completion else { return Vec::new() };
        let first = completion.chosen.saturating_sub(SHOWN - 1);
        let shown = completion.candidates.iter().enumerate().skip(first).take(SHOWN);
        let mut lines: Vec<_> = shown
            .map(|(index, candidate)| {
                let insert = candidate.insert.trim_end();
                let room = columns.saturating_sub(2);
                let text = if candidate.about.is_empty() {
                    text::cut(insert, room)
                } else {
                    text::cut(&format!("{insert:<10} {}", candidate.about), room)
                };
                let style = if index == completion.chosen { style::CHOSEN } else { style::FAINT };
                Line::from(vec![Span::raw("  "), Span::styled(text, style)])
            })
            .collect();
        let more = completion.candidates.len().saturating_sub(first + SHOWN);
        if more > 0 {
            lines.push(Line::styled(format!("  … {more} more"), style::FAINT));
        }
        lines
    }

    fn offer(&mut self, replaces: usize, candidates: Vec<Candidate>) {
        self.completion = (!candidates.is_empty()).then_some(Completion {
            replaces,
            candidates,
            chosen: 0,
            is_moved: false,
        });
    }

    fn choose(&mut self, down: bool) {
        if let Some(completion) = &mut self.completion {
            let count = completion.candidates.len();
            let step = if down { 1 } else { count - 1 };
            completion.chosen = (completion.chosen + step) % count;
            completion.is_moved = true;
        }
    }

    fn complete(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        if let Some(candidate) = completion.candidates.get(completion.chosen) {
            for _ in 0..completion.replaces {
                self.editor.delete_char();
            }
            self.editor.insert_str(&candidate.insert);
        }
    }

    fn up(&mut self) {
        let before = self.editor.screen_cursor();
        self.editor.move_cursor(CursorMove::Up);
        if before.row == 0 || self.editor.screen_cursor().row == before.row {
            let text = self.text();
            if let Some(older) = self.history.older(&text).map(str::to_owned) {
                self.set(&older);
            }
        }
    }

    fn down(&mut self) {
        let before = self.editor.screen_cursor();
        self.editor.move_cursor(CursorMove::Down);
        if self.editor.screen_cursor().row == before.row
            && let Some(newer) = self.history.newer().map(str::to_owned)
        {
            self.set(&newer);
        }
    }

    /// What stands between the last blank and the cursor; with an open quote after `@`, from there.
    fn word(&self) -> String {
        let cursor = self.editor.cursor();
        let line = self.editor.lines().get(cursor.0).map(String::as_str).unwrap_or_default();
        let before: String = line.chars().take(cursor.1).collect();
        if let Some((head, quoted)) = before.rsplit_once("@\"")
            && !quoted.contains('"')
            && head.chars().next_back().is_none_or(char::is_whitespace)
        {
            return format!("@\"{quoted}");
        }
        before.rsplit(char::is_whitespace).next().unwrap_or_default().to_owned()
    }
}

fn editor(text: &str) -> TextArea<'static> {
    let mut editor = TextArea::new(text.split('\n').map(str::to_owned).collect());
    editor.set_wrap_mode(WrapMode::WordOrGlyph);
    // The terminal's own cursor is shown.
    editor.set_cursor_style(style::PLAIN);
    editor.set_cursor_line_style(style::PLAIN);
    editor.move_cursor(CursorMove::Bottom);
    editor.move_cursor(CursorMove::End);
    editor
}

fn row_text(buffer: &Buffer, y: u16, width: u16) -> String {
    let mut text = String::new();
    let mut x = 0;
    while x < width {
        let Some(cell) = buffer.cell((x, y)) else { break };
        let symbol = cell.symbol();
        text.push_str(symbol);
        x += u16::try_from(text::width(symbol)).unwrap_or(1).max(1);
    }
    text.trim_end().to_owned()
}

fn input(key: KeyEvent, ctrl: bool, alt: bool, shift: bool) -> Option<Input> {
    let key = match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Delete => Key::Delete,
        _ => return None,
    };
    Some(Input { key, ctrl, alt, shift })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(prompt: &mut Prompt, code: KeyCode) -> Did {
        prompt.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn type_in(prompt: &mut Prompt, text: &str) {
        for c in text.chars() {
            press(prompt, KeyCode::Char(c));
        }
    }

    fn shown(prompt: &Prompt, columns: usize) -> (Vec<String>, (u16, u16)) {
        let (rows, cursor) = prompt.rows(columns);
        (rows.iter().map(Line::to_string).collect(), cursor)
    }

    #[test]
    fn text_is_edited_in_several_lines_and_sent() {
        let mut prompt = Prompt::new("");
        type_in(&mut prompt, "one");
        prompt.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT));
        type_in(&mut prompt, "two");
        prompt.key(KeyEvent::new(KeyCode::Char('j'), KeyModifiers::CONTROL));
        type_in(&mut prompt, "日本\\");
        assert_eq!(press(&mut prompt, KeyCode::Enter), Did::Edited);
        assert_eq!(prompt.text(), "one\ntwo\n日本\n");
        assert_eq!(
            shown(&prompt, 20),
            (vec!["› one".into(), "  two".into(), "  日本".into(), "  ".into()], (2, 3))
        );
        assert_eq!(press(&mut prompt, KeyCode::Enter), Did::Sent("one\ntwo\n日本\n".to_owned()));
        assert!(prompt.is_empty());
        assert_eq!(press(&mut prompt, KeyCode::Enter), Did::Nothing);
    }

    #[test]
    fn a_long_line_is_broken_and_a_long_text_scrolls() {
        let mut prompt = Prompt::new("");
        type_in(&mut prompt, "word 日本語日本語 x");
        assert_eq!(
            shown(&prompt, 12),
            (vec!["› word 日本".into(), "  語日本語 x".into()], (12 - 1, 1))
        );
        prompt.set(&"line\n".repeat(20));
        let (rows, cursor) = shown(&prompt, 12);
        assert_eq!((rows.len(), cursor), (8, (2, 7)));
    }

    #[test]
    fn a_paste_cannot_send_or_hide_anything() {
        let mut prompt = Prompt::new("");
        prompt.paste("a\r\nb\rc\u{1b}[2J\u{202e}\td");
        assert_eq!(prompt.text(), "a\nb\nc\\u{1b}[2J\\u{202e}    d");
        prompt.set("");
        prompt.paste(&"é".repeat(LONGEST_PASTE));
        assert_eq!(prompt.text().len(), LONGEST_PASTE);
    }

    #[test]
    fn a_command_is_completed() {
        let mut prompt = Prompt::new("");
        type_in(&mut prompt, "/c");
        assert_eq!(prompt.look(), None);
        let shown: Vec<_> = prompt.candidates(40).iter().map(Line::to_string).collect();
        assert_eq!(
            shown,
            ["  /clear     begin a new conversation", "  /cost      tokens, and what they cost…"]
        );
        press(&mut prompt, KeyCode::Down);
        assert_eq!(press(&mut prompt, KeyCode::Enter), Did::Edited);
        assert_eq!(prompt.text(), "/cost");
        prompt.look();
        assert_eq!(press(&mut prompt, KeyCode::Enter), Did::Sent("/cost".to_owned()));
    }

    #[test]
    fn a_file_is_completed_and_hostile_names_are_not_offered() {
        let mut prompt = Prompt::new("");
        type_in(&mut prompt, "see @sr");
        let (number, prefix) = prompt.look().unwrap();
        assert_eq!(prefix, "sr");
        assert_eq!(prompt.look(), None, "the same is not asked for twice");
        prompt.files(number - 1, vec!["late".to_owned()]);
        assert!(prompt.candidates(40).is_empty());
        let names = ["src/a b.rs", "src/\u{1b}[2J", "src/lib.rs"];
        prompt.files(number, names.map(str::to_owned).to_vec());
        let shown: Vec<_> = prompt.candidates(40).iter().map(Line::to_string).collect();
        assert_eq!(shown, ["  @\"src/a b.rs\"", "  @src/lib.rs"]);
        press(&mut prompt, KeyCode::Tab);
        assert_eq!(prompt.text(), "see @\"src/a b.rs\" ");
        assert!(!prompt.close());
    }

    #[test]
    fn history_is_walked_from_the_first_and_the_last_row() {
        let mut prompt = Prompt::new("\"old\"\n\"two\\nrows\"\n");
        type_in(&mut prompt, "mine");
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "two\nrows");
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "two\nrows", "the cursor was in the last row");
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "old");
        press(&mut prompt, KeyCode::Down);
        press(&mut prompt, KeyCode::Down);
        assert_eq!(prompt.text(), "mine");
    }
}
