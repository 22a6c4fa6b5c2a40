//! Bodies on their way out and in: counted, bounded, and on the way in redacted.

use super::{exchange::Exchange, redact::Redacting};
use belljar_capability::Limit;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::{Instant, Sleep};
use wasmtime_wasi_http::{Error, WasiBody};

/// Whether a body that must be empty is. Waits until the guest has finished it.
pub(super) async fn is_empty(mut body: WasiBody) -> Result<bool, Error> {
    while let Some(frame) = body.frame().await {
        let is_nothing = frame?.data_ref().is_some_and(|data| data.is_empty());
        if !is_nothing {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The body of a request, counted against what the call may send.
pub(super) struct RequestBody {
    /// Shared with nobody: the client wants bodies that could be.
    body: Mutex<WasiBody>,
    exchange: Arc<Exchange>,
    target: String,
}

impl RequestBody {
    /// Nothing where there is no body at all, so that none is announced.
    pub(super) fn wrap(
        body: WasiBody,
        exchange: Arc<Exchange>,
        target: String,
    ) -> Option<reqwest::Body> {
        if body.is_end_stream() {
            return None;
        }
        Some(reqwest::Body::wrap(Self { body: Mutex::new(body), exchange, target }))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let body = this.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        let frame = match ready!(Pin::new(body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        let Some(data) = frame.data_ref() else {
            let reason = "trailers of requests are not sent";
            return Poll::Ready(Some(Err(this.exchange.refuse(&this.target, reason))));
        };
        let limits = this.exchange.limits();
        if !take(&this.exchange.sent, data.len(), limits.request_bytes) {
            this.exchange.refuse_over(&this.target, Limit::RequestBytes);
            let limit = Some(limits.request_bytes);
            return Poll::Ready(Some(Err(Error::HttpRequestBodySize(limit))));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}

/// The body of a response, as the guest reads it.
pub(super) struct ResponseBody {
    body: reqwest::Body,
    exchange: Arc<Exchange>,
    target: String,
    redacting: Option<Redacting>,
    /// A frame that waits behind what the redactor held back.
    next: Option<Frame<Bytes>>,
    pace: Option<Pace>,
    ended: bool,
}

/// The guest's own limit for the time between two frames.
struct Pace {
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl ResponseBody {
    pub(super) fn new(
        body: reqwest::Body,
        exchange: Arc<Exchange>,
        target: String,
        redacting: Option<Redacting>,
        between_bytes: Option<Duration>,
    ) -> Self {
        let pace =
            between_bytes.map(|limit| Pace { limit, sleep: Box::pin(tokio::time::sleep(limit)) });
        Self { body, exchange, target, redacting, next: None, pace, ended: false }
    }

    fn end(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.ended = true;
        self.redacting = None;
        Poll::Ready(Some(Err(error)))
    }

    /// The next frame as it came, within the limits.
    fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            if let Some(pace) = &mut self.pace {
                ready!(pace.sleep.as_mut().poll(context));
                return Poll::Ready(Some(Err(Error::ConnectionReadTimeout)));
            }
            return Poll::Pending;
        };
        if let Some(Pace { limit, sleep }) = &mut self.pace {
            sleep.as_mut().reset(Instant::now() + *limit);
        }
        let frame = match frame {
            None => return Poll::Ready(None),
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                return Poll::Ready(Some(Err(super::fault::of_client(&error))));
            }
        };
        let limits = self.exchange.limits();
        let size = frame.data_ref().map_or(0, Bytes::len);
        if !take(&self.exchange.received, size, limits.response_bytes) {
            self.exchange.refuse_over(&self.target, Limit::ResponseBytes);
            let limit = Some(limits.response_bytes);
            return Poll::Ready(Some(Err(Error::HttpResponseBodySize(limit))));
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        loop {
            if let Some(frame) = this.next.take() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let frame = match ready!(this.poll_raw(context)) {
                Some(Ok(frame)) => Some(frame),
                Some(Err(error)) => return this.end(error),
                None => None,
            };
            let Some(redacting) = &mut this.redacting else {
                this.ended = frame.is_none();
                return Poll::Ready(frame.map(Ok));
            };
            let shown = match frame.map(Frame::into_data) {
                Some(Ok(data)) => redacting.push(&data),
                Some(Err(other)) => {
                    if let Ok(mut trailers) = other.into_trailers() {
                        redacting.redactor().headers(&mut trailers);
                        this.next = Some(Frame::trailers(trailers));
                    }
                    redacting.finish()
                }
                None => {
                    this.ended = true;
                    redacting.finish()
                }
            };
            // A frame of nothing would make the guest's stream look again at once.
            if !shown.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(shown.into()))));
            }
        }
    }
}

/// Takes a number of bytes from what is left of a limit.
fn take(used: &AtomicU64, bytes: usize, limit: u64) -> bool {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) <= limit
}
