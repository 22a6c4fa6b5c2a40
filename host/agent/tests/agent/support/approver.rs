//! A person who answers from a list, and is not there when it is used up.

use async_trait::async_trait;
use belljar_types::{ApprovalAnswer, ApprovalQuestion, Approver};
use std::{collections::VecDeque, sync::Mutex, time::Duration};

#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Answers(ApprovalAnswer),
    AnswersAfter(Duration, ApprovalAnswer),
    Nobody,
    Panics,
}

#[derive(Debug, Default)]
pub(crate) struct ScriptedApprover {
    answers: Mutex<VecDeque<Asked>>,
    questions: Mutex<Vec<ApprovalQuestion>>,
}

impl ScriptedApprover {
    pub(crate) fn new(answers: Vec<Asked>) -> Self {
        Self { answers: Mutex::new(answers.into()), questions: Mutex::default() }
    }

    pub(crate) fn questions(&self) -> Vec<ApprovalQuestion> {
        self.questions.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for ScriptedApprover {
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        self.questions.lock().unwrap().push(question.clone());
        let asked = self.answers.lock().unwrap().pop_front().unwrap_or(Asked::Nobody);
        match asked {
            Asked::Answers(answer) => Some(answer),
            Asked::AnswersAfter(time, answer) => {
                tokio::time::sleep(time).await;
                Some(answer)
            }
            Asked::Nobody => None,
            Asked::Panics => panic!("the terminal is broken"),
        }
    }
}
