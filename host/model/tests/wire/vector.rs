//! Vectors: answers of model servers, byte for byte, and the events that they must become.
//!
//! The format is described in the crate's `README.md`. With `UPDATE_VECTORS=1` in the environment
//! the expected files are written anew, to be read before they are kept.

use crate::server::{Answer, Then};
use belljar_types::{FinishReason, ModelError, ModelEvent};
use serde_json::{Value, json};
use std::{fs, path::Path};

const FLUSH: &[u8] = "‖".as_bytes();

/// How the body is cut into writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    AsMarked,
    AtOnce,
    ByteByByte,
}

pub(crate) fn read(path: &Path, pace: Pace) -> Answer {
    let bytes = fs::read(path).unwrap();
    let mut rest = bytes.as_slice();
    let mut answer = Answer::default();
    loop {
        let end = rest.iter().position(|byte| *byte == b'\n').expect("a blank line after the head");
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        rest = &rest[end + 1..];
        match line.strip_prefix('#').map(str::trim) {
            Some("then: hold") => answer.then = Then::Hold,
            Some("then: break") => answer.then = Then::Break,
            Some(_) => {}
            None if line.is_empty() => break,
            None => answer.head.push(line.to_owned()),
        }
    }
    let pieces = split(rest);
    answer.pieces = match pace {
        Pace::AsMarked => pieces,
        Pace::AtOnce => vec![pieces.concat()],
        Pace::ByteByByte => pieces.concat().into_iter().map(|byte| vec![byte]).collect(),
    };
    answer
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while let Some(end) = bytes.windows(FLUSH.len()).position(|window| window == FLUSH) {
        pieces.push(bytes[..end].to_vec());
        bytes = &bytes[end + FLUSH.len()..];
    }
    pieces.push(bytes.to_vec());
    pieces
}

/// Events as JSON, one a line.
pub(crate) fn describe(events: &[Result<ModelEvent, ModelError>], address: &str) -> String {
    events
        .iter()
        .map(|event| describe_one(event).to_string().replace(address, "http://server") + "\n")
        .collect()
}

fn describe_one(event: &Result<ModelEvent, ModelError>) -> Value {
    match event {
        Ok(ModelEvent::Text(text)) => json!({"text": text}),
        Ok(ModelEvent::ReasoningDelta(text)) => json!({"reasoning_delta": text}),
        Ok(ModelEvent::Reasoning(reasoning)) => json!({"reasoning": reasoning}),
        Ok(ModelEvent::ToolCall(call)) => json!({"call": call}),
        Ok(ModelEvent::Usage(usage)) => json!({"usage": usage}),
        Ok(ModelEvent::Done(finish)) => json!({"done": match finish {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::Refused => "refused",
            FinishReason::Pause => "pause",
        }}),
        Err(ModelError { kind, message, retry_after }) => {
            let mut error = json!({"kind": kind.name(), "message": message});
            if let Some(wait) = retry_after {
                error["retry_after_ms"] = json!(u64::try_from(wait.as_millis()).unwrap());
            }
            json!({"error": error})
        }
    }
}

/// Compares with the file at `path`, or writes it.
pub(crate) fn check(path: &Path, got: &str) -> Result<(), String> {
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        fs::write(path, got).unwrap();
        return Ok(());
    }
    let want = fs::read_to_string(path).unwrap_or_default();
    if got == want {
        return Ok(());
    }
    Err(format!("{}\n  want:\n{want}\n  got:\n{got}", path.display()))
}
