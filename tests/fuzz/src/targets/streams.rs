//! Answers of model servers, in each protocol and dialect, in pieces of any size.

use super::{Target, Verdict};
use crate::generate;
use belljar_model::{Protocol, ProviderConfig, decode};
use belljar_types::{ModelError, ModelEvent, ModelRequest};
use futures::{FutureExt, StreamExt, stream};
use std::{collections::HashSet, io, sync::LazyLock};
use tokio::runtime::{Builder, Runtime};

/// A provider, how many bytes come at a time, and then the answer; each of the first two on a line
/// of its own.
pub(super) const TARGET: Target =
    Target { name: "streams", check, generate: |rng| generate::text(rng, &SAMPLES, &WORDS) };

const SAMPLES: [&str; 12] = [
    "anthropic\n5\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"Eq+/=\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"read_file\",\"input\":{}}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"path\\\":\\\"a\\\"}\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":9}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
    "anthropic\n1\r\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\r\n\r\n: ping\r\n\r\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"größe\"}}\r\n\r\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\r\n\r\n",
    "anthropic\n64\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    "openai\n7\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Let me\",\"reasoning_content\":\"Hm\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_a\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\":\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"\\\"a\\\"}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
    "openai\n3\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"t\",\"arguments\":{\"x\":1}}},{\"id\":\"b\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}\n\n",
    "openai\n9\ndata: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Hm\",\"index\":0}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"signature\":\"Eq\",\"index\":0}],\"refusal\":\"No.\"},\"finish_reason\":\"stop\"}]}\n\n",
    "openai\n80\n{\"error\":{\"message\":\"Rate limit reached. Please try again in 1.5s.\",\"code\":429}}",
    "openai-responses\n11\nevent: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"id\":\"rs_0\",\"type\":\"reasoning\",\"summary\":[]}}\n\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"item_id\":\"rs_0\",\"output_index\":0,\"delta\":\"Hm\"}\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"rs_0\",\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"Hm\"}],\"encrypted_content\":\"gAAA+/=\"}}\n\ndata: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"id\":\"fc_1\",\"type\":\"function_call\",\"call_id\":\"call_a\",\"name\":\"read_file\",\"arguments\":\"\"}}\n\ndata: {\"type\":\"response.function_call_arguments.delta\",\"item_id\":\"fc_1\",\"output_index\":1,\"delta\":\"{\\\"path\\\":\\\"a\\\"}\"}\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"id\":\"fc_1\",\"type\":\"function_call\",\"call_id\":\"call_a\",\"name\":\"read_file\",\"arguments\":\"{\\\"path\\\":\\\"a\\\"}\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}}\n\n",
    "openai-responses\n4\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"a\"}\n\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"output\":[]}}\n\n",
    "openai-responses\n20\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"m\"}}}\n\n",
    "gemini\n6\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<thought>Hm</thought>\",\"extra_content\":{\"google\":{\"thought\":true}}}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"\",\"function\":{\"name\":\"read_file\",\"arguments\":\"{}\"},\"extra_content\":{\"google\":{\"thought_signature\":\"Cr+/=\"}}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":9}}\n\ndata: [DONE]\n\n",
    "mistral\n2\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"Hm\"}]}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"id\":\"null\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
];

const WORDS: [&str; 32] = [
    "\n\n",
    "\r",
    "data: ",
    "data:",
    "event: error\n",
    "event: ping\n",
    ": \n",
    "data: [DONE]\n\n",
    "data: {}\n\n",
    "data: []\n\n",
    "{",
    "}",
    "[",
    "]",
    "null",
    "true",
    "\"\"",
    "\\\"",
    "\\ud800",
    "\"index\":0,",
    "\"index\":7,",
    "\"output_index\":0,",
    "\"id\":\"call_1\",",
    "\"name\":\"\",",
    "\"arguments\":{},",
    "\"arguments\":\"\",",
    "\"finish_reason\":\"length\",",
    "\"stop_reason\":\"pause_turn\",",
    "\"error\":{\"message\":\"m\"},",
    "\"error\":null,",
    "\"refusal\":\"no\",",
    "\"encrypted_content\":\"\",",
];

type Items = Vec<Result<ModelEvent, ModelError>>;

fn check(input: &[u8]) -> Verdict {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let mut line = || parts.next().and_then(|line| std::str::from_utf8(line).ok());
    let (Some(provider), Some(size)) = (line(), line()) else { return Verdict::Refused };
    let Some(body) = parts.next() else { return Verdict::Refused };
    let protocol = match provider.trim() {
        "gemini" | "mistral" => Protocol::OpenAi,
        name => match Protocol::from_name(name) {
            Some(protocol) => protocol,
            None => return Verdict::Refused,
        },
    };
    let size = size.trim().parse().unwrap_or(1_usize).max(1);
    let config = ProviderConfig::new(provider.trim(), protocol, "http://server", None);

    let whole = read(&config, vec![body.to_vec()], None);
    sound(&whole);
    let pieces = || body.chunks(size).map(<[u8]>::to_vec).collect::<Vec<_>>();
    assert_eq!(read(&config, pieces(), None), whole, "in pieces of {size} bytes");
    let broken = read(&config, pieces(), Some(io::Error::other("connection reset")));
    sound(&broken);
    let shown = &broken[..broken.len() - 1];
    assert!(whole.starts_with(shown), "what was shown before the connection broke: {shown:?}");
    match whole.last() {
        Some(Ok(ModelEvent::Done(_))) => Verdict::Taken,
        _ => Verdict::Refused,
    }
}

/// Decoding asks for the time now and then, and never waits for what is there.
#[expect(clippy::expect_used, reason = "without a clock nothing can be tried")]
fn read(config: &ProviderConfig, pieces: Vec<Vec<u8>>, end: Option<io::Error>) -> Items {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        Builder::new_current_thread().enable_time().build().expect("a runtime can be made")
    });
    let _guard = RUNTIME.enter();
    let chunks: Vec<_> = pieces.into_iter().map(Ok).chain(end.map(Err)).collect();
    decode(config, "model", &ModelRequest::default(), stream::iter(chunks))
        .collect()
        .now_or_never()
        .expect("what is there is read without waiting")
}

/// One end, last; before it nothing that could not be used.
fn sound(items: &Items) {
    let is_end = |item: &_| matches!(item, Ok(ModelEvent::Done(_)) | Err(_));
    assert_eq!(items.iter().position(is_end), items.len().checked_sub(1), "one end: {items:?}");
    let mut ids = HashSet::new();
    for item in items {
        match item {
            Ok(ModelEvent::Text(text) | ModelEvent::ReasoningDelta(text)) => {
                assert!(!text.is_empty(), "nothing is shown: {items:?}");
            }
            Ok(ModelEvent::ToolCall(call)) => {
                assert!(!call.tool.is_empty(), "a call without a name: {items:?}");
                assert!(ids.insert(&call.id), "an id twice: {items:?}");
            }
            Err(error) => assert!(!error.message.is_empty()),
            Ok(_) => {}
        }
    }
}
