//! The agent loop: the model proposes calls, the toolbox runs them, and what came of them is
//! written into the conversation that the model reads next.
//!
//! The loop owns the rounds of one run, the conversation that grows in them, the order and the
//! back-pressure of events, the retry of model requests and the reason why a run stops. It never
//! performs I/O: the model, the tools, the person and the session are traits that it is given,
//! and its clock is the runtime's. It never knows who reads its events.
//!
//! A whole program that runs it, with parts of its own:
//!
//! ```
//! # use async_trait::async_trait;
//! # use belljar_types::*;
//! # use futures::{StreamExt, stream};
//! # use std::sync::Arc;
//! use belljar_agent::{Agent, RunRequest, Settings, start};
//!
//! #[derive(Debug)]
//! struct Here;
//!
//! impl Model for Here {
//!     fn name(&self) -> &str { "counter" }
//!     fn provider(&self) -> &str { "here" }
//!     fn stream(&self, request: ModelRequest) -> ModelStream {
//!         let said = format!("messages: {}", request.conversation.messages().len());
//!         stream::iter([Ok(ModelEvent::Text(said)), Ok(ModelEvent::Done(FinishReason::Stop))]).boxed()
//!     }
//! }
//! impl Toolbox for Here {
//!     fn tools(&self) -> Arc<[ToolDefinition]> { Arc::new([]) }
//!     fn prepare(&self, call: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError> {
//!         Err(ToolError::new(ToolErrorKind::UnknownTool, format!("no tool `{}`", call.tool)))
//!     }
//! }
//! #[async_trait]
//! impl Approver for Here {
//!     async fn ask(&self, _: &ApprovalQuestion) -> Option<ApprovalAnswer> { None }
//! }
//! #[async_trait]
//! impl Journal for Here {
//!     fn session(&self) -> &str { "1" }
//!     async fn append(&self, _: &Record) -> Result<(), JournalError> { Ok(()) }
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() {
//!     let here = Arc::new(Here);
//!     let agent = Agent { model: Some(here.clone()), toolbox: here.clone(), approver: here.clone(),
//!         journal: here, settings: Settings::default() };
//!     let mut run = start(agent, RunRequest::new(vec![Part::text("Hello?", Origin::Person)]));
//!     let mut told = Vec::new();
//!     while let Some(event) = run.next().await {
//!         told.push(event.kind);
//!     }
//!     assert!(matches!(told.last(), Some(EventKind::Stop { reason: StopReason::Completed, .. })));
//!     assert_eq!(run.finish().await.unwrap().result, "messages: 1");
//! }
//! ```
//!
//! Dropping the [`Run`] or cancelling it ends it in order; [`Run::steer`] says something while it
//! is busy; a [`Processor`] of one's own goes into the [`Chain`] of its request.
//!
//! What a round is, in order: limits are looked at, `round_start`, what a person said in the
//! meantime, hooks, room, the request through the chain, the stream, the answer as one message, its
//! calls, one result for each. A round that may not run is not announced, so `turns`, the number of
//! `round_start` events and the `iteration` of the stop agree. A few things that follow from no rule
//! and were chosen:
//!
//! - A turn that the model pauses goes on in the next round; after too many pauses running the
//!   run stops as `truncated`. An answer cut by its length limit goes on in the next round too,
//!   with a reminder, and the `result` of the stop holds all pieces.
//! - Of an answer that broke off, failed for good or was refused, only the text is kept.
//! - A call of unknown name counts as unknown also where its arguments are malformed.
//! - A call that is refused is not recorded as started; the toolbox words the refusal.
//! - Calls of read-only tools that stand together run at once; one that must be asked about is asked
//!   about before any of them runs, and one that fails to be prepared waits for their results.
//! - After a cancel what a call reports still counts, unless all it says is `canceled`.
//! - What a person said too late for a run stays in its conversation, so that the next one reads it.
//! - Pending calls of a session run before the first round, in events of iteration 0.
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

pub use agent::{Agent, AnswerForm, Plan, RunRequest, SystemSource};
pub use chain::{Chain, NoSuchProcessor, Processor, ProcessorError, Round};
pub use memory::MemoryUpdate;
pub use replay::{Restored, replay, restore};
pub use retry::{Jitter, RetryPolicy};
pub use run::{Finished, Lost, Run, RunHandle, start};
pub use settings::{Actions, Compaction, Delegation, Repetition, Settings};
pub use steering::SteerError;
