//! `give_answer`: the final answer, in the form that was asked for.

use super::{Outcome, told};
use crate::{AnswerForm, driver::Driver, stop::Stop};
use belljar_types::StopReason;
use serde_json::{Map, Value, json};

/// The argument that holds an answer that is no object.
const ANSWER: &str = "answer";

/// How many times the model is reminded of the form.
const REMINDERS: u32 = 2;

const REMINDER: &str = "Your answer is read only where it is given with the tool `give_answer`. \
                        Call it now, with the whole answer.";

/// The schema of the arguments: the form itself where that is an object's.
pub(super) fn arguments_schema(form: Option<&Value>) -> Value {
    let Some(form) = form else { return json!({"type": "object"}) };
    if is_object(form) {
        return form.clone();
    }
    let mut inner = form.clone();
    let mut outer = json!({"type": "object", "required": [ANSWER], "additionalProperties": false});
    // What the form refers to by `#/$defs/…` is looked for at the root.
    for shared in ["$defs", "definitions", "$schema"] {
        if let Some(moved) = inner.as_object_mut().and_then(|form| form.remove(shared)) {
            outer[shared] = moved;
        }
    }
    outer["properties"] = json!({ ANSWER: inner });
    outer
}

fn is_object(form: &Value) -> bool {
    form.get("type").is_some_and(|kind| kind == "object")
}

impl Driver {
    /// The error says what is wrong with the answer.
    pub(super) fn give_answer(
        &mut self,
        arguments: &Map<String, Value>,
    ) -> Result<Outcome, String> {
        let Some(form) = &self.request.answer_form else {
            return Err("no answer of this kind is asked for".to_owned());
        };
        let answer = if is_object(form.schema()) {
            Value::Object(arguments.clone())
        } else {
            let missing = || format!("`{ANSWER}` is missing: it holds the whole answer");
            arguments.get(ANSWER).cloned().ok_or_else(missing)?
        };
        form.check(&answer)?;
        self.answered = Some(answer.to_string());
        Ok(told("your answer is taken"))
    }

    /// What becomes of a turn that the model ended in text.
    pub(crate) fn take_text_as_answer(&mut self, form: &dyn AnswerForm) -> Result<(), Stop> {
        // Many models write what they were asked for as text.
        let answer = serde_json::from_str::<Value>(self.said.trim());
        if answer.is_ok_and(|answer| form.check(&answer).is_ok()) {
            self.said = self.said.trim().to_owned();
            return if self.steering.close_if_empty() { Err(Stop::completed()) } else { Ok(()) };
        }
        self.unanswered += 1;
        if self.unanswered > REMINDERS {
            return Err(Stop::failed(
                StopReason::StreamError,
                "answer",
                "the model gave no answer that fits the schema; ask again, or with another model",
            ));
        }
        self.reminders.push(REMINDER.to_owned());
        Ok(())
    }
}
