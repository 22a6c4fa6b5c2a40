//! The rounds of one run, from its start to its one stop.
//!
//! The driver holds the state of the run. How a run opens is in `opening`, making and asking is in
//! `request` and `answer`, making room in `compaction`, running calls in `calls`, the loop's own
//! tools in `actions`. Whatever ends the run, also a panic, comes back here as a [`Stop`], and the
//! end is the same for all: open calls get results, what people said is kept, the session is
//! closed, the stop event is the last.

use crate::{
    Agent, Finished, RunRequest,
    actions::Offered,
    answer::Answer,
    calls::OpenCall,
    compaction::Room,
    denials::Denials,
    emitter::Emitter,
    estimate, hooking,
    memory::{self, Sources},
    panics,
    refusals::Refusals,
    repetition::{Judgement, Repetitions},
    session::Session,
    steering::Steering,
    stop::Stop,
    unknown::UnknownCalls,
};
use belljar_types::{
    AssistantMessage, AssistantPart, Conversation, EventKind, FinishReason, HookPoint, LoadedSkill,
    Message, Model, Part, Record, StopReason, Usage, UserMessage,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    convert::Infallible,
    sync::Arc,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the model reads after an answer of its that was cut by its length limit.
const GO_ON: &str = "Your last answer was cut off by the length limit. Go on exactly where it \
                     stopped, without repeating it, and be brief.";

/// What it reads when it may answer once more, and no more than that.
const LAST_ANSWER: &str = "You have no rounds left. Answer now, from what you know: no tool is run \
                           any more. Say what is done, what is not, and what comes next.";

/// What a run can be told from outside while it goes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    pub(crate) cancel: CancellationToken,
    pub(crate) end: CancellationToken,
    pub(crate) steering: Steering,
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) agent: Agent,
    pub(crate) request: RunRequest,
    /// How many agents are above this one.
    pub(crate) depth: u32,
    pub(crate) events: Emitter,
    pub(crate) session: Session,
    pub(crate) cancel: CancellationToken,
    end: CancellationToken,
    pub(crate) steering: Steering,
    started_at: Instant,
    /// Whether the session knows of this run.
    pub(crate) recorded: bool,
    pub(crate) conversation: Conversation,
    /// About how many tokens it takes.
    pub(crate) conversation_tokens: u64,
    /// Every call id that the session has seen.
    pub(crate) call_ids: HashSet<String>,
    /// The calls of the last message that have no result yet, in order.
    pub(crate) open: VecDeque<OpenCall>,
    pub(crate) round: u32,
    /// Of all requests that are over.
    pub(crate) usage: Usage,
    pub(crate) denials: Denials,
    pub(crate) unknown: UnknownCalls,
    pub(crate) refusals: Refusals,
    pub(crate) repetitions: Repetitions,
    /// For the next request only.
    pub(crate) reminders: Vec<String>,
    /// For all requests.
    pub(crate) context: Vec<String>,
    /// The stable part of the system prompt, once it is known.
    pub(crate) stable: Option<Arc<str>>,
    pub(crate) skills: Vec<LoadedSkill>,
    pub(crate) notes: Option<String>,
    pub(crate) offered: Offered,
    pub(crate) room: Room,
    /// How many subagents there were of each name.
    pub(crate) subagents: HashMap<String, u32>,
    /// Where what this run added came from.
    pub(crate) sources: Sources,
    length_cuts: u32,
    pauses: u32,
    /// The text of the latest answer.
    pub(crate) said: String,
    /// Whether the next answer goes on where the latest one broke off.
    continues: bool,
    /// The answer that was given in the form that was asked for.
    pub(crate) answered: Option<String>,
    /// How many times the model ended its turn without one.
    pub(crate) unanswered: u32,
}

impl Driver {
    pub(crate) fn new(
        agent: Agent,
        mut request: RunRequest,
        depth: u32,
        events: Emitter,
        control: Control,
    ) -> Self {
        let conversation = std::mem::take(&mut request.conversation);
        Self {
            session: Session::new(agent.journal.clone()),
            repetitions: Repetitions::new(agent.settings.repetition),
            notes: request.notes.take(),
            agent,
            request,
            depth,
            events,
            cancel: control.cancel,
            end: control.end,
            steering: control.steering,
            started_at: Instant::now(),
            recorded: false,
            call_ids: call_ids(&conversation),
            conversation_tokens: estimate::conversation(&conversation),
            conversation,
            open: VecDeque::new(),
            round: 0,
            usage: Usage::default(),
            denials: Denials::default(),
            unknown: UnknownCalls::default(),
            refusals: Refusals::default(),
            reminders: Vec::new(),
            context: Vec::new(),
            stable: None,
            skills: Vec::new(),
            offered: Offered::default(),
            room: Room::default(),
            subagents: HashMap::new(),
            sources: Sources::default(),
            length_cuts: 0,
            pauses: 0,
            said: String::new(),
            continues: false,
            answered: None,
            unanswered: 0,
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
        if self.request.only_compacts {
            return self.compact_alone(model.as_ref()).await;
        }
        loop {
            if let Err(stop) = self.check_limits() {
                if stop.reason == StopReason::MaxIterations && self.agent.settings.last_answer {
                    self.answer_once_more(model.as_ref()).await?;
                }
                return Err(stop);
            }
            self.begin_round().await?;
            let answer = self.ask(model.as_ref()).await?;
            self.take_answer(answer).await?;
            self.run_calls().await?;
            self.check_cancel()?;
            // A message that came in the meantime may change the answer.
            if let Some(answer) = self.answered.take()
                && self.steering.close_if_empty()
            {
                self.said = answer;
                return Err(Stop::completed());
            }
            self.judge_round()?;
        }
    }

    /// Announces a round and takes what waits for one.
    async fn begin_round(&mut self) -> Result<(), Stop> {
        self.round += 1;
        self.events.set_iteration(self.round);
        self.events.emit(EventKind::RoundStart).await;
        while let Some(parts) = self.steering.next() {
            self.append_steered(parts).await?;
        }
        self.hook_pre_round().await?;
        self.tell_news().await;
        Ok(())
    }

    /// Asks for an answer whose calls are left out.
    async fn answer_once_more(&mut self, model: &dyn Model) -> Result<(), Stop> {
        self.begin_round().await?;
        self.reminders.push(LAST_ANSWER.to_owned());
        let Answer { message, .. } = self.ask(model).await?;
        let Some(mut message) = message else { return Ok(()) };
        message.parts.retain(|part| matches!(part, AssistantPart::Text { .. }));
        if message.parts.is_empty() {
            return Ok(());
        }
        self.continues = false;
        self.append_answer(message, FinishReason::Stop).await
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
            self.notice(message).await;
        }
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
                if let Some(form) = self.request.answer_form.clone() {
                    return self.take_text_as_answer(form.as_ref());
                }
                if !has_text {
                    self.notice("the model ended its turn without an answer").await;
                }
                // A message that came in the meantime is answered in a round of its own.
                if self.steering.close_if_empty() { Err(Stop::completed()) } else { Ok(()) }
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
    fn judge_round(&mut self) -> Result<(), Stop> {
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
        match self.repetitions.judge() {
            Judgement::GoOn => Ok(()),
            Judgement::Remind(reminder) => {
                self.reminders.push(reminder);
                Ok(())
            }
            Judgement::Stop(message) => Err(Stop::new(StopReason::RepetitionLimit, message)),
        }
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

    /// Appends what a person said while the run was busy, unless a hook refuses it.
    async fn append_steered(&mut self, parts: Vec<Part>) -> Result<(), Stop> {
        match self.hook_user_prompt(&parts).await {
            Ok(None) => self.append_said(parts).await,
            Ok(Some(reason)) => {
                self.notice(format!("a hook refused the message: {reason}")).await;
                Ok(())
            }
            Err(stop) => {
                // It was not read: it is kept with those behind it.
                self.steering.put_back(parts);
                Err(stop)
            }
        }
    }

    /// Appends what a person said; to the conversation also where it cannot be written.
    pub(crate) async fn append_said(&mut self, parts: Vec<Part>) -> Result<(), Stop> {
        let message = Arc::new(Message::User(UserMessage { parts }));
        let written = self.session.append(Record::Message { message: message.clone() }).await;
        self.push(message);
        Ok(written?)
    }

    /// Writes a message to the session, then to the conversation.
    pub(crate) async fn append(&mut self, message: Message) -> Result<(), Stop> {
        let message = Arc::new(message);
        self.session.append(Record::Message { message: message.clone() }).await?;
        self.push(message);
        Ok(())
    }

    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.conversation_tokens += estimate::message(&message);
        self.sources.note(&message);
        self.conversation.push(message);
    }

    pub(crate) async fn notice(&mut self, message: impl Into<String>) {
        self.events.emit(EventKind::Notice { message: message.into() }).await;
    }

    /// The end of every run.
    async fn close(mut self, mut stop: Stop) -> Finished {
        if let Err(worse) = self.settle_open_calls(stop.reason).await {
            stop = worse;
        }
        if let Err(worse) = self.keep_unread(&stop).await {
            stop = worse;
        }
        self.hook_stop(&stop).await;
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
        let is_main = self.depth == 0;
        let memory = (is_main && stop.reason == StopReason::Completed)
            .then(|| memory::update(&self.agent, &self.request, &self.conversation, &self.sources))
            .flatten();
        self.events.finish(last).await;
        Finished {
            conversation: self.conversation,
            reason: stop.reason,
            message: stop.message,
            result: self.said,
            turns: self.round,
            usage: self.usage,
            denials: self.denials.count(),
            memory,
        }
    }

    /// Leaves what a person said too late for this run in the conversation: the next one reads it.
    async fn keep_unread(&mut self, stop: &Stop) -> Result<(), Stop> {
        let unread = self.steering.close();
        if unread.is_empty() {
            return Ok(());
        }
        let mut kept = Ok(());
        let count = unread.len();
        for parts in unread {
            let message = Arc::new(Message::User(UserMessage { parts }));
            // A session that broke takes no more; the conversation does.
            if self.recorded && stop.reason != StopReason::SessionError && kept.is_ok() {
                let record = Record::Message { message: message.clone() };
                kept = self.session.append(record).await.map_err(Stop::from);
            }
            self.push(message);
        }
        let messages = if count == 1 { "a message" } else { "messages" };
        self.notice(format!("{messages} came too late for this run; the next one reads it")).await;
        kept
    }

    async fn hook_pre_round(&mut self) -> Result<(), Stop> {
        let input = hooking::input([("iteration", self.round.into())]);
        let report = self.hook(HookPoint::PreRound, input).await?;
        match report.blocked {
            Some(reason) => {
                Err(Stop::new(StopReason::Ended, format!("a hook refused the round: {reason}")))
            }
            None => Ok(()),
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
