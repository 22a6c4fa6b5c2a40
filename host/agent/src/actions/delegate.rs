//! `delegate`: a run of its own below this one.
//!
//! It has the same toolbox, so its calls get no more than this run's; the same hooks and the same
//! person see them. Its records and events go into this run's session and stream, under its name.

use super::{Outcome, failed};
use crate::{
    Agent, Delegation, Finished, RunRequest, Settings, driver::Driver, hooking::input,
    run::start_below, stop::Stop,
};
use async_trait::async_trait;
use belljar_types::{
    Event, EventKind, HookPoint, Journal, JournalError, Mode, Origin, Part, Record, StopReason,
    ToolCall, ToolErrorKind, ToolOutput,
};
use futures::StreamExt;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// How much sooner than its parent a subagent leaves stuck calls behind.
const SOONER: Duration = Duration::from_millis(15);
/// Characters of a name.
const NAME: usize = 24;

impl Driver {
    pub(super) async fn delegate(
        &mut self,
        call: &ToolCall,
        task: String,
        name: Option<&str>,
    ) -> Result<Outcome, Stop> {
        let limits = self.agent.settings.actions.delegate.unwrap_or_default();
        let name = self.subagent_name(name);
        let agent = self.subagent(call, &name, limits);
        let request = self.subtask(task, name.clone());
        let mut run = start_below(agent, request, self.depth + 1);
        while let Some(event) = run.next().await {
            self.forward(event).await;
        }
        let Ok(finished) = run.finish().await else {
            return Ok(failed(ToolErrorKind::Failed, "the helper was lost"));
        };
        self.usage.add(finished.usage);
        if finished.reason == StopReason::SessionError {
            let failure = JournalError { message: finished.message };
            self.session.fail(failure.clone());
            return Err(failure.into());
        }
        self.check_cancel()?;
        let about = input([
            ("subagent", name.as_ref().into()),
            ("reason", json!(finished.reason)),
            ("result", finished.result.as_str().into()),
        ]);
        self.hook(HookPoint::SubagentStop, about).await?;
        Ok(outcome(finished))
    }

    /// Its name below this agent's, different from all others.
    fn subagent_name(&mut self, name: Option<&str>) -> Arc<str> {
        let wanted: String = name
            .unwrap_or_default()
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
            .take(NAME)
            .collect();
        let wanted = if wanted.is_empty() { "helper".to_owned() } else { wanted };
        let count = self.subagents.entry(wanted.clone()).or_default();
        *count += 1;
        let own = if *count == 1 { wanted } else { format!("{wanted}.{count}") };
        match &self.request.agent {
            Some(parent) => format!("{parent}/{own}").into(),
            None => own.into(),
        }
    }

    fn subagent(&self, call: &ToolCall, name: &Arc<str>, limits: Delegation) -> Agent {
        let settings = &self.agent.settings;
        let journal = Below {
            journal: self.session.journal(),
            call_id: call.id.clone(),
            agent: name.clone(),
        };
        Agent {
            journal: Arc::new(journal),
            settings: Settings {
                max_turns: limits.max_turns,
                last_answer: true,
                cancel_grace: settings.cancel_grace.saturating_sub(SOONER),
                ..settings.clone()
            },
            ..self.agent.clone()
        }
    }

    fn subtask(&self, task: String, name: Arc<str>) -> RunRequest {
        let parent = &self.request;
        RunRequest {
            mode: if parent.mode == Mode::Plan { Mode::Plan } else { Mode::Chat },
            permission_mode: parent.permission_mode,
            workspace: parent.workspace.clone(),
            system: parent.system.clone(),
            chain: parent.chain.clone(),
            hooks: parent.hooks.clone(),
            skills: parent.skills.clone(),
            agent: Some(name),
            cancel: self.cancel.child_token(),
            ..RunRequest::new(vec![Part::text(task, Origin::Model)])
        }
    }

    /// Shows what a subagent tells. Its start and its stop are the call's own, and its totals are
    /// this run's.
    async fn forward(&mut self, mut event: Event) {
        match &mut event.kind {
            EventKind::Start { .. } | EventKind::Stop { .. } => return,
            EventKind::Usage { total, .. } => {
                let mut whole = self.usage;
                whole.add(*total);
                *total = whole;
            }
            EventKind::ToolResult(result) => self.denials.note(result),
            _ => {}
        }
        self.events.forward(event).await;
    }
}

fn outcome(finished: Finished) -> Outcome {
    let Finished { reason, message, result, .. } = finished;
    let answered = matches!(reason, StopReason::Completed | StopReason::MaxIterations);
    if answered && !result.trim().is_empty() {
        let note = match reason {
            StopReason::MaxIterations => "\n[the helper had no rounds left]",
            _ => "",
        };
        return (Ok(ToolOutput::text(format!("{result}{note}"))), Origin::Model);
    }
    let name = serde_json::to_string(&reason).unwrap_or_default();
    let name = name.trim_matches('"').replace('_', " ");
    let why = if message.is_empty() { String::new() } else { format!(": {message}") };
    let said =
        if result.trim().is_empty() { String::new() } else { format!("; it said: {result}") };
    failed(ToolErrorKind::Failed, format!("the helper gave no answer ({name}{why}){said}"))
}

/// A session inside its parent's.
#[derive(Debug)]
struct Below {
    journal: Arc<dyn Journal>,
    call_id: String,
    agent: Arc<str>,
}

#[async_trait]
impl Journal for Below {
    fn session(&self) -> &str {
        self.journal.session()
    }

    async fn append(&self, record: &Record) -> Result<(), JournalError> {
        let (call_id, agent) = (self.call_id.clone(), self.agent.clone());
        let inner = Box::new(record.clone());
        self.journal.append(&Record::Subagent { call_id, agent, inner }).await
    }
}
