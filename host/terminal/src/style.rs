//! The few looks that text has. Colours are the terminal's own sixteen, so that they fit its theme.
//!
//! Never carries a meaning that the words do not: without colour nothing is lost.

use ratatui_core::style::{Color, Modifier, Style};

pub(crate) const PLAIN: Style = Style::new();
/// Beside the point.
pub(crate) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const CALL: Style = Style::new().fg(Color::Cyan);
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
pub(crate) const QUESTION: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
/// What the person said.
pub(crate) const PERSON: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD);
pub(crate) const CODE: Style = Style::new().fg(Color::Cyan);
pub(crate) const LINK: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::UNDERLINED);
pub(crate) const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
