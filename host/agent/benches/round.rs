//! What the loop itself costs in a round, with a model and tools that cost nothing, as the
//! conversation grows.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

#[path = "../tests/agent/support/journal.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod journal;
#[path = "../tests/agent/support/toolbox.rs"]
#[expect(dead_code, reason = "shared with the tests")]
mod toolbox;

use async_trait::async_trait;
use belljar_agent::{Agent, RunRequest, Settings, start};
use belljar_types::{
    ApprovalAnswer, ApprovalQuestion, Approver, Arguments, AssistantMessage, AssistantPart,
    Conversation, FinishReason, Message, Model, ModelEvent, ModelRequest, ModelStream, Origin,
    Part, StopReason, ToolCall, UserMessage,
};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use futures::{StreamExt, stream};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::runtime::Runtime;

const ROUNDS: u64 = 10;

/// Calls a tool in every round but each tenth, in which it answers.
#[derive(Debug, Default)]
struct Calling(AtomicU64);

impl Model for Calling {
    fn name(&self) -> &str {
        "bench"
    }

    fn provider(&self) -> &str {
        "bench"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let event = if number % ROUNDS == ROUNDS - 1 {
            ModelEvent::Text("all is read".to_owned())
        } else {
            ModelEvent::ToolCall(ToolCall {
                id: format!("call{number}"),
                tool: "read".to_owned(),
                arguments: Arguments::parse(r#"{"path": "README.md"}"#),
            })
        };
        stream::iter([Ok(event), Ok(ModelEvent::Done(FinishReason::Stop))]).boxed()
    }
}

#[derive(Debug)]
struct Nobody;

#[async_trait]
impl Approver for Nobody {
    async fn ask(&self, _: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        None
    }
}

fn text(text: &str) -> Part {
    Part::text(text, Origin::Person)
}

fn conversation(messages: usize) -> Conversation {
    let mut conversation = Conversation::default();
    for number in 0..messages / 2 {
        let said = format!("question {number}");
        conversation.push(Message::User(UserMessage { parts: vec![text(&said)] }));
        let said = format!("answer {number}");
        conversation.push(Message::Assistant(AssistantMessage {
            parts: vec![AssistantPart::Text { text: said }],
            model: "bench/bench".to_owned(),
            cut: false,
        }));
    }
    conversation
}

fn rounds(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("rounds of the loop");
    group.throughput(Throughput::Elements(ROUNDS));
    let agent = Agent {
        model: Some(Arc::new(Calling::default())),
        toolbox: Arc::new(toolbox::ScriptedToolbox::default()),
        approver: Arc::new(Nobody),
        journal: Arc::new(journal::MemoryJournal::default()),
        settings: Settings { max_turns: 100, ..Settings::default() },
    };
    for messages in [0, 1_000, 10_000] {
        let conversation = conversation(messages);
        conversation.check().unwrap();
        group.bench_function(format!("{ROUNDS} after {messages} messages"), |bencher| {
            bencher.iter_batched(
                || RunRequest {
                    conversation: conversation.clone(),
                    ..RunRequest::new(vec![text("read it")])
                },
                |request| {
                    runtime.block_on(async {
                        let mut run = start(agent.clone(), request);
                        while run.next().await.is_some() {}
                        let finished = run.finish().await.unwrap();
                        assert_eq!(finished.reason, StopReason::Completed);
                        finished
                    })
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, rounds);
criterion_main!(benches);
