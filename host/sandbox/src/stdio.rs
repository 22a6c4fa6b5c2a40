//! Standard output and standard error of a guest: kept up to a limit, then dropped and marked.
//!
//! The runtime's own memory pipe traps when it is full; a guest that prints much is not broken.

use belljar_capability::{Limit, Limits};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};
use tokio::io::AsyncWrite;
use tokio_util::bytes::Bytes;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

/// What is kept of the end of a text that was cut, in bytes: a guest's last words are there.
const TAIL: usize = 2_000;

/// Text that grows up to a limit.
#[derive(Debug)]
pub(crate) struct BoundedText {
    bytes: Vec<u8>,
    /// The end of what was dropped.
    tail: Vec<u8>,
    limit: usize,
    /// Bytes that were dropped.
    dropped: u64,
}

impl BoundedText {
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), tail: Vec::new(), limit, dropped: 0 }
    }

    /// Takes what there is room for.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.bytes.len());
        let (taken, rest) = bytes.split_at(bytes.len().min(room));
        self.bytes.extend_from_slice(taken);
        if !rest.is_empty() {
            self.dropped = self.dropped.saturating_add(rest.len() as u64);
            self.tail.extend_from_slice(&rest[rest.len().saturating_sub(TAIL)..]);
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        }
    }

    /// The end of all that was written.
    pub(crate) fn tail(&self) -> String {
        let end = if self.dropped > 0 { &self.tail } else { &self.bytes };
        String::from_utf8_lossy(&end[end.len().saturating_sub(TAIL)..]).into_owned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The text, with a mark where something was dropped.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!(
                "\n[{} more bytes were dropped: {}]",
                self.dropped,
                self.allows()
            ));
        }
        text
    }

    /// The limit, by the setting that changes it.
    pub(crate) fn allows(&self) -> String {
        Limits { log: self.limit as u64, ..Limits::default() }.met(Limit::Log, None)
    }
}

/// One of the two output streams; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct OutputSink(Arc<Mutex<BoundedText>>);

impl OutputSink {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(BoundedText::new(limit))))
    }

    /// A panic while the lock was held cannot have left the text in a state worth refusing.
    pub(crate) fn lock(&self) -> MutexGuard<'_, BoundedText> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IsTerminal for OutputSink {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for OutputSink {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

/// The most that a guest is asked to write at a time.
const WRITE_SIZE: usize = 64 << 10;

#[async_trait::async_trait]
impl Pollable for OutputSink {
    async fn ready(&mut self) {}
}

impl OutputStream for OutputSink {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.lock().push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_SIZE)
    }
}

impl AsyncWrite for OutputSink {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.lock().push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
