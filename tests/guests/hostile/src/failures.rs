//! Answers of every kind of failure, answers that break the contract, and words that would act
//! where they are shown.

use belljar_sdk::prelude::*;
use std::time::Duration;

#[derive(Deserialize, JsonSchema)]
struct Fail {
    kind: Kind,
    message: String,
    /// For `unavailable`: when to try again.
    retry_after_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    UnknownTool,
    InvalidArguments,
    Denied,
    Failed,
    Unavailable,
}

/// Fails, in the way asked for.
#[tool(read_only)]
fn fail(args: Fail) -> Result<Output, Failure> {
    Err(match args.kind {
        Kind::UnknownTool => Failure::UnknownTool,
        Kind::InvalidArguments => Failure::invalid_arguments(args.message),
        Kind::Denied => Failure::denied(args.message),
        Kind::Failed => Failure::failed(args.message),
        Kind::Unavailable => Failure::Unavailable {
            message: args.message,
            retry_after: args.retry_after_ms.map(Duration::from_millis),
        },
    })
}

/// Promises a number and gives a text.
#[tool(read_only)]
fn wrong_structured() -> Lie {
    Lie
}

/// Has the output schema of a number, and a text as its value.
pub(crate) struct Lie;

impl belljar_sdk::IntoOutput for Lie {
    fn output_schema() -> Option<belljar_sdk::serde_json::Value> {
        Json::<u32>::output_schema()
    }

    fn into_output(self) -> Result<Output, Failure> {
        Json("not a number").into_output()
    }
}

/// Answers with control, escape, bidirectional and zero-width characters.
#[tool(read_only)]
fn hostile_words() -> &'static str {
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}reversed\u{202c}\u{200b}\u{9b}31m\r\u{8}\u{0}end"
}
