//! The sinks of a run's events: JSON lines, the last event alone, and text for people.

pub(crate) mod denials;
pub(crate) mod receipt;

mod text;

use crate::{
    arguments::{OutputArguments, OutputFormat},
    screen::SharedScreen,
};
use belljar_types::{Event, EventKind};
use std::io;

use text::Text;

/// Takes a run's events as they come.
#[derive(Debug)]
pub(crate) enum Sink {
    /// One event a line.
    Lines(SharedScreen),
    /// The last event alone.
    Last(SharedScreen),
    Text(Box<Text>),
}

/// How many lines of each result people are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResultLines(pub(crate) usize);

impl Sink {
    pub(crate) fn new(screen: SharedScreen, output: &OutputArguments, lines: ResultLines) -> Self {
        match output.output_format {
            OutputFormat::StreamJson => Self::Lines(screen),
            OutputFormat::Json => Self::Last(screen),
            OutputFormat::Text => Self::Text(Box::new(Text::new(screen, output.talk, lines))),
        }
    }

    /// Shows an event.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written; its reader may be gone.
    pub(crate) fn show(&mut self, event: &Event) -> io::Result<()> {
        match self {
            Self::Lines(screen) => screen.lock().json(event),
            Self::Last(screen) => match event.kind {
                EventKind::Stop { .. } => screen.lock().json(event),
                _ => Ok(()),
            },
            Self::Text(text) => text.show(&event.kind),
        }
    }

    /// Tells people what no event carries any more.
    pub(crate) fn aside(&self, sentence: &str) {
        let screen = match self {
            Self::Lines(screen) | Self::Last(screen) => screen,
            Self::Text(text) => text.screen(),
        };
        screen.lock().note(sentence);
    }
}
