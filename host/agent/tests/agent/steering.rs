//! What a person says while a run is busy.

use crate::support::{
    Played, Stage, Step, call, conversation_lines, done, fails, lines, read, record_lines, text,
};
use belljar_agent::{Run, SteerError, replay};
use belljar_types::{Event, EventKind, ModelErrorKind, Origin, Part, StopReason};
use std::time::Duration;

fn say(run: &Run, text: &str) -> Result<(), SteerError> {
    run.steer(vec![Part::text(text, Origin::Person)])
}

/// Plays a stage, saying each text at the event whose line it stands by.
async fn steered(stage: &Stage, said: &[(&str, &str)]) -> Played {
    read(stage.start(), |run, event: &Event| {
        let line = lines(std::slice::from_ref(event)).remove(0);
        for (at, text) in said {
            if *at == line {
                say(run, text).unwrap();
            }
        }
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn messages_are_read_at_the_top_of_the_next_round_first_in_first_out() {
    let stage = Stage::new(vec![
        vec![call("c1", "slow", ""), done()],
        vec![call("c2", "read", ""), done()],
        vec![text("Done."), done()],
    ])
    .settings(|settings| settings.event_buffer = 1);
    let played = steered(
        &stage,
        &[
            ("1 tool_call_start c1 box:slow {}", "first"),
            ("1 tool_call_start c1 box:slow {}", "second"),
        ],
    )
    .await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        [
            "user \"go\"",
            "assistant c1:slow{}",
            "tool c1 slow ok {}",
            "user \"first\"",
            "user \"second\"",
            "assistant c2:read{}",
            "tool c2 read ok {}",
            "assistant \"Done.\"",
        ]
    );
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn a_final_answer_does_not_strand_a_message() {
    let stage = Stage::new(vec![
        vec![text("One."), Step::Wait(Duration::from_secs(1)), done()],
        vec![text("Two."), done()],
    ]);
    let played = steered(&stage, &[("1 text_delta \"One.\"", "and two?")]).await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"One.\"", "user \"and two?\"", "assistant \"Two.\""]
    );
    assert_eq!(played.finished.result, "Two.");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_ended_refuses_clearly() {
    let stage = Stage::new(vec![vec![text("Done."), done()]]);
    let run = stage.start();
    let handle = run.handle();
    run.finish().await.unwrap();
    let refused = handle.steer(vec![Part::text("wait", Origin::Person)]).unwrap_err();
    assert_eq!(refused, SteerError::Closed);
    assert_eq!(
        refused.to_string(),
        "the run is over and takes no more messages: send it as the next prompt"
    );
    assert_eq!(handle.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_blank_message_is_refused_and_blanks_of_others_are_left_out() {
    let stage = Stage::new(vec![vec![Step::Wait(Duration::from_secs(1)), done()]]);
    let run = stage.start();
    assert_eq!(say(&run, " \n"), Err(SteerError::Blank));
    assert_eq!(run.steer(vec![]), Err(SteerError::Blank));
    let parts = [" ", "now"].map(|text| Part::text(text, Origin::Person)).to_vec();
    assert_eq!(run.steer(parts), Ok(()));
    assert_eq!(run.handle().waiting(), 1);
    let finished = run.finish().await.unwrap();
    assert_eq!(conversation_lines(&finished.conversation)[1..], ["user \"now\""]);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_is_kept_for_the_next_run_however_this_one_ends() {
    for (how, reason) in [
        (fails(ModelErrorKind::Request), StopReason::StreamError),
        (Step::Panic, StopReason::StreamError),
        (crate::support::finish(belljar_types::FinishReason::Refused), StopReason::Refused),
    ] {
        let stage = Stage::new(vec![vec![text("Hm."), Step::Wait(Duration::from_secs(1)), how]]);
        let played =
            steered(&stage, &[("1 text_delta \"Hm.\"", "a"), ("1 text_delta \"Hm.\"", "b")]).await;
        assert_eq!(played.finished.reason, reason);
        let conversation = conversation_lines(&played.finished.conversation);
        assert_eq!(conversation[conversation.len() - 2..], ["user \"a\"", "user \"b\""]);
        assert_eq!(replay(stage.journal.records()), played.finished.conversation);
        let notice = "1 notice messages came too late for this run; the next one reads it";
        assert!(lines(&played.events).contains(&notice.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_keeps_it_behind_the_results_of_the_calls() {
    let stage = Stage::new(vec![vec![call("c1", "stuck", ""), done()]]);
    let mut cancel = None;
    let played = read(stage.start(), |run, event| {
        if matches!(event.kind, EventKind::ToolCallStart { .. }) {
            say(run, "no, stop").unwrap();
            let handle = run.handle();
            cancel = Some(tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                handle.cancel();
            }));
        }
    })
    .await;
    assert_eq!(played.finished.reason, StopReason::Canceled);
    assert_eq!(
        record_lines(&stage.journal.records())[3..],
        [
            "call_started c1",
            "tool c1 stuck canceled: interrupted by the user while the call ran; it may have \
             taken effect",
            "call_done c1 -",
            "user \"no, stop\"",
            "stopped Canceled \"interrupted by the user\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn no_message_is_lost_between_a_last_look_and_the_end() {
    // Whatever event it is sent at, it is read, kept or refused.
    for at in 0..20 {
        let stage = Stage::new(vec![
            vec![text("a"), call("c1", "read", ""), done()],
            vec![text("b"), done()],
            vec![text("c"), done()],
        ])
        .settings(|settings| settings.event_buffer = 1);
        let mut taken = None;
        let played = read(stage.start(), |run, event| {
            if event.seq == at {
                taken = Some(say(run, "hey").is_ok());
            }
        })
        .await;
        let conversation = conversation_lines(&played.finished.conversation);
        let is_there = conversation.contains(&"user \"hey\"".to_owned());
        assert_eq!(is_there, taken.unwrap_or(false), "event {at}: {conversation:#?}");
    }
}
