//! Making the request of a round: what is true in it, through the chain, until it fits.

use crate::{ProcessorError, Round, chain::share, driver::Driver, stop::Stop};
use belljar_types::{Model, ModelRequest, StopReason, SystemPrompt};

/// A request that was made.
enum Made {
    Fits(ModelRequest, u64),
    TooLarge { tokens: u64, room: u64 },
}

impl Driver {
    /// The request of this round, made from the conversation as it is now; older messages make
    /// room where they must.
    pub(crate) async fn make_request(
        &mut self,
        model: &dyn Model,
        reminders: &[String],
    ) -> Result<ModelRequest, Stop> {
        self.look_at_window(model);
        let system = self.system().await?;
        self.refresh_tools();
        loop {
            match self.run_chain(&system, reminders).await? {
                Made::Fits(request, tokens) => {
                    let at = self.agent.settings.compaction.at;
                    let is_full = self.room.window.is_some_and(|window| tokens > share(window, at));
                    // What it is made of is not held while the conversation changes.
                    if !is_full || !self.compact(model, tokens).await? {
                        return Ok(request);
                    }
                }
                Made::TooLarge { tokens, room } => {
                    if !self.compact(model, tokens).await? && !self.truncate(tokens, room).await? {
                        return Err(self.no_room(tokens, room));
                    }
                }
            }
        }
    }

    /// Takes note of the model's window, or of the part of it that is to be used.
    pub(crate) fn look_at_window(&mut self, model: &dyn Model) {
        self.room.window = match (self.agent.settings.context_window, model.context_window()) {
            (Some(set), Some(known)) => Some(set.min(known)),
            (set, known) => set.or(known),
        };
    }

    /// The system prompt of this round, its stable part being that of the first one.
    async fn system(&mut self) -> Result<SystemPrompt, Stop> {
        let source = self.request.system.clone();
        let mut system = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::canceled()),
            system = source.system(self.round) => system,
        };
        system.stable = self.stable.get_or_insert(system.stable).clone();
        Ok(system)
    }

    async fn run_chain(&self, system: &SystemPrompt, reminders: &[String]) -> Result<Made, Stop> {
        let round = Round {
            number: self.round,
            mode: self.request.mode,
            permission_mode: self.request.permission_mode,
            system,
            conversation: &self.conversation,
            tools: &self.offered.tools,
            deferred: self.offered.deferred.len(),
            skills: &self.skills,
            plan: self.request.plan.as_ref(),
            notes: self.notes.as_deref(),
            context: &self.context,
            reminders,
            window: self.room.window,
            settings: &self.agent.settings,
            conversation_tokens: self.conversation_tokens,
            tools_tokens: self.offered.tokens,
        };
        let empty = ModelRequest {
            max_output_tokens: self.agent.settings.max_output_tokens,
            ..ModelRequest::default()
        };
        let made = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::canceled()),
            made = self.request.chain.run(empty, &round) => made,
        };
        let failed = |why: String| Stop::failed(StopReason::StreamError, "processor", why);
        match made {
            Ok(request) => {
                if !request.conversation.is_shared_with(&self.conversation) {
                    request.conversation.check().map_err(|violation| {
                        failed(format!(
                            "a processor made a conversation no model takes: {violation}"
                        ))
                    })?;
                }
                let tokens = round.tokens_of(&request);
                Ok(Made::Fits(request, tokens))
            }
            Err(ProcessorError::TooLarge { tokens, room }) => Ok(Made::TooLarge { tokens, room }),
            Err(ProcessorError::Failed(why)) => {
                Err(failed(format!("the request to the model cannot be made: {why}")))
            }
        }
    }
}
