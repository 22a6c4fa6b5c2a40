//! What the session needs from whoever runs the loop.
//!
//! The session shows and asks; it runs nothing, decides nothing about calls and touches no file.

use crate::command::Command;
use async_trait::async_trait;
use belljar_types::{ApprovalQuestion, Event, PermissionMode};
use futures::stream::BoxStream;
use std::fmt;

/// What a turn begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The person's message, as it was typed, `@file` mentions included.
    Message(String),
    /// A run in plan mode for this task.
    Plan(String),
    /// A run that carries out the last plan. The text is what the person adds to it, or empty.
    Do(String),
    /// The last run came to its turn limit, and the person wants it to go on.
    GoOn,
}

/// What became of a message that was sent while a run was busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// The loop takes it at the top of its next round. Where the run ends before that, it stays in
    /// the conversation, and the next run reads it.
    Queued,
    /// The run takes no more messages. The session sends it as the next turn.
    Closed,
}

/// What the status line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// `provider/name`.
    pub model: String,
    pub permission_mode: PermissionMode,
    /// How full the model's window is, in percent, where that is known.
    pub context_percent: Option<u8>,
    /// What the session has cost, in words, where that is known: `$0.12`.
    pub cost: Option<String>,
}

/// The answer to a command: what is shown, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    pub shown: Vec<Shown>,
}

/// Something to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// Lines of plain text.
    Text(String),
    /// Something that did not work, and what to do next.
    Problem(String),
    Table(Table),
    /// What the person said earlier, of a session that is resumed.
    Person(String),
    /// What a run told earlier, of a session that is resumed.
    Event(Box<Event>),
}

/// Rows under a head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Reply {
    /// A reply of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { shown: vec![Shown::Text(text.into())] }
    }

    /// A reply that says what did not work.
    pub fn problem(text: impl Into<String>) -> Self {
        Self { shown: vec![Shown::Problem(text.into())] }
    }
}

/// Whoever runs the loop. Every method but `command` and `files` must return at once.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    /// Starts a run; its events, the last of which is a `stop`. Never called while one is busy.
    /// Dropping the stream ends the run.
    fn start(&self, turn: Turn) -> BoxStream<'static, Event>;

    /// Sends a message to the run that is busy.
    fn steer(&self, text: &str) -> Steered;

    /// Cancels the run that is busy; its `stop` still comes.
    fn cancel(&self);

    fn status(&self) -> Status;

    /// Changes the mode, from the next decision on.
    ///
    /// # Errors
    ///
    /// Why not, in words for the person.
    fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), String>;

    /// What a yes for good to this question would write, and where, in one line; nothing where
    /// there is no such yes.
    fn always(&self, question: &ApprovalQuestion) -> Option<String>;

    /// Writes it. The call is approved only once this has returned.
    ///
    /// # Errors
    ///
    /// Why not, in words for the person.
    fn write_always(&self, question: &ApprovalQuestion) -> Result<(), String>;

    /// Carries out a command. Dropping the future calls it off.
    async fn command(&self, command: Command) -> Reply;

    /// Files of the workspace whose path fits `prefix`, best first; a hundred are enough.
    async fn files(&self, prefix: &str) -> Vec<String>;

    /// The text of the history file, or nothing.
    fn history(&self) -> String;

    /// Appends a line, which ends in a newline, to the history file.
    fn remember(&self, line: &str);
}
