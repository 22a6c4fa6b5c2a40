//! A model that goes in circles.

use crate::support::{Stage, Turn, call, done, lines, text};
use belljar_types::StopReason;

/// One round for each letter, calling the tool of that letter.
fn rounds(calls: &str) -> Vec<Turn> {
    calls
        .chars()
        .enumerate()
        .map(|(index, letter)| {
            let (tool, arguments) = match letter {
                'a' => ("read", r#"{"path":"a"}"#.to_owned()),
                'b' => ("failing", "{}".to_owned()),
                'w' => ("write", r#"{"path":"a"}"#.to_owned()),
                // Another file each time.
                _ => ("read", format!("{{\"path\":\"{index}\"}}")),
            };
            vec![call(&format!("c{index}"), tool, &arguments), done()]
        })
        .collect()
}

/// The rounds whose requests had a reminder, and how the run ended.
async fn played(turns: Vec<Turn>) -> (Vec<usize>, StopReason, String) {
    let stage = Stage::new(turns).settings(|settings| settings.max_turns = 40);
    let played = stage.play().await;
    let reminded = stage
        .model
        .requests()
        .iter()
        .enumerate()
        .filter(|(_, request)| !request.reminders.is_empty())
        .map(|(index, _)| index + 1)
        .collect();
    (reminded, played.finished.reason, played.finished.message)
}

#[tokio::test(start_paused = true)]
async fn the_same_call_three_times_is_told_and_twice_more_ends_the_run() {
    let (reminded, reason, message) = played(rounds("aaaaaa")).await;
    assert_eq!((reminded, reason), (vec![4], StopReason::RepetitionLimit));
    assert_eq!(
        message,
        "the model repeated the same call of `read` 5 times over, also after it was told; say \
         what it should do instead, or ask for a part of it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cycle_twice_over_is_told_and_twice_more_ends_the_run() {
    let (reminded, reason, message) = played(rounds("abababab")).await;
    assert_eq!((reminded, reason), (vec![5], StopReason::RepetitionLimit));
    assert_eq!(
        message,
        "the model repeated the same 2 calls (`read`, `failing`) 4 times over, also after it was \
         told; say what it should do instead, or ask for a part of it"
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_tool_on_different_files_is_work() {
    let (reminded, reason, _) = played(rounds(&"n".repeat(30))).await;
    assert_eq!((reminded, reason), (vec![], StopReason::Completed));
}

#[tokio::test(start_paused = true)]
async fn approvals_do_not_start_it_anew() {
    use crate::support::Asked;
    use belljar_types::ApprovalAnswer;
    let stage = Stage::new(rounds("wwwwww")).asked(vec![Asked::Answers(ApprovalAnswer::Once); 6]);
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::RepetitionLimit);
    assert_eq!(stage.toolbox.ran().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_listens_goes_on() {
    let mut turns = rounds("aaa");
    turns.push(vec![text("I stop."), done()]);
    let stage = Stage::new(turns);
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(
        stage.model.requests()[3].reminders,
        [
            "You have repeated the same call of `read` 3 times over, with the same arguments and the \
          same outcome. Doing it again will not change it: try something else, or say what you \
          have found and what stops you."
        ]
    );
    assert_eq!(lines(&played.events).len(), played.events.len());
}

#[tokio::test(start_paused = true)]
async fn a_batch_of_the_same_calls_is_told_before_it_ends_a_run() {
    let batch = |round: usize| -> Turn {
        (0..6)
            .map(|index| call(&format!("r{round}c{index}"), "read", "{}"))
            .chain([done()])
            .collect()
    };
    let (reminded, reason, _) = played(vec![batch(1), batch(2), batch(3)]).await;
    assert_eq!((reminded, reason), (vec![2], StopReason::RepetitionLimit));
}

#[tokio::test(start_paused = true)]
async fn the_limits_are_values() {
    let stage = Stage::new(rounds("aaaa")).settings(|settings| {
        settings.repetition = belljar_agent::Repetition { same: 2, cycle: 2, more: 1 };
    });
    let played = stage.play().await;
    assert_eq!((played.finished.reason, played.finished.turns), (StopReason::RepetitionLimit, 3));
}
