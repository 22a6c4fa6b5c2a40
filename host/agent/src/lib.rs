//! The agent loop: the model proposes calls, the toolbox runs them, and what came of them is
//! written into the conversation that the model reads next.
//!
//! The loop owns the rounds of one run, the conversation that grows in them, the order and the
//! back-pressure of events, the retry of model requests and the reason why a run stops. It never
//! performs I/O: the model, the tools, the person and the session are traits that it is given,
//! and its clock is the runtime's. It never knows who reads its events.

mod agent;
mod answer;
mod calls;
mod collector;
mod driver;
mod emitter;
mod panics;
mod refusals;
mod replay;
mod retry;
mod run;
mod session;
mod stop;
mod unknown;

pub use agent::{Agent, RunRequest, Settings, SystemSource};
pub use replay::replay;
pub use retry::{Jitter, RetryPolicy};
pub use run::{Finished, Lost, Run, RunHandle, start};
