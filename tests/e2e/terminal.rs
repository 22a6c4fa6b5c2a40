//! A person at a terminal: the program with its input and its questions on one.

use crate::{support::Machine, system};
use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Stdio},
};

/// The person's side of the terminal.
pub(crate) struct Terminal {
    child: Child,
    file: File,
    /// All that was shown.
    pub(crate) shown: String,
    /// How much of that was looked at.
    seen: usize,
}

impl Terminal {
    /// Starts the program with standard input and standard error at the terminal, and standard
    /// output nowhere.
    pub(crate) fn start(machine: &Machine, arguments: &[&str]) -> Self {
        let (person, program) = system::open_terminal();
        let mut command = machine.command(arguments);
        command.env("NO_COLOR", "1");
        command.stdin(Stdio::from(program.try_clone().unwrap()));
        command.stdout(Stdio::null()).stderr(Stdio::from(program));
        let child = command.spawn().unwrap();
        Self { child, file: person, shown: String::new(), seen: 0 }
    }

    /// Reads until a text is shown that was not there before.
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.shown[self.seen..].contains(text) {
            assert!(self.read(), "it ended before it showed {text:?}: {}", self.shown);
        }
        self.seen += self.shown[self.seen..].find(text).unwrap() + text.len();
    }

    pub(crate) fn answer(&mut self, line: &str) {
        writeln!(self.file, "{line}").unwrap();
    }

    /// Reads to the end, and gives the exit code.
    pub(crate) fn end(mut self) -> (i32, String) {
        while self.read() {}
        (self.child.wait().unwrap().code().unwrap(), self.shown)
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        // Where the program is gone, reading its terminal is an error.
        let length = self.file.read(&mut buffer).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&buffer[..length]));
        length > 0
    }
}
