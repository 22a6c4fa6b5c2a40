//! How a call was decided: the mode it ran under, the action taken and what decided it.
//!
//! Deciding itself is `belljar-capability`'s; these are the words for its outcome.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The shape of the world that calls get, from the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Nothing may change: writing tools are not offered.
    Plan,
    /// Read-only tools run, everything else asks.
    Default,
    /// As `Default`, but writing inside write grants does not ask.
    AcceptEdits,
    /// Nothing asks: what no rule allows is denied. The default of headless runs.
    DontAsk,
    /// Nothing asks and nothing is denied by the mode; grants and limits still hold.
    Bypass,
}

impl PermissionMode {
    /// The name used in options, configuration and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Default => "default",
            Self::AcceptEdits => "accept-edits",
            Self::DontAsk => "dont-ask",
            Self::Bypass => "bypass",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is to happen to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    Ask,
    Deny,
}

/// What decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum DecidedBy {
    /// A person's answer.
    Person,
    /// A rule, as it was written, such as `files/*`.
    Rule { rule: String },
    /// The permission mode's own row for tools of this kind.
    Mode { mode: PermissionMode },
    /// The arguments name a protected path to a tool that may write it.
    ProtectedPath { path: String },
}

impl DecidedBy {
    /// The word that the `approval_answer` event uses: `person`, `rule` or `mode`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Rule { .. } => "rule",
            Self::Mode { .. } | Self::ProtectedPath { .. } => "mode",
        }
    }
}

/// An action and what decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub action: Action,
    #[serde(flatten)]
    pub by: DecidedBy,
}
