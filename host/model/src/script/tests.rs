use super::*;
use belljar_types::{Arguments, AssistantMessage, AssistantPart, FinishReason, Message, Usage};
use futures::StreamExt;
use serde_json::json;

async fn played(model: &ScriptModel, request: ModelRequest) -> Vec<Result<ModelEvent, ModelError>> {
    model.stream(request).collect().await
}

fn call(id: &str, tool: &str, arguments: serde_json::Value) -> ModelEvent {
    let serde_json::Value::Object(map) = arguments else { panic!("want an object") };
    ModelEvent::ToolCall(ToolCall {
        id: id.to_owned(),
        tool: tool.to_owned(),
        arguments: Arguments::Object(map),
    })
}

fn problem(text: &str) -> String {
    Script::parse(text).unwrap_err().to_string()
}

#[tokio::test]
async fn each_request_plays_the_next_turn() {
    let text = r#"
// Looks, then answers.
{"reasoning": "Let me look.", "text": "One moment.", "calls": [{"tool": "read_file", "arguments": {"path": "a"}}, {"tool": "list"}], "usage": {"input_tokens": 3, "output_tokens": 4}}

{"text": "Done. ", "finish": "length"}
"#;
    let model = Script::parse(text).unwrap().into_model("a.jsonl");
    assert_eq!((model.provider(), model.name()), ("script", "a.jsonl"));
    assert_eq!(
        played(&model, ModelRequest::default()).await,
        [
            Ok(ModelEvent::ReasoningDelta("Let ".to_owned())),
            Ok(ModelEvent::ReasoningDelta("me ".to_owned())),
            Ok(ModelEvent::ReasoningDelta("look.".to_owned())),
            Ok(ModelEvent::Text("One ".to_owned())),
            Ok(ModelEvent::Text("moment.".to_owned())),
            Ok(call("call_1", "read_file", json!({"path": "a"}))),
            Ok(call("call_2", "list", json!({}))),
            Ok(ModelEvent::Usage(Usage {
                input_tokens: Some(3),
                output_tokens: Some(4),
                cached_tokens: None,
            })),
            Ok(ModelEvent::Done(FinishReason::Stop)),
        ]
    );
    assert_eq!(
        played(&model, ModelRequest::default()).await,
        [Ok(ModelEvent::Text("Done. ".to_owned())), Ok(ModelEvent::Done(FinishReason::Length)),]
    );
    assert_eq!(
        played(&model, ModelRequest::default()).await,
        [Err(ModelError::new(
            ModelErrorKind::Request,
            "the script `a.jsonl` has run out: its 2 turns were played and the run asked for \
             another; end the script with a turn without calls"
        ))]
    );
}

#[tokio::test]
async fn a_turn_can_fail_after_it_began() {
    let text =
        r#"{"text": "So", "error": {"kind": "cut", "message": "gone", "retry_after_ms": 20}}"#;
    let model = Script::parse(text).unwrap().into_model("a");
    assert_eq!(
        played(&model, ModelRequest::default()).await,
        [
            Ok(ModelEvent::Text("So".to_owned())),
            Err(ModelError {
                kind: ModelErrorKind::Cut,
                message: "gone".to_owned(),
                retry_after: Some(Duration::from_millis(20)),
            }),
        ]
    );
}

#[tokio::test]
async fn malformed_arguments_and_used_ids_are_played_as_a_server_would_send_them() {
    let text = r#"{"calls": [{"tool": "t", "arguments": "{\"a\": 1", "id": "x"}, {"tool": "t", "arguments": "{\"a\": 1}", "id": "y"}]}"#;
    let model = Script::parse(text).unwrap().into_model("a");
    let mut request = ModelRequest::default();
    request.conversation.push(Message::Assistant(AssistantMessage {
        parts: vec![AssistantPart::ToolCall(ToolCall {
            id: "x".to_owned(),
            tool: "t".to_owned(),
            arguments: Arguments::Object(Default::default()),
        })],
        model: "script/a".to_owned(),
        cut: false,
    }));
    assert_eq!(
        played(&model, request).await,
        [
            Ok(ModelEvent::ToolCall(ToolCall {
                id: "call_2".to_owned(),
                tool: "t".to_owned(),
                arguments: Arguments::Text("{\"a\": 1".to_owned()),
            })),
            Ok(call("y", "t", json!({"a": 1}))),
            Ok(ModelEvent::Done(FinishReason::Stop)),
        ]
    );
}

#[test]
fn what_is_no_turn_is_named_by_its_line() {
    for (text, want) in [
        (
            "\n{\"text\": \"a\", \"txt\": \"b\"}",
            "line 2 of the script is no turn: unknown field `txt`, expected one of `reasoning`, \
             `text`, `calls`, `usage`, `stream`, `finish`, `error`, at column 19",
        ),
        (
            "{\"calls\": [{\"tool\": \"t\", \"arguments\": 3}]}",
            "line 1 of the script is no turn: `arguments` must be an object or a string, at \
             column 40",
        ),
        (
            "{\"error\": {\"kind\": \"bang\", \"message\": \"m\"}}",
            "line 1 of the script is no turn: `bang` is no kind of error; want one of \
             `connection`, `rate_limited`, `server`, `cut`, `protocol`, `authentication`, \
             `request`, `context_overflow`, `configuration`",
        ),
        (
            "{\"finish\": \"stop\", \"error\": {\"kind\": \"cut\", \"message\": \"m\"}}",
            "line 1 of the script is no turn: `error` and `finish` exclude each other",
        ),
        (
            "{\"text\": \"a\", \"stream\": []}",
            "line 1 of the script is no turn: `stream` stands in place of `reasoning`, `text`, \
             `calls` and `usage`: write either",
        ),
        (
            "{\"text\": \"a\"}\n{\"text\": \"b",
            "line 2 of the script is no turn: EOF while parsing a string, at column 11; the file \
             ends in it, as a recording does that was broken off: remove this line",
        ),
        ("// nothing\n", "the script holds no turn: write one JSON object a line"),
    ] {
        assert_eq!(problem(text), want);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Script::load("no/such/script.jsonl").unwrap_err();
    assert_eq!(error.to_string(), "cannot read the script `no/such/script.jsonl`");
}
