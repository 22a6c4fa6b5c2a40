//! The way of a question from the loop to the person, and of the answer back.

use async_trait::async_trait;
use belljar_types::{ApprovalAnswer, ApprovalQuestion, Approver};
use tokio::sync::{mpsc, oneshot};

/// A question whose answer somebody waits for.
#[derive(Debug)]
pub struct Asked {
    pub question: ApprovalQuestion,
    /// Dropped without an answer, nobody was there to ask.
    pub answer: oneshot::Sender<ApprovalAnswer>,
}

/// The questions, as the session takes them.
#[derive(Debug)]
pub struct Questions(mpsc::UnboundedReceiver<Asked>);

impl Questions {
    /// The next one; nothing once nobody can ask any more.
    pub async fn next(&mut self) -> Option<Asked> {
        self.0.recv().await
    }
}

/// Asks the person at the session. The loop is given this.
#[derive(Clone, Debug)]
pub struct SessionApprover(mpsc::UnboundedSender<Asked>);

/// An approver, and where its questions come out. The loop asks about one call at a time or about
/// a batch, so that the queue is never long.
pub fn approvals() -> (SessionApprover, Questions) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (SessionApprover(sender), Questions(receiver))
}

#[async_trait]
impl Approver for SessionApprover {
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Asked { question: question.clone(), answer }).ok()?;
        answered.await.ok()
    }
}
