//! Runs below a run.

use crate::{
    hooks::ScriptedHooks,
    support::{
        Asked, MemoryJournal, Stage, Step, Turn, call, conversation_lines, done, lines,
        record_lines, text, usage,
    },
};
use belljar_agent::{Actions, Delegation, replay};
use belljar_types::{ApprovalAnswer, EventKind, HookPoint, Mode, StopReason};
use std::time::Duration;

fn stage(turns: Vec<Turn>) -> Stage {
    Stage::new(turns).settings(|settings| {
        settings.actions = Actions { delegate: Some(Delegation::default()), ..Actions::default() };
    })
}

fn delegate(id: &str, name: &str) -> Step {
    call(id, "delegate", &format!("{{\"task\":\"look\",\"name\":\"{name}\"}}"))
}

#[tokio::test(start_paused = true)]
async fn a_task_is_done_in_a_conversation_of_its_own_under_its_own_name() {
    let stage = stage(vec![
        vec![text("Send one."), delegate("c1", "scout"), usage(10, 1), done()],
        vec![call("c1", "read", ""), usage(5, 2), done()],
        vec![text("Nothing there."), usage(6, 3), done()],
        vec![text("Done."), usage(11, 4), done()],
    ]);
    let played = stage
        .expect(&[
            "0 start s1 p/m demo Chat default 14 tools",
            "1 round_start",
            "1 text_delta \"Send one.\"",
            "1 usage 10/1 of 10/1",
            "1 assistant_text \"Send one.\"",
            "1 tool_call_start c1 belljar:delegate {\"task\":\"look\",\"name\":\"scout\"}",
            "scout:1 round_start",
            "scout:1 usage 5/2 of 15/3",
            "scout:1 tool_call_start c1 box:read {}",
            "scout:1 tool_result c1 read ok {}",
            "scout:1 tool_call_done c1 receipt",
            "scout:2 round_start",
            "scout:2 text_delta \"Nothing there.\"",
            "scout:2 usage 6/3 of 21/6",
            "scout:2 assistant_text \"Nothing there.\"",
            "1 tool_result c1 delegate ok Nothing there.",
            "1 tool_call_done c1 -",
            "2 round_start",
            "2 text_delta \"Done.\"",
            "2 usage 11/4 of 32/10",
            "2 assistant_text \"Done.\"",
            "2 stop Completed \"\" turns=2 ms=0 usage=32/10 result=\"Done.\" denials=0 s1",
        ])
        .await;
    let requests = stage.model.requests();
    assert_eq!(conversation_lines(&requests[1].conversation), ["user \"look\""]);
    assert_eq!(
        conversation_lines(&played.finished.conversation),
        [
            "user \"go\"",
            "assistant \"Send one.\" c1:delegate{\"task\":\"look\",\"name\":\"scout\"}",
            "tool c1 delegate ok Nothing there.",
            "assistant \"Done.\"",
        ]
    );
    let records = record_lines(&stage.journal.records());
    assert_eq!(
        records[4..13],
        [
            "call_started c1",
            "scout of c1: run_started p/m Chat default",
            "scout of c1: user \"look\"",
            "scout of c1: usage Some(5)/Some(2)",
            "scout of c1: assistant c1:read{}",
            "scout of c1: call_started c1",
            "scout of c1: tool c1 read ok {}",
            "scout of c1: call_done c1 receipt",
            "scout of c1: usage Some(6)/Some(3)",
        ]
    );
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn its_rounds_are_limited_and_it_answers_from_what_it_has() {
    let mut turns = vec![vec![delegate("c0", ""), done()]];
    turns.extend(
        (1..=10).map(|n| vec![call(&format!("c{n}"), "read", &format!("{{\"n\":{n}}}")), done()]),
    );
    turns.push(vec![text("So far this."), done()]);
    turns.push(vec![text("Done."), done()]);
    let stage = stage(turns);
    let played = stage.play().await;
    assert_eq!(
        conversation_lines(&played.finished.conversation)[2],
        "tool c0 delegate ok So far this.\n[the helper had no rounds left]"
    );
    let rounds = lines(&played.events)
        .iter()
        .filter(|line| line.starts_with("helper:") && line.ends_with("round_start"))
        .count();
    assert_eq!(rounds, 11);
}

#[tokio::test(start_paused = true)]
async fn names_are_made_safe_and_different() {
    let stage = stage(vec![vec![
        delegate("c1", "a/b \\u001b[2J"),
        delegate("c2", ""),
        delegate("c3", ""),
        done(),
    ]]);
    let played = stage.play().await;
    let mut names: Vec<_> = played.events.iter().filter_map(|event| event.agent.clone()).collect();
    names.dedup();
    assert_eq!(
        names.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["ab2J", "helper", "helper.2"]
    );
}

#[tokio::test(start_paused = true)]
async fn there_are_two_levels_and_no_more() {
    let stage = stage(vec![
        vec![delegate("c1", "one"), done()],
        vec![delegate("c2", "two"), done()],
        vec![delegate("c3", "three"), done()],
        vec![text("Deep."), done()],
    ]);
    let played = stage.play().await;
    let offered: Vec<bool> = stage
        .model
        .requests()
        .iter()
        .map(|request| request.tools.iter().any(|tool| &*tool.name == "delegate"))
        .collect();
    assert_eq!(offered[..4], [true, true, false, false]);
    assert!(lines(&played.events).contains(
        &"one/two:1 tool_result c3 delegate unknown_tool: there is no tool `delegate`".to_owned()
    ));
    assert!(
        record_lines(&stage.journal.records())
            .contains(&"one of c1: one/two of c2: assistant \"Deep.\"".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn it_may_do_no_more_than_its_parent() {
    let turns = || {
        vec![
            vec![delegate("c1", "scout"), done()],
            vec![call("w", "write", ""), call("l", "locked", ""), call("x", "chatty", ""), done()],
            vec![text("Tried."), done()],
        ]
    };
    // The same person is asked, the same rules refuse.
    let asked = stage(turns()).asked(vec![Asked::Answers(ApprovalAnswer::No)]);
    let played = asked.play().await;
    assert_eq!(asked.toolbox.ran(), ["x"]);
    assert_eq!(played.finished.denials, 2);
    // In plan mode nothing that writes runs below it either.
    let planning = stage(turns())
        .asked(vec![Asked::Answers(ApprovalAnswer::Once)])
        .request(|request| request.mode = Mode::Plan);
    let played = planning.play().await;
    assert_eq!(planning.toolbox.ran(), Vec::<String>::new());
    assert_eq!(played.finished.denials, 3);
    assert_eq!(planning.approver.questions(), []);
    // The same hooks see its calls.
    let hooks = ScriptedHooks::new(HookPoint::PreTool, |report| {
        report.blocked = Some("no".to_owned());
    });
    let hooked = stage(turns()).request(|request| request.hooks = Some(hooks.clone()));
    hooked.play().await;
    assert_eq!(hooked.toolbox.ran(), Vec::<String>::new());
    assert_eq!(hooks.inputs()[0]["agent"], "scout");
}

#[tokio::test(start_paused = true)]
async fn its_end_is_a_point_for_hooks_and_its_prompt_is_not() {
    for (point, count) in [
        (HookPoint::SubagentStop, 1),
        (HookPoint::SessionStart, 1),
        (HookPoint::UserPrompt, 1),
        (HookPoint::Stop, 1),
    ] {
        let hooks = ScriptedHooks::new(point, |_| {});
        let stage = stage(vec![vec![delegate("c1", "scout"), done()], vec![text("Hm."), done()]])
            .request(|request| request.hooks = Some(hooks.clone()));
        stage.play().await;
        assert_eq!(hooks.inputs().len(), count, "{point}");
        if point == HookPoint::SubagentStop {
            assert_eq!(
                hooks.inputs()[0],
                serde_json::json!({"subagent": "scout", "reason": "completed", "result": "Hm."})
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_is_a_failed_call() {
    let stage = stage(vec![
        vec![delegate("c1", "scout"), done()],
        vec![text("I was about"), crate::support::fails(belljar_types::ModelErrorKind::Request)],
        vec![text("Pity."), done()],
    ]);
    let played = stage.play().await;
    assert_eq!(
        conversation_lines(&played.finished.conversation)[2],
        "tool c1 delegate failed: the helper gave no answer (stream error: the server says \
         request); it said: I was about"
    );
    assert_eq!(played.finished.reason, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_the_deepest_in_time() {
    let stage = stage(vec![
        vec![delegate("c1", "one"), done()],
        vec![delegate("c2", "two"), done()],
        vec![call("c3", "stuck", ""), done()],
    ]);
    let run = stage.start();
    let handle = run.handle();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        handle.cancel();
    });
    let played = crate::support::read(run, |_, _| {}).await;
    assert_eq!(played.finished.reason, StopReason::Canceled);
    let Some(EventKind::Stop { duration_ms, .. }) = played.events.last().map(|event| &event.kind)
    else {
        panic!("the last event is the stop");
    };
    assert!((5000..=5100).contains(duration_ms), "{duration_ms}");
    let results: Vec<_> =
        lines(&played.events).into_iter().filter(|line| line.contains("tool_result")).collect();
    let may = "canceled: interrupted by the user while the call ran; it may have taken effect";
    assert_eq!(
        results,
        [
            format!("one/two:1 tool_result c3 stuck {may}"),
            format!("one:1 tool_result c2 delegate {may}"),
            format!("1 tool_result c1 delegate {may}"),
        ]
    );
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_cannot_be_written_below_ends_the_run() {
    let turns = || {
        vec![
            vec![delegate("c1", "scout"), done()],
            vec![call("c2", "read", ""), done()],
            vec![text("Fine."), done()],
        ]
    };
    let whole = stage(turns());
    whole.play().await;
    let count = whole.journal.records().len();
    for index in 0..count {
        let stage = stage(turns()).journal(MemoryJournal::failing_at(index));
        let played = stage.play().await;
        assert_eq!(played.finished.reason, StopReason::SessionError, "record {index}");
        assert_eq!(stage.journal.failed_attempts(), 1, "record {index}");
    }
}
