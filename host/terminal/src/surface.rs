//! The only way to the terminal: finished lines go into its scrollback, the live area below them
//! is drawn over.
//!
//! Moves the cursor only up and down from where it is, so that it never has to ask where that is.
//! Whatever a line holds, nothing in it reaches the terminal as anything but text.

use crate::{
    state::{Live, Size},
    visible,
};
use anstyle::{AnsiColor, Effects};
use crossterm::{
    Command,
    cursor::{Hide, MoveDown, MoveTo, MoveToColumn, MoveUp, Show},
    terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate},
};
use ratatui_core::{
    style::{Color, Modifier, Style},
    text::Line,
};
use std::io::{self, Write};

/// A row as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    bytes: String,
    width: usize,
}

/// What the live area looks like on the terminal.
#[derive(Debug, Default)]
struct Drawn {
    rows: Vec<Row>,
    cursor: (u16, u16),
    columns: usize,
}

#[derive(Debug)]
pub(crate) struct Surface<W> {
    out: W,
    colour: bool,
    drawn: Drawn,
}

impl<W: Write> Surface<W> {
    pub(crate) fn new(out: W, colour: bool) -> Self {
        Self { out, colour, drawn: Drawn::default() }
    }

    /// Puts `finished` above the live area, and the live area as it is now below.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to: it may be gone.
    pub(crate) fn draw(
        &mut self,
        finished: &[Line<'_>],
        live: &Live,
        size: Size,
    ) -> io::Result<()> {
        let rows: Vec<_> = live.rows.iter().map(|line| self.row(line)).collect();
        let is_same_shape = self.drawn.columns == size.columns
            && self.drawn.rows.len() == rows.len()
            && finished.is_empty();
        if is_same_shape && self.drawn.rows == rows && self.drawn.cursor == live.cursor {
            return Ok(());
        }
        let mut text = String::new();
        put(&mut text, &BeginSynchronizedUpdate);
        put(&mut text, &Hide);
        let at = if is_same_shape {
            self.patch(&rows, &mut text)
        } else {
            self.repaint(finished, &rows, size, &mut text)
        };
        move_rows(&mut text, at, usize::from(live.cursor.1));
        put(&mut text, &MoveToColumn(live.cursor.0));
        put(&mut text, &Show);
        put(&mut text, &EndSynchronizedUpdate);
        self.drawn = Drawn { rows, cursor: live.cursor, columns: size.columns };
        self.write(&text)
    }

    /// Empties the screen; the next drawing begins at its top.
    ///
    /// # Errors
    ///
    /// As [`Self::draw`].
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let mut text = String::new();
        put(&mut text, &Clear(ClearType::All));
        put(&mut text, &MoveTo(0, 0));
        self.drawn = Drawn::default();
        self.write(&text)
    }

    /// Puts `finished` in the place of the live area, which is gone then.
    ///
    /// # Errors
    ///
    /// As [`Self::draw`].
    pub(crate) fn finish(&mut self, finished: &[Line<'_>], size: Size) -> io::Result<()> {
        let mut text = String::new();
        self.repaint(finished, &[], size, &mut text);
        put(&mut text, &Show);
        self.drawn = Drawn::default();
        self.write(&text)
    }

    /// Writes the rows that changed; the row that the cursor is in afterwards.
    fn patch(&self, rows: &[Row], text: &mut String) -> usize {
        let mut at = usize::from(self.drawn.cursor.1);
        for (index, (old, new)) in self.drawn.rows.iter().zip(rows).enumerate() {
            if old != new {
                move_rows(text, at, index);
                at = index;
                // Cleared first: after a row that fills the width a terminal may take its last
                // column for what is to be cleared.
                text.push('\r');
                put(text, &Clear(ClearType::UntilNewLine));
                text.push_str(&new.bytes);
            }
        }
        at
    }

    fn repaint(&self, finished: &[Line<'_>], rows: &[Row], size: Size, text: &mut String) -> usize {
        let above = self.rows_above_the_cursor(size.columns);
        move_rows(text, above, 0);
        text.push('\r');
        put(text, &Clear(ClearType::FromCursorDown));
        for line in finished {
            text.push_str(&self.row(line).bytes);
            text.push_str("\r\n");
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                text.push_str("\r\n");
            }
            text.push_str(&row.bytes);
        }
        rows.len().saturating_sub(1)
    }

    /// How far the cursor is below the first row. Most terminals break what has become too wide.
    fn rows_above_the_cursor(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        let (column, row) = (usize::from(self.drawn.cursor.0), usize::from(self.drawn.cursor.1));
        let above = self.drawn.rows.iter().take(row).map(|row| row.width.div_ceil(columns).max(1));
        above.sum::<usize>() + column / columns
    }

    fn row(&self, line: &Line<'_>) -> Row {
        let mut bytes = String::new();
        for span in &line.spans {
            let shown = visible::line(&span.content);
            let style = escape(line.style.patch(span.style), self.colour);
            bytes.push_str(&format!("{style}{shown}{style:#}"));
        }
        Row { bytes, width: line.width() }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// What puts a command of crossterm's among the text. Writing to a string cannot fail.
fn put(text: &mut String, command: &impl Command) {
    let _ = command.write_ansi(text);
}

fn move_rows(text: &mut String, from: usize, to: usize) {
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    if to < from {
        put(text, &MoveUp(rows(from - to)));
    } else if to > from {
        put(text, &MoveDown(rows(to - from)));
    }
}

fn escape(style: Style, colour: bool) -> anstyle::Style {
    let effects = [
        (Modifier::BOLD, Effects::BOLD),
        (Modifier::DIM, Effects::DIMMED),
        (Modifier::ITALIC, Effects::ITALIC),
        (Modifier::UNDERLINED, Effects::UNDERLINE),
        (Modifier::REVERSED, Effects::INVERT),
        (Modifier::CROSSED_OUT, Effects::STRIKETHROUGH),
    ];
    let effects = effects
        .iter()
        .filter(|(modifier, _)| style.add_modifier.contains(*modifier))
        .fold(Effects::new(), |all, (_, effect)| all.insert(*effect));
    let foreground = style.fg.filter(|_| colour).and_then(|colour| match colour {
        Color::Red => Some(AnsiColor::Red),
        Color::Green => Some(AnsiColor::Green),
        Color::Yellow => Some(AnsiColor::Yellow),
        Color::Blue => Some(AnsiColor::Blue),
        Color::Magenta => Some(AnsiColor::Magenta),
        Color::Cyan => Some(AnsiColor::Cyan),
        _ => None,
    });
    anstyle::Style::new().effects(effects).fg_color(foreground.map(Into::into))
}

#[cfg(test)]
impl Surface<Vec<u8>> {
    pub(crate) fn take_written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style;

    const SIZE: Size = Size { columns: 20, rows: 5 };

    fn live(rows: &[&str], cursor: (u16, u16)) -> Live {
        Live { rows: rows.iter().map(|row| Line::raw((*row).to_owned())).collect(), cursor }
    }

    fn written(surface: &mut Surface<Vec<u8>>) -> String {
        String::from_utf8(std::mem::take(&mut surface.out)).unwrap()
    }

    #[test]
    fn a_line_that_was_not_made_visible_still_moves_nothing() {
        let mut surface = Surface::new(Vec::new(), true);
        let hostile = Line::raw("\u{1b}[2J\u{9b}1A\u{202e}\r\u{7}");
        surface.finish(&[hostile], SIZE).unwrap();
        let text = written(&mut surface);
        assert_eq!(text, "\r\u{1b}[J\\u{1b}[2J\\u{9b}1A\\u{202e}\\r\\u{7}\r\n\u{1b}[?25h");
    }

    #[test]
    fn only_rows_that_changed_are_written() {
        let mut surface = Surface::new(Vec::new(), true);
        surface.draw(&[], &live(&["one", "two", "three"], (1, 2)), SIZE).unwrap();
        written(&mut surface);
        surface.draw(&[], &live(&["one", "two", "three"], (1, 2)), SIZE).unwrap();
        assert_eq!(written(&mut surface), "");
        surface.draw(&[], &live(&["one", "2", "three"], (1, 2)), SIZE).unwrap();
        assert_eq!(
            written(&mut surface),
            "\u{1b}[?2026h\u{1b}[?25l\u{1b}[1A\r\u{1b}[K2\u{1b}[1B\u{1b}[2G\u{1b}[?25h\u{1b}[?2026l"
        );
    }

    #[test]
    fn without_colour_the_weight_of_text_stays() {
        let line = Line::styled("x", style::QUESTION);
        let mut surface = Surface::new(Vec::new(), false);
        assert_eq!(surface.row(&line).bytes, "\u{1b}[1mx\u{1b}[0m");
        surface.colour = true;
        assert_eq!(surface.row(&line).bytes, "\u{1b}[1m\u{1b}[33mx\u{1b}[0m");
    }
}
