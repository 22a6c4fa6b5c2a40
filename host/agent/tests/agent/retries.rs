//! Model requests that fail: what is tried again, what is kept, what is said.

use crate::support::{
    Stage, Step, call, conversation_lines, done, fails, fails_after, lines, text, usage,
};
use belljar_types::{ModelErrorKind, StopReason};

const START: &str = "0 start s1 p/m demo Chat default 13 tools";

#[tokio::test(start_paused = true)]
async fn passing_failures_are_tried_again_with_growing_delays() {
    let stage = Stage::new(vec![
        vec![fails(ModelErrorKind::Connection)],
        vec![fails(ModelErrorKind::Server)],
        vec![fails_after(ModelErrorKind::RateLimited, 20)],
        vec![],
        vec![text("Hi."), done()],
    ]);
    let played = stage
        .expect(&[
            START,
            "1 round_start",
            "1 retry model 2 in 500 ms: the server says connection",
            "1 retry model 3 in 1000 ms: the server says server",
            "1 retry model 4 in 20000 ms: the server says rate_limited",
            "1 retry model 5 in 4000 ms: the model's stream ended before its answer did",
            "1 text_delta \"Hi.\"",
            "1 assistant_text \"Hi.\"",
            "1 stop Completed \"\" turns=1 ms=25500 usage=0/0 result=\"Hi.\" denials=0 s1",
        ])
        .await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"Hi.\""]
    );
}

#[tokio::test(start_paused = true)]
async fn after_five_attempts_the_failure_is_final() {
    let stage = Stage::new(vec![vec![fails(ModelErrorKind::Server)]; 5]);
    let played = stage.play().await;
    assert_eq!(stage.model.requests().len(), 5);
    assert_eq!(
        lines(&played.events)[6..],
        [
            "1 error server: the server says server (5 attempts)",
            "1 stop StreamError \"the server says server (5 attempts)\" turns=1 ms=7500 \
             usage=0/0 result=\"\" denials=0 s1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn each_round_has_attempts_of_its_own() {
    let round = |id| {
        [
            vec![fails(ModelErrorKind::Server)],
            vec![fails(ModelErrorKind::Server)],
            vec![call(id, "read", ""), done()],
        ]
    };
    let turns = [round("c1"), round("c2"), round("c3")].concat();
    let stage = Stage::new(turns);
    assert_eq!(stage.play().await.finished.reason, StopReason::Completed);
    assert_eq!(stage.model.requests().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_cut_stream_is_void_and_its_calls_never_ran() {
    let stage = Stage::new(vec![
        vec![text("Hel"), call("c1", "read", ""), usage(10, 1), fails(ModelErrorKind::Cut)],
        vec![text("Bye"), call("c1", "read", ""), usage(10, 2), done()],
        vec![done()],
    ]);
    let played = stage
        .expect(&[
            START,
            "1 round_start",
            "1 text_delta \"Hel\"",
            "1 usage 10/1 of 10/1",
            "1 retry model 2 in 500 ms: the server says cut",
            "1 text_delta \"Bye\"",
            "1 usage 10/2 of 20/3",
            "1 assistant_text \"Bye\"",
            "1 tool_call_start c1 box:read {}",
            "1 tool_result c1 read ok {}",
            "1 tool_call_done c1 receipt",
            "2 round_start",
            "2 notice the model ended its turn without an answer",
            "2 stop Completed \"\" turns=2 ms=500 usage=20/3 result=\"\" denials=0 s1",
        ])
        .await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"Bye\" c1:read{}", "tool c1 read ok {}"]
    );
    assert_eq!(stage.toolbox.ran(), ["c1"]);
}

#[tokio::test(start_paused = true)]
async fn of_a_stream_that_fails_for_good_the_shown_text_is_kept_as_cut() {
    let stage = Stage::new(vec![vec![
        text("Half an "),
        call("c1", "read", ""),
        text("answer"),
        fails(ModelErrorKind::Protocol),
    ]]);
    let played = stage
        .expect(&[
            START,
            "1 round_start",
            "1 text_delta \"Half an \"",
            "1 text_delta \"answer\"",
            "1 assistant_text \"Half an answer\"",
            "1 error protocol: the server says protocol",
            "1 stop StreamError \"the server says protocol\" turns=1 ms=0 usage=0/0 \
             result=\"Half an answer\" denials=0 s1",
        ])
        .await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"Half an \" \"answer\" (cut)"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_no_retry_mends_is_final_at_once() {
    for (kind, reason) in [
        (ModelErrorKind::Authentication, StopReason::StreamError),
        (ModelErrorKind::Request, StopReason::StreamError),
        (ModelErrorKind::Configuration, StopReason::StreamError),
        (ModelErrorKind::ContextOverflow, StopReason::ContextOverflow),
    ] {
        let stage = Stage::new(vec![vec![fails(kind)]]);
        let played = stage.play().await;
        assert_eq!(stage.model.requests().len(), 1);
        assert_eq!(played.finished.reason, reason);
        assert_eq!(
            lines(&played.events)[2],
            format!("1 error {}: the server says {}", kind.name(), kind.name())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_too_long_a_wait_is_not_waited_for() {
    let stage = Stage::new(vec![vec![fails_after(ModelErrorKind::RateLimited, 600)]]);
    stage
        .expect(&[
            START,
            "1 round_start",
            "1 error rate_limited: the server says rate_limited; the server asks to wait 600 s, \
             more than the 120 s that a run waits: try again later",
            "1 stop StreamError \"the server says rate_limited; the server asks to wait 600 s, \
             more than the 120 s that a run waits: try again later\" turns=1 ms=0 usage=0/0 \
             result=\"\" denials=0 s1",
        ])
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_stream_ends_the_run_in_order() {
    let stage = Stage::new(vec![vec![text("Hi"), Step::Panic]]);
    stage
        .expect(&[
            START,
            "1 round_start",
            "1 text_delta \"Hi\"",
            "1 assistant_text \"Hi\"",
            "1 error protocol: reading the model's answer panicked, which is a bug: the model is \
             broken",
            "1 stop StreamError \"reading the model's answer panicked, which is a bug: the model \
             is broken\" turns=1 ms=0 usage=0/0 result=\"Hi\" denials=0 s1",
        ])
        .await;
}
