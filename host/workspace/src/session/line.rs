//! One line of a session file.

use belljar_types::Record;
use serde::{Deserialize, Serialize};

/// The version of the format that is written here, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename = "session")]
pub struct SessionHeader {
    pub version: u32,
    pub id: String,
    /// The workspace's folder.
    pub workspace: String,
    /// When it was made, in RFC 3339 and UTC.
    pub created: String,
    /// The version of the belljar that made it.
    pub belljar: String,
}

/// What a line turned out to be.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a line lives from its reading to its place in the list; a box would only add work"
)]
pub(super) enum Line {
    Header(SessionHeader),
    Record(Record),
    /// A header of a version that is not known here.
    Newer(u64),
    /// Neither; the sentence goes on from "line N".
    Unreadable(String),
}

/// Reads a line without its newline.
pub(super) fn parse(line: &[u8]) -> Line {
    // Nearly all are, so they are read once and no more.
    match serde_json::from_slice(line) {
        Ok(record) => Line::Record(record),
        Err(error) => parse_other(line, error),
    }
}

/// Reads a line that is no record that is known here.
fn parse_other(line: &[u8], as_record: serde_json::Error) -> Line {
    /// What can be said of a line whatever else is in it.
    #[derive(Deserialize)]
    struct Kind {
        record: String,
        version: Option<u64>,
    }
    let kind = match serde_json::from_slice::<Kind>(line) {
        Ok(kind) => kind,
        Err(error) => return Line::Unreadable(format!("is not a record ({error})")),
    };
    let parsed = if kind.record == "session" {
        match kind.version {
            Some(version) if version > u64::from(VERSION) => return Line::Newer(version),
            _ => serde_json::from_slice(line).map(Line::Header),
        }
    } else {
        Err(as_record)
    };
    parsed.unwrap_or_else(|error| {
        Line::Unreadable(format!("holds a `{}` that is not readable here ({error})", kind.record))
    })
}

/// A line with its newline, ready to be written.
pub(super) fn format(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
