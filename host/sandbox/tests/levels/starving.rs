//! Starving: fifty that compute and fifty that wait, beside normal calls and the loop itself.

use crate::{
    quiet::{Levels, quiet},
    support::{Bench, call, ignore, kind, run, text, writing},
};
use belljar_capability::Limits;
use belljar_sandbox::{EngineSettings, Sandbox, SandboxConfig};
use belljar_test_guests::{HOSTILE, NOOP};
use belljar_types::{ToolErrorKind, Toolbox as _};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Hostile guests under several names, and an honest one.
async fn crowd(bench: &Bench, names: &[&str], limits: Limits, in_flight: u32) -> Sandbox {
    bench.add("noop.wasm", NOOP.bytes);
    for name in names {
        bench.add(&format!("{name}.wasm"), HOSTILE.bytes);
    }
    let grants = names.iter().map(|name| ((*name).to_owned(), writing()));
    let engine = EngineSettings { calls_in_flight: in_flight, ..EngineSettings::default() };
    let grants = BTreeMap::from_iter(grants);
    Sandbox::open(SandboxConfig { limits, grants, engine, ..bench.config() }).await.unwrap()
}

/// Counts on the loop's own thread.
fn ticker() -> (Arc<AtomicU64>, tokio::task::JoinHandle<()>) {
    let ticks = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&ticks);
    let task = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            counting.fetch_add(1, Ordering::Relaxed);
        }
    });
    (ticks, task)
}

/// Starts so many calls of each tool, and serves the honest plugin until all of them have met
/// their deadline. Gives back how many honest calls were served, and how often the loop ticked.
async fn beside(sandbox: &Sandbox, tools: &[&str], each: usize) -> (u64, u64) {
    let (ticks, task) = ticker();
    let mut attackers = JoinSet::new();
    for tool in tools {
        for _ in 0..each {
            let prepared = sandbox.prepare(&call(tool, json!({}))).unwrap();
            attackers.spawn(prepared.run(None, ignore(), CancellationToken::new()));
        }
    }
    let mut served = 0;
    while !attackers.is_empty() {
        assert_eq!(text(&run(sandbox, "noop__noop", json!({})).await), "ok");
        served += 1;
        while let Some(report) = attackers.try_join_next() {
            assert_eq!(kind(&report.unwrap()), ToolErrorKind::Deadline);
        }
    }
    task.abort();
    (served, ticks.load(Ordering::Relaxed))
}

#[test]
fn fifty_spinners_and_fifty_sleepers_starve_nobody() {
    quiet(async || {
        let bench = Bench::new();
        let limits = Limits {
            deadline: Duration::from_secs(2),
            fuel: u64::MAX / 4,
            calls: 50,
            ..Limits::default()
        };
        let sandbox = crowd(&bench, &["spinning", "sleeping"], limits, 128).await;
        let tools = ["spinning__spin", "sleeping__sleep_for_ever"];
        let (served, ticks) = beside(&sandbox, &tools, 50).await;
        assert!(served >= 20, "{served} honest calls were served");
        assert!(ticks >= 40, "the loop ticked {ticks} times");
    });
}

#[test]
fn a_plugin_that_floods_waits_in_its_own_queue() {
    quiet(async || {
        let bench = Bench::new();
        let limits = Limits { deadline: Duration::from_millis(300), ..Limits::default() };
        let sandbox = crowd(&bench, &["hostile"], limits, 64).await;
        let before = Levels::now();
        // 24 at 8 a time: three rounds of deadlines.
        let (served, _) = beside(&sandbox, &["hostile__sleep_for_ever"], 24).await;
        assert!(served >= 20, "{served} honest calls were served");
        let after = Levels::now();
        // Eight at a time, and some that end while the next ones begin: never one for each call.
        assert!(after.threads < before.threads + 24, "{after:?} {before:?}");
    });
}

#[test]
fn guests_that_only_call_the_host_starve_nobody() {
    quiet(async || {
        let bench = Bench::new();
        let limits =
            Limits { deadline: Duration::from_secs(1), fuel: u64::MAX / 4, ..Limits::default() };
        let sandbox = crowd(&bench, &["calling", "flooding"], limits, 64).await;
        let tools = ["calling__spin_in_host_calls", "flooding__flood_stderr"];
        let (served, ticks) = beside(&sandbox, &tools, 8).await;
        assert!(served >= 20, "{served} honest calls were served");
        assert!(ticks >= 20, "the loop ticked {ticks} times");
    });
}
