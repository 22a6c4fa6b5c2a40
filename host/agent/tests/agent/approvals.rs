//! Asking a person, and what holds after the answer.

use crate::support::{Asked, Stage, call, done, lines};
use belljar_types::{ApprovalAnswer, Record};

const QUESTION: &str = "may `write` change files? once,session,no,no_because";

async fn call_lines(stage: &Stage) -> Vec<String> {
    let played = stage.play().await;
    lines(&played.events)
        .into_iter()
        .filter(|line| {
            ["tool_", "approval", "notice"].iter().any(|word| line.contains(&format!(" {word}")))
        })
        .collect()
}

fn answers(answers: Vec<ApprovalAnswer>) -> Vec<Asked> {
    answers.into_iter().map(Asked::Answers).collect()
}

#[tokio::test(start_paused = true)]
async fn a_yes_runs_the_call_and_a_later_one_is_asked_anew() {
    let stage = Stage::new(vec![vec![
        call("c1", "write", r#"{"p":1}"#),
        call("c2", "write", r#"{"p":1}"#),
        done(),
    ]])
    .asked(answers(vec![ApprovalAnswer::Once, ApprovalAnswer::Session]));
    assert_eq!(
        call_lines(&stage).await,
        [
            "1 tool_call_start c1 box:write {\"p\":1}".to_owned(),
            format!("1 approval c1 write {QUESTION}"),
            "1 approval_answer c1 once by person".to_owned(),
            "1 tool_result c1 write ok {\"p\":1}".to_owned(),
            "1 tool_call_done c1 receipt".to_owned(),
            "1 tool_call_start c2 box:write {\"p\":1}".to_owned(),
            format!("1 approval c2 write {QUESTION}"),
            "1 approval_answer c2 session by person".to_owned(),
            "1 tool_result c2 write ok {\"p\":1}".to_owned(),
            "1 tool_call_done c2 receipt".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_no_holds_for_the_turn() {
    let stage = Stage::new(vec![
        vec![call("c1", "write", r#"{"p":1,"q":2}"#), done()],
        vec![
            call("c2", "write", r#"{"q":2,"p":1}"#),
            call("c3", "write", r#"{"p":2}"#),
            call("c4", "write", r#"{"p":2}"#),
            done(),
        ],
    ])
    .asked(answers(vec![
        ApprovalAnswer::NoBecause("that file is mine".to_owned()),
        ApprovalAnswer::No,
    ]));
    assert_eq!(
        call_lines(&stage).await,
        [
            "1 tool_call_start c1 box:write {\"p\":1,\"q\":2}".to_owned(),
            format!("1 approval c1 write {QUESTION}"),
            "1 approval_answer c1 no_because by person".to_owned(),
            "1 tool_result c1 write denied: denied by the user: that file is mine".to_owned(),
            "1 tool_call_done c1 -".to_owned(),
            "2 tool_call_start c2 box:write {\"q\":2,\"p\":1}".to_owned(),
            "2 tool_result c2 write denied: the user already said no to this same call \
             in this turn: that file is mine; they were not asked again. Do it another way, or \
             tell them what you need and why"
                .to_owned(),
            "2 tool_call_done c2 -".to_owned(),
            "2 tool_call_start c3 box:write {\"p\":2}".to_owned(),
            format!("2 approval c3 write {QUESTION}"),
            "2 approval_answer c3 no by person".to_owned(),
            "2 tool_result c3 write denied: denied by the user".to_owned(),
            "2 tool_call_done c3 -".to_owned(),
            "2 tool_call_start c4 box:write {\"p\":2}".to_owned(),
            "2 tool_result c4 write denied: the user already said no to this same call \
             in this turn; they were not asked again. Do it another way, or tell them what you \
             need and why"
                .to_owned(),
            "2 tool_call_done c4 -".to_owned(),
        ]
    );
    assert_eq!(stage.approver.questions().len(), 2);
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
    let started = |record: &Record| matches!(record, Record::CallStarted { .. });
    assert!(!stage.journal.records().iter().any(started));
}

#[tokio::test(start_paused = true)]
async fn a_no_is_forgotten_in_the_next_run() {
    let turns = |id| vec![call(id, "write", ""), done()];
    let stage = Stage::new(vec![turns("c1"), vec![done()], turns("c2"), vec![done()]])
        .asked(answers(vec![ApprovalAnswer::No, ApprovalAnswer::Once]));
    stage.play().await;
    stage.play().await;
    assert_eq!(stage.toolbox.ran(), ["c2"]);
}

#[tokio::test(start_paused = true)]
async fn with_nobody_to_ask_the_mode_says_no() {
    let stage = Stage::new(vec![vec![call("c1", "write", ""), done()]]);
    assert_eq!(
        call_lines(&stage).await,
        [
            "1 tool_call_start c1 box:write {}".to_owned(),
            format!("1 approval c1 write {QUESTION}"),
            "1 approval_answer c1 no by mode".to_owned(),
            "1 tool_result c1 write denied: denied by the mode".to_owned(),
            "1 tool_call_done c1 -".to_owned(),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_breaks_is_nobody() {
    let stage = Stage::new(vec![vec![call("c1", "write", ""), done()]]).asked(vec![Asked::Panics]);
    assert_eq!(
        call_lines(&stage).await[2..4],
        [
            "1 notice asking for approval panicked, which is a bug: the terminal is broken",
            "1 approval_answer c1 no by mode",
        ]
    );
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}
