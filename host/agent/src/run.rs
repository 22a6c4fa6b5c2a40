//! The handle of a run: its event stream, its cancel, its end and what is left when it is over.

use crate::{
    Agent, MemoryUpdate, RunRequest, SteerError,
    driver::{Control, Driver},
    emitter::Emitter,
    steering::Steering,
};
use belljar_types::{Conversation, Event, Part, StopReason, Usage};
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
    start_below(agent, request, /* depth */ 0)
}

/// Starts a run with so many agents above it.
pub(crate) fn start_below(agent: Agent, request: RunRequest, depth: u32) -> Run {
    let (sender, events) = mpsc::channel(agent.settings.event_buffer.max(1));
    let cancel = request.cancel.child_token();
    let control = Control { cancel: cancel.clone(), ..Control::default() };
    let emitter = Emitter::new(sender, cancel.clone(), request.agent.clone());
    let handle = RunHandle { cancel, end: control.end.clone(), steering: control.steering.clone() };
    let driver = Driver::new(agent, request, depth, emitter, control);
    Run {
        events,
        task: tokio::spawn(driver.run()),
        _cancel_on_drop: handle.cancel.clone().drop_guard(),
        handle,
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

/// Ways to reach a run from elsewhere.
#[derive(Clone, Debug)]
pub struct RunHandle {
    cancel: CancellationToken,
    end: CancellationToken,
    steering: Steering,
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
    /// What is still being written to the memory.
    pub memory: Option<MemoryUpdate>,
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

    /// See [`RunHandle::steer`].
    ///
    /// # Errors
    ///
    /// The message was not taken.
    pub fn steer(&self, parts: Vec<Part>) -> Result<(), SteerError> {
        self.handle.steer(parts)
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

    /// Says something while the run is busy. It is read at the top of the next round, in the order
    /// in which it was sent. A run that ends before keeps it for the next one.
    ///
    /// # Errors
    ///
    /// The run is over, or there is nothing in the message: it was not taken.
    pub fn steer(&self, parts: Vec<Part>) -> Result<(), SteerError> {
        self.steering.send(parts)
    }

    /// How many messages wait to be read.
    pub fn waiting(&self) -> usize {
        self.steering.waiting()
    }
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(context)
    }
}
