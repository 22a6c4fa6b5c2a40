//! Making room in the conversation: summaries, and what is left out without them.

use crate::support::{
    Stage, Step, Turn, call, conversation_lines, done, fails, lines, record_lines, text, usage,
};
use belljar_agent::{replay, start};
use belljar_types::{Conversation, HookPoint, Message, ModelErrorKind, Origin, StopReason};
use std::time::Duration;

/// 250 tokens.
const LONG: usize = 1000;

fn long(letter: &str) -> Step {
    text(&letter.repeat(LONG))
}

/// A round of 250 tokens that calls a tool.
fn round(id: &str) -> Turn {
    vec![long(&id[1..]), call(id, "read", &format!("{{\"id\":\"{id}\"}}")), done()]
}

/// The conversation, its long texts as one letter.
fn brief(conversation: &Conversation) -> Vec<String> {
    conversation_lines(conversation)
        .into_iter()
        .map(|line| {
            let letters: Vec<char> = line.chars().collect();
            let mut brief = String::new();
            let mut index = 0;
            while index < letters.len() {
                let same =
                    letters[index..].iter().take_while(|one| **one == letters[index]).count();
                brief.extend(letters[index..index + same].iter().take(if same > 9 {
                    1
                } else {
                    same
                }));
                index += same;
            }
            brief
        })
        .collect()
}

const SUMMARY: &str = "[The earlier part of this session was replaced by a summary, to make room. \
                       Instructions and loaded skills still hold.]";
const LEFT_OUT: &str = "[The oldest part of this session is left out here, to make room. \
                        Instructions and loaded skills still hold.]";

fn of_room(played: &crate::support::Played) -> Vec<String> {
    let about = [" compaction ", " notice ", " retry ", " usage ", " error ", " stop "];
    lines(&played.events)
        .into_iter()
        .filter(|line| about.iter().any(|word| line.contains(word)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn past_the_share_older_messages_become_a_summary() {
    // The limit of 0.8 is passed in the fourth round.
    let summary = vec![text("Three files were read."), usage(700, 9), done()];
    let stage = Stage::new(vec![]).window(
        1200,
        vec![round("c1"), round("c2"), round("c3"), summary, vec![text("Done."), done()]],
    );
    let played = stage.play().await;
    assert_eq!(
        brief(&played.finished.conversation),
        [
            format!("user {SUMMARY:?} \"Three files were read.\""),
            "user \"go\"".to_owned(),
            "assistant \"Done.\"".to_owned(),
        ]
    );
    let Message::User(summary) = played.finished.conversation.messages()[0].as_ref() else {
        panic!("the first message is the summary");
    };
    let origins: Vec<_> = summary.parts.iter().map(|part| part.origin.clone()).collect();
    assert_eq!(origins, [Origin::Host, Origin::Model]);
    assert_eq!(
        of_room(&played),
        [
            "4 usage 700/9 of 700/9",
            "4 compaction 1081 290",
            "4 stop Completed \"\" turns=4 ms=0 usage=700/9 result=\"Done.\" denials=0 s1",
        ]
    );
    let asked = &stage.model.requests()[3];
    assert_eq!((asked.tools.len(), asked.conversation.messages().len()), (0, 1));
    assert!(asked.system.stable.contains("Answer with the summary alone"));
    // The session keeps everything, and is read as what the model would read.
    let records = record_lines(&stage.journal.records());
    assert_eq!(records.iter().filter(|line| line.starts_with("tool c")).count(), 3);
    assert!(records.iter().any(|line| line.starts_with("replaced 7 by ")), "{records:#?}");
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn the_latest_rounds_stay_where_there_is_room_and_no_call_loses_its_result() {
    let summary = vec![text("Much was read."), done()];
    let stage = Stage::new(vec![])
        .window(1200, vec![round("c1"), round("c2"), round("c3"), summary])
        .settings(|settings| settings.compaction.keep = 0.3);
    let played = stage.play().await;
    assert_eq!(
        brief(&played.finished.conversation),
        [
            format!("user {SUMMARY:?} \"Much was read.\""),
            "user \"go\"".to_owned(),
            "assistant \"3\" c3:read{\"id\":\"c3\"}".to_owned(),
            "tool c3 read ok {\"id\":\"c3\"}".to_owned(),
            "assistant \"the script is over\"".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_person_said_last_stays_word_for_word() {
    let first = Stage::new(vec![vec![long("a"), done()]]);
    let conversation = first.play().await.finished.conversation;
    let prompt = "Never touch `main`. ".repeat(20);
    let stage = Stage::new(vec![])
        .window(1000, vec![round("c1"), vec![text("Short."), done()], vec![text("Done."), done()]])
        .request(|request| {
            request.conversation = conversation;
            request.prompt = vec![belljar_types::Part::text(&prompt, Origin::Person)];
        });
    let played = stage.play().await;
    let said = conversation_lines(&played.finished.conversation);
    assert_eq!(said[0], format!("user {SUMMARY:?} \"Short.\""));
    assert_eq!(said[1], format!("user {prompt:?}"));
    assert_eq!(played.finished.reason, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_is_told_and_after_three_no_more_are_asked_for() {
    let broken = || vec![fails(ModelErrorKind::Request)];
    let stage = Stage::new(vec![])
        .window(
            2000,
            vec![
                round("c1"),
                round("c2"),
                broken(),
                round("c3"),
                broken(),
                round("c4"),
                vec![text(" "), done()],
                round("c5"),
                vec![text("Done."), done()],
            ],
        )
        .settings(|settings| settings.compaction.at = 0.35);
    let played = stage.play().await;
    assert_eq!(
        of_room(&played),
        [
            "3 notice the conversation could not be shortened: the server says request",
            "4 notice the conversation could not be shortened: the server says request",
            "5 notice the conversation could not be shortened: the summary is empty; it is not \
             tried again in this run",
            "6 stop Completed \"\" turns=6 ms=0 usage=0/0 result=\"Done.\" denials=0 s1",
        ]
    );
    assert_eq!(stage.model.requests().len(), 6 + 3);
}

#[tokio::test(start_paused = true)]
async fn without_summaries_the_oldest_turns_are_left_out() {
    let first = Stage::new(vec![vec![long("a"), done()]]);
    let mut conversation = first.play().await.finished.conversation;
    for letter in ["b", "c"] {
        let next = Stage::new(vec![vec![long(letter), done()]]);
        let request = belljar_agent::RunRequest { conversation, ..next.request.clone() };
        conversation = start(next.agent(), request).finish().await.unwrap().conversation;
    }
    let stage = Stage::new(vec![])
        .window(1100, vec![vec![text("Done."), done()]])
        .settings(|settings| settings.compaction.summaries = false)
        .request(|request| request.conversation = conversation);
    let played = stage.play().await;
    assert_eq!(
        brief(&played.finished.conversation),
        [
            format!("user {LEFT_OUT:?}"),
            "user \"go\"".to_owned(),
            "assistant \"c\"".to_owned(),
            "user \"go\"".to_owned(),
            "assistant \"Done.\"".to_owned(),
        ]
    );
    assert_eq!(
        of_room(&played)[..2],
        ["1 notice the 4 oldest messages are left out to make room", "1 compaction 1027 540",]
    );
    assert_eq!(replay(stage.journal.records()).check(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn in_one_long_turn_the_oldest_rounds_go_and_what_was_said_stays() {
    let turns = vec![round("c1"), round("c2"), round("c3"), round("c4")];
    let stage = Stage::new(vec![])
        .window(1300, turns)
        .settings(|settings| settings.compaction.summaries = false);
    let played = stage.play().await;
    let conversation = brief(&played.finished.conversation);
    assert_eq!(
        conversation[..3],
        [
            format!("user {LEFT_OUT:?}"),
            "user \"go\"".to_owned(),
            "assistant \"4\" c4:read{\"id\":\"c4\"}".to_owned(),
        ]
    );
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_made_to_fit_ends_the_run() {
    let prompt = |stage: Stage| {
        stage.request(|request| {
            let text = "word ".repeat(2000);
            request.prompt = vec![belljar_types::Part::text(text, Origin::Person)];
        })
    };
    let stage = prompt(Stage::new(vec![]).window(1000, vec![]));
    let played = stage.play().await;
    assert_eq!(
        lines(&played.events)[2..],
        [
            "1 error context_overflow: the conversation takes about 2749 tokens, and there is \
             room for 900: start a new session, or choose a model with a larger window",
            "1 stop ContextOverflow \"the conversation takes about 2749 tokens, and there is room \
             for 900: start a new session, or choose a model with a larger window\" turns=1 ms=0 \
             usage=0/0 result=\"\" denials=0 s1",
        ]
    );
    assert_eq!(stage.model.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn where_the_model_failed_to_shorten_it_the_stop_says_so() {
    // The last result alone is too much to stay, so only a summary could have helped.
    let huge = format!("{{\"t\":\"{}\"}}", "x".repeat(8000));
    let stage = Stage::new(vec![]).window(
        2000,
        vec![vec![call("c1", "read", &huge), done()], vec![fails(ModelErrorKind::Authentication)]],
    );
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::StreamError);
    assert!(
        played
            .finished
            .message
            .ends_with("it could not be shortened: the server says authentication"),
        "{}",
        played.finished.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_large_to_stay_is_summed_up_too() {
    let huge = format!("{{\"t\":\"{}\"}}", "x".repeat(4800));
    let stage = Stage::new(vec![]).window(
        2000,
        vec![
            vec![call("c1", "read", &huge), done()],
            vec![text("All x."), done()],
            vec![text("Done."), done()],
        ],
    );
    let played = stage.play().await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        [
            format!("user {SUMMARY:?} \"All x.\""),
            "user \"go\"".to_owned(),
            "assistant \"Done.\"".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn where_the_server_says_it_does_not_fit_room_is_made_and_it_is_asked_again() {
    let overflow = || vec![text("Hm"), fails(ModelErrorKind::ContextOverflow)];
    let stage = Stage::new(vec![
        round("c1"),
        round("c2"),
        overflow(),
        vec![text("Two files."), done()],
        vec![text("Done."), done()],
    ]);
    let played = stage.play().await;
    assert_eq!(
        of_room(&played),
        [
            "3 compaction 804 287",
            "3 retry model 2 in 0 ms: the server says context_overflow",
            "3 stop Completed \"\" turns=3 ms=0 usage=0/0 result=\"Done.\" denials=0 s1",
        ]
    );
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        [
            format!("user {SUMMARY:?} \"Two files.\""),
            "user \"go\"".to_owned(),
            "assistant \"Done.\"".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_finds_it_small_enough_is_believed() {
    let overflow = || vec![fails(ModelErrorKind::ContextOverflow)];
    let mut turns = vec![round("c1"), round("c2"), round("c3"), round("c4")];
    turns.extend([overflow(), vec![text("Short."), done()], overflow(), overflow(), overflow()]);
    let stage = Stage::new(turns);
    let played = stage.play().await;
    assert_eq!(
        (played.finished.reason, played.finished.message.as_str()),
        (StopReason::ContextOverflow, "the server says context_overflow")
    );
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_in_a_summary_changes_nothing() {
    let slow = vec![Step::Wait(Duration::from_secs(60)), text("Short."), done()];
    let stage = Stage::new(vec![]).window(600, vec![round("c1"), slow]);
    let played = crate::support::read(stage.start(), |run, event| {
        if event.iteration == 2 {
            let handle = run.handle();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                handle.cancel();
            });
        }
    })
    .await;
    assert_eq!(played.finished.reason, StopReason::Canceled);
    assert_eq!(
        brief(&played.finished.conversation),
        [
            "user \"go\"",
            "assistant \"1\" c1:read{\"id\":\"c1\"}",
            "tool c1 read ok {\"id\":\"c1\"}",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_refuse_a_summary() {
    let hooks = crate::hooks::ScriptedHooks::new(HookPoint::PreCompact, |report| {
        report.blocked = Some("not now".to_owned());
    });
    let stage = Stage::new(vec![])
        .window(800, vec![round("c1"), round("c2"), vec![text("Done."), done()]])
        .request(|request| request.hooks = Some(hooks.clone()));
    let played = stage.play().await;
    assert_eq!(of_room(&played)[0], "3 notice a hook refused to shorten the conversation: not now");
    assert_eq!(hooks.inputs(), [serde_json::json!({"tokens": 804})]);
    assert_eq!(stage.model.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_only_compacts_makes_a_summary_and_is_over() {
    let long = Stage::new(vec![round("c1"), round("c2"), vec![text("Done."), done()]]);
    let before = long.play().await.finished.conversation;
    let only = |stage: Stage, conversation: Conversation| {
        stage.request(move |request| {
            request.conversation = conversation;
            request.prompt = Vec::new();
            request.only_compacts = true;
        })
    };
    // In a window that is far from full.
    let summary = || vec![text("Two files were read."), done()];
    let stage = only(Stage::new(vec![]).window(100_000, vec![summary()]), before.clone());
    let played = stage.play().await;
    assert_eq!(
        brief(&played.finished.conversation),
        [
            format!("user {SUMMARY:?} \"Two files were read.\""),
            "user \"go\"".to_owned(),
            "assistant \"Done.\"".to_owned(),
        ]
    );
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(stage.model.requests().len(), 1);

    let again = only(Stage::new(vec![summary()]), played.finished.conversation).play().await;
    assert_eq!(again.finished.reason, StopReason::Ended);
    assert_eq!(again.finished.message, "there is nothing to shorten");

    let failing = only(
        Stage::new(vec![vec![text("…"), fails(ModelErrorKind::Authentication)]]),
        before.clone(),
    );
    let failed = failing.play().await;
    assert_eq!(failed.finished.reason, StopReason::StreamError);
    assert_eq!(failed.finished.conversation, before, "nothing is lost");
}
