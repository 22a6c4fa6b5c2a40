//! What a call costs: through the toolbox, and on bare wasmtime with the same component.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod support;

use belljar_sandbox::{EngineSettings, Sandbox, SandboxConfig};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use std::hint::black_box;
use support::{Machine, bare::Bare, call, run, text};
use tokio::runtime::Runtime;

fn calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let machine = Machine::with(&[belljar_test_guests::NOOP]);
    let mut group = criterion.benchmark_group("call");

    let settings = EngineSettings::default();
    for (name, engine) in [
        ("toolbox", settings),
        ("toolbox, concurrency on", EngineSettings { concurrency: true, ..settings }),
        ("toolbox, no pool", EngineSettings { pooling: false, ..settings }),
    ] {
        let config = SandboxConfig { engine, ..machine.config() };
        let sandbox = runtime.block_on(Sandbox::open(config)).unwrap();
        let call = call("noop__noop", json!({}));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let report = runtime.block_on(run(&sandbox, &call));
                assert!(report.outcome.is_ok());
                black_box(report)
            });
        });
    }

    for (name, concurrency) in [("bare wasmtime", false), ("bare wasmtime, concurrency on", true)] {
        let bare = Bare::prepare(belljar_test_guests::NOOP.bytes, concurrency);
        let folder = machine.workspace();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let answer = runtime.block_on(bare.call_with_hop(&folder, "noop", "{}"));
                assert_eq!(answer, "ok");
            });
        });
    }
    group.finish();
}

/// What passes text in and out, and does a little with it.
fn words(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let machine = Machine::with(&[belljar_test_guests::BENCH]);
    let sandbox = runtime.block_on(machine.sandbox());
    let mut group = criterion.benchmark_group("call with text");
    for size in [1 << 10, 64 << 10] {
        let call = call("bench__count_words", json!({"text": "word ".repeat(size / 5)}));
        let expected = format!("{{\"words\":{}}}", size / 5);
        group.bench_function(format!("{size} bytes"), |bencher| {
            bencher.iter(|| {
                let report = runtime.block_on(run(&sandbox, &call));
                assert_eq!(text(&report), expected);
            });
        });
    }
    group.finish();
}

criterion_group!(benches, calls, words);
criterion_main!(benches);
