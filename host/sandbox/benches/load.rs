//! What it costs to have plugins: seen for the first time, from the compile cache, and idle.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod support;

use belljar_sandbox::Sandbox;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::{fs, time::Duration};
use support::{Machine, call, run};
use tokio::runtime::Runtime;

/// A component that differs from all others of this kind only in its digest: a custom section with
/// a number follows it.
fn numbered(bytes: &[u8], number: u8) -> (String, Vec<u8>) {
    let mut bytes = bytes.to_vec();
    bytes.extend([0, 3, 1, b'n', number]);
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    (format!("sha256:{digest}"), bytes)
}

fn machine(plugins: u8) -> Machine {
    let mut machine = Machine::with(&[]);
    for number in 0..plugins {
        let (digest, bytes) = numbered(belljar_test_guests::NOOP.bytes, number);
        machine.add(&format!("noop{number}"), &digest, &bytes);
    }
    machine
}

fn load(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);

    let fresh = machine(1);
    group.bench_function("first sight: compile and describe", |bencher| {
        bencher.iter_batched(
            || fs::remove_dir_all(fresh.cache()).unwrap_or_default(),
            |()| runtime.block_on(fresh.sandbox()),
            BatchSize::PerIteration,
        );
    });
    let call = call("noop0__noop", json!({}));
    for plugins in [0, 1, 10, 100] {
        let cached = machine(plugins);
        runtime.block_on(cached.sandbox());
        group.bench_function(format!("open with {plugins} cached"), |bencher| {
            bencher.iter_with_large_drop(|| runtime.block_on(cached.sandbox()));
        });
    }
    let cached = machine(1);
    runtime.block_on(async { run(&cached.sandbox().await, &call).await });
    group.bench_function("first call of a cached plugin", |bencher| {
        bencher.iter_batched(
            || runtime.block_on(cached.sandbox()),
            |sandbox| runtime.block_on(run(&sandbox, &call)),
            BatchSize::PerIteration,
        );
    });
    group.finish();
    memory(&runtime);
}

/// What a plugin holds that was called once and then rests.
fn memory(runtime: &Runtime) {
    const PLUGINS: u8 = 100;
    let machine = machine(PLUGINS);
    runtime.block_on(machine.sandbox());
    let sandbox: Sandbox = runtime.block_on(machine.sandbox());
    let call_all = |plugins: std::ops::Range<u8>| {
        for number in plugins {
            let call = call(&format!("noop{number}__noop"), json!({}));
            assert!(runtime.block_on(run(&sandbox, &call)).outcome.is_ok());
        }
    };
    // The first has its own costs: the pool's memories, threads.
    call_all(0..10);
    let before = resident();
    call_all(10..PLUGINS);
    let grown = resident().saturating_sub(before) / u64::from(PLUGINS - 10);
    println!("memory of an idle plugin that was called once: {grown} KiB");
    let held = resident();
    let given_back = sandbox.give_back(Duration::ZERO);
    let fallen = held.saturating_sub(resident()) / given_back.max(1) as u64;
    println!("given back by each of {given_back} that rest: {fallen} KiB");
}

/// The resident memory of this process, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

criterion_group!(benches, load);
criterion_main!(benches);
