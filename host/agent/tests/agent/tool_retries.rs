//! Calls that are `unavailable`.

use crate::support::{Stage, Turn, call, done, lines, record_lines};
use belljar_types::{EventKind, StopReason};
use std::time::Duration;

const TOOLS: &[&str] = &["flaky", "flaky_idempotent", "flaky_read"];

async fn tried(turn: Turn) -> (Stage, Vec<String>) {
    let stage = Stage::new(vec![turn]).tools(TOOLS);
    let played = stage.play().await;
    let shown = lines(&played.events)
        .into_iter()
        .filter(|line| line.contains(" tool_result ") || line.contains(" retry "))
        .collect();
    (stage, shown)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_reads_or_may_be_repeated_is_tried_three_times() {
    for tool in ["flaky_read", "flaky_idempotent"] {
        let (stage, shown) = tried(vec![call("c1", tool, ""), done()]).await;
        assert_eq!(
            shown,
            [
                format!("1 retry tool 2 in 200 ms: `{tool}`: not now (1)"),
                format!("1 retry tool 3 in 400 ms: `{tool}`: not now (2)"),
                format!("1 tool_result c1 {tool} ok {{}}"),
            ]
        );
        assert_eq!(stage.toolbox.ran(), ["c1", "c1", "c1"]);
        // It started once, and the receipt of each attempt is kept.
        assert_eq!(
            record_lines(&stage.journal.records())[3..7],
            [
                "call_started c1".to_owned(),
                "call_done c1 receipt".to_owned(),
                "call_done c1 receipt".to_owned(),
                format!("tool c1 {tool} ok {{}}"),
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_third_attempt_the_failure_is_the_result() {
    let (_, shown) = tried(vec![call("c1", "flaky_read", r#"{"times":9}"#), done()]).await;
    assert_eq!(shown[2..], ["1 tool_result c1 flaky_read unavailable: not now (3)"]);
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_repeated_is_not() {
    let (stage, shown) =
        tried(vec![call("c1", "flaky", ""), call("c2", "failing", ""), done()]).await;
    assert_eq!(
        shown,
        [
            "1 tool_result c1 flaky unavailable: not now (1)",
            "1 tool_result c2 failing failed: it cannot be done",
        ]
    );
    assert_eq!(stage.toolbox.ran(), ["c1", "c2"]);
}

#[tokio::test(start_paused = true)]
async fn the_tools_own_wait_is_the_least_and_too_long_a_one_is_final() {
    let (_, shown) =
        tried(vec![call("c1", "flaky_read", r#"{"times":1,"after":900}"#), done()]).await;
    assert_eq!(shown[0], "1 retry tool 2 in 900 ms: `flaky_read`: not now (1)");
    let (_, shown) = tried(vec![call("c1", "flaky_read", r#"{"after":60000}"#), done()]).await;
    assert_eq!(shown, ["1 tool_result c1 flaky_read unavailable: not now (1)"]);
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_a_value_that_can_be_replaced() {
    let stage = Stage::new(vec![vec![call("c1", "flaky_read", ""), done()]])
        .tools(TOOLS)
        .settings(|settings| settings.tool_retry.attempts = 1);
    let played = stage.play().await;
    assert_eq!(stage.toolbox.ran(), ["c1"]);
    assert_eq!(played.finished.reason, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_between_two_attempts_is_told_as_one() {
    let turn = vec![call("c1", "flaky_read", r#"{"after":9000}"#), done()];
    let stage = Stage::new(vec![turn]).tools(TOOLS);
    let began = tokio::time::Instant::now();
    let played = crate::support::read(stage.start(), |run, event| {
        if matches!(event.kind, EventKind::Retry { .. }) {
            run.cancel();
        }
    })
    .await;
    assert!(began.elapsed() <= Duration::from_millis(100));
    assert_eq!(played.finished.reason, StopReason::Canceled);
    assert!(lines(&played.events).contains(
        &"1 tool_result c1 flaky_read canceled: interrupted by the user while the call ran; it \
          only reads, so nothing was changed"
            .to_owned()
    ));
}
