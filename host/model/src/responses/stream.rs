//! The events of an answer.

use super::kept;
use crate::{
    decode::{Decoder, Step, StreamFault, call, number, object, push_reasoning, push_text, text},
    ids::CallIds,
    names::ToolNames,
};
use belljar_types::{Arguments, FinishReason, ModelEvent, Reasoning, Usage};
use serde_json::{Value, json};

/// More items than any answer has.
const MAX_ITEMS: usize = 1024;

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct ResponsesDecoder {
    names: ToolNames,
    ids: CallIds,
    /// Items that have begun and not ended.
    open: Vec<Item>,
    /// The last item that ended, if it is a call or reasoning: whether the length limit cut it is
    /// known only when the next thing comes.
    held: Option<Ended>,
    /// How many items have begun.
    begun: usize,
    usage: Usage,
    refused: bool,
    finish: Option<FinishReason>,
}

#[derive(Debug, Default)]
struct Item {
    index: Option<u64>,
    id: String,
    /// What came of a call so far.
    call_id: String,
    name: String,
    arguments: String,
    /// Whether something of it was shown.
    shown: bool,
    is_call: bool,
}

#[derive(Debug)]
enum Ended {
    Call { id: String, name: String, arguments: String },
    Reasoning(Reasoning),
}

impl Item {
    fn update(&mut self, item: &Value) {
        self.is_call |= text(item, "type") == "function_call";
        for (own, key) in
            [(&mut self.id, "id"), (&mut self.call_id, "call_id"), (&mut self.name, "name")]
        {
            if own.is_empty() {
                *own = text(item, key).to_owned();
            }
        }
        self.set_arguments(&item["arguments"]);
    }

    /// The whole of them; what is not there yet takes nothing away.
    fn set_arguments(&mut self, whole: &Value) {
        match whole {
            Value::String(text) if !text.is_empty() => self.arguments = text.clone(),
            Value::Object(_) => self.arguments = whole.to_string(),
            _ => {}
        }
    }

    fn into_call(self) -> Ended {
        Ended::Call { id: self.call_id, name: self.name, arguments: self.arguments }
    }
}

impl ResponsesDecoder {
    pub(crate) fn new(names: ToolNames, ids: CallIds) -> Self {
        Self {
            names,
            ids,
            open: Vec::new(),
            held: None,
            begun: 0,
            usage: Usage::default(),
            refused: false,
            finish: None,
        }
    }

    fn usage(&mut self, usage: &Value, out: &mut Vec<ModelEvent>) {
        let before = self.usage;
        self.usage.update(Usage {
            input_tokens: number(usage, "input_tokens"),
            output_tokens: number(usage, "output_tokens"),
            cached_tokens: number(&usage["input_tokens_details"], "cached_tokens"),
        });
        if self.usage != before {
            out.push(ModelEvent::Usage(self.usage));
        }
    }

    /// The open item that an event is about: by its place, else by its id, else the last one that
    /// neither speaks against.
    fn find(&self, event: &Value) -> Option<usize> {
        let index = number(event, "output_index");
        let id = match text(event, "item_id") {
            "" => text(&event["item"], "id"),
            id => id,
        };
        let by = |matches: &dyn Fn(&Item) -> bool| self.open.iter().rposition(matches);
        by(&|item| index.is_some() && item.index == index)
            .or_else(|| by(&|item| !id.is_empty() && item.id == id))
            .or_else(|| {
                by(&|item| {
                    (index.is_none() || item.index.is_none())
                        && (id.is_empty() || item.id.is_empty())
                })
            })
    }

    /// As [`Self::find`]; an item that was never announced begins now.
    fn find_or_begin(
        &mut self,
        event: &Value,
        out: &mut Vec<ModelEvent>,
    ) -> Result<&mut Item, StreamFault> {
        let place = match self.find(event) {
            Some(place) => place,
            None => self.begin(event, out)?,
        };
        Ok(&mut self.open[place])
    }

    fn begin(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<usize, StreamFault> {
        if self.begun >= MAX_ITEMS {
            return Err(StreamFault::Protocol(format!("more than {MAX_ITEMS} items in an answer")));
        }
        self.release(out)?;
        self.begun += 1;
        let mut item = Item {
            index: number(event, "output_index"),
            id: text(event, "item_id").to_owned(),
            ..Item::default()
        };
        item.update(&event["item"]);
        self.open.push(item);
        Ok(self.open.len() - 1)
    }

    fn end(&mut self, event: &Value, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        let value = &event["item"];
        let place = match self.find(event) {
            Some(place) => place,
            None => self.begin(event, out)?,
        };
        self.release(out)?;
        let mut item = self.open.remove(place);
        match text(value, "type") {
            "function_call" => {
                item.update(value);
                self.held = Some(item.into_call());
            }
            "message" => self.message(value, item.shown, out),
            "reasoning" => {
                if !item.shown {
                    push_reasoning(&kept::shown(value), out);
                }
                self.held = kept::reasoning(value).map(Ended::Reasoning);
            }
            _ => {}
        }
        Ok(())
    }

    /// The whole of a message: shown here only if it did not come in pieces before.
    fn message(&mut self, message: &Value, shown: bool, out: &mut Vec<ModelEvent>) {
        for part in message["content"].as_array().into_iter().flatten() {
            let refusal = text(part, "refusal");
            self.refused |= !refusal.is_empty();
            if !shown {
                push_text(text(part, "text"), out);
                push_text(refusal, out);
            }
        }
    }

    /// Hands out what is held: something followed it, so it is whole.
    fn release(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), StreamFault> {
        match self.held.take() {
            Some(ended) => self.hand_out(ended, false, out),
            None => Ok(()),
        }
    }

    /// `suspect`: the length limit was reached at the end of this item.
    fn hand_out(
        &mut self,
        ended: Ended,
        suspect: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), StreamFault> {
        let (id, name, arguments) = match ended {
            Ended::Reasoning(_) if suspect => return Ok(()),
            Ended::Reasoning(reasoning) => {
                out.push(ModelEvent::Reasoning(reasoning));
                return Ok(());
            }
            Ended::Call { id, name, arguments } => (id, name, arguments),
        };
        let arguments = if suspect && arguments.trim().is_empty() {
            Arguments::Text(arguments)
        } else {
            Arguments::parse(&arguments)
        };
        out.extend(call((&id, &name), arguments, suspect, &self.names, &mut self.ids)?);
        Ok(())
    }

    /// The answer's own end: its figures, why it ended, and what never came in pieces.
    fn complete(
        &mut self,
        kind: &str,
        response: &Value,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Step, StreamFault> {
        if response.get("error").is_some_and(|error| !error.is_null()) {
            return Err(StreamFault::Reported(response.clone()));
        }
        if self.begun == 0 {
            for item in response["output"].as_array().into_iter().flatten() {
                self.end(&json!({ "item": item }), out)?;
            }
        }
        self.usage(&response["usage"], out);
        let reason = text(&response["incomplete_details"], "reason");
        self.finish = Some(match reason {
            "content_filter" => FinishReason::Refused,
            "" if kind != "response.incomplete" && text(response, "status") != "incomplete" => {
                FinishReason::Stop
            }
            _ => FinishReason::Length,
        });
        Ok(Step::Finished)
    }
}

impl Decoder for ResponsesDecoder {
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
            "response.created" | "response.in_progress" => {
                self.usage(&event["response"]["usage"], out);
            }
            "response.output_item.added" => {
                self.begin(&event, out)?;
            }
            "response.output_text.delta" => self.shown(&event, push_text, out)?,
            "response.refusal.delta" => {
                self.refused = true;
                self.shown(&event, push_text, out)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.shown(&event, push_reasoning, out)?;
            }
            "response.reasoning_summary_part.added" => {
                let between = if self.find_or_begin(&event, out)?.shown { "\n\n" } else { "" };
                push_reasoning(between, out);
            }
            "response.function_call_arguments.delta" => {
                let item = self.find_or_begin(&event, out)?;
                item.is_call = true;
                item.arguments.push_str(text(&event, "delta"));
            }
            "response.function_call_arguments.done" => {
                // An item that has ended said the same before.
                if let Some(place) = self.find(&event) {
                    self.open[place].set_arguments(&event["arguments"]);
                }
            }
            "response.output_item.done" => self.end(&event, out)?,
            "response.completed" | "response.incomplete" | "response.done" => {
                return self.complete(kind, &event["response"], out);
            }
            "response.failed" => return Err(StreamFault::Reported(event["response"].clone())),
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
        let finish = match self.finish {
            _ if self.refused => FinishReason::Refused,
            Some(finish) => finish,
            None => FinishReason::Stop,
        };
        let mut ended: Vec<_> = self.held.take().into_iter().collect();
        let open = std::mem::take(&mut self.open);
        ended.extend(open.into_iter().filter(|item| item.is_call).map(Item::into_call));
        let last = ended.len().saturating_sub(1);
        for (place, ended) in ended.into_iter().enumerate() {
            let suspect = finish == FinishReason::Length && place == last;
            self.hand_out(ended, suspect, out)?;
        }
        out.push(ModelEvent::Done(finish));
        Ok(())
    }
}

impl ResponsesDecoder {
    /// A piece of what is shown.
    fn shown(
        &mut self,
        event: &Value,
        push: fn(&str, &mut Vec<ModelEvent>),
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), StreamFault> {
        self.find_or_begin(event, out)?.shown = true;
        self.release(out)?;
        push(text(event, "delta"), out);
        Ok(())
    }
}

/// Whether an event of this name carries the answer.
fn is_ours(name: &str) -> bool {
    name.starts_with("response.")
}
