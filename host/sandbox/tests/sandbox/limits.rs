//! Limits: each is hit by a guest that would go on for ever, and named.

use crate::support::{Bench, error, kind, recorder, run, run_with, text};
use belljar_capability::Limits;
use belljar_sandbox::Sandbox;
use belljar_types::{CallReport, CallUpdate, Content, ToolErrorKind};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs a tool that should hit a limit, then checks that the sandbox serves the next call.
async fn hits(
    sandbox: &Sandbox,
    tool: &str,
    arguments: Value,
    expected: ToolErrorKind,
) -> CallReport {
    let report = run(sandbox, tool, arguments).await;
    assert_eq!(kind(&report), expected, "{tool}: {report:?}");
    assert_eq!(text(&run(sandbox, "hostile__count", json!({})).await), "1", "after {tool}");
    report
}

#[tokio::test]
async fn the_deadline_ends_computing_and_waiting() {
    let bench = Bench::new();
    let limits =
        Limits { deadline: Duration::from_millis(300), fuel: u64::MAX / 2, ..Limits::default() };
    let sandbox = bench.hostile(limits).await;
    for (tool, arguments) in [
        ("hostile__spin", json!({})),
        ("hostile__spin_in_host_calls", json!({})),
        ("hostile__sleep_for_ever", json!({})),
        ("hostile__fill_memory", json!({"bytes": 100 << 20})),
        ("hostile__flood_progress", json!({})),
        ("hostile__flood_log", json!({})),
        ("hostile__flood_emit", json!({})),
        ("hostile__flood_stdout", json!({})),
        ("hostile__flood_stderr", json!({})),
    ] {
        let report = hits(&sandbox, tool, arguments, ToolErrorKind::Deadline).await;
        assert!(error(&report).message.contains("300ms"), "{report:?}");
        let receipt = report.receipt.unwrap_or_else(|| panic!("{tool} left its thread behind"));
        assert_eq!(receipt.error, Some(ToolErrorKind::Deadline));
    }
}

#[tokio::test]
async fn fuel_ends_computing() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits { fuel: 50_000_000, ..Limits::default() }).await;
    for tool in ["hostile__spin", "hostile__spin_in_host_calls"] {
        let report = hits(&sandbox, tool, json!({}), ToolErrorKind::OutOfFuel).await;
        assert!(error(&report).message.contains("50000000"), "{report:?}");
        let receipt = report.receipt.unwrap();
        assert_eq!((receipt.fuel_used, receipt.fuel_limit), (50_000_000, 50_000_000));
    }
}

#[tokio::test]
async fn memory_is_bounded() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits { memory: 32 << 20, ..Limits::default() }).await;
    let report =
        hits(&sandbox, "hostile__touch_memory", json!({}), ToolErrorKind::MemoryLimit).await;
    assert!(
        error(&report).message.contains("of the 32MiB that the setting `limits.memory` allows"),
        "{report:?}"
    );
    let peak = report.receipt.unwrap().peak_memory_bytes;
    assert!(peak > 16 << 20 && peak <= 32 << 20, "{peak}");
    // A guest that takes the refusal well may go on.
    let report = run(&sandbox, "hostile__grow_memory", json!({})).await;
    let pages: u64 = text(&report).split(' ').nth(2).unwrap().parse().unwrap();
    assert!((400..=512).contains(&pages), "{pages}");
}

#[tokio::test]
async fn recursion_and_crashes_are_traps_with_last_words() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    for (tool, arguments, says) in [
        // Rust's own stack lies in the guest's memory, and is the first to run out.
        ("hostile__recurse", json!({}), "crashed: wasm trap: out of bounds memory access"),
        ("hostile__recurse", json!({"host_calls": true}), "crashed: wasm trap"),
        ("hostile__panic", json!({}), "the tool lost its head"),
        ("hostile__abort", json!({}), "crashed"),
        ("hostile__exit", json!({"code": 0}), "exited with status"),
        ("hostile__exit", json!({"code": 3}), "exited with status"),
    ] {
        let report = hits(&sandbox, tool, arguments, ToolErrorKind::Trap).await;
        let message = &error(&report).message;
        assert!(message.contains(says), "{tool}: {message}");
        for loose in [".rs:0", "wasm backtrace", "0x", bench.root.path().to_str().unwrap()] {
            assert!(!message.contains(loose), "{tool}: {message}");
        }
    }
}

#[tokio::test]
async fn what_crosses_to_the_host_is_bounded() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    bench.write("small", "x");
    let huge = 64 << 20;
    hits(&sandbox, "hostile__huge_text", json!({"bytes": huge}), ToolErrorKind::OutputLimit).await;
    hits(&sandbox, "hostile__huge_log", json!({"bytes": huge}), ToolErrorKind::OutputLimit).await;
    let arguments = json!({"bytes": 16 << 20});
    hits(&sandbox, "hostile__huge_structured", arguments, ToolErrorKind::OutputLimit).await;
    let arguments = json!({"pieces": 1_000_000});
    hits(&sandbox, "hostile__many_pieces", arguments, ToolErrorKind::OutputLimit).await;
    // Between what a result shows and what may cross, text is cut and says so.
    let report = run(&sandbox, "hostile__huge_text", json!({"bytes": 1 << 20})).await;
    let content = &report.outcome.as_ref().unwrap().content;
    let [Content::Text { text: shown }, Content::Text { text: note }] = content.as_slice() else {
        panic!("a text and a note: {} pieces", content.len());
    };
    assert_eq!(shown.len(), 64 << 10);
    assert!(note.contains("983040 bytes of text left out"), "{note}");
}

#[tokio::test]
async fn floods_are_dropped_and_marked() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let flood = json!({"bytes": 10 << 20});
    for (tool, stream) in [
        ("hostile__flood_stdout", "[stdout]"),
        ("hostile__flood_stderr", "[stderr]"),
        ("hostile__flood_log", "[log]"),
    ] {
        let report = run(&sandbox, tool, flood.clone()).await;
        assert!(text(&report).starts_with("sent "), "{tool}");
        let log = report.receipt.unwrap().log;
        assert!(log.starts_with(stream), "{tool}");
        assert!(
            log.contains("more bytes were dropped: the setting `limits.log` allows 64KiB]"),
            "{tool}"
        );
        assert!(log.len() < (64 << 10) + 100, "{tool}: {}", log.len());
    }
    let (observer, updates) = recorder();
    let report =
        run_with(&sandbox, "hostile__flood_emit", flood, observer, CancellationToken::new()).await;
    assert!(text(&report).starts_with("sent "));
    let shown: String = updates
        .lock()
        .unwrap()
        .iter()
        .map(|update| match update {
            CallUpdate::Output { text } => text.as_str(),
            CallUpdate::Progress { .. } => panic!("no progress was reported"),
        })
        .collect();
    assert!(shown.len() < (64 << 10) + 100, "{}", shown.len());
    assert_eq!(
        shown.matches("[more output was dropped: the setting `limits.log` allows 64KiB]").count(),
        1
    );
}

#[tokio::test]
async fn a_flood_of_progress_is_thinned() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let (observer, updates) = recorder();
    let arguments = json!({"reports": 100_000});
    let cancel = CancellationToken::new();
    let report = run_with(&sandbox, "hostile__flood_progress", arguments, observer, cancel).await;
    assert_eq!(text(&report), "reported 100000 times");
    let updates = updates.lock().unwrap();
    assert!(updates.len() < 1_000, "{}", updates.len());
    let last =
        CallUpdate::Progress { done: 100_000, total: Some(100_000), message: "working".into() };
    assert_eq!(updates.last(), Some(&last));
}

#[tokio::test]
async fn handles_and_requests_are_bounded() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    bench.write("small", "x");
    let arguments = json!({"path": "small", "count": 200});
    assert_eq!(text(&run(&sandbox, "hostile__open_many", arguments).await), "holds 200");
    let arguments = json!({"path": "small", "count": 10_000});
    let report = run(&sandbox, "hostile__open_many", arguments).await;
    assert_eq!(kind(&report), ToolErrorKind::Failed);
    assert!(error(&report).message.contains("refused with 25"), "{report:?}");
    for tool in ["hostile__poll_many", "hostile__streams_many"] {
        let arguments = json!({"count": 1_000_000});
        let report = hits(&sandbox, tool, arguments, ToolErrorKind::MemoryLimit).await;
        let says = "the setting `limits.open_files` allows 256";
        assert!(error(&report).message.contains(says), "{tool}: {report:?}");
    }
    let arguments = json!({"bytes": 1_u64 << 32});
    let report =
        hits(&sandbox, "hostile__huge_random", arguments, ToolErrorKind::OutputLimit).await;
    let says = "4GiB of the 64KiB that the setting `limits.random` allows";
    assert!(error(&report).message.contains(says), "{report:?}");
    let report =
        run(&sandbox, "hostile__huge_read", json!({"path": "small", "bytes": u64::MAX})).await;
    assert_eq!(text(&report), "got 1 bytes");
}
