//! For a plugin's own tests, which run natively with plain `cargo test`: tool calls as the host
//! makes them, and what the tool sent to the host meanwhile. It never isolates anything: a tool
//! under test reaches what the test does.

use crate::{Failure, Output, Plugin, host::Level};
use serde::Serialize;
use std::cell::RefCell;

pub use serde_json::json;

/// Calls a tool with any value that serializes to a JSON object, such as `json!({"path": "a"})`.
///
/// # Errors
///
/// Those of [`Plugin::call`].
pub fn call(plugin: &Plugin, name: &str, arguments: impl Serialize) -> Result<Output, Failure> {
    plugin.call(name, &serde_json::to_string(&arguments)?)
}

/// What a tool sent to the host besides its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCall {
    Log { level: Level, message: String },
    Progress { done: u64, total: Option<u64>, message: String },
    Emit { text: String },
}

thread_local! {
    static NOTES: RefCell<Option<Vec<HostCall>>> = const { RefCell::new(None) };
}

/// Runs `work` and returns, beside its value, what this thread sent to the host meanwhile.
pub fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<HostCall>) {
    let before = NOTES.replace(Some(Vec::new()));
    let value = work();
    (value, NOTES.replace(before).unwrap_or_default())
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn take_note(call: HostCall) {
    NOTES.with_borrow_mut(|notes| {
        if let Some(notes) = notes {
            notes.push(call);
        }
    });
}
