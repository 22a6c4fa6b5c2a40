//! The boundary to the person who is asked.

use crate::{Hints, ToolCall, ToolSource};
use async_trait::async_trait;
use std::fmt;

/// A call that needs a person's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    pub call: ToolCall,
    pub source: ToolSource,
    pub hints: Hints,
    /// What the tool may do if allowed.
    pub question: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// This call.
    Once,
    /// This plugin's digest and tool, for the rest of the session.
    Session,
    /// Not this call; the same one is not asked again in this turn.
    No,
    /// Not this call, and the model reads why.
    NoBecause(String),
}

impl ApprovalAnswer {
    /// The names offered as `options` in the `approval` event.
    pub const OPTIONS: [&'static str; 4] = ["once", "session", "no", "no_because"];

    /// The name used in events.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::No => "no",
            Self::NoBecause(_) => "no_because",
        }
    }

    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Once | Self::Session)
    }
}

/// Asks a person.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// `None` where there is nobody to ask: the call is then denied by the mode.
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer>;
}
