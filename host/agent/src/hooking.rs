//! The loop's side of hooks: what they read at each point, and what becomes of what they say.
//!
//! A hook refuses or narrows. There is no way from here to an allowance: changed arguments go
//! through the toolbox again, a refusal is a `denied` result, and all else are words.

use crate::{driver::Driver, panics, stop::Stop};
use belljar_types::{
    Content, EventKind, HookPoint, HookReport, Part, Receipt, StopReason, ToolCall, ToolResult,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) fn input<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Driver {
    /// Asks the hooks of a point, tells people what they are to know, and keeps what the model is
    /// to read. A hook that breaks the host's own code refuses: it could not say otherwise.
    pub(crate) async fn hook(
        &mut self,
        point: HookPoint,
        mut input: Map<String, Value>,
    ) -> Result<HookReport, Stop> {
        let Some(hooks) = self.request.hooks.clone().filter(|hooks| hooks.has(point)) else {
            return Ok(HookReport::default());
        };
        if let Some(agent) = &self.request.agent {
            input.insert("agent".to_owned(), agent.as_ref().into());
        }
        let asked = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::canceled()),
            asked = panics::catch_async(hooks.run(point, &input)) => asked,
        };
        let mut report = asked.unwrap_or_else(|panic| HookReport {
            blocked: Some(format!("the `{point}` hooks could not be asked")),
            notices: vec![format!("running `{point}` hooks panicked, which is a bug: {panic}")],
            ..HookReport::default()
        });
        for message in std::mem::take(&mut report.notices) {
            self.events.emit(EventKind::Notice { message }).await;
        }
        let context = std::mem::take(&mut report.context);
        match point {
            HookPoint::SessionStart | HookPoint::UserPrompt => self.context.extend(context),
            _ => self.reminders.extend(context),
        }
        if let Some(reason) = &report.end {
            let ends = !matches!(
                point,
                HookPoint::Notification | HookPoint::Stop | HookPoint::SubagentStop
            );
            if ends {
                return Err(Stop::new(StopReason::Ended, reason.clone()));
            }
            self.notice(format!("a `{point}` hook cannot end the run: {reason}")).await;
        }
        let has_nothing_to_refuse = matches!(
            point,
            HookPoint::SessionStart
                | HookPoint::Notification
                | HookPoint::Stop
                | HookPoint::SubagentStop
        );
        if has_nothing_to_refuse && let Some(reason) = report.blocked.take() {
            self.notice(format!("a `{point}` hook objects: {reason}")).await;
        }
        Ok(report)
    }

    /// A run begins. Of subagents their parent's hooks know already.
    pub(crate) async fn hook_session_start(&mut self, model: &str) -> Result<(), Stop> {
        if self.depth > 0 {
            return Ok(());
        }
        let request = &self.request;
        let input = input([
            ("model", model.into()),
            ("mode", json!(request.mode)),
            ("permission_mode", json!(request.permission_mode)),
        ]);
        self.hook(HookPoint::SessionStart, input).await.map(|_| ())
    }

    /// Why what a person said is refused, if it is.
    pub(crate) async fn hook_user_prompt(
        &mut self,
        parts: &[Part],
    ) -> Result<Option<String>, Stop> {
        if self.depth > 0 {
            return Ok(None);
        }
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match &part.content {
                Content::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let input = input([("prompt", texts.join("\n").into())]);
        Ok(self.hook(HookPoint::UserPrompt, input).await?.blocked)
    }

    /// A call is about to be decided on.
    pub(crate) async fn hook_pre_tool(
        &mut self,
        call: &ToolCall,
        plugin: &Arc<str>,
    ) -> Result<HookReport, Stop> {
        let input = input([
            ("call_id", call.id.as_str().into()),
            ("tool", call.tool.as_str().into()),
            ("plugin", plugin.as_ref().into()),
            ("arguments", json!(call.arguments)),
        ]);
        self.hook(HookPoint::PreTool, input).await
    }

    /// A call is over. What a hook objects to is told to the model: the call is not undone.
    pub(crate) async fn hook_post_tool(
        &mut self,
        result: &ToolResult,
        receipt: Option<&Receipt>,
    ) -> Result<(), Stop> {
        let input = input([("result", json!(result)), ("receipt", json!(receipt))]);
        if let Some(reason) = self.hook(HookPoint::PostTool, input).await?.blocked {
            let call = &result.call_id;
            self.reminders.push(format!(
                "After the call `{call}` of `{}` a check of the person's objects: {reason}",
                result.tool
            ));
        }
        Ok(())
    }

    /// A person is about to be asked.
    pub(crate) async fn hook_notification(&mut self, message: &str) -> Result<(), Stop> {
        self.hook(HookPoint::Notification, input([("message", message.into())])).await.map(|_| ())
    }

    /// The run is over. Where it was cancelled nobody waits for the hooks.
    pub(crate) async fn hook_stop(&mut self, stop: &Stop) {
        if self.depth > 0 || !self.recorded {
            return;
        }
        let input =
            input([("reason", json!(stop.reason)), ("message", stop.message.as_str().into())]);
        if !self.cancel.is_cancelled() {
            // A cancel while they run ends them.
            let _ = self.hook(HookPoint::Stop, input).await;
            return;
        }
        if let Some(hooks) = self.request.hooks.clone().filter(|hooks| hooks.has(HookPoint::Stop)) {
            tokio::spawn(async move { hooks.run(HookPoint::Stop, &input).await });
        }
    }
}
