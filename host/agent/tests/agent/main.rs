//! The loop as a whole, driven by scripts in memory. The clock is paused everywhere, so that
//! delays cost nothing and are exact.

#![expect(clippy::unwrap_used, reason = "the scripted parts are helpers of tests")]

mod support;

mod approvals;
mod back_pressure;
mod calls;
mod cancels;
mod properties;
mod retries;
mod rounds;
mod sessions;
