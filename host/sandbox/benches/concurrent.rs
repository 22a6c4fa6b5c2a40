//! Many calls at once: how many a second, and how long the loop's own runtime is held up by them.
//!
//! Both come from the same few seconds, so this is no bench of repeated iterations.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod support;

use belljar_capability::Limits;
use belljar_sandbox::{EngineSettings, Sandbox, SandboxConfig};
use futures::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};
use support::{Machine, Times, call, run};
use tokio::runtime::Builder;

const AT_ONCE: usize = 32;
const TIME: Duration = Duration::from_secs(4);
/// How often the loop wants to be woken meanwhile.
const TICK: Duration = Duration::from_millis(1);

fn main() {
    let machine = Machine::with(&[belljar_test_guests::NOOP, belljar_test_guests::BENCH]);
    // As the program's own.
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limits = Limits { calls: AT_ONCE as u64, ..Limits::default() };
    let config = SandboxConfig { limits, engine: EngineSettings::default(), ..machine.config() };
    let sandbox = runtime.block_on(Sandbox::open(config)).unwrap();
    println!("{AT_ONCE} at once, for {TIME:?} each:");
    let small = call("noop__noop", json!({}));
    let long = call("bench__count_words", json!({"text": "word ".repeat(20_000)}));
    for (name, call) in [("small calls", small), ("calls of 100 KB", long)] {
        let (calls, ticks) = runtime.block_on(async {
            run(&sandbox, &call).await;
            let end = Instant::now() + TIME;
            let ticks = tokio::spawn(lateness_until(end));
            let workers = (0..AT_ONCE).map(|_| {
                let (sandbox, call) = (sandbox.clone(), call.clone());
                tokio::spawn(async move {
                    let mut calls = 0_u64;
                    while Instant::now() < end {
                        assert!(run(&sandbox, &call).await.outcome.is_ok());
                        calls += 1;
                    }
                    calls
                })
            });
            let calls: u64 = join_all(workers).await.into_iter().map(Result::unwrap).sum();
            (calls, ticks.await.unwrap())
        });
        let rate = calls as f64 / TIME.as_secs_f64();
        println!(
            "  {name}: {rate:.0} a second; a tick of the loop comes late by {:.1?} (median), \
             {:.1?} (p99), {:.1?} (worst of {})",
            ticks.percentile(50),
            ticks.percentile(99),
            ticks.percentile(100),
            ticks.len(),
        );
    }
}

/// How much later than asked a task on the runtime is woken.
async fn lateness_until(end: Instant) -> Times {
    let mut late = Vec::new();
    while Instant::now() < end {
        let due = Instant::now() + TICK;
        tokio::time::sleep_until(due.into()).await;
        late.push(due.elapsed());
    }
    Times::new(late)
}
