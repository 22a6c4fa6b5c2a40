//! The live area below the finished text: what still changes, what is asked, the line that the
//! person writes, and the status line.

use super::session::{Doing, Session};
use crate::{style, text};
use ratatui_core::text::{Line, Span};
use std::time::Duration;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const BEAT: Duration = Duration::from_millis(100);
/// Rows that what still changes has at least.
const FEWEST: usize = 3;

/// The live area. Its rows are no wider than the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) rows: Vec<Line<'static>>,
    /// Column and row of the cursor.
    pub(crate) cursor: (u16, u16),
}

impl Session {
    /// The live area at the time `now`.
    pub(crate) fn live(&self, now: Duration) -> Live {
        let (columns, height) = (self.size.columns, self.size.rows);
        let (below, cursor) = match self.dialogs.front() {
            Some(dialog) => {
                let size = self.dialog_size();
                let (rows, cursor) = dialog.rows(self.dialogs.len() - 1, size.columns, size.rows);
                (rows, cursor)
            }
            None => self.writing(columns),
        };
        let candidates =
            if self.dialogs.is_empty() { self.prompt.candidates(columns) } else { Vec::new() };
        let taken = below.len() + candidates.len() + 2;
        let room = height.saturating_sub(taken + 1).min(height / 2).max(FEWEST);
        let mut rows = if self.dialogs.is_empty() {
            self.transcript.live(columns, room, self.spinner(now))
        } else {
            Vec::new()
        };
        rows.push(Line::default());
        let first = rows.len();
        rows.extend(below);
        rows.extend(candidates);
        rows.push(self.status_line(now));
        let mut row = first + usize::from(cursor.1);
        // One that is too high for the terminal would leave its head behind with every change.
        let hidden = rows.len().saturating_sub(height.saturating_sub(1).max(1));
        rows.drain(..hidden);
        row = row.saturating_sub(hidden);
        Live { rows, cursor: (cursor.0, u16::try_from(row).unwrap_or(u16::MAX)) }
    }

    fn writing(&self, columns: usize) -> (Vec<Line<'static>>, (u16, u16)) {
        let mut rows = Vec::new();
        for text in &self.queued {
            let text = text::cut(text, columns.saturating_sub(10));
            rows.push(Line::styled(format!("  queued: {text}"), style::FAINT));
        }
        if let Some(message) = &self.asks_to_go_on {
            let line = format!("{message}: go on? y yes · n no");
            let line = Line::styled(line, style::QUESTION);
            rows.extend(text::words(&line, &[], &[], columns));
        }
        let above = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let (written, (column, row)) = self.prompt.rows(columns);
        rows.extend(written);
        (rows, (column, row.saturating_add(above)))
    }

    fn spinner(&self, now: Duration) -> &'static str {
        let beats = now.as_millis() / BEAT.as_millis();
        SPINNER[usize::try_from(beats % 10).unwrap_or_default()]
    }

    fn status_line(&self, now: Duration) -> Line<'static> {
        let columns = self.size.columns;
        let doing = match (self.hint, self.doing) {
            (Some(hint), _) => Some(hint.to_owned()),
            (None, Doing::Nothing) => None,
            (None, Doing::Run { is_canceled: true, .. }) => Some("interrupting".to_owned()),
            (None, Doing::Run { .. }) if !self.dialogs.is_empty() => {
                Some("waiting for your answer · Esc interrupts".to_owned())
            }
            (None, Doing::Run { since, .. } | Doing::Command { since }) => {
                let seconds = now.saturating_sub(since).as_secs();
                Some(format!("{} {seconds} s · Esc interrupts", self.spinner(now)))
            }
        };
        let status = &self.status;
        let mut parts = vec![status.permission_mode.to_string(), status.model.clone()];
        parts.extend(status.context_percent.map(|percent| format!("{percent} % of the window")));
        let tokens = super::transcript::tokens(&self.transcript.usage);
        parts.extend(tokens.strip_prefix(" · ").map(str::to_owned));
        parts.extend(status.cost.clone());
        let parts = parts.join(" · ");
        let mut spans = Vec::new();
        let mut room = columns;
        if let Some(doing) = doing {
            let doing = text::cut(&doing, room);
            room = room.saturating_sub(text::width(&doing) + 3);
            spans.push(Span::styled(doing, style::QUESTION));
            if room > 8 {
                spans.push(Span::styled(" · ", style::FAINT));
            }
        }
        if room > 8 {
            spans.push(Span::styled(text::cut(&parts, room), style::FAINT));
        }
        Line::from(spans)
    }
}
