//! Calls: order, results, and what never runs.

use crate::support::{Stage, Turn, call, conversation_lines, done, finish, lines, text};
use belljar_types::{EventKind, FinishReason, StopReason};

/// The lines of the call events of one turn's calls.
async fn calls_of(turn: Turn) -> Vec<String> {
    let played = Stage::new(vec![turn]).play().await;
    lines(&played.events).into_iter().filter(|line| line.contains(" tool_")).collect()
}

#[tokio::test(start_paused = true)]
async fn calls_run_in_order_and_every_outcome_is_a_result() {
    let turn = vec![
        call("c1", "failing", ""),
        call("c2", "broken", ""),
        call("c3", "cracked", ""),
        call("c4", "hidden", ""),
        call("c5", "locked", ""),
        call("c6", "read", r#"{"bad":1}"#),
        call("c7", "nothing", r#"{"x":1}"#),
        call("c8", "read", ""),
        done(),
    ];
    let stage = Stage::new(vec![turn]);
    let played = stage.play().await;
    let shown: Vec<_> =
        lines(&played.events).into_iter().filter(|line| line.contains(" tool_")).collect();
    assert_eq!(
        shown,
        [
            "1 tool_call_start c1 box:failing {}",
            "1 tool_result c1 failing failed: it cannot be done",
            "1 tool_call_done c1 receipt",
            "1 tool_call_start c2 box:broken {}",
            "1 tool_result c2 broken trap: the host's code for `broken` panicked, which is a \
             bug: the box is broken; the call may have taken effect",
            "1 tool_call_done c2 -",
            "1 tool_call_start c3 box:cracked {}",
            "1 tool_result c3 cracked trap: preparing the call panicked, which is a bug: the \
             catalog is broken",
            "1 tool_call_done c3 -",
            "1 tool_call_start c4 -:hidden {}",
            "1 tool_result c4 hidden denied: `hidden` is denied by a rule",
            "1 tool_call_done c4 -",
            "1 tool_call_start c5 box:locked {}",
            "1 tool_result c5 locked denied: denied by the rule",
            "1 tool_call_done c5 -",
            "1 tool_call_start c6 box:read {\"bad\":1}",
            "1 tool_result c6 read invalid_arguments: `bad` is not of the schema",
            "1 tool_call_done c6 -",
            "1 tool_call_start c7 -:nothing {\"x\":1}",
            "1 tool_result c7 nothing unknown_tool: there is no tool `nothing`",
            "1 tool_call_done c7 -",
            "1 tool_call_start c8 box:read {}",
            "1 tool_result c8 read ok {}",
            "1 tool_call_done c8 receipt",
        ]
    );
    assert_eq!(played.finished.denials, 2);
    let Some(EventKind::Stop { denials, denied, .. }) = played.events.last().map(|e| &e.kind)
    else {
        panic!("the last event is the stop");
    };
    let tools: Vec<_> = denied.iter().map(|denied| denied.tool.as_str()).collect();
    assert_eq!((*denials, tools), (2, vec!["hidden", "locked"]));
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(stage.toolbox.ran(), ["c1", "c2", "c8"]);
    let results: Vec<_> = conversation_lines(&played.finished.conversation)
        .into_iter()
        .filter_map(|line| line.strip_prefix("tool ").map(|line| line[..2].to_owned()))
        .collect();
    assert_eq!(results, ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"]);
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_object_never_run_and_the_result_says_where() {
    let shown = calls_of(vec![
        call("c1", "read", r#"{"path": "#),
        call("c2", "read", "[1]"),
        call("c3", "nothing", "{"),
        done(),
    ])
    .await;
    assert_eq!(
        shown,
        [
            r#"1 tool_call_start c1 box:read "{\"path\": ""#,
            "1 tool_result c1 read invalid_arguments: the arguments are not valid JSON: EOF \
             while parsing a value at line 1 column 9; the call did not run: send it again with \
             one JSON object that fits the tool's schema",
            "1 tool_call_done c1 -",
            "1 tool_call_start c2 box:read \"[1]\"",
            "1 tool_result c2 read invalid_arguments: the arguments must be a JSON object; the \
             call did not run: send it again with one JSON object that fits the tool's schema",
            "1 tool_call_done c2 -",
            "1 tool_call_start c3 -:nothing \"{\"",
            "1 tool_result c3 nothing unknown_tool: there is no tool `nothing`",
            "1 tool_call_done c3 -",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn arguments_cut_by_the_length_limit_say_so_and_whole_calls_run() {
    let shown = calls_of(vec![
        call("c1", "read", "{}"),
        call("c2", "read", r#"{"path": "a"#),
        finish(FinishReason::Length),
    ])
    .await;
    assert_eq!(
        shown,
        [
            "1 tool_call_start c1 box:read {}",
            "1 tool_result c1 read ok {}",
            "1 tool_call_done c1 receipt",
            r#"1 tool_call_start c2 box:read "{\"path\": \"a""#,
            "1 tool_result c2 read invalid_arguments: the answer was cut by the model's length \
             limit inside these arguments, so the call did not run: the arguments are not valid \
             JSON: EOF while parsing a string at line 1 column 11; send it again with less in \
             it, or in several calls",
            "1 tool_call_done c2 -",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn two_answers_running_cut_inside_a_call_stop_the_run() {
    let cut = |id| vec![call(id, "read", "{"), finish(FinishReason::Length)];
    let played = Stage::new(vec![cut("c1"), cut("c2")]).play().await;
    assert_eq!((played.finished.reason, played.finished.turns), (StopReason::Truncated, 2));
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_in_a_row_stop_the_run_when_the_batch_is_done() {
    let unknown = |id| call(id, "nothing", "");
    let known = |id| call(id, "read", "");
    for (turns, reason, ran) in [
        // In one batch, the rest of which still runs its course.
        (vec![vec![known("c1"), unknown("c2"), unknown("c3"), done()]], "UnknownToolLimit", 1),
        // Across rounds.
        (vec![vec![unknown("c1"), done()], vec![unknown("c2"), done()]], "UnknownToolLimit", 0),
        // A known call resets, also inside the batch, also where it fails.
        (vec![vec![unknown("c1"), unknown("c2"), known("c3"), done()]], "Completed", 1),
        (
            vec![
                vec![unknown("c1"), done()],
                vec![call("c2", "failing", ""), done()],
                vec![unknown("c3"), done()],
            ],
            "Completed",
            1,
        ),
        (
            vec![vec![unknown("c1"), call("c2", "read", "{"), done()], vec![unknown("c3"), done()]],
            "Completed",
            0,
        ),
    ] {
        let shown = format!("{turns:?}");
        let stage = Stage::new(turns);
        let played = stage.play().await;
        assert_eq!(format!("{:?}", played.finished.reason), reason, "{shown}");
        assert_eq!(stage.toolbox.ran().len(), ran, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_stop_names_the_last_unknown_tool() {
    let stage = Stage::new(vec![vec![call("c1", "a", ""), call("c2", "b", ""), done()]]);
    assert_eq!(
        stage.play().await.finished.message,
        "the model called tools that do not exist 2 times in a row, at last `b`; `belljar tools` \
         lists those it has"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_call_tells_while_it_runs_is_shown_before_its_result() {
    assert_eq!(
        calls_of(vec![call("c1", "chatty", ""), done()]).await,
        [
            "1 tool_call_start c1 box:chatty {}",
            "1 tool_progress c1 1/2 half",
            "1 tool_output c1 nearly",
            "1 tool_result c1 chatty ok {}",
            "1 tool_call_done c1 receipt",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn updates_that_come_too_fast_are_left_out_and_counted() {
    let played = Stage::new(vec![vec![call("c1", "flood", ""), done()]]).play().await;
    let shown = lines(&played.events);
    let updates = shown.iter().filter(|line| line.contains(" tool_progress ")).count();
    let notice =
        format!("1 notice {} updates of `flood` came too fast and were left out", 1000 - updates);
    assert!(shown.contains(&notice), "{notice} is not in {shown:#?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_before_the_stream_is_over() {
    let stage =
        Stage::new(vec![vec![call("c1", "read", ""), text("more"), crate::support::Step::Panic]]);
    let played = stage.play().await;
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
    assert_eq!(played.finished.reason, StopReason::StreamError);
}
