//! The loop as a state machine under random models, tools, answers, hooks, readers, disks,
//! messages, cancels, crashes and resumes: what must hold whatever happens.

mod plans;

use crate::{
    hooks::ScriptedHooks,
    support::{MemoryJournal, Played, ScriptedModel, Stage, check_stream, lines},
};
use belljar_agent::{Actions, RunRequest, replay, restore};
use belljar_types::{
    AssistantPart, Content, EventKind, HookPoint, Message, Mode, Origin, Part, PendingCall, Record,
    StopReason, ToolErrorKind, ToolResult,
};
use futures::StreamExt;
use plans::{Interference, RunPlan, Say, lives};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::{
    collections::HashSet,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

const CASES: u32 = 10_000;

/// Tools in which nothing can be changed.
const READING: [&str; 3] = ["read", "slow_read", "flaky_read"];

/// How a run was seen to end.
enum Seen {
    Whole(Played),
    /// Nobody saw its end.
    Left,
    /// It was killed when its session held these records.
    Killed(Vec<Record>),
}

/// Another number in this variable gives other sessions.
const SEED: &str = "BELLJAR_TEST_SEED";

/// The same sessions each time, unless somebody looks for more.
fn seed() -> u64 {
    std::env::var(SEED).ok().map_or(1, |seed| seed.parse().unwrap())
}

#[test]
fn whatever_happens_the_conversation_is_valid_and_the_one_stop_is_last() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let tally = Tally::default();
    let seed = seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let ran = TestRunner::new_with_rng(config, rng).run(&lives(), |life| {
        tally.cases.fetch_add(1, Ordering::Relaxed);
        live(&life, &tally);
        Ok(())
    });
    if let Err(error) = ran {
        panic!("with {SEED}={seed}: {error}");
    }
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    // Past the capture of the test harness, so that the count is in the log of a run that passed.
    writeln!(
        std::io::stderr(),
        "the loop as a state machine: {} cases of {} runs without a violation: {} were killed, {} \
         went on with pending calls, {} made room, {} delegated, {} read what was said meanwhile",
        count(&tally.cases),
        count(&tally.runs),
        count(&tally.killed),
        count(&tally.pending),
        count(&tally.made_room),
        count(&tally.delegated),
        count(&tally.steered),
    )
    .unwrap();
    assert_eq!(count(&tally.cases), CASES as usize);
    // Each way of a run is taken often enough to mean something.
    let ways = [&tally.killed, &tally.pending, &tally.made_room, &tally.delegated, &tally.steered];
    assert!(ways.into_iter().all(|way| count(way) >= 100), "{tally:?}");
}

/// How often each way was taken.
#[derive(Debug, Default)]
struct Tally {
    cases: AtomicUsize,
    runs: AtomicUsize,
    killed: AtomicUsize,
    pending: AtomicUsize,
    made_room: AtomicUsize,
    delegated: AtomicUsize,
    steered: AtomicUsize,
}

impl Tally {
    fn note(&self, killed: bool, pending: bool, steered: bool, written: &[Record]) {
        let note = |way: &AtomicUsize, is_taken: bool| {
            way.fetch_add(usize::from(is_taken), Ordering::Relaxed);
        };
        let has = |kind: fn(&Record) -> bool| written.iter().any(kind);
        note(&self.runs, true);
        note(&self.killed, killed);
        note(&self.pending, pending);
        note(&self.steered, steered);
        note(&self.made_room, has(|record| matches!(record, Record::Replaced { .. })));
        note(&self.delegated, has(|record| matches!(record, Record::Subagent { .. })));
    }
}

/// Lives a whole session: each run goes on where the one before ended or was killed.
fn live(life: &[RunPlan], tally: &Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut records = Vec::new();
        for (number, plan) in life.iter().enumerate() {
            let restored = restore(records.clone());
            let pending = restored.pending.clone();
            let mut prompt = Vec::new();
            if plan.has_prompt || records.is_empty() {
                prompt.push(Part::text(format!("prompt {number}"), Origin::Person));
            }
            let stage = stage(plan, RunRequest::resuming(restored, prompt));
            let (seen, said) = play(plan, &stage, number).await;
            let written = match &seen {
                Seen::Whole(played) => {
                    explained(played, || check_played(&records, &stage, plan, played, &said));
                    stage.journal.records()
                }
                Seen::Left => {
                    // The bookkeeping is done within the time that is promised for a cancel.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    stage.journal.records()
                }
                Seen::Killed(written) => written.clone(),
            };
            if !matches!(seen, Seen::Killed(_)) {
                check_session(&stage);
            }
            check_requests(&stage, &pending);
            let killed = matches!(seen, Seen::Killed(_));
            let steered = said.iter().any(|(_, taken)| *taken);
            tally.note(killed, !pending.is_empty(), steered, &written);
            records.extend(written);
            check_every_step(&records);
        }
    });
}

fn stage(plan: &RunPlan, request: RunRequest) -> Stage {
    let journal = match plan.journal_fails_at {
        Some((index, /* panics */ true)) => MemoryJournal::panicking_at(index),
        Some((index, /* panics */ false)) => MemoryJournal::failing_at(index),
        None => MemoryJournal::default(),
    };
    let mut stage = Stage::new(vec![])
        .tools(&["flaky_read"])
        .asked(plan.answers.clone())
        .journal(journal)
        .settings(|settings| {
            settings.event_buffer = plan.event_buffer;
            settings.max_turns = plan.max_turns;
            settings.last_answer = plan.last_answer;
            settings.parallel_calls = plan.parallel_calls;
            settings.compaction.summaries = plan.summaries;
            if plan.has_actions {
                settings.actions = Actions::all();
            }
        });
    let model = ScriptedModel::new(plan.turns.clone());
    stage.model = Arc::new(match plan.window {
        // Beside what the tools take.
        Some(tokens) => model.with_window(tokens + if plan.has_actions { 900 } else { 300 }),
        None => model,
    });
    stage.request = RunRequest { mode: plan.mode, ..request };
    if let Some((point, say)) = plan.hooks {
        stage.request.hooks = Some(ScriptedHooks::new(point, move |report| match say {
            Say::Block => report.blocked = Some("the hook says no".to_owned()),
            Say::End => report.end = Some("the hook ends it".to_owned()),
            Say::Arguments if point == HookPoint::PreTool => {
                report.arguments = Some(serde_json::Map::new());
            }
            Say::Arguments | Say::Context => report.context = vec!["the hook adds".to_owned()],
            Say::Panic => panic!("the hook is broken"),
        }));
    }
    stage
}

/// Plays a plan. With what was said in between, and whether it was taken.
async fn play(plan: &RunPlan, stage: &Stage, number: usize) -> (Seen, Vec<(String, bool)>) {
    let mut run = stage.start();
    let mut events = Vec::new();
    let mut said = Vec::new();
    let mut canceled_at = None;
    while let Some(event) = run.next().await {
        let index = events.len();
        events.push(event);
        for at in plan.steering.iter().filter(|at| **at == index) {
            let text = format!("message {} at {at} of {number}", said.len());
            let taken = run.steer(vec![Part::text(&text, Origin::Person)]).is_ok();
            said.push((text, taken));
        }
        match plan.interference {
            Some((at, interference)) if at == index => match interference {
                Interference::Cancel | Interference::CancelSlowly => {
                    run.cancel();
                    canceled_at = Some(Instant::now());
                    if interference == Interference::CancelSlowly {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        check_session(stage);
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                }
                Interference::End => run.end(),
                Interference::Leave => return (Seen::Left, said),
                Interference::Crash => return (Seen::Killed(stage.journal.records()), said),
            },
            // A reader that is waited for when it is too late would only be slow.
            _ if canceled_at.is_none() => tokio::time::sleep(plan.reader_delay).await,
            _ => {}
        }
    }
    if let (Some(at), Some((_, Interference::Cancel))) = (canceled_at, plan.interference) {
        assert!(at.elapsed() <= Duration::from_millis(100), "{:?} after a cancel", at.elapsed());
    }
    (Seen::Whole(Played { events, finished: run.finish().await.unwrap() }), said)
}

/// What holds after every step of a session: it can be gone on with from there.
fn check_every_step(records: &[Record]) {
    for count in 0..=records.len() {
        let steps = || records[..count].iter().cloned();
        assert_eq!(replay(steps()).check(), Ok(()), "after {count} records");
        let restored = restore(steps());
        let open: Vec<_> =
            restored.conversation.open_calls().unwrap().into_iter().cloned().collect();
        let pending: Vec<_> = restored.pending.into_iter().map(|pending| pending.call).collect();
        assert_eq!(open, pending, "after {count} records");
    }
}

/// What holds for the session of a run that came to its end, seen or not.
fn check_session(stage: &Stage) {
    let records = stage.journal.records();
    assert!(stage.journal.failed_attempts() <= 1, "written after a failure");
    let stops = records.iter().filter(|record| matches!(record, Record::Stopped { .. })).count();
    if stage.journal.failed() {
        assert_eq!(stops, 0, "a full disk takes no stop");
    } else if !records.is_empty() {
        assert_eq!(stops, 1);
        assert!(matches!(records.last(), Some(Record::Stopped { .. })));
    }
    let started: HashSet<&str> = records
        .iter()
        .map(innermost)
        .filter_map(|record| match record {
            Record::CallStarted { call_id } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    for id in &stage.toolbox.ran() {
        assert!(started.contains(id.as_str()), "{id} ran without a record");
    }
}

fn innermost(mut record: &Record) -> &Record {
    while let Record::Subagent { inner, .. } = record {
        record = inner;
    }
    record
}

/// What holds for what the model, the person and the tools were asked.
fn check_requests(stage: &Stage, pending: &[PendingCall]) {
    for request in stage.model.requests() {
        assert_eq!(request.conversation.check(), Ok(()));
        assert!(!request.conversation.messages().is_empty());
        assert!(request.tools.is_sorted_by(|a, b| a.name < b.name));
    }
    let ran = stage.toolbox.ran();
    for PendingCall { call, started } in pending {
        let runs_again = ran.contains(&call.id);
        let only_reads = READING.contains(&call.tool.as_str());
        assert!(!(*started && runs_again) || only_reads, "{} ran a second time", call.tool);
    }
    if stage.request.mode == Mode::Plan {
        let questions = stage.approver.questions();
        assert_eq!(questions, [], "nobody is asked for what plan mode denies");
    }
    let has_subagents =
        stage.journal.records().iter().any(|record| matches!(record, Record::Subagent { .. }));
    if has_subagents {
        return;
    }
    let mut once = HashSet::new();
    for (id, tool) in stage.toolbox.ran_with_tools() {
        // What may be repeated is, where it is unavailable.
        assert!(once.insert(id.clone()) || tool == "flaky_read", "{id} ran twice");
    }
    let mut refused = HashSet::new();
    for question in stage.approver.questions() {
        let key = format!("{:?}", (&question.call.tool, &question.call.arguments));
        assert!(!refused.contains(&key), "asked again: {key}");
        let id = &question.call.id;
        let said_no = stage.journal.records().iter().filter_map(message_of).any(|message| {
            result_of(message).is_some_and(|result| result.call_id == *id && by_person(result))
        });
        if said_no {
            refused.insert(key);
        }
    }
}

fn message_of(record: &Record) -> Option<&Arc<Message>> {
    match record {
        Record::Message { message } => Some(message),
        _ => None,
    }
}

fn result_of(message: &Arc<Message>) -> Option<&ToolResult> {
    match message.as_ref() {
        Message::Tool(tool) => Some(&tool.result),
        _ => None,
    }
}

fn by_person(result: &ToolResult) -> bool {
    matches!(&result.outcome, Err(error) if error.message.starts_with("denied by the user"))
}

/// What holds for a run that was read to its end.
fn check_played(
    before: &[Record],
    stage: &Stage,
    plan: &RunPlan,
    played: &Played,
    said: &[(String, bool)],
) {
    let Played { events, finished } = played;
    check_stream(events);
    assert_eq!(finished.conversation.check(), Ok(()));
    let records = stage.journal.records();
    let failed = stage.journal.failed();

    let results = |main_only: bool| {
        events.iter().filter(move |event| event.agent.is_none() || !main_only).filter_map(|event| {
            match &event.kind {
                EventKind::ToolResult(result) => Some(result),
                _ => None,
            }
        })
    };
    let shown: Vec<&ToolResult> = results(/* main_only */ true).collect();
    let kept: Vec<&ToolResult> =
        records.iter().filter_map(message_of).filter_map(result_of).collect();
    if failed {
        assert!(shown.starts_with(&kept), "the disk has nothing that was not shown");
    } else {
        assert_eq!(shown, kept, "the reader and the session are told the same");
    }
    for result in results(/* main_only */ false) {
        if let Err(error) = &result.outcome {
            let (denied, interrupted) =
                (error.message.contains("denied"), error.message.contains("interrupted"));
            assert!(error.kind != ToolErrorKind::Denied || !interrupted, "{error}");
            assert!(error.kind != ToolErrorKind::Canceled || !denied, "{error}");
        }
    }

    let is_denied = |result: &&ToolResult| matches!(&result.outcome, Err(error) if error.kind == ToolErrorKind::Denied);
    let denials = results(/* main_only */ false).filter(is_denied).count();
    let rounds = events
        .iter()
        .filter(|event| event.agent.is_none() && matches!(event.kind, EventKind::RoundStart))
        .count();
    assert!(rounds <= plan.max_turns as usize + usize::from(plan.last_answer));
    let Some(EventKind::Stop { reason, message, turns, usage, result, denials: counted, .. }) =
        events.last().map(|event| &event.kind)
    else {
        panic!("the last event is the stop");
    };
    assert_eq!((*counted as usize, *turns as usize), (denials, rounds));
    assert_eq!(
        (*reason, message, *turns, *usage, result, *counted),
        (
            finished.reason,
            &finished.message,
            finished.turns,
            finished.usage,
            &finished.result,
            finished.denials
        )
    );

    assert_eq!(*reason == StopReason::SessionError, failed);
    let all = || before.iter().chain(&records).cloned();
    if failed {
        check_same_but_unwritten(all(), played);
    } else {
        assert_eq!(replay(all()), finished.conversation);
        check_text(&records, played);
    }
    check_said(stage, plan, played, said);
}

/// On a full disk the session lacks what could not be written, and only that: the result that was
/// lost is read as an interruption, and messages may be missing at the end.
fn check_same_but_unwritten(records: impl Iterator<Item = Record>, played: &Played) {
    let ids = |messages: &[Arc<Message>]| -> Vec<String> {
        messages
            .iter()
            .map(|message| match message.as_ref() {
                Message::Tool(tool) => tool.result.call_id.clone(),
                other => format!("{other:?}"),
            })
            .collect()
    };
    let (on_disk, in_memory) =
        (ids(replay(records).messages()), ids(played.finished.conversation.messages()));
    assert!(in_memory.starts_with(&on_disk), "{on_disk:#?}\n{in_memory:#?}");
}

/// The text that was shown, less what a retry voided, is the text that is kept.
fn check_text(records: &[Record], played: &Played) {
    let mut shown = String::new();
    let mut round = String::new();
    for event in played.events.iter().filter(|event| event.agent.is_none()) {
        match &event.kind {
            EventKind::TextDelta { text } => round.push_str(text),
            EventKind::Retry { what, .. } if what == "model" => round.clear(),
            EventKind::RoundStart | EventKind::Stop { .. } => {
                shown.push_str(&std::mem::take(&mut round));
            }
            _ => {}
        }
    }
    let kept: String = records
        .iter()
        .filter_map(message_of)
        .filter_map(|message| match message.as_ref() {
            Message::Assistant(assistant) => Some(&assistant.parts),
            _ => None,
        })
        .flatten()
        .filter_map(|part| match part {
            AssistantPart::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    // Blank pieces are not kept.
    let visible = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(visible(&shown), visible(&kept));
}

/// What was taken is in the session once, or on a full disk in the conversation, and what was
/// refused is not; hooks may refuse too.
fn check_said(stage: &Stage, plan: &RunPlan, played: &Played, said: &[(String, bool)]) {
    if plan.hooks.is_some_and(|(point, _)| point == HookPoint::UserPrompt) {
        return;
    }
    let records = stage.journal.records();
    let on_disk: Vec<_> = records.iter().filter_map(message_of).cloned().collect();
    let mut texts = said_in(&on_disk);
    if stage.journal.failed() {
        // What made room may have left out of the conversation what the disk took before it failed.
        let unwritten = said_in(played.finished.conversation.messages());
        texts.extend(unwritten.into_iter().filter(|text| !said_in(&on_disk).contains(text)));
    }
    let number = |text: &str| text.rsplit(' ').next().map(str::to_owned);
    let own = said.first().and_then(|(text, _)| number(text));
    texts.retain(|text| number(text) == own);
    let taken: Vec<&str> =
        said.iter().filter(|(_, taken)| *taken).map(|(text, _)| text.as_str()).collect();
    assert_eq!(texts, taken, "what was said is read in its order");
}

/// The texts that a person said, in order.
fn said_in(messages: &[Arc<Message>]) -> Vec<&str> {
    messages
        .iter()
        .filter_map(|message| match message.as_ref() {
            Message::User(user) => user.parts.first(),
            _ => None,
        })
        .filter_map(|part| match &part.content {
            Content::Text { text } if text.starts_with("message ") => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Runs a check; where it fails, the events of the run are part of the message.
fn explained(played: &Played, check: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)) {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        panic!("{message}\nin {:#?}", lines(&played.events));
    }
}
