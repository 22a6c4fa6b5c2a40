//! The boundary to a model server.

use crate::{Conversation, Reasoning, ToolCall, ToolDefinition, Usage};
use futures::stream::BoxStream;
use std::{fmt, sync::Arc, time::Duration};

/// The system prompt in two pieces: the first is byte-identical from round to round, so that the
/// provider's cache holds, the second is made anew for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemPrompt {
    pub stable: Arc<str>,
    pub environment: String,
}

/// One request to the model. A clone shares everything that is large.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    pub system: SystemPrompt,
    pub conversation: Conversation,
    /// Sorted by name and stable from round to round.
    pub tools: Arc<[ToolDefinition]>,
    /// The most tokens that the answer may have; the model's own default if absent.
    pub max_output_tokens: Option<u32>,
    /// What the model reads after the conversation in this request only.
    pub reminders: Vec<String>,
}

/// What a model's stream yields. A stream ends with exactly one `Done`, or with an error.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// More of the answer's text.
    Text(String),
    /// More reasoning, for people to watch.
    ReasoningDelta(String),
    /// A whole piece of reasoning that belongs in the conversation, at this place.
    Reasoning(Reasoning),
    /// A whole call. Its id is unique within `request.conversation` and this answer.
    ToolCall(ToolCall),
    /// The latest figures of this stream; a field that is absent says nothing.
    Usage(Usage),
    Done(FinishReason),
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It was done, or it waits for the results of its calls.
    Stop,
    /// It reached its length limit. Calls whose arguments were cut are `Arguments::Text`.
    Length,
    /// It refused, or a filter did.
    Refused,
    /// It wants the same conversation again to go on (`pause_turn`).
    Pause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// No server there, or the connection broke before an answer.
    Connection,
    /// 429.
    RateLimited,
    /// 408, 409, 5xx, overloaded.
    Server,
    /// The stream ended, fell silent or broke before its end.
    Cut,
    /// The answer is not of the protocol.
    Protocol,
    /// 401, 403.
    Authentication,
    /// 400, 404 and what else no retry mends.
    Request,
    /// The conversation does not fit the model's window.
    ContextOverflow,
    /// No model is set, or its configuration cannot work.
    Configuration,
}

impl ModelErrorKind {
    /// Whether the same request may work later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Connection | Self::RateLimited | Self::Server | Self::Cut)
    }

    /// The name used in `error` events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::RateLimited => "rate_limited",
            Self::Server => "server",
            Self::Cut => "cut",
            Self::Protocol => "protocol",
            Self::Authentication => "authentication",
            Self::Request => "request",
            Self::ContextOverflow => "context_overflow",
            Self::Configuration => "configuration",
        }
    }
}

/// A failure of the model, with the provider's own words and the setting to check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// For people. Never holds a key.
    pub message: String,
    /// The least time to wait before trying again, as the server asked.
    pub retry_after: Option<Duration>,
}

impl ModelError {
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}

pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A model. Changing the protocol behind it changes nothing in the loop.
pub trait Model: fmt::Debug + Send + Sync {
    /// The model's name at its provider.
    fn name(&self) -> &str;

    /// The provider's name in the configuration.
    fn provider(&self) -> &str;

    /// How many tokens a request and its answer may have together, where that is known. Without
    /// it the loop makes room only once the server says that a request does not fit.
    fn context_window(&self) -> Option<u64> {
        None
    }

    /// Sends one request. Nothing is retried here; dropping the stream ends the request.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}
