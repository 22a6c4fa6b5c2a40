//! Cancelling: at every step of a call, a thousand times.

use crate::{
    quiet::quiet,
    support::{Bench, call, ignore, kind, run, run_with, text},
};
use belljar_capability::Limits;
use belljar_sandbox::Sandbox;
use belljar_types::{CallObserver, ToolErrorKind, Toolbox as _};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    hint, pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};
use tokio_util::sync::CancellationToken;

/// The same numbers in every run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn any_call(seeded: &mut Seeded) -> (&'static str, Value) {
    match seeded.below(8) {
        0 => ("hostile__count", json!({})),
        1 => ("hostile__spin", json!({})),
        2 => ("hostile__spin_in_host_calls", json!({})),
        3 => ("hostile__sleep_for_ever", json!({})),
        4 => ("hostile__flood_emit", json!({})),
        5 => ("hostile__fill_memory", json!({"bytes": 1 << 20})),
        6 => ("hostile__read_path", json!({"path": "small"})),
        _ => ("hostile__open_many", json!({"path": "small", "count": 1_000, "hold": true})),
    }
}

/// Polls a future so many times, with everything else in between.
async fn polled<T>(future: &mut pin::Pin<Box<dyn Future<Output = T> + '_>>, times: u64) -> bool {
    for _ in 0..times {
        if futures::poll!(&mut *future).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// An observer that cancels at an update, on the guest's own thread and inside a host call.
fn cancels_at(update: u64, cancel: &CancellationToken) -> CallObserver {
    let (seen, cancel) = (AtomicU64::new(0), cancel.clone());
    Arc::new(move |_| {
        if seen.fetch_add(1, Ordering::Relaxed) == update {
            cancel.cancel();
        }
    })
}

async fn cancel_somewhere(sandbox: &Sandbox, seeded: &mut Seeded) {
    let (tool, arguments) = any_call(seeded);
    let cancel = CancellationToken::new();
    match seeded.below(5) {
        // Nobody waits for it any more.
        0 => {
            let running = run_with(sandbox, tool, arguments, ignore(), cancel);
            let mut running: pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(running);
            polled(&mut running, seeded.below(40)).await;
        }
        // The token, after some steps of the loop.
        1 => {
            let running = run_with(sandbox, tool, arguments, ignore(), cancel.clone());
            let mut running: pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(running);
            if !polled(&mut running, seeded.below(40)).await {
                cancel.cancel();
                ends_as_cancelled(&running.await, tool);
            }
        }
        // The token, from elsewhere, at any moment.
        2 => {
            let (token, turns) = (cancel.clone(), seeded.below(200_000));
            let other = thread::spawn(move || {
                (0..turns).for_each(|turn| {
                    hint::black_box(turn);
                });
                token.cancel();
            });
            let report = run_with(sandbox, tool, arguments, ignore(), cancel).await;
            ends_as_cancelled(&report, tool);
            other.join().unwrap();
        }
        // From inside a host call; a call without any is cancelled besides.
        3 => {
            let observer = cancels_at(seeded.below(3), &cancel);
            let running =
                run_with(sandbox, "hostile__flood_progress", json!({}), observer, cancel.clone());
            ends_as_cancelled(&running.await, "hostile__flood_progress");
        }
        // Before it began.
        _ => {
            cancel.cancel();
            let report = run_with(sandbox, tool, arguments, ignore(), cancel).await;
            ends_as_cancelled(&report, tool);
        }
    }
}

/// It may have been quicker than the cancel.
fn ends_as_cancelled(report: &belljar_types::CallReport, tool: &str) {
    if let Err(error) = &report.outcome {
        assert_eq!(error.kind, ToolErrorKind::Canceled, "{tool}: {report:?}");
        assert!(!error.message.contains("left behind"), "{tool}: {report:?}");
    }
}

#[test]
fn a_thousand_cancels_at_any_moment_leave_nothing() {
    quiet(async || {
        let bench = Bench::new();
        bench.write("small", "x");
        let sandbox = bench.hostile(Limits { calls: 64, ..Limits::default() }).await;
        let mut seeded = Seeded(0x9e37_79b9_7f4a_7c15);
        for round in 0..1_000 {
            cancel_somewhere(&sandbox, &mut seeded).await;
            if round % 50 == 0 {
                assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
            }
        }
        every_place_is_free(&sandbox).await;
    });
}

#[test]
fn a_call_that_is_dropped_after_each_number_of_steps_leaves_nothing() {
    quiet(async || {
        let bench = Bench::new();
        bench.write("small", "x");
        let sandbox = bench.hostile(Limits { calls: 64, ..Limits::default() }).await;
        for steps in 0..200 {
            let arguments = json!({"path": "small"});
            let running = run(&sandbox, "hostile__read_path", arguments);
            let mut running: pin::Pin<Box<dyn Future<Output = _>>> = Box::pin(running);
            polled(&mut running, steps).await;
        }
        every_place_is_free(&sandbox).await;
    });
}

#[test]
fn many_calls_that_are_cancelled_together_leave_nothing() {
    quiet(async || {
        let bench = Bench::new();
        bench.write("small", "x");
        let sandbox = bench.hostile(Limits { calls: 64, ..Limits::default() }).await;
        // More than there are places, so that some wait for one.
        for tool in ["hostile__spin", "hostile__sleep_for_ever", "hostile__flood_emit"] {
            let cancel = CancellationToken::new();
            let running =
                (0..100).map(|_| run_with(&sandbox, tool, json!({}), ignore(), cancel.clone()));
            let canceling = async {
                // Let them begin.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                cancel.cancel();
            };
            let (reports, ()) = tokio::join!(join_all(running), canceling);
            for report in reports {
                assert_eq!(kind(&report), ToolErrorKind::Canceled, "{report:?}");
            }
        }
        every_place_is_free(&sandbox).await;
    });
}

/// All places can be had at once.
async fn every_place_is_free(sandbox: &Sandbox) {
    let calls = (0..64).map(|_| async {
        let prepared =
            sandbox.prepare(&call("hostile__sleep", json!({"milliseconds": 5}))).unwrap();
        prepared.run(None, ignore(), CancellationToken::new()).await
    });
    for report in join_all(calls).await {
        assert_eq!(text(&report), "slept");
    }
}
