//! What a run is made of: the parts that stay from run to run, and what one run is asked to do.

use crate::RetryPolicy;
use async_trait::async_trait;
use belljar_types::{
    Approver, Conversation, Journal, Mode, Model, Part, PermissionMode, SystemPrompt, Toolbox,
};
use std::{fmt, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The parts of an agent. A clone shares them.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Without a model a run ends at once, saying so.
    pub model: Option<Arc<dyn Model>>,
    pub toolbox: Arc<dyn Toolbox>,
    pub approver: Arc<dyn Approver>,
    pub journal: Arc<dyn Journal>,
    pub settings: Settings,
}

/// The limits and policies of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How many requests to the model one run may make.
    pub max_turns: u32,
    /// How many calls in a row may name a tool that does not exist.
    pub unknown_tool_limit: u32,
    /// How many answers in a row may be cut by the model's length limit.
    pub length_cut_limit: u32,
    /// How many times in a row the model may pause its turn and be asked to go on.
    pub pause_limit: u32,
    /// The most tokens that one answer may have; the model's own default if absent.
    pub max_output_tokens: Option<u32>,
    /// How failed model requests are tried again.
    pub model_retry: RetryPolicy,
    /// How long a cancelled call may take to report before it is left behind.
    pub cancel_grace: Duration,
    /// How many events may wait for the reader before the loop waits too; at least 1.
    pub event_buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_turns: 15,
            unknown_tool_limit: 2,
            length_cut_limit: 2,
            pause_limit: 5,
            max_output_tokens: None,
            model_retry: RetryPolicy::for_models(),
            // A run ends within 100 ms of a cancel; the rest is for the bookkeeping after it.
            cancel_grace: Duration::from_millis(90),
            event_buffer: 16,
        }
    }
}

/// What one run is asked to do.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub mode: Mode,
    /// Shown in the `start` event and kept in the session. The toolbox is what holds it.
    pub permission_mode: PermissionMode,
    /// The workspace as people see it.
    pub workspace: String,
    /// What came before. It must pass [`Conversation::check`]; [`replay`](crate::replay) makes
    /// one that does.
    pub conversation: Conversation,
    /// What the person says now. Blank texts are left out.
    pub prompt: Vec<Part>,
    pub system: Arc<dyn SystemSource>,
    /// The name that the run's events carry; nothing for the main agent.
    pub agent: Option<Arc<str>>,
    /// Cancelling this cancels the run; cancelling the run leaves this as it is.
    pub cancel: CancellationToken,
}

impl RunRequest {
    /// A chat in the default permission mode, without history and without a system prompt.
    pub fn new(prompt: Vec<Part>) -> Self {
        Self {
            mode: Mode::Chat,
            permission_mode: PermissionMode::Default,
            workspace: String::new(),
            conversation: Conversation::default(),
            prompt,
            system: Arc::new(SystemPrompt::default()),
            agent: None,
            cancel: CancellationToken::new(),
        }
    }
}

/// Makes the system prompt of each round. What it needs from the outside (the date, the state of
/// the repository) it fetches itself.
#[async_trait]
pub trait SystemSource: fmt::Debug + Send + Sync {
    /// The prompt for `round`, counted from 1. The stable part must be the same each time.
    async fn system(&self, round: u32) -> SystemPrompt;
}

/// The same prompt in every round.
#[async_trait]
impl SystemSource for SystemPrompt {
    async fn system(&self, _round: u32) -> SystemPrompt {
        self.clone()
    }
}
