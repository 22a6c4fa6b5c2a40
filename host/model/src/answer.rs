//! An answer as it is read: the events of its body go through a decoder, and what ends the body
//! is told from what ends the answer.

use crate::{
    body::{self, Body, BodyFault, Events},
    decode::{Decoder, Step, StreamFault},
    failure::Failures,
};
use belljar_types::{ModelError, ModelEvent, ModelStream};
use bytes::Bytes;
use futures::{Stream, future::BoxFuture, stream};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// How long a server may take to end an answer whose reason for the end is known: only figures
/// can still come.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// An answer's body in the making.
pub(crate) type Opening = BoxFuture<'static, Result<Events, ModelError>>;

/// Reads an answer to its end. Nothing happens before the stream is polled.
pub(crate) fn read(
    failures: Arc<Failures>,
    decoder: Box<dyn Decoder>,
    opening: Opening,
) -> ModelStream {
    let answer =
        Answer { failures, decoder, ready: VecDeque::new(), phase: Phase::Opening(opening) };
    Box::pin(stream::unfold(answer, Answer::next))
}

/// Looks at the first bytes of the body of an answer whose status is a success.
pub(crate) async fn open<E: std::error::Error + Send + 'static>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    idle: Duration,
    failures: &Failures,
) -> Result<Events, ModelError> {
    match body::open(bytes, idle).await {
        Ok(Body::Events(events)) => Ok(events),
        Ok(Body::Other(body)) => Err(failures.no_stream(&body)),
        Err(fault) => Err(failures.unreadable(&fault)),
    }
}

/// An answer on its way.
struct Answer {
    failures: Arc<Failures>,
    decoder: Box<dyn Decoder>,
    /// What is read and not yet handed out.
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    phase: Phase,
}

enum Phase {
    Opening(Opening),
    Reading(Events),
    Ended,
}

impl Answer {
    async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some((item, self));
            }
            match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Ended => return None,
                Phase::Opening(opening) => match opening.await {
                    Ok(events) => self.phase = Phase::Reading(events),
                    Err(error) => self.ready.push_back(Err(error)),
                },
                Phase::Reading(mut events) => {
                    let event = events.next().await;
                    self.take(event, events);
                }
            }
        }
    }

    /// Takes the next event of the stream, or its end.
    fn take(&mut self, event: Option<Result<sse_stream::Sse, BodyFault>>, events: Events) {
        let mut out = Vec::new();
        let step = match event {
            Some(Ok(event)) => {
                let data = event.data.unwrap_or_default();
                if data.trim().is_empty() {
                    Ok(Step::More)
                } else {
                    let name = event.event.unwrap_or_default();
                    self.decoder.event(&name, &data, &mut out).map_err(|fault| self.fault(fault))
                }
            }
            // What ends the connection after the answer's own end takes nothing away from it.
            None | Some(Err(_)) if self.decoder.is_answered() => Ok(Step::Finished),
            None if events.were_none() => Err(self.failures.no_events("")),
            None => Err(self.failures.unfinished()),
            Some(Err(fault)) => Err(self.failures.unreadable(&fault)),
        };
        let step = match step {
            Ok(Step::Finished) => match self.decoder.finish(&mut out) {
                Ok(()) => Ok(Step::Finished),
                Err(fault) => Err(self.fault(fault)),
            },
            step => step,
        };
        self.ready.extend(out.into_iter().map(Ok));
        match step {
            Ok(Step::Finished) => {}
            Ok(Step::More) => {
                if self.decoder.is_answered() {
                    events.wait_at_most(LAST_WORDS);
                }
                self.phase = Phase::Reading(events);
            }
            Err(error) => self.ready.push_back(Err(error)),
        }
    }

    fn fault(&self, fault: StreamFault) -> ModelError {
        match fault {
            StreamFault::Reported(error) => self.failures.reported(&error),
            StreamFault::Protocol(problem) => self.failures.protocol(&problem),
        }
    }
}
