//! What calls leave behind in the host: threads, handles, memory, places to run in. In a process
//! of its own and one test at a time, since it counts what the whole process holds.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod cancel;
mod faults;
mod handles;
mod leftovers;
mod quiet;
mod starving;
#[expect(dead_code, reason = "shared with the other tests of the sandbox")]
#[path = "../sandbox/support.rs"]
mod support;
