//! What it costs to go on with a session: one of 10 000 messages must be there in under 300 ms.

use belljar_types::{
    Arguments, AssistantMessage, AssistantPart, Journal, Message, Origin, Part, Record, ToolCall,
    ToolMessage, ToolOutput, ToolResult, UserMessage,
};
use belljar_workspace::{Clock, Places, SessionStore};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::{hint::black_box, path::Path, sync::Arc};

/// Turns of four messages: a question, a call, its result of about a kilobyte, an answer.
fn records(messages: usize) -> impl Iterator<Item = Record> {
    let message = |message| Record::Message { message: Arc::new(message) };
    let said = move |parts| {
        message(Message::Assistant(AssistantMessage { parts, model: "a/b".into(), cut: false }))
    };
    (0..messages / 4).flat_map(move |turn| {
        let id = format!("call_{turn:08}");
        let arguments = Arguments::parse(&format!(r#"{{"path":"src/file_{turn}.rs"}}"#));
        let call = ToolCall { id: id.clone(), tool: "read_file".into(), arguments };
        let question = Part::text(format!("What is in file {turn}?"), Origin::Person);
        let result = ToolResult {
            call_id: id.clone(),
            tool: "read_file".into(),
            outcome: Ok(ToolOutput::text("a line of a file, as files have them\n".repeat(28))),
            origin: Origin::Plugin { plugin: "files".into(), digest: "sha256:0".into() },
        };
        [
            message(Message::User(UserMessage { parts: vec![question] })),
            said(vec![AssistantPart::ToolCall(call)]),
            Record::CallStarted { call_id: id.clone() },
            message(Message::Tool(ToolMessage { result })),
            Record::CallDone { call_id: id, receipt: None },
            said(vec![AssistantPart::Text { text: "It holds twenty-eight lines.".into() }]),
        ]
    })
}

fn going_on(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let (Ok(runtime), Ok(folder)) = (runtime, tempfile::tempdir()) else { return };
    let Ok(store) = SessionStore::open(&Places::below(folder.path())) else { return };
    let mut group = criterion.benchmark_group("resume");
    group.sample_size(20);
    for messages in [1_000, 10_000] {
        let Ok(journal) = store.create(Path::new("/w"), &Clock::system()) else { return };
        for record in records(messages) {
            let written = runtime.block_on(journal.append(&record));
            assert_eq!(written, Ok(()));
        }
        let id = journal.session().to_owned();
        drop(journal);
        group.bench_with_input(BenchmarkId::from_parameter(messages), &id, |bencher, id| {
            bencher.iter(|| {
                let resumed = store
                    .resume(id)
                    .map(|(_journal, session)| session.conversation().messages().len());
                assert_eq!(resumed.map_err(|error| error.to_string()), Ok(messages));
            });
        });
        group.bench_with_input(BenchmarkId::new("latest", messages), &id, |bencher, id| {
            bencher.iter(|| {
                let latest = store.latest(black_box(Path::new("/w"))).ok().flatten();
                assert_eq!(latest.as_ref(), Some(id));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, going_on);
criterion_main!(benches);
