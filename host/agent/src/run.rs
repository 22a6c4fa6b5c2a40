//! The handle of a run: its event stream, its cancel, its end and what is left when it is over.

use crate::{Agent, RunRequest, driver::Driver, emitter::Emitter};
use belljar_types::{Conversation, Event, StopReason, Usage};
use futures::Stream;
use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Starts a run as a task of its own. Its events are read from the returned [`Run`], and the run
/// waits for its reader.
///
/// # Panics
///
/// Outside a tokio runtime with a clock.
pub fn start(agent: Agent, request: RunRequest) -> Run {
    let (sender, events) = mpsc::channel(agent.settings.event_buffer.max(1));
    let cancel = request.cancel.child_token();
    let end = CancellationToken::new();
    let emitter = Emitter::new(sender, cancel.clone(), request.agent.clone());
    let driver = Driver::new(agent, request, emitter, cancel.clone(), end.clone());
    Run {
        events,
        task: tokio::spawn(driver.run()),
        handle: RunHandle { cancel: cancel.clone(), end },
        _cancel_on_drop: cancel.drop_guard(),
    }
}

/// A run and its events, in order; the last one is the `stop`.
///
/// Dropping it cancels the run, which still gives every open call its result and closes the
/// session.
#[derive(Debug)]
pub struct Run {
    events: mpsc::Receiver<Event>,
    task: JoinHandle<Finished>,
    handle: RunHandle,
    _cancel_on_drop: DropGuard,
}

/// Ways to end a run from elsewhere.
#[derive(Clone, Debug)]
pub struct RunHandle {
    cancel: CancellationToken,
    end: CancellationToken,
}

/// What a run leaves behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Valid for the next request, whatever happened.
    pub conversation: Conversation,
    pub reason: StopReason,
    /// What a person should know about why; may be empty.
    pub message: String,
    /// The final text.
    pub result: String,
    /// Rounds that were begun.
    pub turns: u32,
    pub usage: Usage,
    /// Calls that were denied.
    pub denials: u32,
}

/// The runtime went away under the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run was lost with its runtime; the session on disk holds what it had done")]
pub struct Lost;

impl Run {
    /// A handle that other tasks can keep.
    pub fn handle(&self) -> RunHandle {
        self.handle.clone()
    }

    /// See [`RunHandle::cancel`].
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// See [`RunHandle::end`].
    pub fn end(&self) {
        self.handle.end();
    }

    /// Waits for the end without cancelling, passing over events that were not read.
    ///
    /// # Errors
    ///
    /// The runtime was shut down first.
    pub async fn finish(mut self) -> Result<Finished, Lost> {
        while self.events.recv().await.is_some() {}
        (&mut self.task).await.map_err(|_| Lost)
    }
}

impl RunHandle {
    /// Ends the run at once: what is running is interrupted, every open call gets a `canceled`
    /// result.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends the run after the round that it is in.
    pub fn end(&self) {
        self.end.cancel();
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(context)
    }
}
