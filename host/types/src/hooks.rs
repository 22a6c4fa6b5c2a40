//! The boundary to hooks: the user's own commands, asked at points of a run.
//!
//! A hook may refuse or narrow. Nothing that it says allows anything.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Where hooks are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// A run begins.
    SessionStart,
    /// A person said something: the prompt, or a message while the run is busy.
    UserPrompt,
    PreRound,
    /// After the toolbox took the call, before anybody is asked about it.
    PreTool,
    PostTool,
    PreCompact,
    /// A person is being asked.
    Notification,
    Stop,
    SubagentStop,
}

impl HookPoint {
    pub const ALL: [Self; 9] = [
        Self::SessionStart,
        Self::UserPrompt,
        Self::PreRound,
        Self::PreTool,
        Self::PostTool,
        Self::PreCompact,
        Self::Notification,
        Self::Stop,
        Self::SubagentStop,
    ];

    /// The name used in the configuration and in what hooks read.
    pub fn name(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::UserPrompt => "user_prompt",
            Self::PreRound => "pre_round",
            Self::PreTool => "pre_tool",
            Self::PostTool => "post_tool",
            Self::PreCompact => "pre_compact",
            Self::Notification => "notification",
            Self::Stop => "stop",
            Self::SubagentStop => "subagent_stop",
        }
    }

    /// Whether there is something left to refuse: elsewhere a refusal is only told.
    pub fn can_block(self) -> bool {
        match self {
            Self::UserPrompt
            | Self::PreRound
            | Self::PreTool
            | Self::PostTool
            | Self::PreCompact => true,
            Self::SessionStart | Self::Notification | Self::Stop | Self::SubagentStop => false,
        }
    }

    /// Whether a hook may give the model something to read.
    pub fn takes_context(self) -> bool {
        matches!(self, Self::SessionStart | Self::UserPrompt | Self::PreRound | Self::PostTool)
    }

    /// Whether a hook may ask for the run's end.
    pub fn can_end(self) -> bool {
        !matches!(self, Self::Notification | Self::Stop | Self::SubagentStop)
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What the hooks of one point said together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookReport {
    /// A refusal, and why, for the model. Where nothing is left to refuse (`session_start`,
    /// `notification`, `stop`, `subagent_stop`) it is told to the person.
    pub blocked: Option<String>,
    /// The run is to end, and why.
    pub end: Option<String>,
    /// `pre_tool` only: the arguments as they are to be. They are checked and decided on again.
    pub arguments: Option<Map<String, Value>>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// What a person should know.
    pub notices: Vec<String>,
}

/// Asks hooks.
#[async_trait]
pub trait Hooks: fmt::Debug + Send + Sync {
    /// Whether a point has any: making what they would read can then be left out.
    fn has(&self, point: HookPoint) -> bool {
        let _ = point;
        true
    }

    /// Asks the hooks of a point with what they read. It is bounded in time. Dropping the future
    /// ends the hook that runs.
    async fn run(&self, point: HookPoint, input: &Map<String, Value>) -> HookReport;
}
