//! The loop as a whole, driven by scripts in memory. The clock is paused everywhere, so that
//! delays cost nothing and are exact.

#![expect(clippy::unwrap_used, reason = "the scripted parts are helpers of tests")]

mod support;

mod actions;
mod answers;
mod approvals;
mod back_pressure;
mod calls;
mod cancels;
mod hooks;
mod memory;
mod parallel;
mod properties;
mod repetitions;
mod requests;
mod resuming;
mod retries;
mod room;
mod rounds;
mod sessions;
mod steering;
mod subagents;
mod tool_retries;
