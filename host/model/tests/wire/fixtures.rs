//! Requests and models that the tests share.

use belljar_model::{ApiKey, Protocol, ProviderConfig, connect};
use belljar_types::{
    Arguments, AssistantMessage, AssistantPart, Blob, Content, Conversation, Hints, Message, Model,
    ModelRequest, Origin, Part, SystemPrompt, ToolCall, ToolDefinition, ToolError, ToolMessage,
    ToolOutput, ToolResult, ToolSource, UserMessage,
};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc, time::Duration};

pub(crate) const KEY: &str = "sk-test-secret-key";

pub(crate) fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// A model of the provider `test` behind `base_url`.
pub(crate) fn model(protocol: Protocol, base_url: &str) -> Arc<dyn Model> {
    let mut config = ProviderConfig::new("test", protocol, base_url, Some("TEST_API_KEY"));
    // No test waits for it; one that would hangs for ten seconds instead of five minutes.
    config.idle_timeout = Duration::from_secs(10);
    connect(&config, "test-model", ApiKey::new(KEY)).unwrap()
}

pub(crate) fn tool(name: &str, description: &str, input_schema: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        tool: name.into(),
        source: ToolSource { plugin: "files".into(), digest: "sha256:0".into() },
        title: Some("A title".to_owned()),
        description: description.to_owned(),
        input_schema: Arc::new(input_schema),
        output_schema: None,
        hints: Hints::default(),
    }
}

pub(crate) fn user(parts: Vec<Content>) -> Message {
    let parts = parts.into_iter().map(|content| Part { content, origin: Origin::Person }).collect();
    Message::User(UserMessage { parts })
}

pub(crate) fn text(text: &str) -> Content {
    Content::Text { text: text.to_owned() }
}

pub(crate) fn image(media_type: &str) -> Content {
    Content::Image(Blob {
        media_type: media_type.to_owned(),
        name: None,
        data: [1, 2, 3].as_slice().into(),
    })
}

pub(crate) fn assistant(model: &str, parts: Vec<AssistantPart>) -> Message {
    Message::Assistant(AssistantMessage { parts, model: model.to_owned(), cut: false })
}

pub(crate) fn said(text: &str) -> AssistantPart {
    AssistantPart::Text { text: text.to_owned() }
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> AssistantPart {
    let arguments = match arguments {
        Value::Object(map) => Arguments::Object(map),
        Value::String(text) => Arguments::Text(text),
        other => panic!("no arguments: {other}"),
    };
    AssistantPart::ToolCall(ToolCall { id: id.to_owned(), tool: tool.to_owned(), arguments })
}

pub(crate) fn result(id: &str, tool: &str, outcome: Result<ToolOutput, ToolError>) -> Message {
    Message::Tool(ToolMessage {
        result: ToolResult {
            call_id: id.to_owned(),
            tool: tool.to_owned(),
            outcome,
            origin: Origin::Host,
        },
    })
}

pub(crate) fn content(content: Vec<Content>) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput { content, structured: None })
}

pub(crate) fn conversation(messages: Vec<Message>) -> Conversation {
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.push(message);
    }
    conversation
}

/// A conversation with one call, `call_1`, behind it, and tools of which one has a name that no
/// API takes.
pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        system: SystemPrompt {
            stable: "You are Belljar.".into(),
            environment: "Date: 2026-01-02".to_owned(),
        },
        conversation: conversation(vec![
            user(vec![text("Read it.")]),
            assistant("test/test-model", vec![call("call_1", "read_file", json!({"path": "a"}))]),
            result("call_1", "read_file", content(vec![text("A")])),
        ]),
        tools: vec![
            tool("list_directory", "Lists.", json!({"type": "object"})),
            tool(
                "read_file",
                "Reads.",
                json!({"type": "object", "properties": {"path": {"type": "string"}}}),
            ),
            tool("weather__get.it", "", json!({"type": "object", "properties": {}})),
        ]
        .into(),
        max_output_tokens: None,
        reminders: Vec::new(),
    }
}
