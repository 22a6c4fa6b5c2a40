//! Every attack that ends by itself, and then nothing left.

use crate::{
    quiet::{Levels, quiet},
    support::{Bench, run, text},
};
use belljar_capability::Limits;
use belljar_sandbox::{Sandbox, SandboxConfig};
use belljar_test_guests::{NOOP, TEXTS};
use serde_json::json;
use std::time::Duration;

fn small() -> Limits {
    Limits { deadline: Duration::from_millis(200), memory: 64 << 20, ..Limits::default() }
}

#[test]
fn no_text_guest_leaves_anything_behind() {
    quiet(async || {
        for guest in TEXTS {
            let bench = Bench::new();
            bench.add("guest.wasm", guest.bytes);
            bench.add("noop.wasm", NOOP.bytes);
            let config = SandboxConfig { limits: small(), ..bench.config() };
            let sandbox = Sandbox::open(config).await.unwrap();
            let is_taken = sandbox.skipped().is_empty();
            // The first call of a plugin loads it, and its code stays open.
            assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
            if is_taken {
                run(&sandbox, "guest__probe", json!({})).await;
            }
            let before = Levels::now();
            for _ in 0..2 {
                if is_taken {
                    let report = run(&sandbox, "guest__probe", json!({})).await;
                    let receipt = report.receipt.unwrap_or_else(|| panic!("{}", guest.name));
                    assert!(receipt.peak_memory_bytes <= 64 << 20, "{}", guest.name);
                }
                assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
            }
            let after = Levels::now();
            assert_eq!(after.handles, before.handles, "{}", guest.name);
            assert!(after.threads <= before.threads + 3, "{}: {after:?}", guest.name);
            assert!(after.resident <= before.resident + (96 << 20), "{}", guest.name);
        }
    });
}

#[test]
fn no_tool_that_goes_on_for_ever_leaves_anything_behind() {
    quiet(async || {
        let bench = Bench::new();
        bench.write("small", "x");
        let sandbox = bench.hostile(small()).await;
        assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
        let before = Levels::now();
        for (tool, arguments) in [
            ("spin", json!({})),
            ("spin_in_host_calls", json!({})),
            ("touch_memory", json!({})),
            ("fill_memory", json!({"bytes": 32 << 20})),
            ("flood_stdout", json!({})),
            ("flood_log", json!({})),
            ("flood_emit", json!({})),
            ("sleep_for_ever", json!({})),
            ("sleep_in_pieces", json!({})),
            ("wait_for_the_end", json!({})),
            ("wait_for_many", json!({})),
            ("wait_for_nothing", json!({})),
            ("open_many", json!({"path": "small", "count": 10_000, "hold": true})),
            ("folders_many", json!({"count": 10_000})),
            ("streams_many", json!({"count": 10_000})),
            ("poll_many", json!({"count": 100_000})),
            ("poll_one_many", json!({"count": 3_000_000})),
            ("panic", json!({})),
            ("abort", json!({})),
            ("recurse", json!({"host_calls": true})),
        ] {
            let report = run(&sandbox, &format!("hostile__{tool}"), arguments).await;
            assert!(report.outcome.is_err(), "{tool}: {report:?}");
            assert!(report.receipt.is_some(), "{tool}: {report:?}");
            assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1", "{tool}");
            assert_eq!(Levels::now().handles, before.handles, "{tool}");
        }
        let after = Levels::now();
        assert!(after.threads <= before.threads + 3, "{after:?} {before:?}");
        assert!(after.resident <= before.resident + (96 << 20), "{after:?} {before:?}");
    });
}
