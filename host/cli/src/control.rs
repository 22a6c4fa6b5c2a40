//! What another program says on standard input while it runs this one: lines of JSON, for
//! `--input-format stream-json`.
//!
//! `user` gives the prompt, and afterwards a message that the busy run reads in its next round;
//! `approval_answer` answers an `approval` event by its call; `cancel` cancels the run. A line that
//! is none of these is told and changes nothing. The end of the input ends nothing either, but what
//! is asked from then on is answered by nobody, so it is denied.

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
    Cancel,
    /// A line that changes nothing, and why.
    Nonsense(String),
}

/// The other program as the one who is asked.
#[derive(Debug)]
pub(crate) struct ControlApprover {
    asked: Arc<Asked>,
    lasting: Lasting,
}

#[derive(Debug, Default)]
struct Asked {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// The input has ended.
    is_over: bool,
    questions: HashMap<String, oneshot::Sender<(Answer, Option<String>)>>,
}

/// Starts to read standard input, on a thread of its own, since a read cannot be called off.
pub(crate) fn listen(lasting: Lasting) -> (ControlApprover, mpsc::Receiver<Said>) {
    let asked = Arc::new(Asked::default());
    let (sender, said) = mpsc::channel(64);
    let answers = Arc::clone(&asked);
    std::thread::spawn(move || {
        read(io::stdin().lock(), &answers, |said| sender.blocking_send(said).is_ok());
        answers.end();
    });
    (ControlApprover { asked, lasting }, said)
}

/// Reads to the end of the input, or until nobody takes what was said.
fn read(mut input: impl io::BufRead, asked: &Asked, mut say: impl FnMut(Said) -> bool) {
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
                Ok(Line::Cancel {}) => Said::Cancel,
                Ok(Line::ApprovalAnswer { call_id, answer, reason }) => {
                    match asked.answer(&call_id, answer, reason) {
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

impl Asked {
    /// A question; nothing comes back where nobody is there.
    fn ask(&self, call_id: &str) -> Option<oneshot::Receiver<(Answer, Option<String>)>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_over {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        open.questions.insert(call_id.to_owned(), sender);
        Some(receiver)
    }

    fn answer(&self, call_id: &str, answer: Answer, reason: Option<String>) -> Result<(), String> {
        let needs_text = matches!(answer, Answer::NoBecause | Answer::Text);
        if needs_text != reason.is_some() {
            return Err("`reason` goes with `no_because` and `text`, and with no other".to_owned());
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever asked may have been cancelled meanwhile.
        match open.questions.remove(call_id).map(|question| question.send((answer, reason))) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(format!("nothing is asked about the call `{call_id}`")),
        }
    }

    fn end(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.is_over = true;
        open.questions.clear();
    }
}

#[async_trait]
impl Approver for ControlApprover {
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        let (answer, reason) = self.asked.ask(&question.call.id)?.await.ok()?;
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
        let (answer, reason) = self.asked.ask(&question.call_id)?.await.ok()?;
        (answer == Answer::Text).then_some(reason).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(input: &str, asked: &Asked) -> Vec<String> {
        let mut all = Vec::new();
        read(input.as_bytes(), asked, |said| {
            all.push(format!("{said:?}"));
            true
        });
        all
    }

    #[test]
    fn lines_are_read_and_what_is_none_is_told_and_changes_nothing() {
        let asked = Asked::default();
        let lines = said(
            "{\"type\":\"user\",\"text\":\"go on\"}\n\n{\"type\":\"cancel\"}\n\
             {\"type\":\"approval_answer\",\"call_id\":\"x\",\"answer\":\"once\"}\n\
             {\"type\":\"user\",\"text\":\"a\",\"mode\":\"bypass\"}\nhello",
            &asked,
        );
        assert_eq!(lines[0], "User(\"go on\")");
        assert_eq!(lines[1], "Cancel");
        assert!(lines[2].contains("line 4") && lines[2].contains("nothing is asked"), "{lines:?}");
        assert!(lines[3].contains("line 5") && lines[3].contains("mode"), "{lines:?}");
        assert!(lines[4].contains("line 6"), "{lines:?}");
        assert_eq!(lines.len(), 5);
    }

    #[tokio::test]
    async fn an_answer_reaches_the_call_that_it_names_and_no_other() {
        let asked = Asked::default();
        let (one, two) = (asked.ask("1").unwrap(), asked.ask("2").unwrap());
        let line = |call_id: &str, rest: &str| {
            format!(
                "{{\"type\":\"approval_answer\",\"call_id\":\"{call_id}\",\"answer\":{rest}}}\n"
            )
        };
        assert_eq!(said(&line("2", "\"no_because\",\"reason\":\"not there\""), &asked).len(), 0);
        assert_eq!(two.await, Ok((Answer::NoBecause, Some("not there".to_owned()))));
        assert_eq!(said(&line("1", "\"no_because\""), &asked).len(), 1, "it lacks the reason");
        assert_eq!(said(&line("1", "\"once\""), &asked).len(), 0);
        assert_eq!(one.await, Ok((Answer::Once, None)));
        drop(asked.ask("3"));
        assert_eq!(said(&line("3", "\"once\""), &asked).len(), 1, "it is asked no more");
        let open = asked.ask("3").unwrap();
        asked.end();
        assert!(open.await.is_err(), "nobody answers any more");
        assert!(asked.ask("4").is_none());
    }
}
