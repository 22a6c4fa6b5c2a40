//! What each input does to the session.

use super::{
    dialog::{Chosen, Dialog},
    prompt::{Did, Prompt},
    transcript::Transcript,
};
use crate::{
    backend::{Reply, Status, Steered, Turn},
    command::Command,
};
use belljar_types::{
    ApprovalAnswer, ApprovalQuestion, Event, EventKind, PermissionMode, StopReason,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::Line;
use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

/// Within this time a second Ctrl-C means that the first was not enough.
const TWICE: Duration = Duration::from_secs(2);

/// Columns and rows of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Input {
    Key(KeyEvent),
    Paste(String),
    Resized(Size),
    /// The run told something.
    Event(Event),
    /// The events have ended.
    EventsEnded,
    /// The loop waits for an answer about a call; with what a yes for good would write.
    Asked(ApprovalQuestion, Option<String>),
    Steered(String, Steered),
    Replied(Reply),
    Status(Status),
    /// Why the mode could not be changed.
    ModeRefused(String),
    /// Whether the yes for good to this call was written.
    Written(String, Result<(), String>),
    Files(u64, Vec<String>),
    /// Something outside the session broke, and only that.
    Panicked(String),
    /// What there is to show is on the screen.
    Drawn,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Start(Turn),
    Steer(String),
    Cancel,
    SetMode(PermissionMode),
    /// Answers the question about this call.
    Answer(String, ApprovalAnswer),
    /// Nobody answers any question that is open.
    Dismiss,
    WriteAlways(String),
    Command(Command),
    /// The command that runs is not wanted any more.
    CallOff,
    Files(u64, String),
    Remember(String),
    Redraw,
    Leave,
}

/// What the session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Nothing,
    /// A run, since then; whether it was told to stop.
    Run {
        since: Duration,
        is_canceled: bool,
    },
    Command {
        since: Duration,
    },
}

/// The session at the terminal.
#[derive(Debug)]
pub(crate) struct Session {
    pub(super) size: Size,
    pub(super) transcript: Transcript,
    pub(super) prompt: Prompt,
    pub(super) status: Status,
    pub(super) doing: Doing,
    /// The run came to its turn limit, and the person is asked whether it is to go on.
    pub(super) asks_to_go_on: Option<String>,
    /// Messages that the run has not taken yet.
    pub(super) queued: Vec<String>,
    pub(super) dialogs: VecDeque<Dialog>,
    /// Messages that came too late for the run, for the next one.
    late: Vec<String>,
    /// Calls whose approval the events have come to.
    announced: HashSet<String>,
    /// Questions whose call the events have not come to.
    unannounced: Vec<Dialog>,
    interrupted_at: Option<Duration>,
    /// A word about what a key would do next.
    pub(super) hint: Option<&'static str>,
    session_id: Option<String>,
}

impl Session {
    pub(crate) fn new(size: Size, status: Status, history: &str) -> Self {
        let mut session = Self {
            size,
            transcript: Transcript::default(),
            prompt: Prompt::new(history),
            status,
            doing: Doing::Nothing,
            asks_to_go_on: None,
            queued: Vec::new(),
            dialogs: VecDeque::new(),
            late: Vec::new(),
            announced: HashSet::new(),
            unannounced: Vec::new(),
            interrupted_at: None,
            hint: None,
            session_id: None,
        };
        let hello = format!(
            "belljar · {} · permission mode {} · /help lists keys and commands",
            session.status.model, session.status.permission_mode
        );
        session.transcript.note(&hello, size.columns);
        session
    }

    /// The session that the runs belong to, once one has begun.
    pub(crate) fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.doing != Doing::Nothing
    }

    /// What is finished since this was asked last.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        self.transcript.take_finished()
    }

    /// What `input` at the time `now` makes of it.
    pub(crate) fn take(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Key(key) => self.key(key, now, &mut effects),
            Input::Paste(text) => match self.dialogs.front_mut() {
                Some(dialog) => dialog.paste(&text),
                None => {
                    self.prompt.paste(&text);
                    self.look(&mut effects);
                }
            },
            Input::Resized(size) => {
                self.size = size;
                self.dialogs.iter_mut().for_each(Dialog::resized);
            }
            Input::Event(event) => self.event(&event, now, &mut effects),
            Input::EventsEnded => {
                if matches!(self.doing, Doing::Run { .. }) {
                    self.transcript.lost(self.size.columns);
                    self.run_ended(false, now, &mut effects);
                }
            }
            Input::Asked(question, always) => {
                let is_announced = self.announced.contains(&question.call.id);
                let dialog = Dialog::new(question, always);
                match is_announced {
                    true => self.dialogs.push_back(dialog),
                    false => self.unannounced.push(dialog),
                }
            }
            Input::Steered(text, Steered::Queued) => self.queued.push(text),
            Input::Steered(text, Steered::Closed) => {
                self.late.push(text);
                self.start_late(now, &mut effects);
            }
            Input::Replied(reply) => {
                // A command that only looks may be answered in the middle of a run.
                if matches!(self.doing, Doing::Command { .. }) {
                    self.doing = Doing::Nothing;
                }
                self.reply(&reply);
            }
            Input::Status(status) => self.status = status,
            Input::ModeRefused(why) => self.transcript.problem(&why, self.size.columns),
            Input::Written(call_id, written) => self.written(&call_id, written, &mut effects),
            Input::Panicked(what) => {
                let text = format!("a part of the program broke: {what}");
                self.transcript.problem(&text, self.size.columns);
            }
            Input::Files(number, names) => self.prompt.files(number, names),
            Input::Drawn => {
                let size = self.dialog_size();
                if let Some(dialog) = self.dialogs.front_mut() {
                    dialog.drawn(now, size.columns, size.rows);
                }
            }
        }
        effects
    }

    /// The room that a dialog has.
    pub(super) fn dialog_size(&self) -> Size {
        Size { columns: self.size.columns, rows: self.size.rows.saturating_sub(3) }
    }

    fn key(&mut self, key: KeyEvent, now: Duration, effects: &mut Vec<Effect>) {
        self.hint = None;
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if ctrl => return self.interrupt(now, effects),
            KeyCode::Char('l') if ctrl => return effects.push(Effect::Redraw),
            KeyCode::BackTab => return self.cycle_mode(effects),
            KeyCode::Esc => return self.escape(effects),
            _ => {}
        }
        if ctrl
            && key.code == KeyCode::Char('d')
            && self.prompt.is_empty()
            && self.dialogs.is_empty()
        {
            return self.leave(effects);
        }
        let size = self.dialog_size();
        if let Some(dialog) = self.dialogs.front_mut() {
            // A control key is no answer.
            if ctrl || key.modifiers.contains(KeyModifiers::ALT) {
                return;
            }
            let call_id = dialog.question.call.id.clone();
            match dialog.key(key, now, size.columns, size.rows) {
                Chosen::Nothing => {}
                Chosen::Always => effects.push(Effect::WriteAlways(call_id)),
                Chosen::Answer(answer) => self.answer(call_id, answer, effects),
            }
            return;
        }
        if self.asks_to_go_on.is_some() && self.prompt.is_empty() {
            match key.code {
                KeyCode::Char('y' | 'Y') => {
                    self.asks_to_go_on = None;
                    return self.start(Turn::GoOn, now, effects);
                }
                KeyCode::Char('n' | 'N') => {
                    self.asks_to_go_on = None;
                    return;
                }
                _ => {}
            }
        }
        match self.prompt.key(key) {
            Did::Nothing => {}
            Did::Edited => self.look(effects),
            Did::Sent(text) => self.send(text, now, effects),
        }
    }

    fn look(&mut self, effects: &mut Vec<Effect>) {
        effects.extend(self.prompt.look().map(|(number, prefix)| Effect::Files(number, prefix)));
    }

    pub(super) fn start(&mut self, turn: Turn, now: Duration, effects: &mut Vec<Effect>) {
        self.doing = Doing::Run { since: now, is_canceled: false };
        effects.push(Effect::Start(turn));
    }

    fn event(&mut self, event: &Event, now: Duration, effects: &mut Vec<Effect>) {
        let columns = self.size.columns;
        if event.agent.is_none() {
            match &event.kind {
                EventKind::Start { session, .. } => self.session_id = Some(session.clone()),
                // Whatever waited is in the conversation from this round on.
                EventKind::RoundStart => self.taken(),
                EventKind::Stop { reason: StopReason::Completed, .. } => self.taken(),
                _ => {}
            }
        }
        match &event.kind {
            EventKind::Approval { call_id, .. } => {
                self.announced.insert(call_id.clone());
                let waits = |dialog: &mut Dialog| dialog.question.call.id == *call_id;
                self.dialogs.extend(self.unannounced.extract_if(.., waits));
            }
            // Somebody else answered, or the run gave up waiting.
            EventKind::ApprovalAnswer { call_id, .. } => {
                self.dialogs.retain(|dialog| dialog.question.call.id != *call_id);
                self.announced.remove(call_id);
            }
            _ => {}
        }
        self.transcript.event(event, columns);
        if let EventKind::Stop { reason, message, .. } = &event.kind
            && event.agent.is_none()
        {
            let at_limit = *reason == StopReason::MaxIterations;
            self.asks_to_go_on = at_limit.then(|| message.clone());
            self.run_ended(*reason == StopReason::Canceled, now, effects);
        }
    }

    /// The run has taken what was queued.
    fn taken(&mut self) {
        for text in std::mem::take(&mut self.queued) {
            self.transcript.person(&text, self.size.columns);
        }
    }

    fn run_ended(&mut self, was_canceled: bool, now: Duration, effects: &mut Vec<Effect>) {
        self.doing = Doing::Nothing;
        self.announced.clear();
        self.unannounced.clear();
        if !self.dialogs.is_empty() {
            self.dialogs.clear();
            effects.push(Effect::Dismiss);
        }
        // What was accepted and not read stays in the conversation, for the next run to read.
        if !self.queued.is_empty() {
            self.taken();
            self.transcript
                .note("the run ended first: this is read in your next turn", self.size.columns);
        }
        // What was not taken goes back to where it can be sent again.
        let mut back = Vec::new();
        if was_canceled {
            back.append(&mut self.late);
        }
        if !back.is_empty() {
            let written = self.prompt.text();
            back.extend((!written.is_empty()).then_some(written));
            self.prompt.set(&back.join("\n"));
            self.transcript
                .note("what the run did not take is back in the line", self.size.columns);
        }
        self.start_late(now, effects);
    }

    /// Sends what came too late for one run as the next.
    fn start_late(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        if self.doing == Doing::Nothing && !self.late.is_empty() {
            let text = std::mem::take(&mut self.late).join("\n");
            self.asks_to_go_on = None;
            self.transcript.person(&text, self.size.columns);
            self.start(Turn::Message(text), now, effects);
        }
    }

    fn answer(&mut self, call_id: String, answer: ApprovalAnswer, effects: &mut Vec<Effect>) {
        self.dialogs.retain(|dialog| dialog.question.call.id != call_id);
        effects.push(Effect::Answer(call_id, answer));
    }

    fn written(&mut self, call_id: &str, written: Result<(), String>, effects: &mut Vec<Effect>) {
        let asked = |dialog: &&mut Dialog| dialog.question.call.id == call_id;
        let Some(dialog) = self.dialogs.iter_mut().find(asked) else { return };
        match written {
            Ok(()) => self.answer(call_id.to_owned(), ApprovalAnswer::Always, effects),
            Err(why) => dialog.problem(format!("not written: {why}")),
        }
    }

    fn cycle_mode(&mut self, effects: &mut Vec<Effect>) {
        let next = match self.status.permission_mode {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Plan,
            // The wide and the silent mode are chosen when the session is started, never by a key.
            PermissionMode::Plan | PermissionMode::DontAsk | PermissionMode::Bypass => {
                PermissionMode::Default
            }
        };
        effects.push(Effect::SetMode(next));
    }

    fn escape(&mut self, effects: &mut Vec<Effect>) {
        if self.dialogs.front_mut().is_some_and(Dialog::stop_typing) || self.prompt.close() {
            return;
        }
        match self.doing {
            Doing::Nothing => self.asks_to_go_on = None,
            Doing::Run { .. } | Doing::Command { .. } => self.cancel(effects),
        }
    }

    fn interrupt(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        let is_second =
            self.interrupted_at.is_some_and(|before| now.saturating_sub(before) <= TWICE);
        if is_second {
            return self.leave(effects);
        }
        self.interrupted_at = Some(now);
        if self.is_busy() {
            self.cancel(effects);
        } else if !self.prompt.is_empty() {
            self.prompt.set("");
        }
        self.asks_to_go_on = None;
        self.hint = Some("Ctrl-C again leaves");
    }

    fn cancel(&mut self, effects: &mut Vec<Effect>) {
        match &mut self.doing {
            Doing::Nothing => {}
            Doing::Run { is_canceled, .. } => {
                if !std::mem::replace(is_canceled, true) {
                    // First, so that a question that nobody answers is not taken for a no.
                    effects.push(Effect::Cancel);
                }
                if !self.dialogs.is_empty() {
                    self.dialogs.clear();
                    effects.push(Effect::Dismiss);
                }
            }
            Doing::Command { .. } => {
                self.doing = Doing::Nothing;
                self.transcript.problem("called off", self.size.columns);
                effects.push(Effect::CallOff);
            }
        }
    }

    pub(super) fn leave(&mut self, effects: &mut Vec<Effect>) {
        if matches!(self.doing, Doing::Run { .. }) {
            effects.push(Effect::Cancel);
        }
        effects.push(Effect::Leave);
    }
}
