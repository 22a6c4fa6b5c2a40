//! The session on a scripted backend: no model, no sandbox, nothing is touched. For trying out what
//! it looks like. A message that holds `limit`, `hostile`, `long` or `steer` plays another script, and
//! `panic` and `crash` panic, in the session and beside it.

use async_trait::async_trait;
use belljar_terminal::{
    Backend, Command, Reply, SessionApprover, Settings, Shown, Status, Steered, Table, Turn,
    approvals, run,
};
use belljar_types::{
    Action, Always, ApprovalAnswer, ApprovalQuestion, Approver, Arguments, CallTimes, DecidedBy,
    Decision, Event, EventKind, Hints, Mode, Origin, PermissionMode, Question, Receipt, StopReason,
    ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolResult, ToolSource, Usage,
};
use futures::{StreamExt as _, stream::BoxStream};
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;

const ANSWER: &str = "## What I found\n\nThe function **`parse`** drops the last line, because the \
    loop ends *before* the newline is looked at. See [the guide](https://doc.rust-lang.org/book).\n\n\
    ```rust\nfn parse(text: &str) -> Vec<&str> {\n    // every line, the last one too\n    \
    text.lines().filter(|line| !line.is_empty()).collect()\n}\n```\n\n\
    | case | before | now |\n|---|---|---|\n| `a\\nb` | 1 | 2 |\n| 日本語 | 0 | 1 |\n\n\
    1. read the file\n2. changed one line\n   - with a test\n\n> Nothing else was touched.\n";

#[derive(Debug)]
struct Scripted {
    approver: SessionApprover,
    mode: Mutex<PermissionMode>,
    steered: Arc<Mutex<Vec<String>>>,
    is_open: Arc<AtomicBool>,
    is_canceled: Arc<AtomicBool>,
}

struct Play {
    events: mpsc::Sender<Event>,
    seq: u64,
    round: u32,
    canceled: Arc<AtomicBool>,
}

impl Play {
    async fn tell(&mut self, kind: EventKind) {
        let event = Event { kind, seq: self.seq, iteration: self.round, agent: None };
        self.seq += 1;
        let _ = self.events.send(event).await;
    }

    fn is_canceled(&self) -> bool {
        self.canceled.load(Ordering::SeqCst)
    }

    async fn pause(&self, milliseconds: u64) {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }

    async fn round(&mut self) {
        self.round += 1;
        self.tell(EventKind::RoundStart).await;
    }

    async fn write(&mut self, text: &str) {
        for piece in text.chars().collect::<Vec<_>>().chunks(3) {
            if self.is_canceled() {
                break;
            }
            self.tell(EventKind::TextDelta { text: piece.iter().collect() }).await;
            self.pause(8).await;
        }
        self.tell(EventKind::AssistantText { text: text.to_owned() }).await;
    }

    async fn start(&mut self, call: &ToolCall) {
        self.tell(EventKind::call_start(call, Some("files".into()))).await;
    }

    async fn done(&mut self, call: &ToolCall, outcome: Result<ToolOutput, ToolError>) {
        let receipt = receipt(&call.tool, outcome.is_ok());
        let result = ToolResult {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            outcome,
            origin: Origin::Host,
        };
        self.tell(EventKind::ToolResult(result)).await;
        let done = EventKind::ToolCallDone { call_id: call.id.clone(), receipt: Some(receipt) };
        self.tell(done).await;
    }

    async fn stop(&mut self, reason: StopReason, message: &str) {
        let reason = if self.is_canceled() { StopReason::Canceled } else { reason };
        let usage =
            Usage { input_tokens: Some(12_345), output_tokens: Some(678), cached_tokens: None };
        self.tell(EventKind::Usage { usage, total: usage }).await;
        self.tell(EventKind::Stop {
            reason,
            message: message.to_owned(),
            turns: self.round,
            duration_ms: 4_200,
            usage,
            result: String::new(),
            denials: 0,
            denied: Vec::new(),
            session: "0198-demo".to_owned(),
        })
        .await;
    }
}

fn call(id: &str, tool: &str, arguments: serde_json::Value) -> ToolCall {
    let arguments = match arguments {
        serde_json::Value::Object(map) => Arguments::Object(map),
        other => Arguments::Text(other.to_string()),
    };
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), arguments }
}

fn source() -> ToolSource {
    ToolSource { plugin: "files".into(), digest: "sha256:0123456789abcdef0123".into() }
}

fn receipt(tool: &str, is_ok: bool) -> Receipt {
    Receipt {
        source: source(),
        tool: tool.to_owned(),
        decision: Decision { action: Action::Allow, by: DecidedBy::Person },
        read_only: tool == "read_file",
        fuel_used: 1,
        fuel_limit: 2,
        peak_memory_bytes: 2 << 20,
        times: CallTimes { waiting_us: 0, instantiate_us: 300, run_us: 2_900, host_us: 0 },
        bytes_in: 10,
        bytes_out: 240,
        files_read: vec!["src/parse.rs".to_owned()],
        files_written: Vec::new(),
        hosts: Vec::new(),
        denied: Vec::new(),
        error: (!is_ok).then_some(ToolErrorKind::Denied),
        log: String::new(),
    }
}

async fn ordinary(play: &mut Play, approver: &SessionApprover, long: bool) {
    play.round().await;
    for word in ["The person ", "wants the parser ", "mended. I look at it first."] {
        play.tell(EventKind::ReasoningDelta { text: word.to_owned() }).await;
        play.pause(150).await;
    }
    play.write("I look at the file first.").await;
    let read = call("1", "read_file", json!({"path": "src/parse.rs"}));
    play.start(&read).await;
    for done in 1..=4 {
        let call_id = read.id.clone();
        let message = "KiB read".to_owned();
        play.tell(EventKind::ToolProgress { call_id, done, total: Some(4), message }).await;
        let text = format!("line {done} of the output\n");
        play.tell(EventKind::ToolOutput { call_id: read.id.clone(), text }).await;
        play.pause(200).await;
    }
    let text =
        "fn parse(text: &str) {\n    for line in text {\n        use_it(line);\n    }\n}\n\n";
    play.done(&read, Ok(ToolOutput::text(text))).await;
    let new_text = if long {
        (1..=60).map(|line| format!("line {line} \u{1b}[2J\n")).collect()
    } else {
        "    text.lines().filter(|line| !line.is_empty()).collect()\n}\n".to_owned()
    };
    let old_text = "    text.lines().collect()\n}\n";
    let edit = call(
        "2",
        "edit_file",
        json!({"path": "src/parse.rs", "old_text": old_text, "new_text": new_text}),
    );
    play.round().await;
    play.start(&edit).await;
    play.tell(EventKind::Approval {
        call_id: edit.id.clone(),
        tool: edit.tool.clone(),
        question: String::new(),
        options: Vec::new(),
    })
    .await;
    let question = ApprovalQuestion {
        call: edit.clone(),
        source: source(),
        hints: Hints::default(),
        question: Question {
            text: "may `edit_file` change `src/parse.rs`?".to_owned(),
            session: true,
            always: Some(Always::Rule { rule: "files/edit_file".to_owned() }),
        },
    };
    let canceled = async {
        while !play.is_canceled() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let answer = tokio::select! {
        answer = approver.ask(&question) => answer,
        () = canceled => None,
    };
    if let Some(answer) = &answer {
        play.tell(EventKind::ApprovalAnswer {
            call_id: edit.id.clone(),
            answer: answer.name().to_owned(),
            by: "person".to_owned(),
        })
        .await;
    }
    let outcome = match answer {
        Some(answer) if answer.is_yes() => Ok(ToolOutput::text("changed 1 line")),
        Some(ApprovalAnswer::NoBecause(why)) => Err(ToolError::new(ToolErrorKind::Denied, why)),
        Some(_) => Err(ToolError::new(ToolErrorKind::Denied, "denied by the person")),
        None => Err(ToolError::new(ToolErrorKind::Canceled, "canceled")),
    };
    play.done(&edit, outcome).await;
    if !play.is_canceled() {
        play.round().await;
        play.write(ANSWER).await;
    }
    play.stop(StopReason::Completed, "").await;
}

#[async_trait]
impl Backend for Scripted {
    fn start(&self, turn: Turn) -> BoxStream<'static, Event> {
        assert_ne!(turn, Turn::Message("panic".to_owned()), "a panic that was asked for");
        let (events, receiver) = mpsc::channel(8);
        self.is_canceled.store(false, Ordering::SeqCst);
        self.is_open.store(true, Ordering::SeqCst);
        let mut play = Play { events, seq: 0, round: 0, canceled: self.is_canceled.clone() };
        let (approver, steered) = (self.approver.clone(), self.steered.clone());
        let (is_open, mode) = (self.is_open.clone(), self.status().permission_mode);
        tokio::spawn(async move {
            play.tell(EventKind::Start {
                session: "0198-demo".to_owned(),
                model: "scripted/demo".to_owned(),
                workspace: "/work".to_owned(),
                mode: Mode::Chat,
                permission_mode: mode,
                tools: Vec::new(),
            })
            .await;
            let text = match turn {
                Turn::Message(text) | Turn::Plan(text) | Turn::Do(text) => text,
                Turn::GoOn => "go on".to_owned(),
            };
            assert!(!text.contains("crash"), "a task that breaks \u{1b}[2J");
            if text.contains("limit") {
                play.round().await;
                play.write("I am not done yet.").await;
                play.stop(StopReason::MaxIterations, "the turn limit of 15 was reached").await;
            } else if text.contains("hostile") {
                play.round().await;
                play.write("a \u{1b}[2J\u{1b}]0;title\u{7} b\u{202e}c &#27;[H\n\nover\rwritten")
                    .await;
                let hostile = call("h", "t\u{1b}[1A", json!({"p": "\u{9b}2J"}));
                play.start(&hostile).await;
                play.done(&hostile, Ok(ToolOutput::text("x\u{1b}[31mred\ny\u{8}\u{8}"))).await;
                play.stop(StopReason::Completed, "").await;
            } else if text.contains("steer") {
                for _ in 0..3 {
                    play.round().await;
                    let taken = std::mem::take(
                        &mut *steered.lock().unwrap_or_else(PoisonError::into_inner),
                    );
                    play.write(&format!("A round that takes a while; heard: {taken:?}")).await;
                    play.pause(1_500).await;
                    if play.is_canceled() {
                        break;
                    }
                }
                play.stop(StopReason::Completed, "").await;
            } else {
                ordinary(&mut play, &approver, text.contains("long")).await;
            }
            is_open.store(false, Ordering::SeqCst);
        });
        futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|event| (event, receiver))
        })
        .boxed()
    }

    fn steer(&self, text: &str) -> Steered {
        if !self.is_open.load(Ordering::SeqCst) {
            return Steered::Closed;
        }
        self.steered.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        Steered::Queued
    }

    fn cancel(&self) {
        self.is_canceled.store(true, Ordering::SeqCst);
    }

    fn status(&self) -> Status {
        Status {
            model: "scripted/demo".to_owned(),
            permission_mode: *self.mode.lock().unwrap_or_else(PoisonError::into_inner),
            context_percent: Some(7),
            cost: Some("$0.04".to_owned()),
        }
    }

    fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), String> {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
        Ok(())
    }

    fn always(&self, question: &ApprovalQuestion) -> Option<String> {
        let always = question.question.always.as_ref()?;
        Some(format!("`{always}` to `~/.config/belljar/config.toml`"))
    }

    fn write_always(&self, _question: &ApprovalQuestion) -> Result<(), String> {
        Err("this is only a script".to_owned())
    }

    async fn command(&self, command: Command) -> Reply {
        if command == Command::Clear {
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let table = Table {
            head: row(&["tool", "plugin", "what it does"]),
            rows: vec![
                row(&["read_file", "files", "reads a file of the workspace"]),
                row(&["edit_file", "files", "replaces one text by another"]),
            ],
        };
        Reply { shown: vec![Shown::Text(format!("answer to `{command}`")), Shown::Table(table)] }
    }

    async fn files(&self, prefix: &str) -> Vec<String> {
        let files = ["src/lib.rs", "src/main.rs", "src/parse.rs", "notes of today.md"];
        files.iter().filter(|file| file.contains(prefix)).map(|file| (*file).to_owned()).collect()
    }

    fn history(&self) -> String {
        "\"an earlier message\"\n".to_owned()
    }

    fn remember(&self, _line: &str) {}
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let (approver, questions) = approvals();
    let backend = Scripted {
        approver,
        mode: Mutex::new(PermissionMode::Default),
        steered: Arc::default(),
        is_open: Arc::default(),
        is_canceled: Arc::default(),
    };
    let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    run(Arc::new(backend), questions, Settings { colour }).await?;
    Ok(())
}
