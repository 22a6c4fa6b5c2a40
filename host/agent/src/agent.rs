//! What a run is made of: the parts that stay from run to run, and what one run is asked to do.

use crate::{Chain, Restored, Settings};
use async_trait::async_trait;
use belljar_types::{
    Approver, Conversation, Hooks, Journal, Memory, Mode, Model, Part, PendingCall, PermissionMode,
    Skills, SystemPrompt, Toolbox,
};
use serde_json::Value;
use std::{fmt, sync::Arc};
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

/// What one run is asked to do, and what it may use beside the agent's parts.
#[derive(Clone, Debug)]
pub struct RunRequest {
    pub mode: Mode,
    /// Shown in the `start` event and kept in the session. The toolbox is what holds it.
    pub permission_mode: PermissionMode,
    /// The workspace as people see it.
    pub workspace: String,
    /// What came before. It must pass [`Conversation::check`], but that the last calls may be
    /// open where they are `pending`; [`replay`](crate::replay) makes one that passes.
    pub conversation: Conversation,
    /// The open calls of `conversation`, in order: they are decided anew before anything else.
    pub pending: Vec<PendingCall>,
    /// Names of skills that were loaded before.
    pub active_skills: Vec<String>,
    /// The plan that the model noted before.
    pub notes: Option<String>,
    /// What the person says now. Blank texts are left out.
    pub prompt: Vec<Part>,
    /// The confirmed plan that [`Mode::Do`] carries out.
    pub plan: Option<Plan>,
    /// The form that the final answer must have; any text without one.
    pub answer_form: Option<Arc<dyn AnswerForm>>,
    /// The run asks for no answer: it puts a summary in the place of older messages, whether there
    /// is room or not, and is over.
    pub only_compacts: bool,
    pub system: Arc<dyn SystemSource>,
    /// How a request to the model is made.
    pub chain: Chain,
    pub hooks: Option<Arc<dyn Hooks>>,
    pub skills: Option<Arc<dyn Skills>>,
    pub memory: Option<Arc<dyn Memory>>,
    /// The name that the run's events carry; nothing for the main agent.
    pub agent: Option<Arc<str>>,
    /// Cancelling this cancels the run; cancelling the run leaves this as it is.
    pub cancel: CancellationToken,
}

/// A plan that a person confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What it is for, in the person's words.
    pub task: String,
    pub text: String,
}

impl RunRequest {
    /// A chat in the default permission mode, without history and without a system prompt.
    pub fn new(prompt: Vec<Part>) -> Self {
        Self {
            mode: Mode::Chat,
            permission_mode: PermissionMode::Default,
            workspace: String::new(),
            conversation: Conversation::default(),
            pending: Vec::new(),
            active_skills: Vec::new(),
            notes: None,
            prompt,
            plan: None,
            answer_form: None,
            only_compacts: false,
            system: Arc::new(SystemPrompt::default()),
            chain: Chain::standard(),
            hooks: None,
            skills: None,
            memory: None,
            agent: None,
            cancel: CancellationToken::new(),
        }
    }

    /// As [`new`](Self::new), going on where a session ended or broke off. The prompt may be empty.
    pub fn resuming(restored: Restored, prompt: Vec<Part>) -> Self {
        let Restored { conversation, pending, active_skills, notes } = restored;
        Self { conversation, pending, active_skills, notes, ..Self::new(prompt) }
    }
}

/// The form of a final answer: the model gives it as the arguments of a call, so that it is JSON.
pub trait AnswerForm: fmt::Debug + Send + Sync {
    /// JSON Schema of the answer.
    fn schema(&self) -> &Value;

    /// Whether an answer has the form.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for the model to correct.
    fn check(&self, answer: &Value) -> Result<(), String>;
}

/// Makes the system prompt of each round. What it needs from the outside (the date, the state of
/// the repository) it fetches itself.
#[async_trait]
pub trait SystemSource: fmt::Debug + Send + Sync {
    /// The prompt for `round`, counted from 1. Of the stable part, the first one of a run is used
    /// in all its rounds.
    async fn system(&self, round: u32) -> SystemPrompt;
}

/// The same prompt in every round.
#[async_trait]
impl SystemSource for SystemPrompt {
    async fn system(&self, _round: u32) -> SystemPrompt {
        self.clone()
    }
}
