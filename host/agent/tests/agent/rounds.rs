//! Rounds, answers and the reasons why a run stops.

use crate::support::{
    ScriptedToolbox, Stage, Step, call, conversation_lines, done, finish, reasoning, text, usage,
};
use belljar_agent::{RunRequest, SystemSource, start};
use belljar_types::{
    Content, EventKind, FinishReason, Message, ModelEvent, Origin, Part, StopReason, SystemPrompt,
};
use futures::StreamExt;
use std::sync::Arc;

const START: &str = "0 start s1 p/m demo Chat default 13 tools";

#[tokio::test(start_paused = true)]
async fn an_answer_without_calls_completes() {
    let stage = Stage::new(vec![vec![
        Step::Event(ModelEvent::ReasoningDelta("hm".to_owned())),
        reasoning("hm"),
        text("Hel"),
        text(""),
        text("lo"),
        usage(10, 0),
        usage(0, 5),
        done(),
    ]]);
    let played = stage
        .expect(&[
            START,
            "1 round_start",
            "1 reasoning_delta \"hm\"",
            "1 text_delta \"Hel\"",
            "1 text_delta \"lo\"",
            "1 usage 10/0 of 10/0",
            "1 usage 10/5 of 10/5",
            "1 assistant_text \"Hello\"",
            "1 stop Completed \"\" turns=1 ms=0 usage=10/5 result=\"Hello\" denials=0 s1",
        ])
        .await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant <hm> \"Hello\""]
    );
    assert_eq!(played.finished.result, "Hello");
}

#[tokio::test(start_paused = true)]
async fn what_changed_about_the_tools_is_told_when_a_round_begins() {
    let mut stage = Stage::new(vec![
        vec![call("c1", "read", "{}"), done()],
        vec![call("c2", "read", "{}"), done()],
        vec![text("Done."), done()],
    ]);
    let news = [&["`a` is there", "`b` is gone"][..], &["panic"], &[]];
    stage.toolbox = Arc::new(ScriptedToolbox::with_news(&news));
    stage
        .expect(&[
            START,
            "1 round_start",
            "1 notice `a` is there",
            "1 notice `b` is gone",
            "1 tool_call_start c1 box:read {}",
            "1 tool_result c1 read ok {}",
            "1 tool_call_done c1 receipt",
            "2 round_start",
            "2 notice looking for new tools panicked, which is a bug: the folder is broken",
            "2 tool_call_start c2 box:read {}",
            "2 tool_result c2 read ok {}",
            "2 tool_call_done c2 receipt",
            "3 round_start",
            "3 text_delta \"Done.\"",
            "3 assistant_text \"Done.\"",
            "3 stop Completed \"\" turns=3 ms=0 usage=0/0 result=\"Done.\" denials=0 s1",
        ])
        .await;
}

#[tokio::test(start_paused = true)]
async fn each_round_reads_the_conversation_as_it_is_and_usage_adds_up() {
    let stage = Stage::new(vec![
        vec![text("Look."), call("c1", "read", r#"{"path":"a"}"#), usage(10, 5), done()],
        vec![text("Done."), usage(20, 7), done()],
    ]);
    let played = stage
        .expect(&[
            START,
            "1 round_start",
            "1 text_delta \"Look.\"",
            "1 usage 10/5 of 10/5",
            "1 assistant_text \"Look.\"",
            "1 tool_call_start c1 box:read {\"path\":\"a\"}",
            "1 tool_result c1 read ok {\"path\":\"a\"}",
            "1 tool_call_done c1 receipt",
            "2 round_start",
            "2 text_delta \"Done.\"",
            "2 usage 20/7 of 30/12",
            "2 assistant_text \"Done.\"",
            "2 stop Completed \"\" turns=2 ms=0 usage=30/12 result=\"Done.\" denials=0 s1",
        ])
        .await;
    let conversation = [
        "user \"go\"",
        "assistant \"Look.\" c1:read{\"path\":\"a\"}",
        "tool c1 read ok {\"path\":\"a\"}",
        "assistant \"Done.\"",
    ];
    assert_eq!(conversation_lines(&played.finished.conversation), conversation);
    let requests = stage.model.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(conversation_lines(&requests[0].conversation), conversation[..1]);
    assert_eq!(conversation_lines(&requests[1].conversation), conversation[..3]);
    assert_eq!(requests[0].tools, requests[1].tools);
}

#[tokio::test(start_paused = true)]
async fn calls_run_whatever_the_finish_reason_says() {
    for reason in [FinishReason::Stop, FinishReason::Pause, FinishReason::Length] {
        let stage = Stage::new(vec![vec![call("c1", "read", ""), finish(reason)]]);
        let played = stage.play().await;
        assert_eq!(stage.toolbox.ran(), ["c1"], "{reason:?}");
        assert_eq!(played.finished.reason, StopReason::Completed, "{reason:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_model_the_run_says_so_and_records_nothing() {
    let stage = Stage::new(vec![]);
    let agent = belljar_agent::Agent { model: None, ..stage.agent() };
    let played = crate::support::read(start(agent, stage.request.clone()), |_, _| {}).await;
    assert_eq!(
        crate::support::lines(&played.events),
        [
            "0 error configuration: no model is set: name one with `--model PROVIDER/NAME`",
            "0 stop StreamError \"no model is set: name one with `--model PROVIDER/NAME`\" \
             turns=0 ms=0 usage=0/0 result=\"\" denials=0 s1",
        ]
    );
    assert_eq!(stage.journal.records(), []);
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_rounds_is_looked_at_before_each_request() {
    let stage = Stage::new(vec![
        vec![text("one"), call("c1", "read", ""), done()],
        vec![text("two"), call("c2", "read", ""), done()],
    ])
    .settings(|settings| settings.max_turns = 2);
    let played = stage.play().await;
    assert_eq!(stage.model.requests().len(), 2);
    assert_eq!(stage.toolbox.ran(), ["c1", "c2"]);
    assert_eq!(
        crate::support::lines(&played.events).last().unwrap(),
        "2 stop MaxIterations \"the limit of 2 rounds is reached; raise it with \
         `--max-turns N`\" turns=2 ms=0 usage=0/0 result=\"two\" denials=0 s1"
    );
}

#[tokio::test(start_paused = true)]
async fn where_so_set_the_model_answers_once_more_without_calls() {
    let turns = vec![
        vec![text("one"), call("c1", "read", ""), done()],
        vec![text("That is all."), call("c2", "write", ""), done()],
    ];
    let stage = Stage::new(turns).settings(|settings| {
        settings.max_turns = 1;
        settings.last_answer = true;
    });
    let played = stage.play().await;
    assert_eq!(
        crate::support::lines(&played.events)[7..],
        [
            "2 round_start",
            "2 text_delta \"That is all.\"",
            "2 assistant_text \"That is all.\"",
            "2 stop MaxIterations \"the limit of 1 rounds is reached; raise it with \
             `--max-turns N`\" turns=2 ms=0 usage=0/0 result=\"That is all.\" denials=0 s1",
        ]
    );
    assert_eq!(stage.toolbox.ran(), ["c1"]);
    assert_eq!(
        conversation_lines(&played.finished.conversation).last().unwrap(),
        "assistant \"That is all.\""
    );
    let requests = stage.model.requests();
    assert_eq!(requests[0].reminders, Vec::<String>::new());
    assert!(requests[1].reminders[0].starts_with("You have no rounds left."));
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_completes_with_a_notice() {
    for turn in [vec![done()], vec![text(" \n"), done()], vec![reasoning("hm"), done()]] {
        let stage = Stage::new(vec![turn]);
        let played = stage.play().await;
        assert_eq!(
            crate::support::lines(&played.events)[played.events.len() - 2..],
            [
                "1 notice the model ended its turn without an answer",
                "1 stop Completed \"\" turns=1 ms=0 usage=0/0 result=\"\" denials=0 s1",
            ]
        );
        assert_eq!(conversation_lines(&played.finished.conversation), ["user \"go\""]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_keeps_its_text_and_runs_nothing() {
    let refused = finish(FinishReason::Refused);
    Stage::new(vec![vec![refused.clone()]])
        .expect(&[
            START,
            "1 round_start",
            "1 stop Refused \"the model refused to answer\" turns=1 ms=0 usage=0/0 result=\"\" \
             denials=0 s1",
        ])
        .await;
    let stage = Stage::new(vec![vec![text("No."), call("c1", "read", ""), refused]]);
    let played = stage
        .expect(&[
            START,
            "1 round_start",
            "1 text_delta \"No.\"",
            "1 assistant_text \"No.\"",
            "1 stop Refused \"the model refused to answer\" turns=1 ms=0 usage=0/0 \
             result=\"No.\" denials=0 s1",
        ])
        .await;
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"No.\""]
    );
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_by_its_length_is_gone_on_with_once() {
    let cut = finish(FinishReason::Length);
    let stage =
        Stage::new(vec![vec![text("Once upon "), cut.clone()], vec![text("a time."), done()]]);
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(played.finished.result, "Once upon a time.");
    let reminders: Vec<_> =
        stage.model.requests().into_iter().map(|request| request.reminders.len()).collect();
    assert_eq!(reminders, [0, 1]);

    let stage = Stage::new(vec![vec![text("Once "), cut.clone()], vec![text("upon "), cut]]);
    let played = stage.play().await;
    assert_eq!(
        crate::support::lines(&played.events).last().unwrap(),
        "2 stop Truncated \"the model's answer was cut by its length limit 2 times running; ask \
         for less at once\" turns=2 ms=0 usage=0/0 result=\"Once upon \" denials=0 s1"
    );
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        ["user \"go\"", "assistant \"Once \" (cut)", "assistant \"upon \" (cut)"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_between_starts_the_count_of_cut_ones_anew() {
    let stage = Stage::new(vec![
        vec![text("a"), finish(FinishReason::Length)],
        vec![call("c1", "read", ""), done()],
        vec![text("b"), finish(FinishReason::Length)],
        vec![text("c"), done()],
    ]);
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(played.finished.result, "bc");
}

#[tokio::test(start_paused = true)]
async fn a_paused_turn_goes_on_unchanged_a_bounded_number_of_times() {
    let pause = || vec![reasoning("hm"), text("."), finish(FinishReason::Pause)];
    let stage = Stage::new(vec![pause(), vec![text("!"), done()]]);
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(played.finished.result, ".!");
    let requests = stage.model.requests();
    assert_eq!(
        conversation_lines(&requests[1].conversation),
        ["user \"go\"", "assistant <hm> \".\""]
    );
    assert_eq!(requests[1].reminders, Vec::<String>::new());

    let stage = Stage::new(vec![pause(), pause(), pause()]).settings(|s| s.pause_limit = 2);
    let played = stage.play().await;
    assert_eq!(
        (played.finished.reason, played.finished.message.as_str(), played.finished.turns),
        (StopReason::Truncated, "the model paused its turn 3 times without an answer", 3)
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_asked_for_comes_after_the_round() {
    let stage = Stage::new(vec![vec![call("c1", "read", ""), call("c2", "read", ""), done()]])
        .settings(|settings| settings.event_buffer = 1);
    let played = crate::support::read(stage.start(), |run, event| {
        if matches!(event.kind, EventKind::RoundStart) {
            run.end();
        }
    })
    .await;
    assert_eq!(stage.toolbox.ran(), ["c1", "c2"]);
    assert_eq!((played.finished.reason, played.finished.turns), (StopReason::Ended, 1));

    let stage = Stage::new(vec![vec![text("Done."), done()]]);
    let played = crate::support::read(stage.start(), |run, _| run.end()).await;
    assert!(matches!(played.finished.reason, StopReason::Ended | StopReason::Completed));
}

#[derive(Debug)]
struct Rounds;

#[async_trait::async_trait]
impl SystemSource for Rounds {
    async fn system(&self, round: u32) -> SystemPrompt {
        SystemPrompt { stable: "rules".into(), environment: format!("round {round}") }
    }
}

#[derive(Debug)]
struct Breaks;

#[async_trait::async_trait]
impl SystemSource for Breaks {
    async fn system(&self, round: u32) -> SystemPrompt {
        assert!(round < 2, "the clock is broken");
        SystemPrompt::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_anywhere_ends_the_run_in_order() {
    let mut stage = Stage::new(vec![vec![call("c1", "read", ""), done()]]);
    stage.request.system = Arc::new(Breaks);
    let played = stage.play().await;
    assert_eq!(
        crate::support::lines(&played.events)[5..],
        [
            "2 round_start",
            "2 error panic: the run broke off in a panic, which is a bug: the clock is broken",
            "2 stop StreamError \"the run broke off in a panic, which is a bug: the clock is \
             broken\" turns=2 ms=0 usage=0/0 result=\"\" denials=0 s1",
        ]
    );
    assert_eq!(belljar_agent::replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_go_side_by_side() {
    let runs = (0..64).map(|_| async {
        let stage = Stage::new(vec![
            vec![text("a"), call("c1", "read", ""), call("c2", "flood", ""), done()],
            vec![text("b"), call("c3", "broken", ""), done()],
        ])
        .settings(|settings| settings.event_buffer = 1);
        let played = stage.play().await;
        assert_eq!(belljar_agent::replay(stage.journal.records()), played.finished.conversation);
        (played.finished.reason, stage.toolbox.ran())
    });
    let runs = runs.map(|run| Box::pin(run) as futures::future::BoxFuture<'_, _>);
    let tasks: Vec<_> = runs.map(tokio::spawn).collect();
    for task in tasks {
        let ran = ["c1", "c2", "c3"].map(str::to_owned).to_vec();
        assert_eq!(task.await.unwrap(), (StopReason::Completed, ran));
    }
}

#[tokio::test(start_paused = true)]
async fn the_system_prompt_is_made_for_each_round() {
    let mut stage = Stage::new(vec![vec![call("c1", "read", ""), done()]]);
    stage.request.system = Arc::new(Rounds);
    stage.play().await;
    let systems: Vec<_> =
        stage.model.requests().into_iter().map(|request| request.system.environment).collect();
    assert_eq!(systems, ["round 1", "round 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_keeps_its_origins_and_loses_its_blanks() {
    let mut stage = Stage::new(vec![]);
    let file = Part::text("# notes", Origin::Workspace { path: "notes.md".to_owned() });
    stage.request = RunRequest::new(vec![Part::text("  ", Origin::Person), file.clone()]);
    let played = stage.play().await;
    let Message::User(user) = played.finished.conversation.messages()[0].as_ref() else {
        panic!("the first message is the prompt");
    };
    assert_eq!(user.parts, [file]);
    assert!(matches!(user.parts[0].content, Content::Text { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_run_without_anything_to_answer_ends_before_any_request() {
    let mut stage = Stage::new(vec![]);
    stage.request.prompt = vec![];
    let played = stage.play().await;
    assert_eq!(
        crate::support::lines(&played.events)[1..],
        [
            "0 error request: there is nothing to answer: give a prompt",
            "0 stop StreamError \"there is nothing to answer: give a prompt\" turns=0 ms=0 \
             usage=0/0 result=\"\" denials=0 s1",
        ]
    );
    assert_eq!(stage.model.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_second_run_goes_on_where_the_first_ended() {
    let stage = Stage::new(vec![
        vec![call("c1", "read", ""), done()],
        vec![text("First."), done()],
        vec![call("c1", "read", ""), done()],
    ]);
    let first = stage.play().await;
    let mut request = stage.request.clone();
    request.conversation = first.finished.conversation;
    let second = crate::support::read(start(stage.agent(), request), |_, _| {}).await;
    // The model used an id of the first run again: that answer cannot be kept.
    assert_eq!(
        (second.finished.reason, second.finished.message.as_str()),
        (StopReason::StreamError, "the model's answer uses the call id `c1` again")
    );
    assert_eq!(
        conversation_lines(&second.finished.conversation),
        [
            "user \"go\"",
            "assistant c1:read{}",
            "tool c1 read ok {}",
            "assistant \"First.\"",
            "user \"go\"",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn events_of_a_named_agent_carry_its_name() {
    let mut stage = Stage::new(vec![]);
    stage.request.agent = Some("scout".into());
    let mut run = stage.start();
    while let Some(event) = run.next().await {
        assert_eq!(event.agent.as_deref(), Some("scout"));
    }
}
