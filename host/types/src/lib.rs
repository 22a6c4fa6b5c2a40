//! The words that Belljar's host speaks: messages, tool calls, results, events and receipts as
//! plain values, and the traits that tie the loop to what surrounds it: `Model`, `Toolbox`,
//! `Approver` and `Journal`, and, where a run has them, `Hooks`, `Skills` and `Memory`.
//!
//! This crate never does anything: no I/O, no policy, no clock.

mod approver;
mod event;
mod hooks;
mod journal;
mod memory;
mod message;
mod model;
mod permission;
mod receipt;
mod skills;
mod tool;
mod toolbox;

pub use approver::{Always, ApprovalAnswer, ApprovalQuestion, Approver, PersonQuestion, Question};
pub use event::{DeniedCall, Event, EventKind, Mode, StopReason, Usage};
pub use hooks::{HookPoint, HookReport, Hooks};
pub use journal::{Journal, JournalError, PendingCall, Record};
pub use memory::{Memory, MemoryText};
pub use message::{
    Arguments, AssistantMessage, AssistantPart, Blob, Content, Conversation, Message, Origin, Part,
    Reasoning, ToolMessage, UserMessage,
};
pub use model::{
    FinishReason, Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream,
    SystemPrompt,
};
pub use permission::{Action, DecidedBy, Decision, PermissionMode};
pub use receipt::{CallTimes, Denial, Receipt};
pub use skills::{LoadedSkill, Skills};
pub use tool::{
    Hints, ToolCall, ToolDefinition, ToolError, ToolErrorKind, ToolOutput, ToolResult, ToolSource,
};
pub use toolbox::{CallObserver, CallReport, CallUpdate, PreparedCall, Toolbox};
