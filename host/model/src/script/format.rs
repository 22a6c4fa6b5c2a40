//! The format of a script: one JSON object a line, strict.

use super::ScriptError;
use belljar_types::{
    Arguments, FinishReason, ModelErrorKind, ModelEvent, Reasoning, ToolCall, Usage,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Turn {
    pub(crate) reasoning: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<ScriptedCall>,
    pub(crate) usage: Option<Usage>,
    /// The answer piece by piece, in place of all of the above.
    pub(crate) stream: Vec<ModelEvent>,
    pub(crate) finish: FinishReason,
    pub(crate) error: Option<ScriptedError>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScriptedCall {
    /// Empty where the script gives none.
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: Arguments,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScriptedError {
    pub(crate) kind: ModelErrorKind,
    pub(crate) message: String,
    pub(crate) retry_after_ms: Option<u64>,
}

/// The turns of a script's text.
pub(crate) fn parse(text: &str) -> Result<Vec<Turn>, ScriptError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut turns = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.is_empty() || start.starts_with("//") {
            continue;
        }
        let turn = serde_json::from_str::<WireTurn>(line)
            .map_err(|error| {
                let is_torn = error.is_eof() && text.ends_with(line);
                position(&error) + if is_torn { TORN } else { "" }
            })
            .and_then(Turn::try_from)
            .map_err(|problem| ScriptError::Turn { line: index + 1, problem })?;
        turns.push(turn);
    }
    Ok(turns)
}

/// Said of a last line without an end.
const TORN: &str =
    "; the file ends in it, as a recording does that was broken off: remove this line";

/// The reader's message with the column alone: every line is read on its own, so its line number
/// would always be 1.
fn position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what}, at column {}", error.column()),
        None => message,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireTurn {
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<WireCall>,
    usage: Option<WireUsage>,
    stream: Option<Vec<WireEvent>>,
    finish: Option<WireFinish>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireCall {
    tool: String,
    #[serde(default)]
    arguments: WireArguments,
    #[serde(default)]
    id: String,
}

/// An object, or the text that stands for what a model server sends.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`arguments` must be an object or a string")]
enum WireArguments {
    Object(Map<String, Value>),
    Text(String),
}

impl Default for WireArguments {
    fn default() -> Self {
        Self::Object(Map::new())
    }
}

/// One piece of an answer, sent as it is.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireEvent {
    Text(String),
    Reasoning(String),
    Kept(WireReasoning),
    Call(WireCall),
    Usage(WireUsage),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireReasoning {
    #[serde(default)]
    text: String,
    signature: Option<String>,
    data: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireFinish {
    Stop,
    Length,
    Refused,
    Pause,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireError {
    kind: String,
    message: String,
    retry_after_ms: Option<u64>,
}

impl TryFrom<WireTurn> for Turn {
    type Error = String;

    fn try_from(wire: WireTurn) -> Result<Self, String> {
        let WireTurn { reasoning, text, calls, usage, stream, finish, error } = wire;
        if error.is_some() && finish.is_some() {
            return Err("`error` and `finish` exclude each other".to_owned());
        }
        let is_plain = [reasoning.is_empty(), text.is_empty(), calls.is_empty(), usage.is_none()];
        if stream.is_some() && is_plain.contains(&false) {
            return Err("`stream` stands in place of `reasoning`, `text`, `calls` and `usage`: \
                        write either"
                .to_owned());
        }
        Ok(Self {
            reasoning,
            text,
            calls: calls.into_iter().map(ScriptedCall::from).collect(),
            usage: usage.map(Usage::from),
            stream: stream.into_iter().flatten().map(ModelEvent::from).collect(),
            finish: match finish {
                None | Some(WireFinish::Stop) => FinishReason::Stop,
                Some(WireFinish::Length) => FinishReason::Length,
                Some(WireFinish::Refused) => FinishReason::Refused,
                Some(WireFinish::Pause) => FinishReason::Pause,
            },
            error: error.map(ScriptedError::try_from).transpose()?,
        })
    }
}

impl From<WireCall> for ScriptedCall {
    fn from(wire: WireCall) -> Self {
        let arguments = match wire.arguments {
            WireArguments::Object(map) => Arguments::Object(map),
            WireArguments::Text(text) => Arguments::parse(&text),
        };
        Self { id: wire.id, tool: wire.tool, arguments }
    }
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let WireUsage { input_tokens, output_tokens, cached_tokens } = wire;
        Self { input_tokens, output_tokens, cached_tokens }
    }
}

/// Nothing here is read anew: arguments that are a text stay one.
impl From<WireEvent> for ModelEvent {
    fn from(wire: WireEvent) -> Self {
        match wire {
            WireEvent::Text(text) => Self::Text(text),
            WireEvent::Reasoning(text) => Self::ReasoningDelta(text),
            WireEvent::Kept(WireReasoning { text, signature, data }) => {
                Self::Reasoning(Reasoning { text, signature, data })
            }
            WireEvent::Call(WireCall { tool, arguments, id }) => {
                let arguments = match arguments {
                    WireArguments::Object(map) => Arguments::Object(map),
                    WireArguments::Text(text) => Arguments::Text(text),
                };
                Self::ToolCall(ToolCall { id, tool, arguments })
            }
            WireEvent::Usage(usage) => Self::Usage(usage.into()),
        }
    }
}

impl TryFrom<WireError> for ScriptedError {
    type Error = String;

    fn try_from(wire: WireError) -> Result<Self, String> {
        let kind = KINDS.into_iter().find(|kind| kind.name() == wire.kind).ok_or_else(|| {
            let known: Vec<_> = KINDS.iter().map(|kind| format!("`{}`", kind.name())).collect();
            format!("`{}` is no kind of error; want one of {}", wire.kind, known.join(", "))
        })?;
        Ok(Self { kind, message: wire.message, retry_after_ms: wire.retry_after_ms })
    }
}

const KINDS: [ModelErrorKind; 9] = [
    ModelErrorKind::Connection,
    ModelErrorKind::RateLimited,
    ModelErrorKind::Server,
    ModelErrorKind::Cut,
    ModelErrorKind::Protocol,
    ModelErrorKind::Authentication,
    ModelErrorKind::Request,
    ModelErrorKind::ContextOverflow,
    ModelErrorKind::Configuration,
];
