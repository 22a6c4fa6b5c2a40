//! The session from its inputs to what a terminal shows, on an emulated terminal.

mod answers;
mod driver;
mod keys;
mod screens;

use crate::{
    backend::{Status, Turn},
    state::{Effect, Input, Session, Size},
    surface::Surface,
};
use belljar_types::{
    Action, Always, ApprovalQuestion, Arguments, CallTimes, DecidedBy, Decision, Event, EventKind,
    Hints, Mode, Origin, PermissionMode, Question, Receipt, StopReason, ToolCall, ToolError,
    ToolOutput, ToolResult, ToolSource, Usage,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use std::{num::NonZero, time::Duration};

const SMALL: Size = Size { columns: 80, rows: 24 };
const LARGE: Size = Size { columns: 140, rows: 45 };
const SECOND: Duration = Duration::from_secs(1);

/// A session and the terminal that it is on.
struct Terminal {
    session: Session,
    surface: Surface<Vec<u8>>,
    emulator: vt100::Parser,
    now: Duration,
}

impl Terminal {
    fn new(size: Size) -> Self {
        let mut terminal = Self {
            session: Session::new(size, status(PermissionMode::Default), "\"sent before\"\n"),
            surface: Surface::new(Vec::new(), true),
            emulator: vt100::Parser::new(rows(size), columns(size), 1_000),
            now: Duration::ZERO,
        };
        terminal.draw();
        terminal
    }

    fn take(&mut self, input: Input) -> Vec<Effect> {
        let effects = self.session.take(input, self.now);
        self.draw();
        effects
    }

    fn draw(&mut self) {
        let finished = self.session.take_finished();
        let live = self.session.live(self.now);
        self.surface.draw(&finished, &live, self.session.size()).unwrap();
        let bytes = self.surface.take_written();
        assert_only_known_sequences(&bytes);
        self.emulator.process(&bytes);
        let none = self.session.take(Input::Drawn, self.now);
        assert_eq!(none, []);
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.draw();
    }

    fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        self.take(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn ctrl(&mut self, c: char) -> Vec<Effect> {
        self.take(Input::Key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)))
    }

    fn type_in(&mut self, text: &str) -> Vec<Effect> {
        text.chars().flat_map(|c| self.press(KeyCode::Char(c))).collect()
    }

    /// Types a message and sends it.
    fn send(&mut self, text: &str) -> Vec<Effect> {
        self.type_in(text);
        let effects = self.press(KeyCode::Enter);
        effects.into_iter().filter(|effect| !matches!(effect, Effect::Remember(_))).collect()
    }

    fn tell(&mut self, kind: EventKind) -> Vec<Effect> {
        let event = Event { kind, seq: 0, iteration: 1, agent: None };
        self.take(Input::Event(event))
    }

    fn resize(&mut self, size: Size) {
        self.emulator.screen_mut().set_size(rows(size), columns(size));
        self.take(Input::Resized(size));
    }

    /// The rows of the screen, those at the end that are empty left out.
    fn screen(&self) -> String {
        let screen = self.emulator.screen();
        let (_, columns) = screen.size();
        let rows: Vec<_> =
            screen.rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// A run that is about to say something.
    fn running(size: Size) -> Self {
        let mut terminal = Self::new(size);
        let started = terminal.send("mend it");
        assert_eq!(started, [Effect::Start(Turn::Message("mend it".to_owned()))]);
        terminal.tell(start());
        terminal.tell(EventKind::RoundStart);
        terminal
    }
}

fn rows(size: Size) -> NonZero<u16> {
    NonZero::new(u16::try_from(size.rows).unwrap()).unwrap()
}

fn columns(size: Size) -> NonZero<u16> {
    NonZero::new(u16::try_from(size.columns).unwrap()).unwrap()
}

/// Everything that may move or style something is one of the few sequences that the surface writes.
fn assert_only_known_sequences(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap();
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control()) {
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\r')) {
            rest = after;
            continue;
        }
        let sequence = rest.strip_prefix("\u{1b}[").unwrap_or_else(|| panic!("{rest:?}"));
        let end = sequence.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        let (parameters, last) = (&sequence[..end], &sequence[end..=end]);
        let is_number = parameters.bytes().all(|byte| byte.is_ascii_digit());
        let is_known = match last {
            "A" | "B" | "G" | "m" => is_number,
            "J" | "K" => parameters.is_empty(),
            "h" | "l" => ["?25", "?2026"].contains(&parameters),
            _ => false,
        };
        assert!(is_known, "{rest:?}");
        rest = &sequence[end + 1..];
    }
}

fn status(permission_mode: PermissionMode) -> Status {
    Status {
        model: "test/model".to_owned(),
        permission_mode,
        context_percent: Some(12),
        cost: Some("$0.02".to_owned()),
    }
}

fn start() -> EventKind {
    EventKind::Start {
        session: "s1".to_owned(),
        model: "test/model".to_owned(),
        workspace: "/work".to_owned(),
        mode: Mode::Chat,
        permission_mode: PermissionMode::Default,
        tools: Vec::new(),
    }
}

fn delta(text: &str) -> EventKind {
    EventKind::TextDelta { text: text.to_owned() }
}

fn stop(reason: StopReason, message: &str) -> EventKind {
    let usage = Usage { input_tokens: Some(1_200), output_tokens: Some(34), cached_tokens: None };
    EventKind::Stop {
        reason,
        message: message.to_owned(),
        turns: 2,
        duration_ms: 3_400,
        usage,
        result: String::new(),
        denials: 0,
        denied: Vec::new(),
        session: "s1".to_owned(),
    }
}

fn call(id: &str, tool: &str, arguments: Value) -> ToolCall {
    let Value::Object(map) = arguments else { panic!("no object") };
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), arguments: Arguments::Object(map) }
}

fn edit(new_text: &str) -> ToolCall {
    call("c2", "edit_file", json!({"path": "a.rs", "old_text": "old\n", "new_text": new_text}))
}

fn source() -> ToolSource {
    ToolSource { plugin: "files".into(), digest: "sha256:0123456789abcdef".into() }
}

fn question(call: &ToolCall) -> ApprovalQuestion {
    ApprovalQuestion {
        call: call.clone(),
        source: source(),
        hints: Hints::default(),
        question: Question {
            text: "may `edit_file` change `a.rs`?".to_owned(),
            session: true,
            always: Some(Always::Rule { rule: "files/edit_file".to_owned() }),
        },
    }
}

fn approval(call: &ToolCall) -> EventKind {
    EventKind::Approval {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        question: String::new(),
        options: Vec::new(),
    }
}

fn answered(call: &ToolCall, answer: &str) -> EventKind {
    EventKind::ApprovalAnswer {
        call_id: call.id.clone(),
        answer: answer.to_owned(),
        by: "person".to_owned(),
    }
}

fn result(call: &ToolCall, outcome: Result<ToolOutput, ToolError>) -> EventKind {
    EventKind::ToolResult(ToolResult {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        outcome,
        origin: Origin::Host,
    })
}

fn done(call: &ToolCall) -> EventKind {
    let receipt = Receipt {
        source: source(),
        tool: call.tool.clone(),
        decision: Decision { action: Action::Allow, by: DecidedBy::Person },
        read_only: true,
        fuel_used: 1,
        fuel_limit: 2,
        peak_memory_bytes: 2 << 20,
        times: CallTimes { waiting_us: 0, instantiate_us: 300, run_us: 2_900, host_us: 0 },
        bytes_in: 10,
        bytes_out: 240,
        files_read: vec!["notes/a.rs".to_owned()],
        files_written: Vec::new(),
        hosts: Vec::new(),
        denied: Vec::new(),
        error: None,
        log: String::new(),
    };
    EventKind::ToolCallDone { call_id: call.id.clone(), receipt: Some(receipt) }
}
