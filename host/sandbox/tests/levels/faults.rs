//! Faults in the host's own functions: the observer of a call is called from them, so one that
//! panics is a panic in a host import. It ends that call and nothing else.

use crate::{
    quiet::quiet,
    support::{Bench, error, kind, run, run_with, text},
};
use belljar_capability::Limits;
use belljar_sandbox::Sandbox;
use belljar_types::{CallObserver, ToolErrorKind};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    panic::panic_any,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio_util::sync::CancellationToken;

async fn faulty(sandbox: &Sandbox, tool: &str, arguments: Value, observer: CallObserver) {
    let report = run_with(sandbox, tool, arguments, observer, CancellationToken::new()).await;
    assert_eq!(kind(&report), ToolErrorKind::Trap, "{tool}: {report:?}");
    let message = &error(&report).message;
    assert!(message.contains("a bug in the host"), "{tool}: {message}");
    assert!(!message.contains("at fault"), "the panic's own words are told: {message}");
    assert_eq!(text(&run(sandbox, "hostile__count", json!({})).await), "1", "after {tool}");
}

#[test]
fn a_panic_in_a_host_function_ends_that_call_only() {
    quiet(async || {
        let bench = Bench::new();
        let sandbox = bench.hostile(Limits::default()).await;
        for (tool, arguments) in [
            ("hostile__print", json!({"emit": "x"})),
            ("hostile__flood_progress", json!({})),
            ("hostile__flood_emit", json!({})),
        ] {
            faulty(&sandbox, tool, arguments, Arc::new(|_| panic!("at fault"))).await;
        }
    });
}

#[test]
fn a_panic_with_the_least_stack_left_ends_that_call_only() {
    quiet(async || {
        let bench = Bench::new();
        let sandbox = bench.hostile(Limits::default()).await;
        // The first report of progress is passed on at depth 0, the next ones as deep as 50 ms
        // take; the text-format guest shows a text at each level.
        let deep = json!({"depth": 1_000, "host_calls": true});
        faulty(&sandbox, "hostile__recurse", deep, Arc::new(|_| panic!("at fault"))).await;
        bench.add("deep.wasm", belljar_test_guests::text("recurse_with_texts"));
        let sandbox = bench.hostile(Limits::default()).await;
        for level in [1, 100, 1_000] {
            let seen = AtomicU64::new(0);
            let observer: CallObserver = Arc::new(move |_| {
                assert!(seen.fetch_add(1, Ordering::Relaxed) < level, "at fault");
            });
            faulty(&sandbox, "deep__probe", json!({}), observer).await;
        }
    });
}

#[test]
fn a_panic_that_is_no_text_or_leaves_a_lock_behind_ends_that_call_only() {
    quiet(async || {
        let bench = Bench::new();
        let sandbox = bench.hostile(Limits::default()).await;
        let arguments = json!({"emit": "x"});
        let any: CallObserver = Arc::new(|_| panic_any(42_u64));
        faulty(&sandbox, "hostile__print", arguments.clone(), any).await;
        let shared = Arc::new(Mutex::new(0));
        let poisoning: CallObserver = Arc::new(move |_| {
            let _held = shared.lock().unwrap();
            panic!("at fault");
        });
        // The second call finds the lock poisoned, which is a panic of another kind.
        for _ in 0..2 {
            faulty(&sandbox, "hostile__print", arguments.clone(), Arc::clone(&poisoning)).await;
        }
    });
}

#[test]
fn calls_beside_one_that_fails_go_on() {
    quiet(async || {
        let bench = Bench::new();
        let sandbox = bench.hostile(Limits { calls: 64, ..Limits::default() }).await;
        let honest = (0..20).map(|_| run(&sandbox, "hostile__sleep", json!({"milliseconds": 20})));
        let failing = (0..20).map(|_| {
            let observer = Arc::new(|_| panic!("at fault"));
            let arguments = json!({"emit": "x"});
            run_with(&sandbox, "hostile__print", arguments, observer, CancellationToken::new())
        });
        let (honest, failing) = tokio::join!(join_all(honest), join_all(failing));
        assert!(honest.iter().all(|report| text(report) == "slept"));
        assert!(failing.iter().all(|report| kind(report) == ToolErrorKind::Trap));
    });
}
