//! How much a call may write and create, and the streams that are held to it.

use super::rules::{Fault, Guarded, Refusal};
use crate::state::Denials;
use belljar_capability::{GrantPart, Limit, Limits};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};
use tokio_util::bytes::Bytes;
use wasmtime_wasi::p2::{
    DynOutputStream, OutputStream, Pollable, StreamError, StreamResult,
    bindings::filesystem::types::ErrorCode,
};

/// What a call has used. Every byte counts when it is written, and never comes back: deleting is no
/// way to write without end.
#[derive(Debug)]
pub(super) struct Quota {
    limits: Limits,
    written: AtomicU64,
    created: AtomicU64,
}

impl Quota {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, written: AtomicU64::new(0), created: AtomicU64::new(0) }
    }

    /// Bytes that may still be written.
    pub(super) fn room(&self) -> u64 {
        self.limits.written_bytes.saturating_sub(self.written.load(Relaxed))
    }

    pub(super) fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, Relaxed);
    }

    /// The refusal of more bytes than there is room for.
    pub(super) fn full(&self, more: u64, target: String, plugin: &str) -> Fault {
        let used = self.written.load(Relaxed).saturating_add(more);
        self.refusal(Limit::WrittenBytes, used, "write", target, plugin)
    }

    /// Counts a file, folder or link that is about to be made.
    pub(super) fn create(&self, target: impl FnOnce() -> String, plugin: &str) -> Guarded<()> {
        let created = self.created.load(Relaxed);
        if created >= self.limits.created_files {
            let wanted = created.saturating_add(1);
            return Err(self.refusal(Limit::CreatedFiles, wanted, "create", target(), plugin));
        }
        self.created.store(created + 1, Relaxed);
        Ok(())
    }

    /// Nothing was made after all.
    pub(super) fn not_created(&self) {
        self.created.fetch_sub(1, Relaxed);
    }

    fn refusal(
        &self,
        limit: Limit,
        wanted: u64,
        operation: &'static str,
        target: String,
        plugin: &str,
    ) -> Fault {
        let allowed = self.limits.get(limit);
        let enough = GrantPart::Limit(limit, wanted.max(allowed.saturating_mul(2)));
        Fault::Refused(Box::new(Refusal {
            code: ErrorCode::Quota,
            operation,
            target,
            reason: format!("that would make {}", self.limits.met(limit, Some(wanted))),
            grant: Some(format!("{plugin}.{enough}")),
        }))
    }
}

/// What a stream fails with when the quota is used up. The guest may ask which error it was.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the call has written as much as it may")]
pub(super) struct QuotaMet;

/// The most that one operation of the host moves, in bytes.
pub(super) const AT_ONCE: usize = 1 << 20;

/// A stream into a file, held to the call's quota.
pub(super) struct Metered {
    inner: DynOutputStream,
    quota: Arc<Quota>,
    denials: Denials,
    /// The guest path of the file.
    target: Arc<str>,
    plugin: Arc<str>,
}

impl Metered {
    pub(super) fn new(
        inner: DynOutputStream,
        quota: &Arc<Quota>,
        denials: &Denials,
        target: Arc<str>,
        plugin: Arc<str>,
    ) -> Self {
        Self { inner, quota: Arc::clone(quota), denials: denials.clone(), target, plugin }
    }

    fn check(&self, bytes: usize) -> StreamResult<()> {
        if bytes > AT_ONCE {
            return Err(StreamError::trap("more was written than `check-write` allows"));
        }
        let bytes = bytes as u64;
        if bytes > self.quota.room() { Err(self.full(bytes)) } else { Ok(()) }
    }

    fn full(&self, more: u64) -> StreamError {
        let fault = self.quota.full(more, self.target.to_string(), &self.plugin);
        if let Fault::Refused(refusal) = fault {
            let Refusal { operation, target, reason, grant, .. } = *refusal;
            self.denials.note_with_grant(operation, &target, &reason, grant);
        }
        StreamError::LastOperationFailed(QuotaMet.into())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Metered {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Metered {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check(bytes.len())?;
        self.quota.wrote(bytes.len() as u64);
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let permit = self.inner.check_write()?;
        let room = usize::try_from(self.quota.room()).unwrap_or(usize::MAX);
        if permit > 0 && room == 0 {
            return Err(self.full(1));
        }
        Ok(permit.min(room))
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check(bytes.len())?;
        self.quota.wrote(bytes.len() as u64);
        self.inner.blocking_write_and_flush(bytes).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
