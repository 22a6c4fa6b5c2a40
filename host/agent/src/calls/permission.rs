//! Asking a person about a call, where the decision is to ask.

use super::{Next, Ready, by_host};
use crate::{driver::Driver, panics, stop::Stop};
use belljar_types::{
    Action, ApprovalAnswer, ApprovalQuestion, Arguments, EventKind, PreparedCall, ToolCall,
    ToolError, ToolErrorKind,
};
use serde_json::Map;

impl Driver {
    pub(super) async fn permission(
        &mut self,
        call: ToolCall,
        prepared: Box<dyn PreparedCall>,
    ) -> Result<Next, Stop> {
        let answer = match prepared.decision().action {
            Action::Allow => {
                return Ok(Next::Run(Ready { call, prepared, answer: None, runs: true }));
            }
            Action::Deny => {
                return Ok(Next::Run(Ready { call, prepared, answer: None, runs: false }));
            }
            Action::Ask => {
                let tool = prepared.definition().name.clone();
                let none = Map::new();
                let arguments = match &call.arguments {
                    Arguments::Object(map) => map,
                    Arguments::Text(_) => &none,
                };
                if let Some(message) = self.refusals.repeated(&tool, arguments) {
                    let error = ToolError::new(ToolErrorKind::Denied, message);
                    return Ok(Next::Done(by_host(&call, error)));
                }
                let answer = self.ask_person(prepared.as_ref(), &call).await?;
                match &answer {
                    Some(ApprovalAnswer::No) => self.refusals.remember(&tool, arguments, None),
                    Some(ApprovalAnswer::NoBecause(reason)) => {
                        self.refusals.remember(&tool, arguments, Some(reason.clone()));
                    }
                    _ => {}
                }
                answer
            }
        };
        let runs = answer.as_ref().is_some_and(ApprovalAnswer::is_yes);
        Ok(Next::Run(Ready { call, prepared, answer, runs }))
    }

    async fn ask_person(
        &mut self,
        prepared: &dyn PreparedCall,
        call: &ToolCall,
    ) -> Result<Option<ApprovalAnswer>, Stop> {
        let definition = prepared.definition();
        let question = ApprovalQuestion {
            call: call.clone(),
            source: definition.source.clone(),
            hints: definition.hints,
            question: prepared.question(),
        };
        self.events
            .emit(EventKind::Approval {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                question: question.question.text.clone(),
                options: question.question.options(),
            })
            .await;
        self.hook_notification(&question.question.text).await?;
        let approver = self.agent.approver.clone();
        let asked = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::canceled()),
            asked = panics::catch_async(approver.ask(&question)) => asked,
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(panic) => {
                let message = format!("asking for approval panicked, which is a bug: {panic}");
                self.events.emit(EventKind::Notice { message }).await;
                None
            }
        };
        // Nobody there to ask: the mode's own answer is no.
        let (name, by) = answer.as_ref().map_or(("no", "mode"), |answer| (answer.name(), "person"));
        self.events
            .emit(EventKind::ApprovalAnswer {
                call_id: call.id.clone(),
                answer: name.to_owned(),
                by: by.to_owned(),
            })
            .await;
        Ok(answer)
    }
}
