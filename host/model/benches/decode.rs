//! What reading a long answer costs, in each protocol: 2000 pieces of text and a call of 64 KiB, in
//! reads of a network's size.

#![expect(clippy::unwrap_used, reason = "a bench that cannot run must say so")]

use belljar_model::{Protocol, ProviderConfig, decode};
use belljar_types::{FinishReason, ModelEvent, ModelRequest};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::hint::black_box;
use tokio::runtime::{Builder, Runtime};

const PIECES: usize = 2000;
const READ_BYTES: usize = 1400;

fn event(name: Option<&str>, value: &Value) -> String {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {value}\n\n")
}

/// The arguments of a call that writes a file, in pieces as they come.
fn arguments() -> Vec<String> {
    let text = json!({"path": "a", "content": "x".repeat(64 * 1024)}).to_string();
    text.as_bytes().chunks(24).map(|piece| String::from_utf8(piece.to_vec()).unwrap()).collect()
}

fn anthropic() -> String {
    let named = |value: Value| event(value["type"].as_str(), &value);
    let block = |index, block: Value| {
        named(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta = |index, delta: Value| {
        named(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let stop = |index| named(json!({"type": "content_block_stop", "index": index}));
    let mut body = block(0, json!({"type": "text", "text": ""}));
    body.extend((0..PIECES).map(|_| delta(0, json!({"type": "text_delta", "text": " word"}))));
    body += &stop(0);
    body += &block(1, json!({"type": "tool_use", "id": "a", "name": "write", "input": {}}));
    body.extend(
        arguments()
            .into_iter()
            .map(|piece| delta(1, json!({"type": "input_json_delta", "partial_json": piece}))),
    );
    body += &stop(1);
    body += &named(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    body + &named(json!({"type": "message_stop"}))
}

fn openai() -> String {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "choices": [choice]});
        event(None, &chunk)
    };
    let call = |call: Value| chunk(json!({"tool_calls": [call]}), None);
    let mut body = String::new();
    body.extend((0..PIECES).map(|_| chunk(json!({"content": " word"}), None)));
    body += &call(json!({"index": 0, "id": "a", "function": {"name": "write", "arguments": ""}}));
    body.extend(
        arguments()
            .into_iter()
            .map(|piece| call(json!({"index": 0, "function": {"arguments": piece}}))),
    );
    body += &chunk(json!({}), Some("tool_calls"));
    body + "data: [DONE]\n\n"
}

fn responses() -> String {
    let named = |value: Value| event(value["type"].as_str(), &value);
    let item = |kind: &str, index, item: Value| {
        named(json!({"type": kind, "output_index": index, "item": item}))
    };
    let delta = |kind: &str, index, delta: &str| {
        named(json!({"type": kind, "output_index": index, "delta": delta}))
    };
    let (added, done) = ("response.output_item.added", "response.output_item.done");
    let mut body = item(added, 0, json!({"type": "message", "id": "msg_0"}));
    body.extend((0..PIECES).map(|_| delta("response.output_text.delta", 0, " word")));
    body += &item(done, 0, json!({"type": "message", "id": "msg_0"}));
    let mut call = json!({"type": "function_call", "id": "fc_1", "call_id": "a", "name": "write"});
    body += &item(added, 1, call.clone());
    body.extend(
        arguments().iter().map(|piece| delta("response.function_call_arguments.delta", 1, piece)),
    );
    call["arguments"] = arguments().concat().into();
    body += &item(done, 1, call);
    body + &named(json!({"type": "response.completed", "response": {"status": "completed"}}))
}

/// How many events an answer becomes.
fn read(runtime: &Runtime, config: &ProviderConfig, body: &str) -> usize {
    let pieces: Vec<_> =
        body.as_bytes().chunks(READ_BYTES).map(|piece| Ok(piece.to_vec())).collect();
    let request = ModelRequest::default();
    let events: Vec<_> =
        runtime.block_on(decode(config, "model", &request, stream::iter(pieces)).collect());
    assert_eq!(events.last(), Some(&Ok(ModelEvent::Done(FinishReason::Stop))));
    events.len()
}

fn decoding(c: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let mut group = c.benchmark_group("decode");
    for (protocol, body) in [
        (Protocol::Anthropic, anthropic()),
        (Protocol::OpenAi, openai()),
        (Protocol::OpenAiResponses, responses()),
    ] {
        let config = ProviderConfig::new("bench", protocol, "http://server", None);
        assert_eq!(read(&runtime, &config, &body), PIECES + 2, "{}", protocol.name());
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(protocol.name(), |bencher| {
            bencher.iter(|| read(&runtime, &config, black_box(&body)));
        });
    }
    group.finish();
}

criterion_group!(benches, decoding);
criterion_main!(benches);
