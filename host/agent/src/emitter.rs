//! The writing end of a run's event stream: it numbers events, keeps their order, and waits for
//! the reader.
//!
//! After a cancel it waits for nobody: what the reader has no room for is kept, and delivered at
//! the end. It never drops an event of a reader that is still there.

use belljar_types::{Event, EventKind};
use std::{collections::VecDeque, sync::Arc};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct Emitter {
    sender: mpsc::Sender<Event>,
    /// Numbered and not yet with the reader. Filled after a cancel only, so that it holds no
    /// more than the end of a run.
    backlog: VecDeque<Event>,
    cancel: CancellationToken,
    agent: Option<Arc<str>>,
    next_seq: u64,
    iteration: u32,
}

impl Emitter {
    pub(crate) fn new(
        sender: mpsc::Sender<Event>,
        cancel: CancellationToken,
        agent: Option<Arc<str>>,
    ) -> Self {
        Self { sender, backlog: VecDeque::new(), cancel, agent, next_seq: 0, iteration: 0 }
    }

    /// Later events belong to this round.
    pub(crate) fn set_iteration(&mut self, iteration: u32) {
        self.iteration = iteration;
    }

    /// Hands an event to the reader, waiting for room unless the run was cancelled. A reader that
    /// is gone cancels the run.
    pub(crate) async fn emit(&mut self, kind: EventKind) {
        let (iteration, agent) = (self.iteration, self.agent.clone());
        self.send(Event { kind, seq: 0, iteration, agent }).await;
    }

    /// Hands on an event of a subagent, as one of this stream.
    pub(crate) async fn forward(&mut self, event: Event) {
        self.send(event).await;
    }

    async fn send(&mut self, event: Event) {
        let event = Event { seq: self.next_seq, ..event };
        self.next_seq += 1;
        if !self.backlog.is_empty() {
            self.backlog.push_back(event);
            return;
        }
        tokio::select! {
            biased;
            permit = self.sender.reserve() => match permit {
                Ok(permit) => permit.send(event),
                Err(_) => self.cancel.cancel(),
            },
            () = self.cancel.cancelled() => self.backlog.push_back(event),
        }
    }

    /// Delivers the last event after all that is kept, however long the reader takes, and closes
    /// the stream.
    pub(crate) async fn finish(mut self, last: EventKind) {
        self.backlog.push_back(Event {
            kind: last,
            seq: self.next_seq,
            iteration: self.iteration,
            agent: self.agent.clone(),
        });
        for event in self.backlog {
            if self.sender.send(event).await.is_err() {
                return;
            }
        }
    }
}
