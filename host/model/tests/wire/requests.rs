//! What is sent: the whole JSON of each request, compared with a file.

use crate::{
    fixtures::{
        ANTHROPIC, GEMINI, KEY, MISTRAL, OPENAI, RESPONSES, WIRES, Wire, assistant, call, content,
        conversation, image, model, request, result, said, text, tool, user,
    },
    server::{Answer, Received, Server},
    vector,
};
use belljar_model::{ApiKey, connect};
use belljar_types::{
    AssistantPart, Blob, Content, ModelRequest, Reasoning, SystemPrompt, ToolError, ToolErrorKind,
    ToolOutput,
};
use futures::StreamExt;
use serde_json::json;

async fn sent(wire: Wire, request: ModelRequest) -> Received {
    let server = Server::start(Answer::new(&["HTTP/1.1 500 Enough"], "")).await;
    model(wire, &server.address).stream(request).collect::<Vec<_>>().await;
    server.received().await
}

/// Compares the body with `tests/vectors/WIRE/NAME.request.json`.
async fn check(name: &str, request: ModelRequest) {
    check_on(&WIRES, name, |_| request.clone()).await;
}

async fn check_on(wires: &[Wire], name: &str, request: impl Fn(Wire) -> ModelRequest) {
    let mut problems = Vec::new();
    for wire in wires {
        let body = sent(*wire, request(*wire)).await.body;
        let got = serde_json::to_string_pretty(&body).unwrap() + "\n";
        let path = wire.folder().join(format!("{name}.request.json"));
        problems.extend(vector::check(&path, &got).err());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn the_key_and_the_address_are_the_protocols_own() {
    let received = sent(ANTHROPIC, request()).await;
    assert_eq!(received.target, "POST /v1/messages");
    assert_eq!(received.headers["x-api-key"], KEY);
    assert_eq!(received.headers["anthropic-version"], "2023-06-01");
    assert_eq!(received.headers.get("authorization"), None);
    for (wire, target) in [
        (OPENAI, "POST /chat/completions"),
        (RESPONSES, "POST /responses"),
        (GEMINI, "POST /chat/completions"),
        (MISTRAL, "POST /chat/completions"),
    ] {
        let received = sent(wire, request()).await;
        assert_eq!(received.target, target);
        assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(received.headers.get("x-api-key"), None);
        for name in ["content-type", "accept"] {
            assert!(received.headers.contains_key(name), "{name}");
        }
    }
}

#[tokio::test]
async fn a_plain_request() {
    let mut request = request();
    request.max_output_tokens = Some(1000);
    request.reminders = vec!["Plan only.".to_owned(), " ".to_owned()];
    check("plain", request).await;
}

#[tokio::test]
async fn several_results_of_one_round_stay_together() {
    let mut request = request();
    request.conversation = conversation(vec![
        user(vec![text("Look.")]),
        assistant(
            "test/test-model",
            vec![
                said("Two files."),
                call("call_1", "read_file", json!({"path": "a"})),
                call("call_2", "read_file", json!({"path": "b"})),
                call("call_3", "list_directory", json!({})),
            ],
        ),
        result("call_1", "read_file", content(vec![text("A"), image("image/png"), text("B")])),
        result("call_2", "read_file", Err(ToolError::new(ToolErrorKind::Denied, "`b` is denied"))),
        result(
            "call_3",
            "list_directory",
            Ok(ToolOutput { content: Vec::new(), structured: Some(json!({"entries": 2})) }),
        ),
        user(vec![text("And what is in it?")]),
    ]);
    check("row-31-results", request).await;
}

#[tokio::test]
async fn an_old_session_is_mended() {
    let mut request = request();
    request.conversation = conversation(vec![
        user(vec![text("Look.")]),
        result("call_0", "read_file", content(vec![text("no call")])),
        assistant(
            "test/test-model",
            vec![
                call("call_1", "read_file", json!({"path": "a"})),
                call("call_1", "read_file", json!({"path": "b"})),
                call("functions.list:2", "list_directory", json!({})),
                call("call_4", "read_file", json!("{\"path\": ")),
            ],
        ),
        result("functions.list:2", "list_directory", content(vec![text("found")])),
        result("call_1", "read_file", content(vec![text("A")])),
        user(vec![text("Go on.")]),
        assistant("test/test-model", vec![call("call_9", "read_file", json!({}))]),
    ]);
    check("row-32-mended", request).await;
}

#[tokio::test]
async fn blank_texts_are_left_out() {
    let mut request = request();
    request.system = SystemPrompt { stable: " ".into(), environment: String::new() };
    request.tools = Vec::new().into();
    request.conversation = conversation(vec![
        user(vec![text(""), text("Hello."), text(" \n")]),
        assistant("test/test-model", vec![said("")]),
        user(vec![text("  ")]),
        assistant("test/test-model", vec![said("\n"), call("call_1", "read_file", json!({}))]),
        result("call_1", "read_file", content(vec![text(""), text(" ")])),
    ]);
    check("row-33-blank", request).await;
}

#[tokio::test]
async fn names_that_the_api_refuses_get_stand_ins() {
    let mut request = request();
    request.conversation = conversation(vec![
        user(vec![text("How is the weather?")]),
        assistant(
            "test/test-model",
            vec![
                call("call_1", "weather__get.it", json!({})),
                call("call_2", "no such tool", json!({})),
            ],
        ),
        result("call_1", "weather__get.it", content(vec![text("Fine.")])),
        result(
            "call_2",
            "no such tool",
            Err(ToolError::new(ToolErrorKind::UnknownTool, "there is no `no such tool`")),
        ),
    ]);
    check("row-34-names", request).await;
}

#[tokio::test]
async fn images_and_other_content() {
    let blob = |media_type: &str, name: &str, data: &[u8]| Blob {
        media_type: media_type.to_owned(),
        name: Some(name.to_owned()),
        data: data.into(),
    };
    let mut request = request();
    request.conversation = conversation(vec![user(vec![
        text("What is this?"),
        image("image/jpeg"),
        image("image/svg+xml"),
        Content::Audio(blob("audio/wav", "a.wav", &[1, 2])),
        Content::File(blob("text/plain", "a.txt", b"plain words")),
        Content::File(blob("application/pdf", "a.pdf", &[0, 159])),
        Content::Link {
            uri: "https://a.test".to_owned(),
            title: Some("A".to_owned()),
            media_type: None,
        },
    ])]);
    check("images", request).await;
}

#[tokio::test]
async fn signed_thinking_goes_back_to_the_model_that_made_it_only() {
    let thinking = |text: &str, signature: Option<&str>, data: Option<&str>| {
        AssistantPart::Reasoning(Reasoning {
            text: text.to_owned(),
            signature: signature.map(str::to_owned),
            data: data.map(str::to_owned),
        })
    };
    let parts = || {
        vec![
            thinking(" Let me\nsee.", Some("EqQBCg+/="), None),
            thinking("", None, Some("EmwKAhgB")),
            said("Yes."),
            thinking("unsigned", None, None),
        ]
    };
    let mut request = request();
    request.conversation = conversation(vec![
        user(vec![text("One?")]),
        assistant("test/test-model", parts()),
        user(vec![text("Two?")]),
        assistant("test/other-model", parts()),
        user(vec![text("Three?")]),
        assistant("test/other-model", vec![thinking("a", Some("b"), None)]),
        user(vec![text("Four?")]),
        assistant("test/test-model", vec![said("Well, "), thinking("a", Some("b"), None)]),
    ]);
    check("row-24-thinking", request).await;
}

/// Reasoning as each protocol has it, in one message: each takes back what is its own.
#[tokio::test]
async fn what_a_server_wants_back_goes_back_to_its_place() {
    let kept = |signature: Option<&str>, data: Option<&str>| {
        AssistantPart::Reasoning(Reasoning {
            text: "Hm.".to_owned(),
            signature: signature.map(str::to_owned),
            data: data.map(str::to_owned),
        })
    };
    let item = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"gAAA+/="}"#;
    let of_message = r#"{"message":{"extra_content":{"google":{"thought_signature":"one+/="}}}}"#;
    let of_call = r#"{"tool_call":{"extra_content":{"google":{"thought_signature":"two+/="}}}}"#;
    let parts = || {
        vec![
            kept(Some("EqQBCg+/="), None),
            kept(None, Some(item)),
            said("Yes."),
            kept(Some(of_message), None),
            kept(Some(of_call), None),
            call("call_1", "read_file", json!({"path": "a"})),
            call("call_2", "read_file", json!({"path": "b"})),
            // Nothing follows it.
            kept(None, Some(item)),
        ]
    };
    let results = |first: &str, second: &str| {
        [
            result(first, "read_file", content(vec![text("A")])),
            result(second, "read_file", content(vec![text("B")])),
        ]
    };
    check_on(&WIRES, "row-24-kept", |wire| {
        let mut request = request();
        let mut messages = vec![user(vec![text("One?")]), assistant(&wire.full_name(), parts())];
        messages.extend(results("call_1", "call_2"));
        messages.push(assistant("test/other-model", parts()));
        messages.extend(results("call_1", "call_2"));
        request.conversation = conversation(messages);
        request
    })
    .await;
}

/// Roles that some servers refuse one after the other, and an answer that is to go on.
#[tokio::test]
async fn the_order_of_roles_is_one_that_the_server_takes() {
    let messages = || {
        vec![
            user(vec![text("Look.")]),
            assistant("test/test-model", vec![call("D681PevKs", "read_file", json!({}))]),
            result("D681PevKs", "read_file", content(vec![image("image/png")])),
            user(vec![text("Go on.")]),
            assistant("test/test-model", vec![said("It shows ")]),
        ]
    };
    check_on(&[OPENAI, RESPONSES, GEMINI, MISTRAL], "order", |_| {
        let mut request = request();
        request.conversation = conversation(messages());
        request
    })
    .await;
}

/// A schema with keywords that not every server takes.
#[tokio::test]
async fn schemas_hold_what_the_server_takes() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "minLength": 1, "format": "uri"},
            "lines": {"anyOf": [{"$ref": "#/$defs/range"}, {"type": "null"}]},
            "mode": {"const": "fast"},
        },
        "$defs": {"range": {
            "type": "object",
            "properties": {"start": {"type": "integer", "exclusiveMinimum": 0}},
        }},
    });
    check_on(&[OPENAI, RESPONSES, GEMINI, MISTRAL], "schema", |_| {
        let mut request = request();
        request.tools = vec![tool("read_file", "Reads.", schema.clone())].into();
        request.conversation = conversation(vec![user(vec![text("Read it.")])]);
        request
    })
    .await;
}

/// A limit below the least that the API takes, and a model that has no reasoning to encrypt.
#[tokio::test]
async fn responses_are_asked_for_what_the_model_has() {
    let mut request = request();
    request.max_output_tokens = Some(1);
    let body = sent(RESPONSES, request.clone()).await.body;
    assert_eq!(body["max_output_tokens"], 16);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    for name in ["gpt-4o", "gpt-4.1-mini", "gpt-3.5-turbo", "ft:gpt-4o:mine", "chatgpt-4o-latest"] {
        let server = Server::start(Answer::new(&["HTTP/1.1 500 Enough"], "")).await;
        let config = RESPONSES.config(&server.address);
        let model = connect(&config, name, ApiKey::new(KEY)).unwrap();
        model.stream(request.clone()).collect::<Vec<_>>().await;
        let body = server.received().await.body;
        assert_eq!((body["model"].as_str(), body.get("include")), (Some(name), None));
    }
}

/// The older models never sign a call, so theirs need no stand-in.
#[tokio::test]
async fn only_models_that_sign_get_a_stand_in_for_a_signature() {
    for (name, is_signed) in [("gemini-3-pro-preview", true), ("gemini-2.5-flash", false)] {
        let server = Server::start(Answer::new(&["HTTP/1.1 500 Enough"], "")).await;
        let model = connect(&GEMINI.config(&server.address), name, ApiKey::new(KEY)).unwrap();
        model.stream(request()).collect::<Vec<_>>().await;
        let body = server.received().await.body;
        let call = &body["messages"][2]["tool_calls"][0];
        assert_eq!(call["id"], "call_1", "{body}");
        assert_eq!(call.get("extra_content").is_some(), is_signed, "{name}");
    }
}
