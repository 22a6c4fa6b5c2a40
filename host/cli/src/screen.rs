//! The one way to the standard streams. Standard output is the product, standard error is for
//! people, and what goes to a terminal is made visible first.
//!
//! Never decides what is shown; a write to standard error that fails is nobody's concern, one to
//! standard output is told to the caller.

use crate::visible;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The emphasis of a note, where there is colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// Beside the point.
    Faint,
    Call,
    Good,
    Bad,
    Question,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Faint => Style::new().dimmed(),
            Self::Call => AnsiColor::Cyan.on_default(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Question => AnsiColor::Yellow.on_default().bold(),
        }
    }
}

/// The standard streams.
pub(crate) struct Screen {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    out_is_terminal: bool,
    err_is_terminal: bool,
    colour: bool,
    /// Text that is being streamed to standard output; there while its line is open.
    streamed: Option<visible::Stream>,
    /// The line of standard error is open: a question without its answer, or a piece of a note.
    has_open_note: bool,
}

/// A screen that several tasks write to.
#[derive(Clone)]
pub(crate) struct SharedScreen(Arc<Mutex<Screen>>);

impl SharedScreen {
    /// The standard streams of this process.
    pub(crate) fn of_this_process() -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let colour = err.is_terminal()
            && set("NO_COLOR").is_none()
            && set("TERM").is_none_or(|term| term != "dumb");
        let (out_is_terminal, err_is_terminal) = (out.is_terminal(), err.is_terminal());
        Self::new(Box::new(out), Box::new(err), out_is_terminal, err_is_terminal, colour)
    }

    pub(crate) fn new(
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        out_is_terminal: bool,
        err_is_terminal: bool,
        colour: bool,
    ) -> Self {
        let screen = Screen {
            out,
            err,
            out_is_terminal,
            err_is_terminal,
            colour,
            streamed: None,
            has_open_note: false,
        };
        Self(Arc::new(Mutex::new(screen)))
    }

    /// For a few writes that belong together; never held while waiting for anything else.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Screen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedScreen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedScreen")
    }
}

impl Screen {
    /// Whether what is written to standard output is read by a person as it comes.
    pub(crate) fn is_out_terminal(&self) -> bool {
        self.out_is_terminal
    }

    /// Whether somebody sees what is written to standard error.
    pub(crate) fn is_err_terminal(&self) -> bool {
        self.err_is_terminal
    }

    /// Whether colours may be used where people are told things.
    pub(crate) fn has_colour(&self) -> bool {
        self.colour
    }

    /// Text for standard output that ends its line, where nobody asks whether it arrived.
    pub(crate) fn print(&mut self, text: &str) {
        let _ = self.line(text);
    }

    /// The product with an end of its last line.
    ///
    /// # Errors
    ///
    /// As [`Self::product`].
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.product(text)?;
        if text.ends_with('\n') { Ok(()) } else { self.raw("\n") }
    }

    /// The product, to standard output: byte for byte, but visible at a terminal.
    ///
    /// # Errors
    ///
    /// It could not be written; the reader may be gone.
    pub(crate) fn product(&mut self, text: &str) -> io::Result<()> {
        self.end_stream()?;
        self.end_note();
        if self.out_is_terminal { self.raw(&visible::lines(text)) } else { self.raw(text) }
    }

    /// A piece of the product that is still being made.
    pub(crate) fn stream(&mut self, text: &str) -> io::Result<()> {
        self.end_note();
        let shown = self.streamed.get_or_insert_default().push(text);
        self.raw(&shown)
    }

    /// Ends the line of what was streamed.
    pub(crate) fn end_stream(&mut self) -> io::Result<()> {
        match self.streamed.take() {
            Some(mut stream) => {
                let newline = if stream.is_at_line_start() { "" } else { "\n" };
                let rest = stream.end();
                self.raw(&format!("{rest}{newline}"))
            }
            None => Ok(()),
        }
    }

    /// One JSON value as a line of standard output.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        self.raw(&format!("{}\n", visible::json(&text)))
    }

    /// A note to people, which may have several lines.
    pub(crate) fn note(&mut self, text: &str) {
        self.toned(Tone::Plain, text);
    }

    /// A note with an emphasis.
    pub(crate) fn toned(&mut self, tone: Tone, text: &str) {
        let shown = visible::lines(text.trim_end_matches(['\n', '\r']));
        let _ = self.end_stream();
        self.end_note();
        let styled = self.styled(tone, &shown);
        let _ = writeln!(self.err, "{styled}");
        let _ = self.err.flush();
    }

    /// A piece of a note whose line stays open.
    pub(crate) fn piece(&mut self, tone: Tone, text: &str) {
        let shown = visible::lines(text);
        let _ = self.end_stream();
        let styled = self.styled(tone, &shown);
        let _ = write!(self.err, "{styled}");
        let _ = self.err.flush();
        self.has_open_note = !text.ends_with('\n');
    }

    /// What went wrong, once.
    pub(crate) fn error(&mut self, message: &str) {
        let shown = visible::lines(message);
        let _ = self.end_stream();
        self.end_note();
        let label = self.styled(Tone::Bad, "error");
        let _ = writeln!(self.err, "{label}: {}", shown.trim_end());
        let _ = self.err.flush();
    }

    /// A question, whose line stays open for the answer.
    pub(crate) fn ask(&mut self, text: &str) {
        self.end_note();
        self.piece(Tone::Question, text);
    }

    /// The person ended the line of a question.
    pub(crate) fn answered(&mut self) {
        self.has_open_note = false;
    }

    fn end_note(&mut self) {
        if std::mem::take(&mut self.has_open_note) {
            let _ = writeln!(self.err);
        }
    }

    fn styled(&self, tone: Tone, text: &str) -> String {
        let style = tone.style();
        if !self.colour || text.is_empty() || tone == Tone::Plain {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

/// A screen in memory.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    #[derive(Clone, Debug, Default)]
    pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

    impl Written {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A screen and what is written to its standard output and standard error.
    pub(crate) fn screen(terminal: bool) -> (SharedScreen, Written, Written) {
        let (out, err) = (Written::default(), Written::default());
        let boxed = |written: &Written| Box::new(written.clone());
        (SharedScreen::new(boxed(&out), boxed(&err), terminal, terminal, terminal), out, err)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::screen;
    use super::*;

    const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{202e}txt";
    const SHOWN: &str = r"\u{1b}]0;owned\u{7}\u{202e}txt";

    #[test]
    fn a_terminal_gets_nothing_raw() {
        let (screen, out, err) = screen(true);
        let mut screen = screen.lock();
        screen.product(HOSTILE).unwrap();
        screen.stream(HOSTILE).unwrap();
        screen.note(HOSTILE);
        screen.toned(Tone::Call, HOSTILE);
        screen.error(HOSTILE);
        screen.ask(HOSTILE);
        assert_eq!(out.text(), format!("{SHOWN}{SHOWN}\n"));
        assert_eq!(
            err.text(),
            format!(
                "{SHOWN}\n\u{1b}[36m{SHOWN}\u{1b}[0m\n\u{1b}[31merror\u{1b}[0m: {SHOWN}\n\
                 \u{1b}[1m\u{1b}[33m{SHOWN}\u{1b}[0m"
            )
        );
    }

    #[test]
    fn a_pipe_gets_the_product_as_it_is_and_people_still_nothing_raw() {
        let (screen, out, err) = screen(false);
        let mut screen = screen.lock();
        screen.product(HOSTILE).unwrap();
        screen.toned(Tone::Bad, HOSTILE);
        assert_eq!((out.text(), err.text()), (HOSTILE.to_owned(), format!("{SHOWN}\n")));
    }

    #[test]
    fn an_open_line_is_ended_by_what_comes_next_unless_the_person_did() {
        let (screen, _, err) = screen(false);
        let mut screen = screen.lock();
        screen.piece(Tone::Faint, "hm, ");
        screen.piece(Tone::Faint, "so");
        screen.ask("allow? ");
        screen.error("interrupted");
        screen.ask("allow? ");
        screen.answered();
        screen.note("went on");
        assert_eq!(err.text(), "hm, so\nallow? \nerror: interrupted\nallow? went on\n");
    }

    #[test]
    fn a_note_never_lands_in_a_streamed_line() {
        let (screen, out, _) = screen(true);
        let mut screen = screen.lock();
        screen.stream("half a ").unwrap();
        screen.stream("line").unwrap();
        screen.note("between");
        screen.print("whole");
        assert_eq!(out.text(), "half a line\nwhole\n");
    }
}
