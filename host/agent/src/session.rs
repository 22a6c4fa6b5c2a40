//! The loop's end of the session: a record is on disk before the event that announces it.
//!
//! After the first failure nothing more is written, so that a session never has a hole in it.

use crate::panics;
use belljar_types::{Journal, JournalError, Record};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Session {
    journal: Arc<dyn Journal>,
    failure: Option<JournalError>,
}

impl Session {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, failure: None }
    }

    pub(crate) fn id(&self) -> &str {
        self.journal.session()
    }

    /// The journal, for those who write to it under this session.
    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.journal.clone()
    }

    /// Takes note that somebody else failed to write to it.
    pub(crate) fn fail(&mut self, failure: JournalError) {
        self.failure.get_or_insert(failure);
    }

    /// Appends a record.
    ///
    /// # Errors
    ///
    /// This or an earlier record could not be written.
    pub(crate) async fn append(&mut self, record: Record) -> Result<(), JournalError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let written =
            panics::catch_async(self.journal.append(&record)).await.unwrap_or_else(|panic| {
                Err(JournalError { message: format!("writing the session panicked: {panic}") })
            });
        if let Err(error) = &written {
            self.failure = Some(error.clone());
        }
        written
    }
}
