//! The session: what is written when, and what a session that broke off is read as.

use crate::support::{
    Asked, MemoryJournal, Stage, call, conversation_lines, done, lines, record_lines, text, usage,
};
use belljar_agent::{replay, start};
use belljar_types::{
    ApprovalAnswer, EventKind, Message, Mode, Origin, Part, PermissionMode, Record, StopReason,
};
use futures::StreamExt;

fn stage() -> Stage {
    Stage::new(vec![
        vec![text("Hi."), call("c1", "read", ""), call("c2", "write", ""), usage(3, 4), done()],
        vec![text("Bye."), done()],
    ])
    .asked(vec![Asked::Answers(ApprovalAnswer::Once)])
}

#[tokio::test(start_paused = true)]
async fn a_session_tells_the_whole_run() {
    let stage = stage();
    let played = stage.play().await;
    assert_eq!(
        record_lines(&stage.journal.records()),
        [
            "run_started p/m Chat default",
            "user \"go\"",
            "usage Some(3)/Some(4)",
            "assistant \"Hi.\" c1:read{} c2:write{}",
            "call_started c1",
            "tool c1 read ok {}",
            "call_done c1 receipt",
            "call_started c2",
            "tool c2 write ok {}",
            "call_done c2 receipt",
            "assistant \"Bye.\"",
            "stopped Completed \"\"",
        ]
    );
    assert_eq!(replay(stage.journal.records()), played.finished.conversation);
}

#[tokio::test(start_paused = true)]
async fn a_record_is_on_disk_before_its_event_and_all_before_a_round() {
    let stage = stage().settings(|settings| settings.event_buffer = 1);
    let mut run = stage.start();
    while let Some(event) = run.next().await {
        let records = record_lines(&stage.journal.records());
        let written = |line: &str| records.iter().any(|record| record.starts_with(line));
        match &event.kind {
            EventKind::RoundStart if event.iteration == 1 => assert!(written("user")),
            EventKind::RoundStart => assert!(written("call_done c2")),
            EventKind::AssistantText { text } => {
                assert!(written(&format!("assistant {text:?}")));
            }
            EventKind::ToolResult(result) => {
                assert!(written(&format!("call_started {}", result.call_id)));
                assert!(written(&format!("tool {}", result.call_id)));
            }
            EventKind::ToolCallDone { call_id, .. } => {
                assert!(written(&format!("call_done {call_id}")));
            }
            EventKind::Stop { .. } => assert!(written("stopped")),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_a_record_cannot_be_written_nothing_more_is_done() {
    let whole = stage();
    whole.play().await;
    let records = whole.journal.records();
    for index in 0..records.len() {
        for journal in [MemoryJournal::failing_at(index), MemoryJournal::panicking_at(index)] {
            let stage = stage().journal(journal);
            let played = stage.play().await;
            assert_eq!(played.finished.reason, StopReason::SessionError, "record {index}");
            let shown = lines(&played.events);
            assert!(
                shown[shown.len() - 2].contains(" error session: "),
                "record {index}: {shown:#?}"
            );
            assert_eq!(stage.journal.records(), records[..index], "record {index}");
            assert_eq!(stage.journal.failed_attempts(), 1, "record {index}");
            let requests = stage.model.requests().len();
            let ran = stage.toolbox.ran();
            let asked = |record: &Record| {
                matches!(record, Record::Message { message } if
                    matches!(message.as_ref(), Message::Assistant(_)))
            };
            let answers = records[..index].iter().filter(|record| asked(record)).count();
            assert!(requests <= answers + 1, "record {index}: {requests} requests");
            let started = |record: &&Record| matches!(record, Record::CallStarted { .. });
            let starts = records[..index].iter().filter(started).count();
            assert_eq!(ran.len(), starts, "record {index}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fills_under_a_result_leaves_every_call_with_one() {
    // The record of the first result.
    let stage = stage().journal(MemoryJournal::failing_at(5));
    let played = stage.play().await;
    assert_eq!(
        lines(&played.events)[5..],
        [
            "1 tool_call_start c1 box:read {}",
            "1 tool_result c1 read ok {}",
            "1 tool_call_done c1 receipt",
            "1 tool_call_start c2 box:write {}",
            "1 tool_result c2 write canceled: the session could no longer be written \
             before the call ran",
            "1 tool_call_done c2 -",
            "1 error session: the disk is full",
            "1 stop SessionError \"the disk is full\" turns=1 ms=0 usage=3/4 result=\"Hi.\" \
             denials=0 s1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_can_be_gone_on_with_wherever_it_broke_off() {
    let stage = stage();
    stage.play().await;
    let records = stage.journal.records();
    for count in 0..=records.len() {
        let conversation = replay(records[..count].to_vec());
        assert_eq!(conversation.check(), Ok(()), "after {count} records");
        let next = Stage::new(vec![]);
        let request = belljar_agent::RunRequest { conversation, ..next.request.clone() };
        let finished = start(next.agent(), request).finish().await.unwrap();
        assert_eq!(finished.reason, StopReason::Completed, "after {count} records");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_without_a_result_are_read_as_interrupted() {
    let stage = stage();
    stage.play().await;
    let records = stage.journal.records();
    // Up to the start of the first call.
    assert_eq!(
        conversation_lines(&replay(records[..5].to_vec())),
        [
            "user \"go\"",
            "assistant \"Hi.\" c1:read{} c2:write{}",
            "tool c1 read canceled: the session broke off while the call ran; it may \
             have taken effect",
            "tool c2 write canceled: the session broke off before the call ran",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn results_out_of_place_are_mended() {
    let stage = stage();
    stage.play().await;
    let mut records = stage.journal.records();
    let whole = replay(records.clone());
    // The second result before the first, and one more that no call asked for.
    records.swap(5, 8);
    let stray = records[5].clone();
    records.push(stray);
    assert_eq!(replay(records), whole);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_no_provider_takes_is_not_sent() {
    let mut stage = Stage::new(vec![]);
    let half = replay(vec![]);
    stage.request.conversation = half;
    let whole = self::stage();
    whole.play().await;
    for record in &whole.journal.records()[..4] {
        if let Record::Message { message } = record {
            stage.request.conversation.push(message.clone());
        }
    }
    let events: Vec<_> = stage.start().collect().await;
    assert_eq!(
        lines(&events),
        [
            "0 error session: this conversation cannot be continued: calls without results: \
             [\"c1\", \"c2\"]",
            "0 stop SessionError \"this conversation cannot be continued: calls without \
             results: [\"c1\", \"c2\"]\" turns=0 ms=0 usage=0/0 result=\"\" denials=0 s1"
                .replace("[\"c1\", \"c2\"]\"", "[\\\"c1\\\", \\\"c2\\\"]\"")
                .as_str(),
        ]
    );
    assert_eq!(stage.journal.records(), []);
}

#[tokio::test(start_paused = true)]
async fn the_run_is_recorded_as_it_was_asked_for() {
    let mut stage = Stage::new(vec![]);
    stage.request.mode = Mode::Plan;
    stage.request.permission_mode = PermissionMode::Plan;
    let played = stage.play().await;
    assert_eq!(record_lines(&stage.journal.records())[0], "run_started p/m Plan plan");
    assert_eq!(lines(&played.events)[0], "0 start s1 p/m demo Plan plan 2 tools");
}

#[tokio::test(start_paused = true)]
async fn every_part_carries_where_it_came_from_in_the_session_and_the_events() {
    let mut stage = Stage::new(vec![vec![call("c1", "read", ""), call("c2", "no", ""), done()]]);
    let workspace = Origin::Workspace { path: "notes.md".to_owned() };
    stage.request.prompt = vec![Part::text("go", Origin::Person), Part::text("# notes", workspace)];
    let played = stage.play().await;
    let froms = |value: &serde_json::Value| -> Vec<String> {
        let mut found = Vec::new();
        collect(value, &mut found);
        found
    };
    let records = stage.journal.records();
    let on_disk: Vec<_> = records
        .iter()
        .filter(|record| matches!(record, Record::Message { .. }))
        .flat_map(|record| froms(&serde_json::to_value(record).unwrap()))
        .collect();
    let plugin = r#"{"from":"plugin","plugin":"box","digest":"sha256:0"}"#;
    assert_eq!(
        on_disk,
        [
            r#"{"from":"person"}"#,
            r#"{"from":"workspace","path":"notes.md"}"#,
            // Of the one text, and of the result that it is in.
            plugin,
            plugin,
            r#"{"from":"host"}"#,
        ]
    );
    let told: Vec<_> = played
        .events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ToolResult(_)))
        .flat_map(|event| froms(&serde_json::to_value(event).unwrap()))
        .collect();
    assert_eq!(told, [plugin, plugin, r#"{"from":"host"}"#]);
}

/// Every `origin` in a value, in order.
fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| match key.as_str() {
            "origin" => found.push(value.to_string()),
            _ => collect(value, found),
        }),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
