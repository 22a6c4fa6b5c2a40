//! Going on with a session that broke off over its calls.

use crate::support::{
    Asked, Stage, Turn, call, conversation_lines, done, lines, record_lines, text,
};
use belljar_agent::{Restored, RunRequest, restore, start};
use belljar_types::{ApprovalAnswer, Mode, Origin, Part, Record, StopReason};

/// The records of a run, up to and with the first one whose line is this.
async fn broken_off_at(turn: Turn, line: &str) -> Vec<Record> {
    let stage = Stage::new(vec![turn, vec![text("Done."), done()]])
        .asked(vec![Asked::Answers(ApprovalAnswer::Session); 9])
        .settings(|settings| settings.parallel_calls = 1);
    stage.play().await;
    let records = stage.journal.records();
    let at = record_lines(&records).iter().position(|record| record == line);
    records[..=at.unwrap_or_else(|| panic!("{line} is not in {:#?}", record_lines(&records)))]
        .to_vec()
}

/// Goes on with it, and tells the result lines and what ran.
async fn gone_on(records: Vec<Record>, answers: Vec<Asked>) -> (Vec<String>, Vec<String>) {
    let restored = restore(records);
    let stage = Stage::new(vec![vec![text("Here we are."), done()]]).asked(answers);
    let request = RunRequest {
        workspace: "demo".to_owned(),
        ..RunRequest::resuming(restored, vec![Part::text("go on", Origin::Person)])
    };
    let played = crate::support::read(start(stage.agent(), request), |_, _| {}).await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    let shown = lines(&played.events)
        .into_iter()
        .filter(|line| line.contains("tool_result") || line.contains("approval"))
        .collect();
    (shown, stage.toolbox.ran())
}

fn turn() -> Turn {
    vec![
        call("c1", "read", ""),
        call("c2", "chatty", ""),
        call("c3", "read", r#"{"n":3}"#),
        call("c4", "write", ""),
        done(),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_never_started_runs_if_todays_decision_allows() {
    let records = broken_off_at(turn(), "call_done c2 receipt").await;
    let (shown, ran) = gone_on(records, vec![Asked::Answers(ApprovalAnswer::No)]).await;
    assert_eq!(
        shown,
        [
            "0 tool_result c3 read ok {\"n\":3}",
            "0 approval c4 write may `write` change files? once,session,no,no_because",
            "0 approval_answer c4 no by person",
            "0 tool_result c4 write denied: denied by the user",
        ]
    );
    assert_eq!(ran, ["c3"]);
}

#[tokio::test(start_paused = true)]
async fn what_started_and_may_have_written_is_told_and_not_run_again() {
    let records = broken_off_at(turn(), "call_started c2").await;
    let (shown, ran) = gone_on(records, vec![]).await;
    assert_eq!(
        shown[0],
        "0 tool_result c2 chatty canceled: the session broke off while the call ran; it may have \
         taken effect"
    );
    assert_eq!(ran, ["c3"]);
}

#[tokio::test(start_paused = true)]
async fn what_started_and_only_reads_runs_again() {
    let records = broken_off_at(turn(), "call_started c1").await;
    let (shown, ran) = gone_on(records, vec![]).await;
    assert_eq!(shown[0], "0 tool_result c1 read ok {}");
    assert_eq!(ran, ["c1", "c2", "c3"]);
}

#[tokio::test(start_paused = true)]
async fn a_recorded_approval_carries_no_authority() {
    // A person said yes to it, and it had begun.
    let records = broken_off_at(turn(), "call_started c4").await;
    let (shown, ran) = gone_on(records, vec![]).await;
    assert_eq!(
        shown,
        ["0 tool_result c4 write canceled: the session broke off while the call ran; it may have \
          taken effect"]
    );
    assert_eq!(ran, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn todays_mode_holds_for_what_yesterday_allowed() {
    let records = broken_off_at(turn(), "call_done c1 receipt").await;
    let stage = Stage::new(vec![]);
    let request = RunRequest { mode: Mode::Plan, ..RunRequest::resuming(restore(records), vec![]) };
    let played = crate::support::read(start(stage.agent(), request), |_, _| {}).await;
    assert_eq!(stage.toolbox.ran(), ["c3"]);
    assert_eq!(played.finished.denials, 2);
}

#[tokio::test(start_paused = true)]
async fn the_results_come_before_what_the_person_says_and_the_session_reads_on() {
    let records = broken_off_at(turn(), "call_done c3 receipt").await;
    let restored = restore(records.clone());
    let stage = Stage::new(vec![vec![text("Fine."), done()]]);
    let request = RunRequest::resuming(restored, vec![Part::text("go on", Origin::Person)]);
    let finished = start(stage.agent(), request).finish().await.unwrap();
    let lines = conversation_lines(&finished.conversation);
    assert_eq!(
        lines[4..],
        [
            "tool c3 read ok {\"n\":3}",
            "tool c4 write denied: denied by the mode",
            "user \"go on\"",
            "assistant \"Fine.\"",
        ]
    );
    let all = records.into_iter().chain(stage.journal.records());
    assert_eq!(belljar_agent::replay(all), finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn a_session_can_be_resumed_wherever_it_broke_off_and_again() {
    let whole = Stage::new(vec![turn(), vec![text("Done."), done()]]).asked(vec![
        Asked::Answers(
            ApprovalAnswer::Session
        );
        9
    ]);
    whole.play().await;
    let records = whole.journal.records();
    for count in 1..=records.len() {
        let first = restore(records[..count].to_vec());
        let stage = Stage::new(vec![]);
        let request = RunRequest::resuming(first, stage.request.prompt.clone());
        start(stage.agent(), request).finish().await.unwrap();
        let more = stage.journal.records();
        for again in 0..=more.len() {
            let both = records[..count].iter().chain(&more[..again]).cloned();
            let second = restore(both);
            let stage = Stage::new(vec![]);
            let request = RunRequest::resuming(second, stage.request.prompt.clone());
            let finished = start(stage.agent(), request).finish().await.unwrap();
            assert_eq!(finished.reason, StopReason::Completed, "{count}, then {again}");
            assert_eq!(finished.conversation.check(), Ok(()), "{count}, then {again}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_missing_between_others_is_not_made_up_for() {
    let mut records = broken_off_at(turn(), "call_done c3 receipt").await;
    let at = record_lines(&records).iter().position(|line| line.starts_with("tool c2")).unwrap();
    records.remove(at);
    let Restored { conversation, pending, .. } = restore(records);
    let ids: Vec<_> = pending.iter().map(|pending| (&*pending.call.id, pending.started)).collect();
    assert_eq!(ids, [("c4", false)]);
    assert_eq!(
        conversation_lines(&conversation)[3],
        "tool c2 chatty canceled: the session broke off while the call ran; it may have taken \
         effect"
    );
}

#[tokio::test(start_paused = true)]
async fn pending_calls_that_are_not_the_open_ones_are_refused() {
    let records = broken_off_at(turn(), "call_done c2 receipt").await;
    let mut restored = restore(records);
    restored.pending.pop();
    let stage = Stage::new(vec![]);
    let request = RunRequest::resuming(restored, vec![]);
    let finished = start(stage.agent(), request).finish().await.unwrap();
    assert_eq!(
        (finished.reason, finished.message.as_str()),
        (
            StopReason::SessionError,
            "this conversation cannot be continued: its open calls are not the pending ones"
        )
    );
    assert_eq!(stage.journal.records(), []);
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}
