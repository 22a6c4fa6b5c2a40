//! The boundary to whoever runs tools.

use crate::{
    ApprovalAnswer, Decision, Origin, Question, Receipt, ToolCall, ToolDefinition, ToolError,
    ToolOutput,
};
use async_trait::async_trait;
use std::{fmt, sync::Arc};
use tokio_util::sync::CancellationToken;

/// What a running call tells, for people to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallUpdate {
    Progress { done: u64, total: Option<u64>, message: String },
    Output { text: String },
}

/// Called from the thread that the guest runs on: it must return at once.
pub type CallObserver = Arc<dyn Fn(CallUpdate) + Send + Sync>;

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReport {
    pub outcome: Result<ToolOutput, ToolError>,
    /// Where the content came from: the plugin for what it returned, the host for a refusal.
    pub origin: Origin,
    /// Absent where nothing ran.
    pub receipt: Option<Receipt>,
}

/// Tools that can be called.
#[async_trait]
pub trait Toolbox: fmt::Debug + Send + Sync {
    /// The tools to offer to the model now, sorted by name. What the mode or a rule denies
    /// outright is left out.
    fn tools(&self) -> Arc<[ToolDefinition]>;

    /// What changed about the tools since this was asked last, in sentences for people. It is asked
    /// when a round begins, and may wait a moment for a change that is just being taken.
    async fn news(&self) -> Vec<String> {
        Vec::new()
    }

    /// Finds the tool, checks the arguments against its schema and decides. Runs nothing.
    ///
    /// # Errors
    ///
    /// `UnknownTool`, `InvalidArguments`, or `Denied` for a tool that is there but not offered.
    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError>;
}

/// A call that was decided on: this plugin's digest, this tool, these arguments and this world,
/// and nothing else, is what an approval approves.
#[async_trait]
pub trait PreparedCall: Send + Sync {
    fn definition(&self) -> &ToolDefinition;

    fn decision(&self) -> &Decision;

    /// What a person is asked where the decision is `Ask`.
    fn question(&self) -> Question;

    /// Runs the call in a world no wider than the decision. Where the decision is `Ask`, `answer`
    /// decides, and no answer is a refusal; elsewhere `answer` is ignored.
    ///
    /// A cancelled call ends with a `Canceled` report within 100 ms.
    async fn run(
        self: Box<Self>,
        answer: Option<ApprovalAnswer>,
        observer: CallObserver,
        cancel: CancellationToken,
    ) -> CallReport;
}
