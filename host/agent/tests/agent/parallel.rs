//! Calls that run at once.

use crate::support::{Stage, call, done, lines, record_lines, text};
use belljar_types::{EventKind, Mode, StopReason};
use std::time::Duration;

fn tool_lines(played: &crate::support::Played) -> Vec<String> {
    lines(&played.events).into_iter().filter(|line| line.contains(" tool_")).collect()
}

#[tokio::test(start_paused = true)]
async fn neighbouring_calls_that_read_run_at_once_with_results_in_call_order() {
    let stage = Stage::new(vec![
        vec![
            call("c1", "slow_read", ""),
            call("c2", "read", ""),
            call("c3", "slow_read", ""),
            done(),
        ],
        vec![text("Done."), done()],
    ]);
    let played = stage.play().await;
    assert_eq!(
        tool_lines(&played),
        [
            "1 tool_call_start c1 box:slow_read {}",
            "1 tool_call_start c2 box:read {}",
            "1 tool_call_start c3 box:slow_read {}",
            "1 tool_result c1 slow_read ok {}",
            "1 tool_call_done c1 receipt",
            "1 tool_result c2 read ok {}",
            "1 tool_call_done c2 receipt",
            "1 tool_result c3 slow_read ok {}",
            "1 tool_call_done c3 receipt",
        ]
    );
    let Some(EventKind::Stop { duration_ms, .. }) = played.events.last().map(|event| &event.kind)
    else {
        panic!("the last event is the stop");
    };
    // The clock is the test's: two calls of a second each took one.
    assert_eq!(*duration_ms, 1000);
    assert_eq!(
        record_lines(&stage.journal.records())[2..],
        [
            "assistant c1:slow_read{} c2:read{} c3:slow_read{}",
            "call_started c1",
            "call_started c2",
            "call_started c3",
            "tool c1 slow_read ok {}",
            "call_done c1 receipt",
            "tool c2 read ok {}",
            "call_done c2 receipt",
            "tool c3 slow_read ok {}",
            "call_done c3 receipt",
            "assistant \"Done.\"",
            "stopped Completed \"\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_write_runs_alone_and_in_its_place() {
    let stage = Stage::new(vec![vec![
        call("c1", "slow_read", ""),
        call("c2", "slow", ""),
        call("c3", "slow_read", ""),
        call("c4", "slow_read", ""),
        done(),
    ]]);
    let played = stage.play().await;
    let starts: Vec<_> = tool_lines(&played)
        .into_iter()
        .filter_map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            (words[1] != "tool_call_done").then(|| format!("{} {}", words[1], words[2]))
        })
        .collect();
    assert_eq!(
        starts,
        [
            "tool_call_start c1",
            "tool_result c1",
            "tool_call_start c2",
            "tool_result c2",
            "tool_call_start c3",
            "tool_call_start c4",
            "tool_result c3",
            "tool_result c4",
        ]
    );
    assert_eq!(stage.toolbox.ran(), ["c1", "c2", "c3", "c4"]);
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_where_so_set() {
    let stage = Stage::new(vec![vec![
        call("c1", "slow_read", ""),
        call("c2", "slow_read", ""),
        call("c3", "slow_read", ""),
        done(),
    ]]);
    for (at_once, seconds) in [(1, 3), (2, 2), (3, 1), (0, 3)] {
        let stage = Stage {
            settings: stage.settings.clone(),
            ..Stage::new(vec![vec![
                call("c1", "slow_read", ""),
                call("c2", "slow_read", ""),
                call("c3", "slow_read", ""),
                done(),
            ]])
        }
        .settings(|settings| settings.parallel_calls = at_once);
        let began = tokio::time::Instant::now();
        stage.play().await;
        assert_eq!(began.elapsed(), Duration::from_secs(seconds), "{at_once} at once");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_leaves_its_siblings_alone() {
    let stage = Stage::new(vec![vec![
        call("c1", "slow_read", ""),
        call("c2", "read", r#"{"bad":1}"#),
        call("c3", "slow_read", "{"),
        call("c4", "slow_read", r#"{"n":4}"#),
        done(),
    ]]);
    let played = stage.play().await;
    let results: Vec<_> =
        tool_lines(&played).into_iter().filter(|line| line.contains("_result")).collect();
    assert_eq!(results.len(), 4);
    assert_eq!(
        [&results[0], &results[1], &results[3]],
        [
            "1 tool_result c1 slow_read ok {}",
            "1 tool_result c2 read invalid_arguments: `bad` is not of the schema",
            "1 tool_result c4 slow_read ok {\"n\":4}",
        ]
    );
    assert_eq!(played.finished.reason, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_gives_each_of_them_its_result_in_time() {
    let stage = Stage::new(vec![vec![
        call("c1", "read", ""),
        call("c2", "slow_read", ""),
        call("c3", "slow_read", ""),
        call("c4", "slow", ""),
        done(),
    ]])
    .request(|request| request.mode = Mode::Chat);
    let began = tokio::time::Instant::now();
    let played = crate::support::read(stage.start(), |run, event| {
        if matches!(event.kind, EventKind::ToolResult(_)) {
            run.cancel();
        }
    })
    .await;
    assert!(began.elapsed() <= Duration::from_millis(100));
    let reads = "canceled: interrupted by the user while the call ran; it only reads, so nothing \
                 was changed";
    let results: Vec<_> =
        tool_lines(&played).into_iter().filter(|line| line.contains("_result")).collect();
    assert_eq!(
        results,
        [
            "1 tool_result c1 read ok {}".to_owned(),
            format!("1 tool_result c2 slow_read {reads}"),
            format!("1 tool_result c3 slow_read {reads}"),
            "1 tool_result c4 slow canceled: interrupted by the user before the call ran"
                .to_owned(),
        ]
    );
}
