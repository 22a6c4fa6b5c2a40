//! The loop under random models, tools, answers, readers and disks: what must hold whatever
//! happens.

use crate::support::{
    Asked, MemoryJournal, Played, Stage, Step, Turn, check_stream, fails, fails_after, finish,
    lines,
};
use belljar_agent::replay;
use belljar_types::{
    ApprovalAnswer, Arguments, AssistantPart, EventKind, FinishReason, Message, ModelErrorKind,
    ModelEvent, Reasoning, Record, StopReason, ToolCall, ToolErrorKind, ToolResult, Usage,
};
use futures::StreamExt;
use proptest::{collection::vec, option, prelude::*, sample::select};
use std::{collections::HashSet, time::Duration};
use tokio::time::Instant;

/// What the person at the other end does to a run, at an event of it.
#[derive(Clone, Copy, Debug)]
enum Interference {
    Cancel,
    CancelSlowly,
    End,
    Leave,
}

#[derive(Clone, Debug)]
struct Plan {
    turns: Vec<Turn>,
    answers: Vec<Asked>,
    interference: Option<(usize, Interference)>,
    journal_fails_at: Option<(usize, bool)>,
    event_buffer: usize,
    max_turns: u32,
    reader_delay: Duration,
}

fn texts() -> impl Strategy<Value = String> {
    select(vec!["", " ", "\n", "Hello", " world"]).prop_map(str::to_owned)
}

fn calls() -> impl Strategy<Value = Step> {
    let tools = select(vec![
        "read",
        "read",
        "write",
        "write",
        "write",
        "write",
        "locked",
        "hidden",
        "failing",
        "slow",
        "slow_read",
        "stuck",
        "late",
        "queued",
        "chatty",
        "flood",
        "broken",
        "cracked",
        "nothing",
        "nothing",
        "",
    ]);
    let arguments =
        select(vec!["", "{}", r#"{"p":1}"#, r#"{"p":1}"#, r#"{"bad":1}"#, "{\"p\":", "[1]"]);
    (tools, arguments).prop_map(|(tool, arguments)| {
        Step::Event(ModelEvent::ToolCall(ToolCall {
            // Made unique below, but for a few.
            id: String::new(),
            tool: tool.to_owned(),
            arguments: Arguments::parse(arguments),
        }))
    })
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => texts().prop_map(|text| Step::Event(ModelEvent::Text(text))),
        1 => texts().prop_map(|text| Step::Event(ModelEvent::ReasoningDelta(text))),
        1 => texts().prop_map(|text| Step::Event(ModelEvent::Reasoning(Reasoning {
            text,
            signature: None,
            data: None,
        }))),
        8 => calls(),
        1 => (option::of(0..9_u64), option::of(0..9_u64)).prop_map(|(input, output)| {
            Step::Event(ModelEvent::Usage(Usage {
                input_tokens: input,
                output_tokens: output,
                cached_tokens: None,
            }))
        }),
        1 => (0..2000_u64).prop_map(|ms| Step::Wait(Duration::from_millis(ms))),
    ]
}

fn endings() -> impl Strategy<Value = Option<Step>> {
    let reasons = select(vec![
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::Pause,
        FinishReason::Refused,
    ]);
    let errors = select(vec![
        ModelErrorKind::Connection,
        ModelErrorKind::RateLimited,
        ModelErrorKind::Server,
        ModelErrorKind::Cut,
        ModelErrorKind::Cut,
        ModelErrorKind::Protocol,
        ModelErrorKind::Authentication,
        ModelErrorKind::ContextOverflow,
    ]);
    prop_oneof![
        24 => reasons.prop_map(|reason| Some(finish(reason))),
        4 => errors.prop_map(|kind| Some(fails(kind))),
        1 => (0..200_u64).prop_map(|s| Some(fails_after(ModelErrorKind::RateLimited, s))),
        1 => Just(Some(Step::Panic)),
        1 => Just(None),
    ]
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (vec(steps(), 0..8), endings()).prop_map(|(mut steps, ending)| {
        steps.extend(ending);
        steps
    });
    // One call id in sixty or so is used again.
    (vec(turn, 1..8), vec(0..60_u32, 64)).prop_map(|(mut turns, dice)| {
        let mut next = 0;
        for step in turns.iter_mut().flatten() {
            if let Step::Event(ModelEvent::ToolCall(call)) = step {
                let again = dice[next % dice.len()] == 0;
                call.id = format!("c{}", if again { 0 } else { next });
                next += 1;
            }
        }
        turns
    })
}

fn answers() -> impl Strategy<Value = Vec<Asked>> {
    let answer = select(vec![
        ApprovalAnswer::Once,
        ApprovalAnswer::Session,
        ApprovalAnswer::No,
        ApprovalAnswer::NoBecause("not now".to_owned()),
    ]);
    let asked = prop_oneof![
        4 => answer.clone().prop_map(Asked::Answers),
        2 => answer.prop_map(|answer| Asked::AnswersAfter(Duration::from_secs(1), answer)),
        1 => Just(Asked::Nobody),
        1 => Just(Asked::Panics),
    ];
    vec(asked, 0..4)
}

fn plans() -> impl Strategy<Value = Plan> {
    let interference = select(vec![
        Interference::Cancel,
        Interference::Cancel,
        Interference::CancelSlowly,
        Interference::End,
        Interference::Leave,
    ]);
    (
        turns(),
        answers(),
        option::weighted(0.6, (0..24_usize, interference)),
        option::weighted(0.2, (0..20_usize, any::<bool>())),
        1..5_usize,
        prop_oneof![1 => Just(0), 9 => 1..7_u32],
        select(vec![0, 0, 0, 700]),
    )
        .prop_map(
            |(turns, answers, interference, journal_fails_at, event_buffer, max_turns, delay)| {
                Plan {
                    turns,
                    answers,
                    interference,
                    journal_fails_at,
                    event_buffer,
                    max_turns,
                    reader_delay: Duration::from_millis(delay),
                }
            },
        )
}

fn stage(plan: &Plan) -> Stage {
    let journal = match plan.journal_fails_at {
        Some((index, /* panics */ true)) => MemoryJournal::panicking_at(index),
        Some((index, /* panics */ false)) => MemoryJournal::failing_at(index),
        None => MemoryJournal::default(),
    };
    Stage::new(plan.turns.clone()).asked(plan.answers.clone()).journal(journal).settings(
        |settings| {
            settings.event_buffer = plan.event_buffer;
            settings.max_turns = plan.max_turns;
        },
    )
}

/// Plays a plan; nothing comes back where its reader left.
async fn play(plan: &Plan, stage: &Stage) -> Option<Played> {
    let mut run = stage.start();
    let mut events = Vec::new();
    let mut canceled_at = None;
    while let Some(event) = run.next().await {
        let index = events.len();
        events.push(event);
        match plan.interference {
            Some((at, interference)) if at == index => match interference {
                Interference::Cancel | Interference::CancelSlowly => {
                    run.cancel();
                    canceled_at = Some(Instant::now());
                    if matches!(interference, Interference::CancelSlowly) {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        check_session(stage);
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                }
                Interference::End => run.end(),
                Interference::Leave => return None,
            },
            // A reader that is waited for when it is too late would only be slow.
            _ if canceled_at.is_none() => tokio::time::sleep(plan.reader_delay).await,
            _ => {}
        }
    }
    if let (Some(at), Some((_, Interference::Cancel))) = (canceled_at, plan.interference) {
        assert!(at.elapsed() <= Duration::from_millis(100), "{:?} after a cancel", at.elapsed());
    }
    Some(Played { events, finished: run.finish().await.unwrap() })
}

/// What holds for the session alone, wherever it broke off.
fn check_session(stage: &Stage) {
    let records = stage.journal.records();
    for count in 0..=records.len() {
        let conversation = replay(records[..count].to_vec());
        assert_eq!(conversation.check(), Ok(()), "after {count} records");
    }
    assert!(stage.journal.failed_attempts() <= 1, "written after a failure");
    let stops = records.iter().filter(|record| matches!(record, Record::Stopped { .. })).count();
    assert_eq!(stops, usize::from(!stage.journal.failed()), "one stop, but on a full disk");
    if stops == 1 {
        assert!(matches!(records.last(), Some(Record::Stopped { .. })));
    }
    let started: Vec<&str> = records
        .iter()
        .filter_map(|record| match record {
            Record::CallStarted { call_id } => Some(call_id.as_str()),
            _ => None,
        })
        .collect();
    let ran = stage.toolbox.ran();
    assert_eq!(ran.iter().collect::<HashSet<_>>().len(), ran.len(), "{ran:?} ran twice");
    for id in &ran {
        assert!(started.contains(&id.as_str()), "{id} ran without a record");
    }
}

/// What holds for every request that the model got.
fn check_requests(stage: &Stage, plan: &Plan) {
    let requests = stage.model.requests();
    for request in &requests {
        assert_eq!(request.conversation.check(), Ok(()));
    }
    assert!(requests.len() <= 5 * plan.max_turns as usize);
    let mut refused = HashSet::new();
    for question in stage.approver.questions() {
        let key = (question.call.tool.clone(), question.call.arguments.clone());
        assert!(!refused.contains(&format!("{key:?}")), "asked again: {key:?}");
        let id = &question.call.id;
        let said_no = stage.journal.records().iter().any(|record| {
            matches!(record, Record::Message { message } if matches!(message.as_ref(),
                Message::Tool(tool) if tool.result.call_id == *id && by_person(&tool.result)))
        });
        if said_no {
            refused.insert(format!("{key:?}"));
        }
    }
}

fn message_of(record: &Record) -> Option<&std::sync::Arc<Message>> {
    match record {
        Record::Message { message } => Some(message),
        _ => None,
    }
}

fn result_of(message: &std::sync::Arc<Message>) -> Option<&ToolResult> {
    match message.as_ref() {
        Message::Tool(tool) => Some(&tool.result),
        _ => None,
    }
}

fn by_person(result: &ToolResult) -> bool {
    matches!(&result.outcome, Err(error) if error.message.starts_with("denied by the user"))
}

fn check_played(stage: &Stage, played: &Played) {
    let Played { events, finished } = played;
    check_stream(events);
    assert_eq!(finished.conversation.check(), Ok(()));

    let shown: Vec<&ToolResult> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect();
    // The session holds them all; what the model reads next may stand for some of them.
    let records = stage.journal.records();
    let kept: Vec<&ToolResult> = match stage.journal.failed() {
        true => finished.conversation.messages().iter().filter_map(result_of).collect(),
        false => records.iter().filter_map(message_of).filter_map(result_of).collect(),
    };
    assert_eq!(shown, kept, "the reader and the model are told the same");
    for result in &kept {
        if let Err(error) = &result.outcome {
            let (denied, interrupted) =
                (error.message.contains("denied"), error.message.contains("interrupted"));
            assert!(error.kind != ToolErrorKind::Denied || !interrupted, "{error}");
            assert!(error.kind != ToolErrorKind::Canceled || !denied, "{error}");
        }
    }

    let denials = shown
        .iter()
        .filter(
            |result| matches!(&result.outcome, Err(error) if error.kind == ToolErrorKind::Denied),
        )
        .count();
    let rounds = events.iter().filter(|event| matches!(event.kind, EventKind::RoundStart)).count();
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

    if stage.journal.failed() {
        assert_eq!(*reason, StopReason::SessionError);
        check_same_but_results(stage, played);
    } else {
        assert_ne!(*reason, StopReason::SessionError);
        assert_eq!(replay(stage.journal.records()), finished.conversation);
    }
    check_text(stage, played);
}

/// On a full disk the session lacks what could not be written, and only that: the result that
/// was lost is read as an interruption.
fn check_same_but_results(stage: &Stage, played: &Played) {
    let ids = |messages: &[std::sync::Arc<Message>]| -> Vec<String> {
        messages
            .iter()
            .map(|message| match message.as_ref() {
                Message::Tool(tool) => tool.result.call_id.clone(),
                other => format!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(
        ids(replay(stage.journal.records()).messages()),
        ids(played.finished.conversation.messages())
    );
}

/// The text that was shown, less what a retry voided, is the text that is kept.
fn check_text(stage: &Stage, played: &Played) {
    let records = stage.journal.records();
    if played.finished.reason == StopReason::SessionError {
        return;
    }
    let mut shown = String::new();
    let mut round = String::new();
    for event in &played.events {
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

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2048,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_run_ends_in_order(plan in plans()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let stage = stage(&plan);
            match play(&plan, &stage).await {
                Some(played) => {
                    eprint_on_failure(&played, || check_played(&stage, &played));
                }
                // The bookkeeping is done within the time that is promised for a cancel.
                None => tokio::time::sleep(Duration::from_millis(100)).await,
            }
            check_session(&stage);
            check_requests(&stage, &plan);
        });
    }
}

/// Runs a check; where it fails, the events of the run are part of the message.
fn eprint_on_failure(played: &Played, check: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)) {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_default();
        panic!("{message}\nin {:#?}", lines(&played.events));
    }
}
