//! The boundary to the person who is asked.

use crate::{Hints, ToolCall, ToolSource};
use async_trait::async_trait;
use std::{fmt, sync::Arc};

/// What a person is asked about a call, and which answers beyond yes and no there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What the tool may do if allowed.
    pub text: String,
    /// Whether a yes may hold for the rest of the session.
    pub session: bool,
    /// What a yes for good would put into the person's configuration; nothing where there is no
    /// such yes.
    pub always: Option<Always>,
}

/// What makes a yes hold for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Always {
    /// An allow rule for this workspace.
    Rule { rule: String },
    /// A network grant for a plugin, in the form that grants are written in.
    Host { plugin: Arc<str>, host: String },
}

impl fmt::Display for Always {
    /// The line of the configuration.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule } => write!(f, "allow = [{rule:?}]"),
            Self::Host { plugin, host } => write!(f, "plugins.{plugin}.net = [{host:?}]"),
        }
    }
}

/// A call that needs a person's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalQuestion {
    pub call: ToolCall,
    pub source: ToolSource,
    pub hints: Hints,
    pub question: Question,
}

/// A question of the model's own to the person. Its answer allows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonQuestion {
    pub call_id: String,
    /// The subagent that asks; nothing for the main agent.
    pub agent: Option<Arc<str>>,
    pub text: String,
    /// Answers to choose from; any other is as good.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// This call.
    Once,
    /// This plugin's digest and tool, and the host where one was asked about, for the rest of the
    /// session.
    Session,
    /// As `Session`, and whoever asked has put the question's [`Always`] into the configuration.
    Always,
    /// Not this call; the same one is not asked again in this turn.
    No,
    /// Not this call, and the model reads why.
    NoBecause(String),
}

impl ApprovalAnswer {
    /// The name used in events.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always => "always",
            Self::No => "no",
            Self::NoBecause(_) => "no_because",
        }
    }

    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Once | Self::Session | Self::Always)
    }
}

impl Question {
    /// The names offered as `options` in the `approval` event.
    pub fn options(&self) -> Vec<String> {
        let yes = [
            Some("once"),
            self.session.then_some("session"),
            self.always.as_ref().map(|_| "always"),
        ];
        let all = yes.into_iter().flatten().chain(["no", "no_because"]);
        all.map(str::to_owned).collect()
    }
}

/// Asks a person.
#[async_trait]
pub trait Approver: fmt::Debug + Send + Sync {
    /// `None` where there is nobody to ask: the call is then denied by the mode.
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer>;

    /// Asks what the model wants to know. `None` where there is nobody to ask.
    async fn answer(&self, question: &PersonQuestion) -> Option<String> {
        let _ = question;
        None
    }
}
