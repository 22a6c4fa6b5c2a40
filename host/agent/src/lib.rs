//! The agent loop: the model proposes calls, the toolbox runs them, and what came of them is
//! written into the conversation that the model reads next.
//!
//! The loop owns the rounds of one run, the conversation that grows in them, the order and the
//! back-pressure of events, the retry of model requests and the reason why a run stops. It never
//! performs I/O: the model, the tools, the person and the session are traits that it is given,
//! and its clock is the runtime's. It never knows who reads its events.
//!
//! What a round is, in order: limits are looked at, `round_start`, the request, the stream, the
//! answer as one message, its calls one after the other, one result for each. A round that may
//! not run is not announced, so `turns`, the number of `round_start` events and the `iteration`
//! of the stop agree. A few things that follow from no rule and were chosen:
//!
//! - A turn that the model pauses goes on in the next round; after too many pauses running the
//!   run stops as `truncated`. An answer cut by its length limit goes on in the next round too,
//!   with a reminder, and the `result` of the stop holds all pieces.
//! - Of an answer that broke off, failed for good or was refused, only the text is kept.
//! - A call of unknown name counts as unknown also where its arguments are malformed.
//! - A call that is refused is not recorded as started; the toolbox words the refusal.
//! - After a cancel what a call reports still counts, unless all it says is `canceled`.
//! - Without a model nothing is recorded, and there is no `start`.

mod actions;
mod agent;
mod answer;
mod calls;
mod canonical;
mod chain;
mod collector;
mod compaction;
mod denials;
mod driver;
mod emitter;
mod estimate;
mod hooking;
mod memory;
mod opening;
mod panics;
mod refusals;
mod repetition;
mod replay;
mod request;
mod retry;
mod run;
mod session;
mod settings;
mod steering;
mod stop;
mod transcript;
mod unknown;

pub use agent::{Agent, Plan, RunRequest, SystemSource};
pub use chain::{Chain, NoSuchProcessor, Processor, ProcessorError, Round};
pub use memory::MemoryUpdate;
pub use replay::{Restored, replay, restore};
pub use retry::{Jitter, RetryPolicy};
pub use run::{Finished, Lost, Run, RunHandle, start};
pub use settings::{Actions, Compaction, Delegation, Repetition, Settings};
pub use steering::SteerError;
