//! What is sent: the whole JSON of each request, compared with a file.

use crate::{
    fixtures::{
        KEY, assistant, call, content, conversation, image, model, request, result, said, text,
        user, vectors,
    },
    server::{Answer, Received, Server},
    vector,
};
use belljar_model::Protocol;
use belljar_types::{
    AssistantPart, Blob, Content, ModelRequest, Reasoning, SystemPrompt, ToolError, ToolErrorKind,
    ToolOutput,
};
use futures::StreamExt;
use serde_json::json;

const BOTH: [Protocol; 2] = [Protocol::Anthropic, Protocol::OpenAi];

async fn sent(protocol: Protocol, request: ModelRequest) -> Received {
    let server = Server::start(Answer::new(&["HTTP/1.1 500 Enough"], "")).await;
    model(protocol, &server.address).stream(request).collect::<Vec<_>>().await;
    server.received().await
}

/// Compares the body with `tests/vectors/PROTOCOL/NAME.request.json`.
async fn check(name: &str, request: ModelRequest) {
    let mut problems = Vec::new();
    for protocol in BOTH {
        let body = sent(protocol, request.clone()).await.body;
        let got = serde_json::to_string_pretty(&body).unwrap() + "\n";
        let path = vectors().join(protocol.name()).join(format!("{name}.request.json"));
        problems.extend(vector::check(&path, &got).err());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn the_key_and_the_address_are_the_protocols_own() {
    let received = sent(Protocol::Anthropic, request()).await;
    assert_eq!(received.target, "POST /v1/messages");
    assert_eq!(received.headers["x-api-key"], KEY);
    assert_eq!(received.headers["anthropic-version"], "2023-06-01");
    assert_eq!(received.headers.get("authorization"), None);
    let received = sent(Protocol::OpenAi, request()).await;
    assert_eq!(received.target, "POST /chat/completions");
    assert_eq!(received.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(received.headers.get("x-api-key"), None);
    for name in ["content-type", "accept"] {
        assert!(received.headers.contains_key(name), "{name}");
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
