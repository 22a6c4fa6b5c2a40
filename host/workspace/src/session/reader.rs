//! Reading a session back. Whatever a file holds, what can be read of it is.

use super::{
    SessionError,
    line::{self, Line, SessionHeader, VERSION},
};
use belljar_types::{Conversation, Record};
use std::{
    io::{self, BufRead},
    path::Path,
};

/// A session as its file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedSession {
    pub id: String,
    /// Nothing where the first line was lost.
    pub header: Option<SessionHeader>,
    pub records: Vec<Record>,
    /// What a person should know: lines that could not be read. They stay in the file.
    pub notices: Vec<String>,
}

impl LoadedSession {
    /// The messages, in order. A session that ended in the middle of a batch of calls ends in
    /// calls without results.
    pub fn conversation(&self) -> Conversation {
        let mut conversation = Conversation::default();
        for record in &self.records {
            if let Record::Message { message } = record {
                conversation.push(message.clone());
            }
        }
        conversation
    }
}

/// A session and where its file goes on.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) session: LoadedSession,
    pub(super) end: End,
}

/// The end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Bytes up to the end of the last whole line.
    pub(super) whole: u64,
    pub(super) tail: Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Clean,
    /// The last line is whole but for its newline.
    MissingNewline,
    /// Part of a line follows, from a write that did not end.
    Torn,
}

/// Reads a whole file.
pub(super) fn read(id: &str, path: &Path, mut file: impl BufRead) -> Result<Read, SessionError> {
    let mut session =
        LoadedSession { id: id.to_owned(), header: None, records: Vec::new(), notices: Vec::new() };
    let mut end = End { whole: 0, tail: Tail::Clean };
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = file.read_until(b'\n', &mut line).map_err(|error| read_error(path, error))?;
        if read == 0 {
            break;
        }
        let terminated = line.last() == Some(&b'\n');
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let mut note = |what: &str| {
            session.notices.push(format!("session `{id}`: line {number} {what}"));
        };
        let parsed = line::parse(text);
        if let (false, Line::Unreadable(_)) = (terminated, &parsed) {
            note("was never written to its end and is dropped");
            end.tail = Tail::Torn;
            break;
        }
        match parsed {
            Line::Header(header) if number == 1 => {
                if header.id != id {
                    note(&format!("names another session, `{}`", header.id));
                }
                session.header = Some(header);
            }
            Line::Newer(version) if number == 1 => return Err(newer(path, version)),
            Line::Header(_) | Line::Newer(_) => {
                note("is a header in the middle of the file and is skipped");
            }
            Line::Record(record) => session.records.push(record),
            Line::Unreadable(why) => note(&format!("{why} and is skipped")),
        }
        end.whole += read as u64;
        if !terminated {
            end.tail = Tail::MissingNewline;
            break;
        }
    }
    if session.header.is_none() {
        session.notices.push(format!("session `{id}`: its first line, the header, is missing"));
    }
    Ok(Read { session, end })
}

/// No header is longer, so that a listing reads no more of any file.
const MAX_HEADER: u64 = 64 << 10;

/// Reads the first line alone; nothing where it is not a header.
pub(super) fn read_header(
    path: &Path,
    file: impl BufRead,
) -> Result<Option<SessionHeader>, SessionError> {
    let mut line = Vec::new();
    file.take(MAX_HEADER).read_until(b'\n', &mut line).map_err(|error| read_error(path, error))?;
    match line::parse(&line) {
        Line::Header(header) => Ok(Some(header)),
        Line::Newer(version) => Err(newer(path, version)),
        Line::Record(_) | Line::Unreadable(_) => Ok(None),
    }
}

fn read_error(path: &Path, error: io::Error) -> SessionError {
    SessionError::Io { action: "read", path: path.to_owned(), error }
}

fn newer(path: &Path, version: u64) -> SessionError {
    SessionError::Newer { path: path.to_owned(), version, known: VERSION }
}
