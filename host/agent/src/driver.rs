//! The rounds of one run, from its start to its one stop.
//!
//! The driver holds the state of the run; asking the model is in `answer`, running calls in
//! `calls`. Whatever ends the run, also a panic, comes back here as a [`Stop`], and the end is
//! the same for all: open calls get results, the session is closed, the stop event is the last.

use crate::{
    Agent, Finished, RunRequest, answer::Answer, calls::OpenCall, denials::Denials,
    emitter::Emitter, panics, refusals::Refusals, session::Session, stop::Stop,
    unknown::UnknownCalls,
};
use belljar_types::{
    AssistantMessage, Content, Conversation, EventKind, FinishReason, Message, Model, Part, Record,
    StopReason, Usage, UserMessage,
};
use std::{
    collections::{HashSet, VecDeque},
    convert::Infallible,
    sync::Arc,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the model reads after an answer of its that was cut by its length limit.
const GO_ON: &str = "Your last answer was cut off by the length limit. Go on exactly where it \
                     stopped, without repeating it, and be brief.";

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) agent: Agent,
    pub(crate) request: RunRequest,
    pub(crate) events: Emitter,
    pub(crate) session: Session,
    pub(crate) cancel: CancellationToken,
    end: CancellationToken,
    started_at: Instant,
    /// Whether the session knows of this run.
    recorded: bool,
    pub(crate) conversation: Conversation,
    /// Every call id of the conversation.
    pub(crate) call_ids: HashSet<String>,
    /// The calls of the last message that have no result yet, in order.
    pub(crate) open: VecDeque<OpenCall>,
    pub(crate) round: u32,
    /// Of all requests that are over.
    pub(crate) usage: Usage,
    pub(crate) denials: Denials,
    pub(crate) unknown: UnknownCalls,
    pub(crate) refusals: Refusals,
    /// For the next request only.
    pub(crate) reminders: Vec<String>,
    length_cuts: u32,
    pauses: u32,
    /// The text of the latest answer.
    said: String,
    /// Whether the next answer goes on where the latest one broke off.
    continues: bool,
}

impl Driver {
    pub(crate) fn new(
        agent: Agent,
        mut request: RunRequest,
        events: Emitter,
        cancel: CancellationToken,
        end: CancellationToken,
    ) -> Self {
        let conversation = std::mem::take(&mut request.conversation);
        Self {
            session: Session::new(agent.journal.clone()),
            agent,
            request,
            events,
            cancel,
            end,
            started_at: Instant::now(),
            recorded: false,
            call_ids: call_ids(&conversation),
            conversation,
            open: VecDeque::new(),
            round: 0,
            usage: Usage::default(),
            denials: Denials::default(),
            unknown: UnknownCalls::default(),
            refusals: Refusals::default(),
            reminders: Vec::new(),
            length_cuts: 0,
            pauses: 0,
            said: String::new(),
            continues: false,
        }
    }

    /// The whole run.
    pub(crate) async fn run(mut self) -> Finished {
        let stop = match panics::catch_async(self.rounds()).await {
            Ok(Err(stop)) => stop,
            Err(panic) => Stop::panicked(&panic),
        };
        self.close(stop).await
    }

    async fn rounds(&mut self) -> Result<Infallible, Stop> {
        let Some(model) = self.agent.model.clone() else {
            return Err(Stop::failed(
                StopReason::StreamError,
                "configuration",
                "no model is set: name one with `--model PROVIDER/NAME`",
            ));
        };
        self.open_run(model.as_ref()).await?;
        loop {
            self.check_limits()?;
            self.round += 1;
            self.events.set_iteration(self.round);
            self.events.emit(EventKind::RoundStart).await;
            self.tell_news().await;
            let answer = self.ask(model.as_ref()).await?;
            self.take_answer(answer).await?;
            self.run_calls().await?;
            self.check_cancel()?;
            self.judge_round()?;
        }
    }

    /// Tells what changed about the tools since the last round.
    async fn tell_news(&mut self) {
        let toolbox = self.agent.toolbox.clone();
        let news = tokio::select! {
            biased;
            // The round itself sees the cancel.
            () = self.cancel.cancelled() => return,
            news = panics::catch_async(toolbox.news()) => news,
        };
        let news = news.unwrap_or_else(|panic| {
            vec![format!("looking for new tools panicked, which is a bug: {panic}")]
        });
        for message in news {
            self.events.emit(EventKind::Notice { message }).await;
        }
    }

    /// Records and announces the run, and adds what the person said.
    async fn open_run(&mut self, model: &dyn Model) -> Result<(), Stop> {
        if let Err(violation) = self.conversation.check() {
            return Err(Stop::failed(
                StopReason::SessionError,
                "session",
                format!("this conversation cannot be continued: {violation}"),
            ));
        }
        let model = full_name(model);
        let tools = self.agent.toolbox.tools();
        self.session
            .append(Record::RunStarted {
                model: model.clone(),
                mode: self.request.mode,
                permission_mode: self.request.permission_mode,
            })
            .await?;
        self.recorded = true;
        self.events
            .emit(EventKind::Start {
                session: self.session.id().to_owned(),
                model,
                workspace: self.request.workspace.clone(),
                mode: self.request.mode,
                permission_mode: self.request.permission_mode,
                tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            })
            .await;
        let parts: Vec<Part> =
            std::mem::take(&mut self.request.prompt).into_iter().filter(says_something).collect();
        if !parts.is_empty() {
            self.append(Message::User(UserMessage { parts })).await?;
        } else if self.conversation.messages().is_empty() {
            return Err(Stop::failed(
                StopReason::StreamError,
                "request",
                "there is nothing to answer: give a prompt",
            ));
        }
        Ok(())
    }

    /// What is looked at before each round. A round that may not run is not announced.
    fn check_limits(&self) -> Result<(), Stop> {
        self.check_cancel()?;
        if self.end.is_cancelled() {
            return Err(Stop::new(StopReason::Ended, "the program that runs the agent ended it"));
        }
        let limit = self.agent.settings.max_turns;
        if self.round >= limit {
            return Err(Stop::new(
                StopReason::MaxIterations,
                format!("the limit of {limit} rounds is reached; raise it with `--max-turns N`"),
            ));
        }
        Ok(())
    }

    /// Appends an answer and decides whether the run goes on after it.
    async fn take_answer(&mut self, answer: Answer) -> Result<(), Stop> {
        let Answer { message, finish } = answer;
        let has_calls = message.as_ref().is_some_and(|message| message.calls().next().is_some());
        let has_text = message.as_ref().is_some_and(|message| !message.text().is_empty());
        match message {
            Some(message) => self.append_answer(message, finish).await?,
            None if !self.continues => self.said.clear(),
            None => {}
        }
        self.length_cuts = if finish == FinishReason::Length { self.length_cuts + 1 } else { 0 };
        self.pauses = if finish == FinishReason::Pause && !has_calls { self.pauses + 1 } else { 0 };
        self.continues = matches!(finish, FinishReason::Length | FinishReason::Pause) && !has_calls;
        match finish {
            FinishReason::Refused => {
                Err(Stop::new(StopReason::Refused, "the model refused to answer"))
            }
            FinishReason::Stop if has_calls => Ok(()),
            FinishReason::Stop => {
                if !has_text {
                    let message = "the model ended its turn without an answer".to_owned();
                    self.events.emit(EventKind::Notice { message }).await;
                }
                Err(Stop::completed())
            }
            FinishReason::Length => {
                if !has_calls {
                    self.reminders.push(GO_ON.to_owned());
                }
                Ok(())
            }
            FinishReason::Pause if self.pauses > self.agent.settings.pause_limit => Err(Stop::new(
                StopReason::Truncated,
                format!("the model paused its turn {} times without an answer", self.pauses),
            )),
            FinishReason::Pause => Ok(()),
        }
    }

    /// What is looked at when a round's calls are through.
    fn judge_round(&self) -> Result<(), Stop> {
        if self.unknown.reached(self.agent.settings.unknown_tool_limit) {
            return Err(Stop::new(StopReason::UnknownToolLimit, self.unknown.message()));
        }
        if self.length_cuts >= self.agent.settings.length_cut_limit {
            return Err(Stop::new(
                StopReason::Truncated,
                format!(
                    "the model's answer was cut by its length limit {} times running; \
                     ask for less at once",
                    self.length_cuts
                ),
            ));
        }
        Ok(())
    }

    /// Appends what the model said, announces its text, and opens its calls.
    pub(crate) async fn append_answer(
        &mut self,
        message: AssistantMessage,
        finish: FinishReason,
    ) -> Result<(), Stop> {
        let text = message.text();
        let calls: Vec<_> = message.calls().cloned().collect();
        self.append(Message::Assistant(message)).await?;
        self.call_ids.extend(calls.iter().map(|call| call.id.clone()));
        let last = calls.len().saturating_sub(1);
        self.open = calls
            .into_iter()
            .enumerate()
            .map(|(index, call)| {
                OpenCall::new(call, finish == FinishReason::Length && index == last)
            })
            .collect();
        if !self.continues {
            self.said.clear();
        }
        self.said.push_str(&text);
        if !text.is_empty() {
            self.events.emit(EventKind::AssistantText { text }).await;
        }
        Ok(())
    }

    /// Writes a message to the session, then to the conversation.
    async fn append(&mut self, message: Message) -> Result<(), Stop> {
        let message = Arc::new(message);
        self.session.append(Record::Message { message: message.clone() }).await?;
        self.conversation.push(message);
        Ok(())
    }

    /// The end of every run.
    async fn close(mut self, mut stop: Stop) -> Finished {
        if let Err(worse) = self.settle_open_calls(stop.reason).await {
            stop = worse;
        }
        if self.recorded && stop.reason != StopReason::SessionError {
            let record = Record::Stopped { reason: stop.reason, message: stop.message.clone() };
            if let Err(error) = self.session.append(record).await {
                stop = error.into();
            }
        }
        if let Some(error) = stop.error {
            let kind = error.kind.to_owned();
            self.events.emit(EventKind::Error { kind, message: error.message }).await;
        }
        let last = EventKind::Stop {
            reason: stop.reason,
            message: stop.message.clone(),
            turns: self.round,
            duration_ms: u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: self.usage,
            result: self.said.clone(),
            denials: self.denials.count(),
            denied: self.denials.kinds(),
            session: self.session.id().to_owned(),
        };
        self.events.finish(last).await;
        Finished {
            conversation: self.conversation,
            reason: stop.reason,
            message: stop.message,
            result: self.said,
            turns: self.round,
            usage: self.usage,
            denials: self.denials.count(),
        }
    }

    pub(crate) fn check_cancel(&self) -> Result<(), Stop> {
        if self.cancel.is_cancelled() { Err(Stop::canceled()) } else { Ok(()) }
    }
}

/// `provider/name`.
pub(crate) fn full_name(model: &dyn Model) -> String {
    format!("{}/{}", model.provider(), model.name())
}

fn says_something(part: &Part) -> bool {
    !matches!(&part.content, Content::Text { text } if text.trim().is_empty())
}

fn call_ids(conversation: &Conversation) -> HashSet<String> {
    conversation
        .messages()
        .iter()
        .filter_map(|message| match message.as_ref() {
            Message::Assistant(assistant) => Some(assistant),
            _ => None,
        })
        .flat_map(|assistant| assistant.calls().map(|call| call.id.clone()))
        .collect()
}
