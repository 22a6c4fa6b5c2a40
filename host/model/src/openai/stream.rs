//! The chunks of an answer.

use super::{
    calls::Calls,
    kept::{MessageFields, extra_content, is_thought},
};
use crate::{
    decode::{Decoder, Step, StreamFault, number, object, push_reasoning, push_text, text},
    dialect::Dialect,
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
    dialect: Dialect,
    calls: Calls,
    message: MessageFields,
    usage: Usage,
    /// A refusal came in place of, or after, the answer's text.
    refused: bool,
    finish: Option<FinishReason>,
}

impl OpenAiDecoder {
    pub(crate) fn new(names: ToolNames, ids: CallIds, dialect: Dialect) -> Self {
        Self {
            names,
            ids,
            dialect,
            calls: Calls::default(),
            message: MessageFields::default(),
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
            output_tokens: self.output_tokens(usage),
            cached_tokens: number(&usage["prompt_tokens_details"], "cached_tokens")
                .or_else(|| number(usage, "prompt_cache_hit_tokens")),
        });
        if self.usage != before {
            out.push(ModelEvent::Usage(self.usage));
        }
    }

    /// Gemini counts its thoughts in the total alone.
    fn output_tokens(&self, usage: &Value) -> Option<u64> {
        let output = number(usage, "completion_tokens");
        if self.dialect != Dialect::Gemini {
            return output;
        }
        let prompt = number(usage, "prompt_tokens").unwrap_or(0);
        let rest = number(usage, "total_tokens").and_then(|total| total.checked_sub(prompt));
        rest.max(output)
    }

    fn delta(&mut self, delta: &Value, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        // Some servers send the same reasoning under both names.
        let reasoning = match text(delta, "reasoning_content") {
            "" => text(delta, "reasoning"),
            reasoning => reasoning,
        };
        push_reasoning(reasoning, out);
        self.message.take(delta);
        match &delta["content"] {
            Value::String(text) if extra_content(delta).is_some_and(is_thought) => {
                let text = text.strip_prefix("<thought>").unwrap_or(text);
                push_reasoning(text.strip_suffix("</thought>").unwrap_or(text), out);
            }
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
        if let Some(error) = error_in_list(data) {
            return Err(StreamFault::Reported(error));
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
            let reason = text(choice, "finish_reason").to_ascii_lowercase();
            if let Some(problem) = failure(&reason) {
                return Err(StreamFault::Reported(problem.into()));
            }
            self.finish = finish_reason(&reason).or(self.finish);
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
        let message = std::mem::take(&mut self.message).into_kept();
        out.extend(message.map(|kept| ModelEvent::Reasoning(kept.into_reasoning())));
        out.extend(calls);
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

/// Some servers write an error as a list of one.
fn error_in_list(data: &str) -> Option<Value> {
    if !data.trim_start().starts_with('[') {
        return None;
    }
    match serde_json::from_str(data).ok()? {
        Value::Array(mut list) if list.len() == 1 => list.pop().filter(is_error),
        _ => None,
    }
}

/// What a reason for the end says that is a failure of the server's.
fn failure(reason: &str) -> Option<&'static str> {
    match reason {
        "error" => Some("the model's server broke the answer off"),
        _ if reason.contains("malformed_function_call") => {
            Some("the model wrote a call that its server could not read")
        }
        _ => None,
    }
}

/// Nothing for a reason that is not there yet.
fn finish_reason(reason: &str) -> Option<FinishReason> {
    match reason {
        "" | "null" => None,
        "length" | "max_tokens" | "model_length" => Some(FinishReason::Length),
        "refusal" | "safety" | "recitation" | "prohibited_content" => Some(FinishReason::Refused),
        _ if reason.starts_with("content_filter") => Some(FinishReason::Refused),
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
