//! Requests and models that the tests share.

use belljar_model::{ApiKey, Protocol, ProviderConfig, connect};
use belljar_types::{
    Arguments, AssistantMessage, AssistantPart, Blob, Content, Conversation, Hints, Message, Model,
    ModelRequest, Origin, Part, SystemPrompt, ToolCall, ToolDefinition, ToolError, ToolMessage,
    ToolOutput, ToolResult, ToolSource, UserMessage,
};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, sync::Arc, time::Duration};

pub(crate) const KEY: &str = "sk-test-secret-key";

pub(crate) fn vectors() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// What is spoken on a wire: a protocol, or the dialect of it that goes by a provider's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    /// The folder of its vectors.
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    provider: &'static str,
}

pub(crate) const ANTHROPIC: Wire = protocol("anthropic", Protocol::Anthropic);
pub(crate) const OPENAI: Wire = protocol("openai", Protocol::OpenAi);
pub(crate) const RESPONSES: Wire = protocol("openai-responses", Protocol::OpenAiResponses);
pub(crate) const GEMINI: Wire = dialect("gemini");
pub(crate) const MISTRAL: Wire = dialect("mistral");
pub(crate) const WIRES: [Wire; 5] = [ANTHROPIC, OPENAI, RESPONSES, GEMINI, MISTRAL];

const fn protocol(name: &'static str, protocol: Protocol) -> Wire {
    Wire { name, protocol, provider: "test" }
}

const fn dialect(name: &'static str) -> Wire {
    Wire { name, protocol: Protocol::OpenAi, provider: name }
}

impl Wire {
    pub(crate) fn folder(self) -> PathBuf {
        vectors().join(self.name)
    }

    /// The provider behind `base_url`.
    pub(crate) fn config(self, base_url: &str) -> ProviderConfig {
        let Self { protocol, provider, .. } = self;
        let mut config = ProviderConfig::new(provider, protocol, base_url, Some("TEST_API_KEY"));
        // No test waits for it; one that would hangs for ten seconds instead of five minutes.
        config.idle_timeout = Duration::from_secs(10);
        config
    }

    /// `provider/name` of [`model`].
    pub(crate) fn full_name(self) -> String {
        format!("{}/{MODEL}", self.provider)
    }

    /// The answers among its vectors, in order.
    pub(crate) fn answers(self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = fs::read_dir(self.folder())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "http"))
            .collect();
        paths.sort();
        assert!(paths.len() > 10, "too few vectors: {}", paths.len());
        paths
    }
}

pub(crate) const MODEL: &str = "test-model";

/// The model behind `base_url`.
pub(crate) fn model(wire: Wire, base_url: &str) -> Arc<dyn Model> {
    connect(&wire.config(base_url), MODEL, ApiKey::new(KEY)).unwrap()
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
