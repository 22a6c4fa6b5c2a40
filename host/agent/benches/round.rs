//! What the loop itself costs in a round, with a model and tools that cost nothing, as the
//! conversation grows: the time from one request to the next, in which an answer with a call is
//! taken, the call runs, and the next request is made. It must not grow with the conversation.
//!
//! What a run costs once, reading through its conversation when it begins, is beside it.

#![expect(clippy::unwrap_used, reason = "the helpers of benches panic as tests do")]

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
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use futures::{StreamExt, stream};
use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

const MESSAGES: [usize; 3] = [10, 1_000, 10_000];

/// Calls a tool in so many rounds, each time with other arguments, then answers.
#[derive(Debug)]
struct Calling {
    rounds: usize,
    asked: Mutex<Vec<Instant>>,
}

impl Model for Calling {
    fn name(&self) -> &str {
        "bench"
    }

    fn provider(&self) -> &str {
        "bench"
    }

    fn context_window(&self) -> Option<u64> {
        Some(10_000_000)
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let mut asked = self.asked.lock().unwrap();
        asked.push(Instant::now());
        let number = asked.len();
        let event = if number > self.rounds {
            ModelEvent::Text("all is read".to_owned())
        } else {
            ModelEvent::ToolCall(ToolCall {
                id: format!("call{number}"),
                tool: "read".to_owned(),
                arguments: Arguments::parse(&format!("{{\"path\": \"file{number}\"}}")),
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
    conversation.check().unwrap();
    conversation
}

/// When the model was asked in a run of so many calls behind that conversation.
async fn run(conversation: &Conversation, rounds: usize) -> Vec<Instant> {
    let model = Arc::new(Calling { rounds, asked: Mutex::default() });
    let agent = Agent {
        model: Some(model.clone()),
        toolbox: Arc::new(toolbox::ScriptedToolbox::default()),
        approver: Arc::new(Nobody),
        journal: Arc::new(journal::MemoryJournal::default()),
        settings: Settings { max_turns: u32::MAX, ..Settings::default() },
    };
    let conversation = conversation.clone();
    let request = RunRequest { conversation, ..RunRequest::new(vec![text("read it")]) };
    let mut run = start(agent, request);
    while run.next().await.is_some() {}
    assert_eq!(run.finish().await.unwrap().reason, StopReason::Completed);
    std::mem::take(&mut *model.asked.lock().unwrap())
}

fn rounds(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("a round of the loop");
    for messages in MESSAGES {
        let conversation = conversation(messages);
        group.bench_function(format!("behind {messages} messages"), |bencher| {
            bencher.iter_custom(|count| {
                // A run has at most so many rounds, so that its own do not add up.
                let mut left = usize::try_from(count).unwrap();
                let mut spent = Duration::ZERO;
                while left > 0 {
                    let rounds = left.min(50);
                    let asked = runtime.block_on(run(&conversation, rounds));
                    spent += *asked.last().unwrap() - asked[0];
                    left -= rounds;
                }
                spent
            });
        });
    }
    group.finish();
}

fn beginnings(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("a run of one round");
    for messages in MESSAGES {
        let conversation = conversation(messages);
        group.bench_function(format!("behind {messages} messages"), |bencher| {
            bencher.iter_batched(
                || (),
                |()| runtime.block_on(run(&conversation, 0)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, rounds, beginnings);
criterion_main!(benches);
