//! The events of an answer.

use crate::{
    decode::{Decoder, Step, StreamFault, call, number, object, push_reasoning, push_text, text},
    ids::CallIds,
    names::ToolNames,
};
use belljar_types::{Arguments, FinishReason, ModelEvent, Reasoning, Usage};
use serde_json::Value;

/// Real servers have one block open at a time.
const MAX_OPEN_BLOCKS: usize = 256;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct AnthropicDecoder {
    names: ToolNames,
    ids: CallIds,
    /// Blocks that have begun and not ended, with their index.
    open: Vec<(u64, Block)>,
    /// The last block that ended, if it is a call or thinking: whether the length limit cut it is
    /// known only when the next thing comes.
    held: Option<Block>,
    figures: Figures,
    finish: Option<FinishReason>,
}

#[derive(Debug)]
enum Block {
    Text,
    Thinking {
        text: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        id: String,
        name: String,
        input: Value,
        json: String,
    },
    /// A kind that is not ours, such as the provider's own tools.
    Other,
}

/// The provider's figures; each keeps its value until a later one comes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Figures {
    input: Option<u64>,
    cache_read: Option<u64>,
    cache_creation: Option<u64>,
    output: Option<u64>,
}

impl Figures {
    fn update(&mut self, usage: &Value) {
        self.input = number(usage, "input_tokens").or(self.input);
        self.cache_read = number(usage, "cache_read_input_tokens").or(self.cache_read);
        self.cache_creation = number(usage, "cache_creation_input_tokens").or(self.cache_creation);
        self.output = number(usage, "output_tokens").or(self.output);
    }

    /// The provider counts what it read from and wrote to its cache beside the input; for us both
    /// are part of it.
    fn usage(&self) -> Usage {
        let parts = [self.input, self.cache_read, self.cache_creation];
        let known = parts.iter().any(Option::is_some);
        let sum = parts.iter().flatten().fold(0_u64, |sum, part| sum.saturating_add(*part));
        Usage {
            input_tokens: known.then_some(sum),
            output_tokens: self.output,
            cached_tokens: self.cache_read,
        }
    }
}

impl AnthropicDecoder {
    pub(crate) fn new(names: ToolNames, ids: CallIds) -> Self {
        Self { names, ids, open: Vec::new(), held: None, figures: Figures::default(), finish: None }
    }

    fn usage(&mut self, usage: Option<&Value>, out: &mut Vec<ModelEvent>) {
        let Some(usage) = usage else { return };
        let before = self.figures.clone();
        self.figures.update(usage);
        if self.figures != before {
            out.push(ModelEvent::Usage(self.figures.usage()));
        }
    }

    fn start(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        self.release(out)?;
        let index = number(event, "index").unwrap_or(self.open.len() as u64);
        let block = &event["content_block"];
        let block = match text(block, "type") {
            "text" => {
                push_text(text(block, "text"), out);
                Block::Text
            }
            "thinking" => {
                push_reasoning(text(block, "thinking"), out);
                Block::Thinking {
                    text: text(block, "thinking").to_owned(),
                    signature: text(block, "signature").to_owned(),
                }
            }
            "redacted_thinking" => Block::Redacted { data: text(block, "data").to_owned() },
            "tool_use" => Block::Call {
                id: text(block, "id").to_owned(),
                name: text(block, "name").to_owned(),
                input: block["input"].clone(),
                json: String::new(),
            },
            _ => Block::Other,
        };
        self.open.push((index, block));
        Ok(())
    }

    fn delta(&mut self, event: &Value, out: &mut Vec<ModelEvent>) {
        let delta = &event["delta"];
        let block = match number(event, "index") {
            Some(index) => self.open.iter_mut().rev().find(|(open, _)| *open == index),
            None => self.open.last_mut(),
        };
        match (text(delta, "type"), block.map(|(_, block)| block)) {
            ("text_delta", _) => push_text(text(delta, "text"), out),
            ("thinking_delta", Some(Block::Thinking { text: whole, .. })) => {
                let more = text(delta, "thinking");
                whole.push_str(more);
                push_reasoning(more, out);
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => {
                signature.push_str(text(delta, "signature"));
            }
            ("input_json_delta", Some(Block::Call { json, .. })) => {
                json.push_str(text(delta, "partial_json"));
            }
            _ => {}
        }
    }

    fn stop(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        let place = match number(event, "index") {
            Some(index) => self.open.iter().rposition(|(open, _)| *open == index),
            None => self.open.len().checked_sub(1),
        };
        if let Some(place) = place {
            let (_, block) = self.open.remove(place);
            self.release(out)?;
            self.held = Some(block);
        }
        Ok(())
    }

    /// Hands out the block that is held: something followed it, so it is whole.
    fn release(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        match self.held.take() {
            Some(block) => self.hand_out(block, false, out),
            None => Ok(()),
        }
    }

    /// `suspect`: the length limit was reached at the end of this block.
    fn hand_out(
        &mut self,
        block: Block,
        suspect: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), StreamFault> {
        match block {
            Block::Thinking { text, signature } if !suspect && !signature.is_empty() => {
                out.push(ModelEvent::Reasoning(Reasoning {
                    text,
                    signature: Some(signature),
                    data: None,
                }));
            }
            Block::Redacted { data } if !suspect && !data.is_empty() => {
                out.push(ModelEvent::Reasoning(Reasoning {
                    text: String::new(),
                    signature: None,
                    data: Some(data),
                }));
            }
            Block::Call { id, name, input, json } => {
                let arguments = arguments(input, json, suspect);
                out.extend(call((&id, &name), arguments, suspect, &self.names, &mut self.ids)?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Decoder for AnthropicDecoder {
    fn event(
        &mut self,
        name: &str,
        data: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Step, StreamFault> {
        if data.trim() == "[DONE]" {
            return Ok(Step::Finished);
        }
        let Some(event) = object(name, data, is_ours)? else {
            return Ok(Step::More);
        };
        let kind = match text(&event, "type") {
            "" => name,
            kind => kind,
        };
        match kind {
            "message_start" => self.usage(event["message"].get("usage"), out),
            "content_block_start" if self.open.len() >= MAX_OPEN_BLOCKS => {
                return Err(StreamFault::Protocol("too many blocks are open at once".to_owned()));
            }
            "content_block_start" => self.start(&event, out)?,
            "content_block_delta" => self.delta(&event, out),
            "content_block_stop" => self.stop(&event, out)?,
            "message_delta" => {
                self.usage(event.get("usage"), out);
                self.finish = finish_reason(text(&event["delta"], "stop_reason")).or(self.finish);
            }
            "message_stop" => return Ok(Step::Finished),
            "error" => return Err(StreamFault::Reported(event)),
            _ if event.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(StreamFault::Reported(event));
            }
            _ => {}
        }
        Ok(Step::More)
    }

    fn is_answered(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        let finish = self.finish.unwrap_or(FinishReason::Stop);
        let mut blocks: Vec<_> = self.held.take().into_iter().collect();
        blocks.extend(std::mem::take(&mut self.open).into_iter().map(|(_, block)| block));
        let last = blocks.len().saturating_sub(1);
        for (place, block) in blocks.into_iter().enumerate() {
            let suspect = finish == FinishReason::Length && place == last;
            self.hand_out(block, suspect, out)?;
        }
        out.push(ModelEvent::Done(finish));
        Ok(())
    }
}

/// Whether an event of this name carries the answer.
fn is_ours(name: &str) -> bool {
    name.starts_with("message") || name.starts_with("content_block")
}

/// Nothing for a reason that is not there yet.
fn finish_reason(reason: &str) -> Option<FinishReason> {
    match reason {
        "" => None,
        "max_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
        "refusal" => Some(FinishReason::Refused),
        "pause_turn" => Some(FinishReason::Pause),
        _ => Some(FinishReason::Stop),
    }
}

/// The input comes in pieces of JSON; some servers send it whole when the block begins.
fn arguments(input: Value, json: String, suspect: bool) -> Arguments {
    match input {
        Value::Object(map) if json.trim().is_empty() && !map.is_empty() => Arguments::Object(map),
        _ if suspect && json.trim().is_empty() => Arguments::Text(json),
        _ => Arguments::parse(&json),
    }
}
