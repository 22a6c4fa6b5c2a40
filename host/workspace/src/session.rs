//! Sessions on disk: one file of JSON lines each, only ever added to, and a folder of the results
//! that were too large for it.
//!
//! The first line is a header, every other one a record. A record is in the kernel's hands, as one
//! write, when `append` returns: what ends the program does not lose it, a power cut may. Never
//! decides what a record means, and gives nothing recorded any authority.

mod error;
mod line;
mod reader;
mod results;
mod store;
mod writer;

pub use error::SessionError;
pub use line::SessionHeader;
pub use reader::LoadedSession;
pub use results::{
    Excerpt, KeptResult, Piece, RESULTS_MOUNT, ResultLimits, ResultsError, SessionResults,
};
pub use store::{SessionList, SessionStore, SessionSummary};
pub use writer::SessionJournal;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
#[cfg(unix)]
mod process_tests;
#[cfg(test)]
mod results_tests;
#[cfg(test)]
mod tests;
