//! How a run begins: it is recorded and announced, what a session left open is settled, and what
//! the person says is added.

use crate::{
    calls::OpenCall,
    driver::{Driver, full_name},
    panics,
    steering::says_something,
    stop::Stop,
};
use belljar_types::{EventKind, Mode, Model, Origin, Part, Record, StopReason};

impl Driver {
    pub(crate) async fn open_run(&mut self, model: &dyn Model) -> Result<(), Stop> {
        self.check_request()?;
        self.look_at_window(model);
        self.refresh_tools();
        let model = full_name(model);
        self.session
            .append(Record::RunStarted {
                model: model.clone(),
                mode: self.request.mode,
                permission_mode: self.request.permission_mode,
            })
            .await?;
        self.recorded = true;
        self.open = self.request.pending.drain(..).map(OpenCall::resumed).collect();
        self.events
            .emit(EventKind::Start {
                session: self.session.id().to_owned(),
                model: model.clone(),
                workspace: self.request.workspace.clone(),
                mode: self.request.mode,
                permission_mode: self.request.permission_mode,
                tools: self.offered.tools.iter().map(|tool| tool.name.clone()).collect(),
            })
            .await;
        for message in std::mem::take(&mut self.offered.notices) {
            self.notice(message).await;
        }
        self.hook_session_start(&model).await?;
        self.load_active_skills().await?;
        self.run_calls().await?;
        self.add_prompt().await
    }

    /// What can be said before anything is done.
    fn check_request(&self) -> Result<(), Stop> {
        let invalid = |why: String| {
            let message = format!("this conversation cannot be continued: {why}");
            Err(Stop::failed(StopReason::SessionError, "session", message))
        };
        let pending = &self.request.pending;
        if pending.is_empty() {
            if let Err(violation) = self.conversation.check() {
                return invalid(violation);
            }
        } else {
            match self.conversation.open_calls() {
                Err(violation) => return invalid(violation),
                Ok(open)
                    if !open.iter().copied().eq(pending.iter().map(|pending| &pending.call)) =>
                {
                    return invalid("its open calls are not the pending ones".to_owned());
                }
                Ok(_) => {}
            }
        }
        if self.request.mode == Mode::Do && self.request.plan.is_none() {
            return Err(Stop::failed(
                StopReason::StreamError,
                "request",
                "there is no plan to carry out: give one with `--plan FILE`",
            ));
        }
        Ok(())
    }

    /// Reads the skills again that were loaded before.
    async fn load_active_skills(&mut self) -> Result<(), Stop> {
        let names = std::mem::take(&mut self.request.active_skills);
        let Some(skills) = self.request.skills.clone() else { return Ok(()) };
        for name in names {
            let loaded = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(Stop::canceled()),
                loaded = panics::catch_async(skills.load(&name)) => loaded,
            };
            match loaded.and_then(|loaded| loaded) {
                Ok(skill) => self.skills.push(skill),
                Err(why) => self.notice(format!("the skill `{name}` is not active: {why}")).await,
            }
        }
        Ok(())
    }

    async fn add_prompt(&mut self) -> Result<(), Stop> {
        let mut parts: Vec<Part> =
            std::mem::take(&mut self.request.prompt).into_iter().filter(says_something).collect();
        if parts.is_empty()
            && let (Mode::Do, Some(plan)) = (self.request.mode, &self.request.plan)
        {
            parts = vec![Part::text(&plan.task, Origin::Person)];
            parts.retain(says_something);
        }
        if !parts.is_empty() {
            if let Some(reason) = self.hook_user_prompt(&parts).await? {
                let message = format!("a hook refused the prompt: {reason}");
                return Err(Stop::new(StopReason::Ended, message));
            }
            return self.append_said(parts).await;
        }
        if self.conversation.messages().is_empty() {
            return Err(Stop::failed(
                StopReason::StreamError,
                "request",
                "there is nothing to answer: give a prompt",
            ));
        }
        Ok(())
    }
}
