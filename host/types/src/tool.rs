//! Tools as the model sees them, the calls it makes and what comes back.

use crate::{Arguments, Content, Origin, Part};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, sync::Arc};

/// What a call may do to the world outside, as the tool itself claims. A hint is shown to people
/// and picks the world that a call gets; it never widens one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

/// Whose tool it is: the plugin's name (its file's stem) and the SHA-256 of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolSource {
    pub plugin: Arc<str>,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: Arc<str>,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name that the model calls: bare for a bundled tool, `plugin__tool` for any other.
    pub name: Arc<str>,
    /// The tool's own name inside its plugin.
    pub tool: Arc<str>,
    #[serde(flatten)]
    pub source: ToolSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the arguments; its type is `object`.
    pub input_schema: Arc<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    pub hints: Hints,
}

/// A tool call as the model proposed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in the conversation.
    pub id: String,
    /// The name that the model used, known or not.
    pub tool: String,
    pub arguments: Arguments,
}

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    pub content: Vec<Content>,
    /// A value that fits the tool's output schema.
    pub structured: Option<Value>,
}

impl ToolOutput {
    /// An output of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text { text: text.into() }], structured: None }
    }
}

/// The kinds of failure that a model reads, by their names on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorKind {
    UnknownTool,
    InvalidArguments,
    /// Refused by a rule, a mode, a person, a grant or the tool itself.
    Denied,
    /// The tool ran and could not do what was asked.
    Failed,
    /// A passing fault: the same call may work later.
    Unavailable,
    Deadline,
    OutOfFuel,
    MemoryLimit,
    OutputLimit,
    /// The guest broke: a trap, a panic, an answer that is not one.
    Trap,
    Canceled,
}

impl ToolErrorKind {
    /// The name used in events and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::InvalidArguments => "invalid_arguments",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Unavailable => "unavailable",
            Self::Deadline => "deadline",
            Self::OutOfFuel => "out_of_fuel",
            Self::MemoryLimit => "memory_limit",
            Self::OutputLimit => "output_limit",
            Self::Trap => "trap",
            Self::Canceled => "canceled",
        }
    }
}

impl fmt::Display for ToolErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure that the model reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct ToolError {
    pub kind: ToolErrorKind,
    /// What went wrong and what to do instead, for the model. Never holds a host path.
    pub message: String,
    /// `Unavailable` only: how long to wait before trying again, where the tool knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What a person types to allow exactly this, such as `--allow files/write_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl ToolError {
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after_ms: None, remedy: None }
    }

    /// The same error with the line that would allow it.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// The one result of one call, as the conversation, the session and the events hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "WireResult", into = "WireResult")]
pub struct ToolResult {
    pub call_id: String,
    /// The name that the model used.
    pub tool: String,
    pub outcome: Result<ToolOutput, ToolError>,
    /// Where the content came from: the plugin, or the host itself for a refusal.
    pub origin: Origin,
}

/// The shape in JSON: `ok`, `content`, `structured` and `error` side by side.
#[derive(Serialize, Deserialize)]
struct WireResult {
    call_id: String,
    tool: String,
    ok: bool,
    content: Vec<Part>,
    #[serde(default)]
    structured: Option<Value>,
    #[serde(default)]
    error: Option<ToolError>,
    origin: Origin,
}

impl From<ToolResult> for WireResult {
    fn from(result: ToolResult) -> Self {
        let ToolResult { call_id, tool, outcome, origin } = result;
        let (output, error) = match outcome {
            Ok(output) => (output, None),
            Err(error) => (ToolOutput::default(), Some(error)),
        };
        let content = output
            .content
            .into_iter()
            .map(|content| Part { content, origin: origin.clone() })
            .collect();
        Self {
            call_id,
            tool,
            ok: error.is_none(),
            content,
            structured: output.structured,
            error,
            origin,
        }
    }
}

impl From<WireResult> for ToolResult {
    fn from(wire: WireResult) -> Self {
        let WireResult { call_id, tool, ok: _, content, structured, error, origin } = wire;
        let outcome = match error {
            Some(error) => Err(error),
            None => Ok(ToolOutput {
                content: content.into_iter().map(|part| part.content).collect(),
                structured,
            }),
        };
        Self { call_id, tool, outcome, origin }
    }
}
