//! The loop around the state, on a backend that plays along.

use super::*;
use crate::{
    Backend, Command, Left, Reply, Settings, Steered, Why, approvals, run::testing::drive,
};
use async_trait::async_trait;
use belljar_types::{ApprovalAnswer, Approver as _};
use crossterm::event::Event as TerminalEvent;
use futures::{StreamExt as _, channel::mpsc, stream, stream::BoxStream};
use std::{
    io,
    sync::{Arc, Mutex},
};

/// Writes down what it is told; a run waits for its approval, then stops.
#[derive(Debug)]
struct Fake {
    approver: crate::SessionApprover,
    told: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn tell(&self, what: impl Into<String>) {
        self.told.lock().unwrap().push(what.into());
    }
}

#[async_trait]
impl Backend for Fake {
    fn start(&self, turn: Turn) -> BoxStream<'static, Event> {
        self.tell(format!("start {turn:?}"));
        let (approver, told) = (self.approver.clone(), self.told.clone());
        let call = edit("new\n");
        let event = |kind| Event { kind, seq: 0, iteration: 1, agent: None };
        let first = [start(), EventKind::RoundStart, approval(&call)].map(event);
        let last = async move {
            let answer = approver.ask(&question(&call)).await;
            told.lock().unwrap().push(format!("answer {answer:?}"));
            let is_yes = answer.as_ref().is_some_and(ApprovalAnswer::is_yes);
            let reason = if is_yes { StopReason::Completed } else { StopReason::Canceled };
            event(stop(reason, ""))
        };
        stream::iter(first).chain(stream::once(last)).boxed()
    }

    fn steer(&self, text: &str) -> Steered {
        self.tell(format!("steer {text}"));
        Steered::Queued
    }

    fn cancel(&self) {
        self.tell("cancel");
    }

    fn status(&self) -> Status {
        status(PermissionMode::Default)
    }

    fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), String> {
        self.tell(format!("mode {mode}"));
        Err("not here".to_owned())
    }

    fn always(&self, _question: &ApprovalQuestion) -> Option<String> {
        None
    }

    fn write_always(&self, _question: &ApprovalQuestion) -> Result<(), String> {
        Ok(())
    }

    async fn command(&self, command: Command) -> Reply {
        self.tell(command.to_string());
        Reply::text("done")
    }

    async fn files(&self, prefix: &str) -> Vec<String> {
        vec![format!("{prefix}.rs")]
    }

    fn history(&self) -> String {
        String::new()
    }

    fn remember(&self, line: &str) {
        self.tell(format!("remember {}", line.trim_end()));
    }
}

/// Plays keys, each after a second, and then the end of the terminal where `ends` says so.
async fn played(keys: &[KeyCode], ends: bool) -> (Left, Vec<String>, String) {
    let (approver, questions) = approvals();
    let told = Arc::<Mutex<Vec<String>>>::default();
    let backend = Arc::new(Fake { approver, told: told.clone() });
    let (sender, receiver) = mpsc::unbounded::<io::Result<TerminalEvent>>();
    let keys = keys.to_vec();
    let typist = async move {
        for code in keys {
            tokio::time::sleep(SECOND).await;
            let key = KeyEvent::new(code, KeyModifiers::NONE);
            sender.unbounded_send(Ok(TerminalEvent::Key(key))).unwrap();
        }
        if !ends {
            std::future::pending::<()>().await;
        }
    };
    let settings = Settings { colour: false };
    let session = drive(backend, questions, receiver, SMALL, settings);
    tokio::pin!(session);
    let mut typist = std::pin::pin!(futures::FutureExt::fuse(typist));
    let (left, bytes) = loop {
        tokio::select! {
            ended = &mut session => break ended,
            () = &mut typist => {}
        }
    };
    let mut emulator = vt100::Parser::new(rows(SMALL), columns(SMALL), 100);
    emulator.process(&bytes);
    let screen = emulator.screen().contents();
    let told = told.lock().unwrap().clone();
    (left, told, screen)
}

fn keys(text: &str) -> Vec<KeyCode> {
    text.chars().map(|c| if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) }).collect()
}

#[tokio::test(start_paused = true)]
async fn a_session_is_driven_from_the_first_key_to_the_last() {
    let (left, told, screen) = played(&keys("hi\ny/exit\n"), false).await;
    assert_eq!(left, Left { session: Some("s1".to_owned()), why: Why::Person });
    assert_eq!(
        told,
        ["remember \"hi\"", "start Message(\"hi\")", "answer Some(Once)", "remember \"/exit\"",]
    );
    insta::assert_snapshot!("driven", screen);
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_goes_away_cancels_the_run_and_answers_nothing() {
    let (left, told, _) = played(&keys("hi\n"), true).await;
    assert_eq!(left, Left { session: Some("s1".to_owned()), why: Why::TerminalGone });
    assert_eq!(told, ["remember \"hi\"", "start Message(\"hi\")", "cancel", "answer None"]);
}

#[tokio::test(start_paused = true)]
async fn commands_and_modes_reach_the_backend() {
    let mut all = keys("/tools\n");
    all.push(KeyCode::BackTab);
    all.extend(keys("/exit\n"));
    let (_, told, screen) = played(&all, false).await;
    assert_eq!(told, ["remember \"/tools\"", "/tools", "mode accept-edits", "remember \"/exit\""]);
    assert!(screen.contains("not here"), "{screen}");
}
