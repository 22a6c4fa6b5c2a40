//! Cancelling at every point: at once, in order, and with a conversation that can be gone on with.

use crate::support::{
    Asked, Played, Stage, Step, Turn, call, conversation_lines, done, fails, lines, read, text,
};
use belljar_agent::replay;
use belljar_types::{ApprovalAnswer, EventKind, ModelErrorKind, Record, StopReason};
use futures::StreamExt;
use std::time::Duration;
use tokio::time::Instant;

/// Plays a turn with a call to `tool` and cancels 300 ms after the event that `at` picks.
async fn canceled_after(stage: &Stage, at: fn(&EventKind) -> bool) -> Played {
    let played = read(stage.start(), |run, event| {
        if at(&event.kind) {
            let handle = run.handle();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                handle.cancel();
            });
        }
    })
    .await;
    assert_eq!(played.finished.reason, StopReason::Canceled);
    let Some(EventKind::Stop { duration_ms, .. }) = played.events.last().map(|event| &event.kind)
    else {
        panic!("the last event is the stop");
    };
    assert!((300..=400).contains(duration_ms), "stopped after {duration_ms} ms");
    played
}

fn tail(played: &Played, count: usize) -> Vec<String> {
    lines(&played.events).split_off(played.events.len() - count)
}

fn stop(ms: u32, result: &str) -> String {
    format!(
        "1 stop Canceled \"interrupted by the user\" turns=1 ms={ms} usage=0/0 \
         result=\"{result}\" denials=0 s1"
    )
}

fn on_round(kind: &EventKind) -> bool {
    matches!(kind, EventKind::RoundStart)
}

fn on_call(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ToolCallStart { .. })
}

#[tokio::test(start_paused = true)]
async fn in_the_stream_the_shown_text_is_kept_as_cut() {
    let stage = Stage::new(vec![vec![
        text("Hel"),
        call("c1", "read", ""),
        Step::Wait(Duration::from_secs(60)),
        done(),
    ]]);
    let played = canceled_after(&stage, on_round).await;
    assert_eq!(
        tail(&played, 3),
        [
            "1 text_delta \"Hel\"".to_owned(),
            "1 assistant_text \"Hel\"".to_owned(),
            stop(300, "Hel")
        ]
    );
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"Hel\" (cut)"]
    );
}

#[tokio::test(start_paused = true)]
async fn in_the_delay_before_a_retry_what_was_void_stays_void() {
    let stage = Stage::new(vec![vec![text("Hel"), fails(ModelErrorKind::Cut)]]);
    let played = canceled_after(&stage, on_round).await;
    assert_eq!(
        tail(&played, 2),
        ["1 retry model 2 in 500 ms: the server says cut".to_owned(), stop(300, "")]
    );
    assert_eq!(conversation_lines(&played.finished.conversation), ["user \"go\""]);
    assert_eq!(stage.model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn in_an_approval_the_call_has_not_run() {
    let late = Asked::AnswersAfter(Duration::from_secs(60), ApprovalAnswer::Once);
    let stage = Stage::new(vec![vec![call("c1", "write", ""), call("c2", "read", ""), done()]])
        .asked(vec![late]);
    let played = canceled_after(&stage, on_call).await;
    assert_eq!(
        tail(&played, 7),
        [
            "1 approval c1 write may `write` change files? once,session,no,no_because".to_owned(),
            "1 tool_result c1 write canceled: interrupted by the user before the call \
             ran"
            .to_owned(),
            "1 tool_call_done c1 -".to_owned(),
            "1 tool_call_start c2 box:read {}".to_owned(),
            "1 tool_result c2 read canceled: interrupted by the user before the call \
             ran"
            .to_owned(),
            "1 tool_call_done c2 -".to_owned(),
            stop(300, ""),
        ]
    );
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_running_call_says_whether_it_may_have_taken_effect() {
    for (tool, result, done, ms) in [
        (
            "slow",
            "canceled: interrupted by the user while the call ran; it may have taken \
             effect",
            "receipt",
            300,
        ),
        (
            "slow_read",
            "canceled: interrupted by the user while the call ran; it only reads, so \
             nothing was changed",
            "receipt",
            300,
        ),
        ("queued", "canceled: interrupted by the user before the call ran", "-", 300),
        // It is left behind when it does not answer.
        (
            "stuck",
            "canceled: interrupted by the user while the call ran; it may have taken \
             effect",
            "-",
            390,
        ),
        // It was faster than the cancel: what it did is told.
        ("late", "ok {}", "receipt", 350),
    ] {
        let stage = Stage::new(vec![vec![call("c1", tool, ""), crate::support::done()]]);
        let played = canceled_after(&stage, on_call).await;
        assert_eq!(
            tail(&played, 3),
            [
                format!("1 tool_result c1 {tool} {result}"),
                format!("1 tool_call_done c1 {done}"),
                stop(ms, ""),
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_still_gets_the_rest_in_order() {
    let stage = Stage::new(vec![vec![
        text("a"),
        text("b"),
        text("c"),
        text("d"),
        call("c1", "read", ""),
        done(),
    ]])
    .settings(|settings| settings.event_buffer = 1);
    let mut run = stage.start();
    let mut events = vec![run.next().await.unwrap()];
    // The loop now waits for its reader, in the middle of the stream.
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.cancel();
    // Within the promised time the bookkeeping is done, whether or not anybody reads.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let records = stage.journal.records();
    assert!(matches!(records.last(), Some(Record::Stopped { reason: StopReason::Canceled, .. })));
    tokio::time::sleep(Duration::from_secs(60)).await;
    while let Some(event) = run.next().await {
        events.push(event);
    }
    crate::support::check_stream(&events);
    let finished = run.finish().await.unwrap();
    assert_eq!(finished.reason, StopReason::Canceled);
    assert_eq!(replay(records), finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_goes_away_cancels_and_the_session_is_closed() {
    let stage = Stage::new(vec![vec![call("c1", "stuck", ""), call("c2", "read", ""), done()]]);
    let mut run = stage.start();
    while let Some(event) = run.next().await {
        if on_call(&event.kind) {
            break;
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(run);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let records = stage.journal.records();
    assert!(matches!(records.last(), Some(Record::Stopped { reason: StopReason::Canceled, .. })));
    assert_eq!(
        conversation_lines(&replay(records)),
        [
            "user \"go\"",
            "assistant c1:stuck{} c2:read{}",
            "tool c1 stuck canceled: interrupted by the user while the call ran; it \
             may have taken effect",
            "tool c2 read canceled: interrupted by the user before the call ran",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn cancelling_what_the_run_was_started_under_cancels_it() {
    let stage = Stage::new(vec![vec![Step::Wait(Duration::from_secs(60)), done()]]);
    let parent = stage.request.cancel.clone();
    let played = read(stage.start(), |_, _| parent.cancel()).await;
    assert_eq!(played.finished.reason, StopReason::Canceled);

    let stage = Stage::new(vec![vec![Step::Wait(Duration::from_secs(60)), done()]]);
    read(stage.start(), |run, _| run.cancel()).await;
    assert!(!stage.request.cancel.is_cancelled());
}

/// A retry, a call, an approval, a slow call, an unknown one, and an answer.
fn scenario() -> Stage {
    let turns: Vec<Turn> = vec![
        vec![text("Hel"), fails(ModelErrorKind::Cut)],
        vec![text("Hello."), call("c1", "read", ""), call("c2", "write", ""), done()],
        vec![call("c3", "chatty", ""), call("c4", "nothing", ""), call("c5", "slow", ""), done()],
        vec![text("Bye"), text("."), done()],
    ];
    let answer = Asked::AnswersAfter(Duration::from_secs(1), ApprovalAnswer::Once);
    Stage::new(turns).asked(vec![answer]).settings(|settings| settings.event_buffer = 1)
}

#[tokio::test(start_paused = true)]
async fn at_every_event_of_a_run() {
    let whole = scenario().play().await;
    assert_eq!(whole.finished.reason, StopReason::Completed);
    let count = whole.events.len();
    for index in 0..count {
        let stage = scenario();
        let mut seen = 0;
        let mut canceled_at = None;
        let played = read(stage.start(), |run, _| {
            if seen == index {
                run.cancel();
                canceled_at = Some(Instant::now());
            }
            seen += 1;
        })
        .await;
        let took = canceled_at.unwrap().elapsed();
        assert!(took <= Duration::from_millis(100), "event {index}: {took:?}");
        // The loop may be two events ahead of its reader, and so may have decided on its stop
        // when the one before the last two is read.
        let reason = played.finished.reason;
        let decided = index + 4 >= count && reason == StopReason::Completed;
        assert!(decided || reason == StopReason::Canceled, "event {index} of {count}: {reason:?}");
        assert_eq!(lines(&played.events)[..index], lines(&whole.events)[..index]);
        assert_eq!(replay(stage.journal.records()), played.finished.conversation);
    }
}
