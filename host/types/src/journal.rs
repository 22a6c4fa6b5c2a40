//! The boundary to the session on disk.

use crate::{Message, Mode, PermissionMode, Receipt, StopReason, ToolCall, Usage};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// One line of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a record lives from its making to its line in the file; a box would only add work"
)]
pub enum Record {
    /// A run of the loop begins in this session.
    RunStarted {
        model: String,
        mode: Mode,
        permission_mode: PermissionMode,
    },
    Message {
        message: Arc<Message>,
    },
    /// Written before the call runs: without a result after it, it may have taken effect.
    CallStarted {
        call_id: String,
    },
    CallDone {
        call_id: String,
        receipt: Option<Receipt>,
    },
    Usage {
        usage: Usage,
    },
    /// From here on the model reads `head` in the place of the first `dropped` messages that it
    /// read before. The messages themselves stay in the session.
    Replaced {
        head: Vec<Arc<Message>>,
        dropped: usize,
    },
    /// The model loaded a skill.
    SkillLoaded {
        name: String,
    },
    /// The model noted its plan, in the place of the one before.
    PlanNoted {
        text: String,
    },
    /// What a subagent that the call started would have written to a session of its own.
    Subagent {
        call_id: String,
        agent: Arc<str>,
        inner: Box<Record>,
    },
    Stopped {
        reason: StopReason,
        message: String,
    },
}

/// A call that its session holds no result of.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    pub call: ToolCall,
    /// It was about to run, so it may have taken effect. Nothing else that was recorded of it, an
    /// approval say, holds any more.
    pub started: bool,
}

/// A record could not be written: nothing that depends on it may go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    /// What failed and what to do about it.
    pub message: String,
}

/// Keeps records. A record is on disk when `append` returns.
#[async_trait]
pub trait Journal: fmt::Debug + Send + Sync {
    /// The session's id.
    fn session(&self) -> &str;

    /// # Errors
    ///
    /// The record is not on disk, and what was written before it is unharmed.
    async fn append(&self, record: &Record) -> Result<(), JournalError>;
}
