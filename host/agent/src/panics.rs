//! The border to code that may panic: a panic on the other side becomes a value here.
//!
//! Used where the loop can go on, or end in an orderly way, without the part that broke.

use futures::FutureExt;
use std::{any::Any, future::Future, panic::AssertUnwindSafe};

/// Calls `f`; a panic becomes its message.
pub(crate) fn catch<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(f)).map_err(|panic| message(panic.as_ref()))
}

/// Awaits `future`; a panic becomes its message.
pub(crate) async fn catch_async<T>(future: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| message(panic.as_ref()))
}

/// What a panic said.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it did not say why".to_owned())
}
