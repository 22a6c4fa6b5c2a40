//! Reading an answer without trusting its sender: silence, endless data and a single huge event
//! all end the reading. Every byte, a keep-alive's too, starts the idle clock again.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream, stream::BoxStream};
use sse_stream::{Error as SseError, Sse, SseByteStream};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::timeout;

const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// What is read of an answer that is no stream of events: an error, a web page.
pub(crate) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Why reading ended before the answer did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("nothing came for {} s", .0.as_secs_f64())]
    Idle(Duration),
    #[error("{0}")]
    Broken(String),
    #[error("the answer is longer than {} MiB", .0 / 1024 / 1024)]
    TooLong(usize),
    #[error("an event is not valid UTF-8")]
    NotText,
}

/// What a body turned out to be.
pub(crate) enum Body {
    Events(Events),
    /// Something else: its beginning.
    Other(Vec<u8>),
}

/// The events of an answer.
pub(crate) struct Events {
    stream: SseByteStream<BoxStream<'static, Result<Bytes, BodyFault>>>,
    meter: Arc<Meter>,
    /// The body began with a line that no event stream begins with, and no event came so far.
    doubtful: bool,
}

/// What the reader of bytes and the reader of events share.
#[derive(Debug)]
struct Meter {
    idle_ms: AtomicU64,
    total: AtomicUsize,
    since_event: AtomicUsize,
}

impl Events {
    /// The next event that carries data.
    pub(crate) async fn next(&mut self) -> Option<Result<Sse, BodyFault>> {
        let event = self.stream.next().await?;
        self.doubtful = false;
        self.meter.since_event.store(0, Ordering::Relaxed);
        Some(event.map_err(|error| match error {
            SseError::Body(fault) => match fault.downcast::<BodyFault>() {
                Ok(fault) => *fault,
                Err(other) => BodyFault::Broken(other.to_string()),
            },
            _ => BodyFault::NotText,
        }))
    }

    /// Whether the body, if this is its end, was something else than events.
    pub(crate) fn were_none(&self) -> bool {
        self.doubtful
    }

    /// From now on waits no longer than this for the next byte.
    pub(crate) fn wait_at_most(&self, limit: Duration) {
        self.meter.idle_ms.fetch_min(millis(limit), Ordering::Relaxed);
    }
}

/// Finds out what a body is by its first bytes: no field of an event stream begins with a brace, a
/// bracket or an angle bracket, whatever the server calls its content.
pub(crate) async fn open<E: std::error::Error + Send + 'static>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    idle: Duration,
) -> Result<Body, BodyFault> {
    let meter = Arc::new(Meter {
        idle_ms: AtomicU64::new(millis(idle)),
        total: AtomicUsize::new(0),
        since_event: AtomicUsize::new(0),
    });
    let mut bytes = metered(bytes, Arc::clone(&meter)).fuse().boxed();
    let mut head = Vec::new();
    while !is_telling(&head) {
        match bytes.next().await {
            None => break,
            Some(chunk) => head.extend_from_slice(&chunk?),
        }
    }
    let first = head.trim_ascii_start().first();
    if matches!(first, Some(b'{' | b'[' | b'<')) {
        let rest = MAX_ERROR_BYTES.saturating_sub(head.len());
        head.extend(read_up_to(bytes, rest, idle).await);
        head.truncate(MAX_ERROR_BYTES);
        return Ok(Body::Other(head));
    }
    let doubtful = !begins_events(&head);
    let all = stream::iter([Ok(Bytes::from(head))]).chain(bytes).boxed();
    Ok(Body::Events(Events { stream: SseByteStream::new(all), meter, doubtful }))
}

/// The fields of an event stream; a comment is a field without a name.
const FIELDS: [&[u8]; 5] = [b"", b"data", b"event", b"id", b"retry"];

/// Whether a beginning is long enough to tell what it begins.
fn is_telling(head: &[u8]) -> bool {
    let text = head.trim_ascii_start();
    let is_end = |byte: &u8| matches!(byte, b':' | b'\n' | b'\r');
    head.len() >= MAX_ERROR_BYTES || text.len() > 16 || text.iter().any(is_end)
}

fn begins_events(head: &[u8]) -> bool {
    let mark = "\u{feff}".as_bytes();
    if mark.starts_with(head) {
        // Cut inside the byte order mark, or right after it.
        return true;
    }
    let head = head.strip_prefix(mark).unwrap_or(head).trim_ascii_start();
    let end = head.iter().position(|byte| matches!(byte, b':' | b'\n' | b'\r'));
    match end {
        Some(end) => FIELDS.contains(&&head[..end]),
        // Cut inside the first name.
        None => FIELDS.iter().any(|field| field.starts_with(head)),
    }
}

/// The beginning of a body, up to `limit` bytes; what a broken or silent server sent so far.
pub(crate) async fn read_up_to<E>(
    bytes: impl Stream<Item = Result<Bytes, E>>,
    limit: usize,
    idle: Duration,
) -> Vec<u8> {
    let mut bytes = std::pin::pin!(bytes);
    let mut body = Vec::new();
    while body.len() < limit
        && let Ok(Some(Ok(chunk))) = timeout(idle, bytes.next()).await
    {
        let rest = limit - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(rest)]);
    }
    body
}

fn metered<E: std::error::Error>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    meter: Arc<Meter>,
) -> impl Stream<Item = Result<Bytes, BodyFault>> + Send {
    stream::unfold(Some((Box::pin(bytes), meter)), async |state| {
        let (mut bytes, meter) = state?;
        let idle = Duration::from_millis(meter.idle_ms.load(Ordering::Relaxed));
        let fault = match timeout(idle, bytes.next()).await {
            Ok(None) => return None,
            Ok(Some(Ok(chunk))) => match meter.count(chunk.len()) {
                Ok(()) => return Some((Ok(chunk), Some((bytes, meter)))),
                Err(fault) => fault,
            },
            Ok(Some(Err(error))) => BodyFault::Broken(crate::client::error_chain(&error)),
            Err(_) => BodyFault::Idle(idle),
        };
        Some((Err(fault), None))
    })
}

impl Meter {
    fn count(&self, more: usize) -> Result<(), BodyFault> {
        for (counter, limit) in
            [(&self.total, MAX_ANSWER_BYTES), (&self.since_event, MAX_EVENT_BYTES)]
        {
            if counter.fetch_add(more, Ordering::Relaxed).saturating_add(more) > limit {
                return Err(BodyFault::TooLong(limit));
            }
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Chunks, each after a pause.
    fn paced(
        chunks: Vec<(u64, &'static str)>,
    ) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        stream::iter(chunks).then(|(seconds, chunk)| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(Bytes::from_static(chunk.as_bytes()))
        })
    }

    async fn read(
        bytes: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static,
        idle: Duration,
    ) -> Vec<Result<String, BodyFault>> {
        let mut events = match open(bytes, idle).await {
            Ok(Body::Events(events)) => events,
            Ok(Body::Other(body)) => panic!("not a stream of events: {body:?}"),
            Err(fault) => return vec![Err(fault)],
        };
        let mut list = Vec::new();
        while let Some(event) = events.next().await {
            list.push(event.map(|event| event.data.unwrap_or_default()));
        }
        list
    }

    #[tokio::test(start_paused = true)]
    async fn keep_alives_start_the_idle_clock_again() {
        let idle = Duration::from_secs(300);
        let bytes = paced(vec![
            (200, ": here\n\n"),
            (200, ":\n\n"),
            (200, "data: a\n\n"),
            (200, ":\n"),
            (299, "data: b\n\n"),
            (301, "data: c\n\n"),
        ]);
        assert_eq!(
            read(bytes, idle).await,
            [Ok("a".to_owned()), Ok("b".to_owned()), Err(BodyFault::Idle(idle))]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn silence_before_the_first_byte_counts() {
        let idle = Duration::from_secs(5);
        assert_eq!(read(paced(vec![(6, "data: a\n\n")]), idle).await, [Err(BodyFault::Idle(idle))]);
    }

    #[tokio::test]
    async fn an_event_without_end_is_not_collected_for_ever() {
        let chunk = Bytes::from(vec![b'x'; 1024 * 1024]);
        let endless = stream::once(async { Ok(Bytes::from_static(b"data: ")) })
            .chain(stream::repeat_with(move || Ok(chunk.clone())));
        assert_eq!(
            read(endless, Duration::from_secs(5)).await,
            [Err(BodyFault::TooLong(MAX_EVENT_BYTES))]
        );
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_for_ever() {
        let mut event = b"data: ".to_vec();
        event.extend(vec![b'x'; 1024 * 1024]);
        event.extend(b"\n\n");
        let event = Bytes::from(event);
        let endless = stream::repeat_with(move || Ok(event.clone()));
        let events = read(endless, Duration::from_secs(5)).await;
        assert_eq!(events.len(), 64);
        assert_eq!(events.last(), Some(&Err(BodyFault::TooLong(MAX_ANSWER_BYTES))));
    }

    #[tokio::test]
    async fn a_document_is_told_from_a_stream_and_cut() {
        let page = format!("\n <html>{}", "x".repeat(2 * MAX_ERROR_BYTES));
        let bytes = stream::iter([Ok::<_, Infallible>(Bytes::from(page.clone()))]);
        match open(bytes, Duration::from_secs(5)).await {
            Ok(Body::Other(body)) => assert_eq!(body, &page.as_bytes()[..MAX_ERROR_BYTES]),
            _ => panic!("want a document"),
        }
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_end_the_stream() {
        let bytes = stream::iter([Ok(Bytes::from_static(b"data: \xff\xfe\n\ndata: a\n\n"))]);
        assert_eq!(read(bytes, Duration::from_secs(5)).await, [Err(BodyFault::NotText)]);
    }
}
