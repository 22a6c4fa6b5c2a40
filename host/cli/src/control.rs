//! What another program says on standard input while it runs this one: lines of JSON, for
//! `--input-format stream-json`.
//!
//! `user` gives the prompt, and afterwards a message that the busy run reads in its next round;
//! `approval_answer` answers an `approval` event by its call; `cancel` cancels the run, at whatever
//! point. A line that is none of these is told and changes nothing. The end of the input ends nothing
//! either, but what is asked from then on is answered by nobody, so it is denied.

use crate::{lasting::Lasting, prompt::LARGEST};
use async_trait::async_trait;
use belljar_types::{ApprovalAnswer, ApprovalQuestion, Approver, PersonQuestion};
use serde::Deserialize;
use std::{
    collections::HashMap,
    io::{self, BufRead as _, Read as _},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Line {
    User {
        text: String,
    },
    ApprovalAnswer {
        call_id: String,
        answer: Answer,
        /// For `no_because`, and the text itself for `text`.
        #[serde(default)]
        reason: Option<String>,
    },
    Cancel {},
}

/// The answers that the event offers, and `text` to what the model itself asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Once,
    Session,
    Always,
    No,
    NoBecause,
    Text,
}

/// What came in.
#[derive(Debug)]
pub(crate) enum Said {
    User(String),
    /// A line that changes nothing, and why.
    Nonsense(String),
}

/// The other program: what it says, and what it is asked.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) said: mpsc::Receiver<Said>,
    pub(crate) questions: Arc<Questions>,
}

/// The other program as the one who is asked.
#[derive(Debug)]
pub(crate) struct ControlApprover {
    questions: Arc<Questions>,
    lasting: Lasting,
}

/// What is asked and has no answer yet, by the call that it is about.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The input has ended.
    is_over: bool,
    questions: HashMap<String, Question>,
}

type Answered = (Answer, Option<String>);

/// Both ends of an answer's way: it may come before anybody waits for it.
#[derive(Debug)]
struct Question {
    /// Gone once it was answered.
    sender: Option<oneshot::Sender<Answered>>,
    /// Gone once it is waited for.
    receiver: Option<oneshot::Receiver<Answered>>,
}

/// Starts to read standard input, on a thread of its own, since a read cannot be called off.
pub(crate) fn listen(lasting: Lasting, cancel: CancellationToken) -> (ControlApprover, Control) {
    let questions = Arc::new(Questions::default());
    let (sender, said) = mpsc::channel(64);
    let answers = Arc::clone(&questions);
    std::thread::spawn(move || {
        read(io::stdin().lock(), &answers, &cancel, |said| sender.blocking_send(said).is_ok());
        answers.end();
    });
    (ControlApprover { questions: Arc::clone(&questions), lasting }, Control { said, questions })
}

/// Reads to the end of the input, or until nobody takes what was said.
fn read(
    mut input: impl io::BufRead,
    questions: &Questions,
    cancel: &CancellationToken,
    mut say: impl FnMut(Said) -> bool,
) {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = input.by_ref().take(LARGEST as u64 + 1).read_until(b'\n', &mut line);
        let said = match read {
            Ok(0) => return,
            Err(error) => {
                say(Said::Nonsense(format!("standard input cannot be read any more: {error}")));
                return;
            }
            Ok(_) if line.len() > LARGEST => {
                say(Said::Nonsense(format!(
                    "line {number} of standard input is longer than 8 MiB: nothing after it is read"
                )));
                return;
            }
            Ok(_) if line.trim_ascii().is_empty() => continue,
            Ok(_) => match serde_json::from_slice(&line) {
                Ok(Line::User { text }) => Said::User(text),
                Ok(Line::Cancel {}) => {
                    cancel.cancel();
                    continue;
                }
                Ok(Line::ApprovalAnswer { call_id, answer, reason }) => {
                    match questions.answer(&call_id, answer, reason) {
                        Ok(()) => continue,
                        Err(why) => Said::Nonsense(format!(
                            "line {number} of standard input changes nothing: {why}"
                        )),
                    }
                }
                Err(error) => Said::Nonsense(format!(
                    "line {number} of standard input changes nothing: {error}; a line is \
                     {{\"type\":\"user\",\"text\":…}}, \
                     {{\"type\":\"approval_answer\",\"call_id\":…,\"answer\":…}} or \
                     {{\"type\":\"cancel\"}}"
                )),
            },
        };
        if !say(said) {
            return;
        }
    }
}

impl Questions {
    /// Takes answers about a call from now on: before the other program can know of the question,
    /// and so before it can answer.
    pub(crate) fn open(&self, call_id: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.is_over {
            open.questions.entry(call_id.to_owned()).or_default();
        }
    }

    /// Nobody waits for an answer about the call any more.
    pub(crate) fn close(&self, call_id: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).questions.remove(call_id);
    }

    /// Waits for the answer; nothing comes back where nobody is there.
    fn ask(&self, call_id: &str) -> Option<oneshot::Receiver<Answered>> {
        self.open(call_id);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.questions.get_mut(call_id)?.receiver.take()
    }

    fn answer(&self, call_id: &str, answer: Answer, reason: Option<String>) -> Result<(), String> {
        let needs_text = matches!(answer, Answer::NoBecause | Answer::Text);
        if needs_text != reason.is_some() {
            return Err("`reason` goes with `no_because` and `text`, and with no other".to_owned());
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = open.questions.get_mut(call_id).and_then(|question| question.sender.take());
        // Whoever asked may have been cancelled meanwhile.
        match sender.map(|sender| sender.send((answer, reason))) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(format!("nothing is asked about the call `{call_id}`")),
        }
    }

    fn end(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.is_over = true;
        // What was answered is still read.
        open.questions.retain(|_, question| question.sender.is_none());
    }
}

impl Default for Question {
    fn default() -> Self {
        let (sender, receiver) = oneshot::channel();
        Self { sender: Some(sender), receiver: Some(receiver) }
    }
}

#[async_trait]
impl Approver for ControlApprover {
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        let (answer, reason) = self.questions.ask(&question.call.id)?.await.ok()?;
        Some(match answer {
            Answer::Once => ApprovalAnswer::Once,
            Answer::Session if question.question.session => ApprovalAnswer::Session,
            Answer::Always => match self.lasting.to(question).map(|always| always.write()) {
                Some(Ok(())) => ApprovalAnswer::Always,
                Some(Err(why)) => {
                    ApprovalAnswer::NoBecause(format!("a yes for good could not be written: {why}"))
                }
                None => ApprovalAnswer::No,
            },
            Answer::NoBecause => ApprovalAnswer::NoBecause(reason.unwrap_or_default()),
            // An answer that was not offered is no consent.
            Answer::Session | Answer::No | Answer::Text => ApprovalAnswer::No,
        })
    }

    async fn answer(&self, question: &PersonQuestion) -> Option<String> {
        let (answer, reason) = self.questions.ask(&question.call_id)?.await.ok()?;
        (answer == Answer::Text).then_some(reason).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(input: &str, questions: &Questions) -> Vec<String> {
        let mut all = Vec::new();
        read(input.as_bytes(), questions, &CancellationToken::new(), |said| {
            all.push(format!("{said:?}"));
            true
        });
        all
    }

    fn answer(call_id: &str, rest: &str) -> String {
        format!("{{\"type\":\"approval_answer\",\"call_id\":\"{call_id}\",\"answer\":{rest}}}\n")
    }

    #[test]
    fn lines_are_read_and_what_is_none_is_told_and_changes_nothing() {
        let lines = said(
            "{\"type\":\"user\",\"text\":\"go on\"}\n\n\
             {\"type\":\"approval_answer\",\"call_id\":\"x\",\"answer\":\"once\"}\n\
             {\"type\":\"user\",\"text\":\"a\",\"mode\":\"bypass\"}\nhello",
            &Questions::default(),
        );
        assert_eq!(lines[0], "User(\"go on\")");
        assert!(lines[1].contains("line 3") && lines[1].contains("nothing is asked"), "{lines:?}");
        assert!(lines[2].contains("line 4") && lines[2].contains("mode"), "{lines:?}");
        assert!(lines[3].contains("line 5"), "{lines:?}");
        assert_eq!(lines.len(), 4);
    }

    #[test]
    fn a_cancel_does_not_wait_for_whoever_reads_what_was_said() {
        let cancel = CancellationToken::new();
        read(&b"{\"type\":\"cancel\"}\n"[..], &Questions::default(), &cancel, |said| {
            panic!("{said:?}")
        });
        assert!(cancel.is_cancelled());
    }

    #[tokio::test]
    async fn an_answer_reaches_the_call_that_it_names_and_no_other() {
        let questions = Questions::default();
        let (one, two) = (questions.ask("1").unwrap(), questions.ask("2").unwrap());
        let no = answer("2", "\"no_because\",\"reason\":\"not there\"");
        assert_eq!(said(&no, &questions).len(), 0);
        assert_eq!(two.await, Ok((Answer::NoBecause, Some("not there".to_owned()))));
        assert_eq!(said(&answer("1", "\"no_because\""), &questions).len(), 1, "no reason");
        assert_eq!(said(&answer("1", "\"once\""), &questions).len(), 0);
        assert_eq!(one.await, Ok((Answer::Once, None)));
        drop(questions.ask("3"));
        assert_eq!(said(&answer("3", "\"once\""), &questions).len(), 1, "it is asked no more");
        let open = questions.ask("4").unwrap();
        questions.end();
        assert!(open.await.is_err(), "nobody answers any more");
        assert!(questions.ask("5").is_none());
    }

    #[tokio::test]
    async fn an_answer_may_come_before_it_is_waited_for() {
        let questions = Questions::default();
        questions.open("1");
        questions.open("2");
        assert_eq!(said(&answer("1", "\"session\""), &questions).len(), 0);
        assert_eq!(said(&answer("1", "\"once\""), &questions).len(), 1, "it was answered");
        questions.close("2");
        assert_eq!(said(&answer("2", "\"once\""), &questions).len(), 1, "it was closed");
        questions.end();
        assert_eq!(questions.ask("1").unwrap().await, Ok((Answer::Session, None)));
    }
}
