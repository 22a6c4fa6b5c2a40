//! A session in memory, which can fail from a given record on.

use async_trait::async_trait;
use belljar_types::{Journal, JournalError, Record};
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Failure {
    #[default]
    Error,
    Panic,
}

#[derive(Debug, Default)]
pub(crate) struct MemoryJournal {
    records: Mutex<Vec<Record>>,
    fails_at: Option<(usize, Failure)>,
    attempts_after_failure: Mutex<usize>,
}

impl MemoryJournal {
    /// Fails with the record of this index.
    pub(crate) fn failing_at(index: usize) -> Self {
        Self { fails_at: Some((index, Failure::Error)), ..Self::default() }
    }

    /// Panics with the record of this index.
    pub(crate) fn panicking_at(index: usize) -> Self {
        Self { fails_at: Some((index, Failure::Panic)), ..Self::default() }
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.records.lock().unwrap().clone()
    }

    pub(crate) fn failed(&self) -> bool {
        *self.attempts_after_failure.lock().unwrap() > 0
    }

    /// How often it was tried to write from the failing record on.
    pub(crate) fn failed_attempts(&self) -> usize {
        *self.attempts_after_failure.lock().unwrap()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    fn session(&self) -> &str {
        "s1"
    }

    async fn append(&self, record: &Record) -> Result<(), JournalError> {
        let written = self.records.lock().unwrap().len();
        match self.fails_at {
            Some((index, failure)) if written >= index => {
                *self.attempts_after_failure.lock().unwrap() += 1;
                match failure {
                    Failure::Error => Err(JournalError { message: "the disk is full".to_owned() }),
                    Failure::Panic => panic!("the disk is on fire"),
                }
            }
            _ => {
                self.records.lock().unwrap().push(record.clone());
                Ok(())
            }
        }
    }
}
