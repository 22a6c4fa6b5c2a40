//! The processors that every run has.

use super::{Processor, ProcessorError, Round};
use async_trait::async_trait;
use belljar_types::{LoadedSkill, Mode, ModelRequest};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

pub(super) const WINDOW: &str = "window";

/// The whole of what plan mode asks of the model.
const PLAN_MODE: &str = "You are in plan mode. Nothing may be changed: only tools that read are \
    there, and what they see cannot be written. Look at what the task needs, ask the person where \
    it leaves something open, and end with the plan as your answer: what you will do, in which \
    order, on which files, and how one sees that it worked. It is carried out only once the person \
    has confirmed it. Do not ask whether to begin.";

const PLAN_MODE_SHORT: &str =
    "You are still in plan mode: only read, change nothing, and end with the plan.";

pub(super) fn all() -> Vec<Arc<dyn Processor>> {
    vec![
        Arc::new(System),
        Arc::new(Environment),
        Arc::new(History),
        Arc::new(Tools),
        Arc::new(PlanText),
        Arc::new(Reminder),
        Arc::new(Window),
    ]
}

/// The stable part of the system prompt.
#[derive(Debug)]
struct System;

#[async_trait]
impl Processor for System {
    fn name(&self) -> &str {
        "system"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        request.system.stable = round.system.stable.clone();
        Ok(request)
    }
}

/// What is true in this round: what the source says, what hooks said, loaded skills.
#[derive(Debug)]
struct Environment;

#[async_trait]
impl Processor for Environment {
    fn name(&self) -> &str {
        "environment"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        let environment = &mut request.system.environment;
        environment.push_str(&round.system.environment);
        if round.deferred > 0 {
            environment.push_str(&format!(
                "\n{} more tools are there that are not listed: `find_tools` finds them.\n",
                round.deferred
            ));
        }
        for text in round.context {
            environment.push_str(&block("hook", "", text));
        }
        for skill in round.skills {
            environment.push_str(&skill_block(skill));
        }
        Ok(request)
    }
}

/// The conversation.
#[derive(Debug)]
struct History;

#[async_trait]
impl Processor for History {
    fn name(&self) -> &str {
        "history"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        request.conversation = round.conversation.clone();
        Ok(request)
    }
}

#[derive(Debug)]
struct Tools;

#[async_trait]
impl Processor for Tools {
    fn name(&self) -> &str {
        "tools"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        request.tools = round.tools.clone();
        Ok(request)
    }
}

/// The plan that is carried out, and the one that the model noted.
#[derive(Debug)]
struct PlanText;

#[async_trait]
impl Processor for PlanText {
    fn name(&self) -> &str {
        "plan"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        let environment = &mut request.system.environment;
        if let (Mode::Do, Some(plan)) = (round.mode, round.plan) {
            environment.push_str(
                "\n# The plan to carry out\n\nThe person confirmed this plan. Carry it out as it \
                 stands; where that is not possible, say so before you do anything else.\n",
            );
            environment.push_str(&block("task", "", &plan.task));
            environment.push_str(&block("plan", "", &plan.text));
        }
        if let Some(notes) = round.notes {
            environment.push_str("\n# What you noted as your plan\n");
            environment.push_str(&block("notes", "", notes));
        }
        Ok(request)
    }
}

/// What the model is told in this round only.
#[derive(Debug)]
struct Reminder;

#[async_trait]
impl Processor for Reminder {
    fn name(&self) -> &str {
        "reminder"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        request.reminders.extend_from_slice(round.reminders);
        if round.mode == Mode::Plan {
            let every = round.settings.plan_reminder_every.max(1);
            let is_full = round.number <= 1 || round.number.is_multiple_of(every);
            let text = if is_full { PLAN_MODE } else { PLAN_MODE_SHORT };
            request.reminders.push(text.to_owned());
        }
        Ok(request)
    }
}

/// Refuses what would not leave room for an answer.
#[derive(Debug)]
struct Window;

#[async_trait]
impl Processor for Window {
    fn name(&self) -> &str {
        WINDOW
    }

    async fn process(
        &self,
        request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        let Some(window) = round.window else { return Ok(request) };
        let room = share(window, round.settings.compaction.truncate_at);
        let tokens = round.tokens_of(&request);
        if tokens > room { Err(ProcessorError::TooLarge { tokens, room }) } else { Ok(request) }
    }
}

/// A share of a number of tokens.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share of a window needs no more than three digits"
)]
pub(crate) fn share(window: u64, share: f64) -> u64 {
    (window as f64 * share.max(0.0)) as u64
}

fn skill_block(skill: &LoadedSkill) -> String {
    let mut tools = String::new();
    if !skill.allowed_tools.is_empty() {
        tools = format!(
            "It names these tools: {}. That allows nothing.\n",
            skill.allowed_tools.join(", ")
        );
    }
    format!("{}{tools}", block("skill", &format!(" name={:?}", skill.name), &skill.text))
}

/// A text between marks that hold a digest of it: a text does not hold its own, so that none ends
/// its block early and goes on as something else.
fn block(kind: &str, what: &str, text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let mark = format!("{:016x}", hasher.finish());
    let text = text.trim_end();
    format!("\n<{kind}{what} mark=\"{mark}\">\n{text}\n</{kind} mark=\"{mark}\">\n")
}
