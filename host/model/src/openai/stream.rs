//! The chunks of an answer.

use super::calls::Calls;
use crate::{
    decode::{Decoder, Step, StreamFault, number, object, text},
    ids::CallIds,
    names::ToolNames,
};
use belljar_types::{FinishReason, ModelEvent, Usage};
use serde_json::Value;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct OpenAiDecoder {
    names: ToolNames,
    ids: CallIds,
    calls: Calls,
    usage: Usage,
    /// A refusal came in place of, or after, the answer's text.
    refused: bool,
    finish: Option<FinishReason>,
}

impl OpenAiDecoder {
    pub(crate) fn new(names: ToolNames, ids: CallIds) -> Self {
        Self {
            names,
            ids,
            calls: Calls::default(),
            usage: Usage::default(),
            refused: false,
            finish: None,
        }
    }

    /// Figures are those of the whole answer so far; the last ones count.
    fn usage(&mut self, usage: &Value, out: &mut Vec<ModelEvent>) {
        if !usage.is_object() {
            return;
        }
        let before = self.usage;
        self.usage.update(Usage {
            input_tokens: number(usage, "prompt_tokens"),
            output_tokens: number(usage, "completion_tokens"),
            cached_tokens: number(&usage["prompt_tokens_details"], "cached_tokens")
                .or_else(|| number(usage, "prompt_cache_hit_tokens")),
        });
        if self.usage != before {
            out.push(ModelEvent::Usage(self.usage));
        }
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        // Some servers send the same reasoning under both names.
        let reasoning = match text(delta, "reasoning_content") {
            "" => text(delta, "reasoning"),
            reasoning => reasoning,
        };
        push_reasoning(reasoning, out);
        match &delta["content"] {
            Value::String(text) => push_text(text, out),
            Value::Array(parts) => parts.iter().for_each(|part| content_part(part, out)),
            _ => {}
        }
        let refusal = text(delta, "refusal");
        if !refusal.is_empty() {
            self.refused = true;
            push_text(refusal, out);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.calls.take(call).map_err(StreamFault::Protocol)?;
        }
        Ok(())
    }
}

impl Decoder for OpenAiDecoder {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Step, StreamFault> {
        if data.trim() == "[DONE]" {
            return Ok(Step::Finished);
        }
        let Some(chunk) = object(name, data, is_ours)? else {
            return Ok(Step::More);
        };
        if is_error(&chunk) || name == "error" {
            return Err(StreamFault::Reported(chunk));
        }
        // One answer was asked for; a server that sends several has numbered them.
        let choice = chunk["choices"].as_array().and_then(|choices| {
            choices.iter().find(|choice| number(choice, "index").unwrap_or(0) == 0)
        });
        if let Some(choice) = choice {
            self.delta(&choice["delta"], out)?;
            if is_error(choice) {
                return Err(StreamFault::Reported(choice.clone()));
            }
            self.finish = finish_reason(text(choice, "finish_reason")).or(self.finish);
        }
        self.usage(&chunk["usage"], out);
        self.usage(&chunk["x_groq"]["usage"], out);
        Ok(Step::More)
    }

    fn is_answered(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        let finish = match self.finish {
            _ if self.refused => FinishReason::Refused,
            Some(finish) => finish,
            None => FinishReason::Stop,
        };
        let calls = std::mem::take(&mut self.calls)
            .finish(finish == FinishReason::Length, &self.names, &mut self.ids)
            .map_err(StreamFault::Protocol)?;
        out.extend(calls.into_iter().map(ModelEvent::ToolCall));
        out.push(ModelEvent::Done(finish));
        Ok(())
    }
}

/// The protocol names no event; some servers use the name that events have by default.
fn is_ours(name: &str) -> bool {
    name == "message"
}

/// Whether a chunk or a choice carries an error. Some servers write `"error": null` into each.
fn is_error(value: &Value) -> bool {
    match value.get("error") {
        None | Some(Value::Null | Value::Bool(false)) => text(value, "object") == "error",
        Some(_) => true,
    }
}

/// Nothing for a reason that is not there yet.
fn finish_reason(reason: &str) -> Option<FinishReason> {
    match reason {
        "" | "null" => None,
        "length" | "max_tokens" | "model_length" => Some(FinishReason::Length),
        "content_filter" | "refusal" | "safety" => Some(FinishReason::Refused),
        _ => Some(FinishReason::Stop),
    }
}

/// A content that is a list: of texts, and of thinking that holds texts.
fn content_part(part: &Value, out: &mut Vec<ModelEvent>) {
    match text(part, "type") {
        "text" => push_text(text(part, "text"), out),
        "thinking" => {
            push_reasoning(text(part, "thinking"), out);
            for part in part["thinking"].as_array().into_iter().flatten() {
                push_reasoning(text(part, "text"), out);
            }
        }
        _ => {}
    }
}

fn push_text(text: &str, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::Text(text.to_owned()));
    }
}

fn push_reasoning(text: &str, out: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        out.push(ModelEvent::ReasoningDelta(text.to_owned()));
    }
}
