//! `ask_person`: a question of the model's own. Its answer allows nothing.

use super::Outcome;
use crate::{driver::Driver, stop::Stop};
use belljar_types::{
    EventKind, Origin, PersonQuestion, ToolCall, ToolError, ToolErrorKind, ToolOutput,
};

impl Driver {
    pub(super) async fn ask_a_question(
        &mut self,
        call: &ToolCall,
        text: String,
        options: Vec<String>,
    ) -> Result<Outcome, Stop> {
        let agent = self.request.agent.clone();
        let question = PersonQuestion { call_id: call.id.clone(), agent, text, options };
        self.events
            .emit(EventKind::Approval {
                call_id: call.id.clone(),
                tool: call.tool.clone(),
                question: question.text.clone(),
                options: question.options.clone(),
            })
            .await;
        self.hook_notification(&question.text).await?;
        let approver = self.agent.approver.clone();
        let answer = match self.ask_panic_safe(approver.answer(&question)).await? {
            Ok(answer) => answer.filter(|answer| !answer.trim().is_empty()),
            Err(panic) => {
                self.notice(format!("asking the person panicked, which is a bug: {panic}")).await;
                None
            }
        };
        let by = if answer.is_some() { "person" } else { "mode" };
        self.events
            .emit(EventKind::ApprovalAnswer {
                call_id: call.id.clone(),
                answer: answer.clone().unwrap_or_default(),
                by: by.to_owned(),
            })
            .await;
        Ok(match answer {
            Some(answer) => (Ok(ToolOutput::text(answer)), Origin::Person),
            None => {
                let message = "nobody is there to answer: choose what is most likely meant, go \
                               on, and say in your answer what you assumed";
                (Err(ToolError::new(ToolErrorKind::Unavailable, message)), Origin::Host)
            }
        })
    }
}
