//! What a run tells its reader, in order. Text, JSON lines and the terminal are sinks of these.

use crate::{Arguments, PermissionMode, Receipt, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a run is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Chat,
    Plan,
    Do,
}

/// Tokens, where the provider said. `cached_tokens` are part of `input_tokens`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
}

impl Usage {
    /// Takes later figures of the same stream: each field that is there wins.
    pub fn update(&mut self, later: Usage) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cached_tokens = later.cached_tokens.or(self.cached_tokens);
    }

    /// Adds the figures of another request.
    pub fn add(&mut self, other: Usage) {
        fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (None, None) => None,
                (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            }
        }
        self.input_tokens = sum(self.input_tokens, other.input_tokens);
        self.output_tokens = sum(self.output_tokens, other.output_tokens);
        self.cached_tokens = sum(self.cached_tokens, other.cached_tokens);
    }
}

/// Why a run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Completed,
    MaxIterations,
    Canceled,
    UnknownToolLimit,
    /// The model's stream failed for good.
    StreamError,
    /// A hook or the embedding program asked for the end.
    Ended,
    RepetitionLimit,
    /// The model refused to answer.
    Refused,
    /// The answer was cut by the model's length limit twice running.
    Truncated,
    ContextOverflow,
    /// The session could not be written, so nothing more is done.
    SessionError,
}

/// A kind of call that was denied in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedCall {
    /// The name that the model used.
    pub tool: String,
    /// What was refused and why.
    pub message: String,
    /// What a person types to allow exactly this; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    #[serde(flatten)]
    pub kind: EventKind,
    /// From 0, without gaps.
    pub seq: u64,
    /// The round it belongs to, from 1; 0 outside rounds.
    pub iteration: u32,
    /// The subagent it comes from; nothing for the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventKind {
    Start {
        session: String,
        /// `provider/name`.
        model: String,
        workspace: String,
        mode: Mode,
        permission_mode: PermissionMode,
        tools: Vec<Arc<str>>,
    },
    RoundStart,
    TextDelta {
        text: String,
    },
    ReasoningDelta {
        text: String,
    },
    /// The whole text of the round.
    AssistantText {
        text: String,
    },
    ToolCallStart {
        call_id: String,
        tool: String,
        /// Absent for a tool that nobody has.
        plugin: Option<Arc<str>>,
        arguments: Arguments,
    },
    Approval {
        call_id: String,
        tool: String,
        question: String,
        options: Vec<String>,
    },
    ApprovalAnswer {
        call_id: String,
        answer: String,
        /// `person`, `rule` or `mode`.
        by: String,
    },
    ToolProgress {
        call_id: String,
        done: u64,
        total: Option<u64>,
        message: String,
    },
    ToolOutput {
        call_id: String,
        text: String,
    },
    ToolResult(ToolResult),
    ToolCallDone {
        call_id: String,
        /// Absent where nothing ran.
        receipt: Option<Receipt>,
    },
    /// `total` is the run so far, this request included.
    Usage {
        #[serde(flatten)]
        usage: Usage,
        total: Usage,
    },
    /// After a `retry` of the model, what this round has shown so far is void.
    Retry {
        /// `model` or `tool`.
        what: String,
        /// The attempt that comes next, from 2.
        attempt: u32,
        delay_ms: u64,
        reason: String,
    },
    Compaction {
        before_tokens: u64,
        after_tokens: u64,
    },
    Notice {
        message: String,
    },
    Error {
        kind: String,
        message: String,
    },
    Stop {
        reason: StopReason,
        /// What a person should know about why.
        message: String,
        turns: u32,
        duration_ms: u64,
        usage: Usage,
        /// The final text.
        result: String,
        /// How many calls were denied.
        denials: u32,
        /// Which, each kind once and the first hundred of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        denied: Vec<DeniedCall>,
        session: String,
    },
}

impl EventKind {
    /// The event for the start of `call`.
    pub fn call_start(call: &ToolCall, plugin: Option<Arc<str>>) -> Self {
        Self::ToolCallStart {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            plugin,
            arguments: call.arguments.clone(),
        }
    }
}
