//! The decoders against events in which one value after the other is of another type.

use super::*;
use crate::{
    anthropic::AnthropicDecoder, dialect::Dialect, ids::CallIds, names::ToolNames,
    openai::OpenAiDecoder, responses::ResponsesDecoder,
};
use serde_json::json;

fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("text"),
        json!([]),
        json!([null, 0, {}]),
        json!({}),
        json!({"type": "text"}),
    ]
}

/// All values inside one, by their JSON pointers.
fn pointers(value: &Value, prefix: String, list: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                pointers(value, format!("{prefix}/{key}"), list);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                pointers(value, format!("{prefix}/{index}"), list);
            }
        }
        _ => {}
    }
    list.push(prefix);
}

/// Plays the events; tells whether an event was refused.
fn play(mut decoder: impl Decoder, events: &[Value]) -> Result<Vec<ModelEvent>, StreamFault> {
    let mut out = Vec::new();
    for event in events {
        if decoder.event("", &event.to_string(), &mut out)? == Step::Finished {
            break;
        }
    }
    decoder.finish(&mut out)?;
    Ok(out)
}

fn break_each_value<D: Decoder>(decoder: impl Fn() -> D, events: &[Value]) {
    let whole = play(decoder(), events).unwrap();
    let mut changed = 0;
    for (place, event) in events.iter().enumerate() {
        let mut list = Vec::new();
        pointers(event, String::new(), &mut list);
        for pointer in list {
            for odd in odd_values() {
                let mut broken = events.to_vec();
                *broken[place].pointer_mut(&pointer).unwrap() = odd;
                match play(decoder(), &broken) {
                    Ok(out) => {
                        let ends = |e: &&ModelEvent| matches!(e, ModelEvent::Done(_));
                        assert_eq!(out.iter().filter(ends).count(), 1, "{pointer}");
                        assert!(matches!(out.last(), Some(ModelEvent::Done(_))), "{pointer}");
                        changed += usize::from(out != whole);
                    }
                    Err(_) => changed += 1,
                }
            }
        }
    }
    assert!(changed > 50, "the broken values were not looked at: {changed}");
}

#[test]
fn openai_survives_any_type_anywhere() {
    break_each_value(
        || OpenAiDecoder::new(ToolNames::default(), CallIds::default(), Dialect::Gemini),
        &[
            json!({"choices": [{"index": 0, "delta": {"content": "a", "reasoning": "r"}}]}),
            json!({"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "b"}]}}]}),
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [
                {"index": 0, "id": "c1", "function": {"name": "t", "arguments": "{\"a\":1}"}}
            ]}}]}),
            json!({"choices": [{"delta": {"tool_calls": [
                {"id": "c2", "function": {"name": "t", "arguments": {"a": 2}}}
            ]}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 1}}}),
        ],
    );
}

#[test]
fn anthropic_survives_any_type_anywhere() {
    break_each_value(
        || AnthropicDecoder::new(ToolNames::default(), CallIds::default()),
        &[
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "t"}}),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "signature_delta", "signature": "s"}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": "i", "name": "t", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ],
    );
}

#[test]
fn responses_survive_any_type_anywhere() {
    break_each_value(
        || ResponsesDecoder::new(ToolNames::default(), CallIds::default()),
        &[
            json!({"type": "response.created", "response": {"status": "in_progress"}}),
            json!({"type": "response.output_item.added", "output_index": 0,
                "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
            json!({"type": "response.reasoning_summary_text.delta", "output_index": 0,
                "item_id": "rs_1", "delta": "t"}),
            json!({"type": "response.output_item.done", "output_index": 0,
                "item": {"type": "reasoning", "id": "rs_1", "encrypted_content": "e",
                    "summary": [{"type": "summary_text", "text": "t"}]}}),
            json!({"type": "response.output_item.added", "output_index": 1,
                "item": {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "t",
                    "arguments": ""}}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1,
                "item_id": "fc_1", "delta": "{\"a\":1}"}),
            json!({"type": "response.output_item.done", "output_index": 1,
                "item": {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "t",
                    "arguments": "{\"a\":1}"}}),
            json!({"type": "response.completed", "response": {"status": "completed",
                "usage": {"input_tokens": 1, "output_tokens": 2,
                    "input_tokens_details": {"cached_tokens": 1}}}}),
        ],
    );
}
