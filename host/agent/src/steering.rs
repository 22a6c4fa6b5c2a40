//! What a person says while a run is busy: a queue from any task to the loop.
//!
//! A message that was taken is never lost: the loop reads it, or leaves it in the conversation for
//! the next run. Once the loop has decided to end, nothing more is taken.

use belljar_types::{Content, Part};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

#[derive(Clone, Debug, Default)]
pub(crate) struct Steering(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Vec<Part>>,
    closed: bool,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    #[error("the run is over and takes no more messages: send it as the next prompt")]
    Closed,
    #[error("the message is blank: write something")]
    Blank,
}

impl Steering {
    pub(crate) fn send(&self, parts: Vec<Part>) -> Result<(), SteerError> {
        let parts: Vec<Part> = parts.into_iter().filter(says_something).collect();
        if parts.is_empty() {
            return Err(SteerError::Blank);
        }
        let mut queue = self.lock();
        if queue.closed {
            return Err(SteerError::Closed);
        }
        queue.messages.push_back(parts);
        Ok(())
    }

    pub(crate) fn next(&self) -> Option<Vec<Part>> {
        self.lock().messages.pop_front()
    }

    /// Puts a message back that was taken out and not read.
    pub(crate) fn put_back(&self, parts: Vec<Part>) {
        self.lock().messages.push_front(parts);
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lock().messages.len()
    }

    /// Closes the queue unless somebody waits in it; says whether it is closed now.
    pub(crate) fn close_if_empty(&self) -> bool {
        let mut queue = self.lock();
        queue.closed |= queue.messages.is_empty();
        queue.closed
    }

    /// Closes it and hands out who still waits.
    pub(crate) fn close(&self) -> VecDeque<Vec<Part>> {
        let mut queue = self.lock();
        queue.closed = true;
        std::mem::take(&mut queue.messages)
    }

    /// Nothing panics while it holds the lock, and a queue is whole between any two steps.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn says_something(part: &Part) -> bool {
    !matches!(&part.content, Content::Text { text } if text.trim().is_empty())
}
