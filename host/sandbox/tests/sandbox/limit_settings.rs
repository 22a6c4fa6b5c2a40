//! Limits as settings of one plugin: the default permits, a smaller one refuses and names itself,
//! and a larger one in its place makes it work.

use crate::support::{Bench, call, error, ignore, kind, run, text, writing};
use belljar_capability::{Binding, Limit, LimitSettings, Limits, PluginGrant};
use belljar_sandbox::{Sandbox, SandboxConfig};
use belljar_test_guests::{HOSTILE, NOOP, Odd, made, odd};
use belljar_types::{ToolErrorKind, Toolbox};
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use tokio_util::sync::CancellationToken;

/// A grant of limits alone to these bytes.
fn limited(bytes: &[u8], limits: &[(Limit, &str)]) -> PluginGrant {
    let settings: LimitSettings =
        limits.iter().map(|(limit, value)| (*limit, limit.parse(value).unwrap())).collect();
    PluginGrant {
        binding: Some(Binding::Digest(belljar_sandbox::digest(bytes, None))),
        limits: settings,
        ..PluginGrant::default()
    }
}

/// A sandbox over one plugin, whose limits are set.
async fn with(bench: &Bench, bytes: &[u8], limits: &[(Limit, &str)]) -> Sandbox {
    open(bench, bytes, limits, bench.config()).await
}

/// The same where nothing is known of any plugin: one whose tools are known is not asked for them,
/// and then has the limits of its calls alone.
async fn with_own_cache(bench: &Bench, bytes: &[u8], limits: &[(Limit, &str)]) -> Sandbox {
    let config = SandboxConfig { cache: Some(bench.cache()), ..bench.config() };
    open(bench, bytes, limits, config).await
}

async fn open(
    bench: &Bench,
    bytes: &[u8],
    limits: &[(Limit, &str)],
    config: SandboxConfig,
) -> Sandbox {
    bench.add("hostile.wasm", bytes);
    let mut grant = limited(bytes, limits);
    grant.write = writing().write;
    let grants = BTreeMap::from([("hostile".to_owned(), grant)]);
    Sandbox::open(SandboxConfig { grants, ..config }).await.unwrap()
}

/// What a tool is asked, the limit that it meets, a setting that refuses and one that permits.
struct Case {
    tool: &'static str,
    arguments: Value,
    limit: Limit,
    small: &'static str,
    large: &'static str,
    kind: ToolErrorKind,
    says: &'static str,
}

#[tokio::test]
async fn each_limit_of_a_call_refuses_by_its_name_and_permits_once_it_is_raised() {
    let cases = [
        Case {
            tool: "hostile__sleep",
            arguments: json!({"milliseconds": 400}),
            limit: Limit::Deadline,
            small: "50ms",
            large: "20s",
            kind: ToolErrorKind::Deadline,
            says: "of the 50ms that the setting `limits.deadline` allows",
        },
        Case {
            tool: "hostile__recurse",
            arguments: json!({"depth": 100}),
            limit: Limit::Fuel,
            small: "2000",
            large: "100_000_000",
            kind: ToolErrorKind::OutOfFuel,
            says: "2000 of the 2000 that the setting `limits.fuel` allows",
        },
        Case {
            tool: "hostile__huge_text",
            arguments: json!({"bytes": 8_000_000}),
            limit: Limit::Memory,
            small: "4MiB",
            large: "64MiB",
            kind: ToolErrorKind::MemoryLimit,
            says: "of the 4MiB that the setting `limits.memory` allows",
        },
        Case {
            tool: "hostile__huge_text",
            arguments: json!({"bytes": 100_000}),
            limit: Limit::Crossing,
            small: "64KiB",
            large: "1MiB",
            kind: ToolErrorKind::OutputLimit,
            says: "the setting `limits.crossing` allows 64KiB",
        },
        Case {
            tool: "hostile__huge_progress",
            arguments: json!({"bytes": 100_000, "times": 20}),
            limit: Limit::Crossings,
            small: "1MiB",
            large: "2MiB",
            kind: ToolErrorKind::OutputLimit,
            says: "1.0MiB of the 1MiB that the setting `limits.crossings` allows",
        },
        Case {
            tool: "hostile__huge_structured",
            arguments: json!({"bytes": 5_000}),
            limit: Limit::Result,
            small: "4KiB",
            large: "8KiB",
            kind: ToolErrorKind::OutputLimit,
            says: "4.9KiB of the 4KiB that the setting `limits.result` allows",
        },
        Case {
            tool: "hostile__huge_random",
            arguments: json!({"bytes": 50_000}),
            limit: Limit::Random,
            small: "4KiB",
            large: "64KiB",
            kind: ToolErrorKind::OutputLimit,
            says: "of the 4KiB that the setting `limits.random` allows",
        },
    ];
    let bench = Bench::new();
    let default = with(&bench, HOSTILE.bytes, &[]).await;
    for Case { tool, arguments, limit, small, large, kind: expected, says } in cases {
        let report = run(&default, tool, arguments.clone()).await;
        assert!(report.outcome.is_ok(), "{limit} by default: {report:?}");
        let sandbox = with(&bench, HOSTILE.bytes, &[(limit, small)]).await;
        let report = run(&sandbox, tool, arguments.clone()).await;
        assert_eq!(kind(&report), expected, "{limit}: {report:?}");
        assert!(error(&report).message.contains(says), "{limit}: {report:?}");
        let sandbox = with(&bench, HOSTILE.bytes, &[(limit, large)]).await;
        let report = run(&sandbox, tool, arguments).await;
        assert!(report.outcome.is_ok(), "{limit} raised: {report:?}");
    }
}

#[tokio::test]
async fn text_and_logs_are_cut_at_their_limit_and_say_which() {
    let bench = Bench::new();
    let arguments = json!({"bytes": 5_000});
    for (setting, cut) in [("4KiB", true), ("8KiB", false)] {
        let sandbox = with(&bench, HOSTILE.bytes, &[(Limit::Result, setting)]).await;
        let report = run(&sandbox, "hostile__huge_text", arguments.clone()).await;
        let shown = format!("{:?}", report.outcome.unwrap().content);
        assert_eq!(shown.contains("the setting `limits.result` allows 4KiB"), cut, "{setting}");
        let sandbox = with(&bench, HOSTILE.bytes, &[(Limit::Log, setting)]).await;
        let report = run(&sandbox, "hostile__huge_log", arguments.clone()).await;
        let log = report.receipt.unwrap().log;
        assert_eq!(log.contains("the setting `limits.log` allows 4KiB"), cut, "{setting}");
    }
}

#[tokio::test]
async fn the_parts_of_a_component_are_counted_together_and_named() {
    let cases = [
        (Limit::Instances, made::empty(), 40, "32", "41"),
        (Limit::Memories, made::memory(1), 5, "4", "8"),
        (Limit::Tables, made::table(10), 20, "16", "30"),
    ];
    for (limit, module, count, default, large) in cases {
        // Each is small, and there are too many of them.
        let bytes = made::with_module(NOOP.bytes, &module, count);
        let bench = Bench::new();
        let says = format!("of the {default} that the setting `limits.{limit}` allows");
        let sandbox = with_own_cache(&bench, &bytes, &[]).await;
        let [skipped] = sandbox.skipped().try_into().unwrap();
        let reason = skipped.reason.to_string();
        assert!(reason.contains("memory_limit") && reason.contains(&says), "{limit}: {reason}");
        let large_enough: &[(Limit, &str)] =
            if limit == Limit::Instances { &[(limit, "60")] } else { &[(limit, large)] };
        let sandbox = with_own_cache(&bench, &bytes, large_enough).await;
        assert_eq!(text(&run(&sandbox, "hostile__noop", json!({})).await), "ok", "{limit}");
        // Its tools are known now, and its calls are held to the limit by themselves.
        let sandbox = with_own_cache(&bench, &bytes, &[]).await;
        let report = run(&sandbox, "hostile__noop", json!({})).await;
        assert_eq!(kind(&report), ToolErrorKind::MemoryLimit, "{limit}");
        assert!(error(&report).message.contains(&says), "{limit}: {report:?}");
    }
}

#[tokio::test]
async fn memories_that_are_each_small_are_too_much_together() {
    let bytes = made::with_module(NOOP.bytes, &made::memory(1_500), 3);
    let bench = Bench::new();
    let sandbox = with_own_cache(&bench, &bytes, &[(Limit::Memories, "8")]).await;
    let [skipped] = sandbox.skipped().try_into().unwrap();
    let reason = skipped.reason.to_string();
    assert!(reason.contains("of the 256MiB that the setting `limits.memory` allows"), "{reason}");
    let settings = [(Limit::Memories, "8"), (Limit::Memory, "512MiB")];
    let sandbox = with_own_cache(&bench, &bytes, &settings).await;
    assert_eq!(text(&run(&sandbox, "hostile__noop", json!({})).await), "ok");
}

#[tokio::test]
async fn asking_for_the_tools_is_held_to_limits_that_can_be_set_too() {
    let bench = Bench::new();
    let bytes = odd(Odd::SchemaDeep);
    for (setting, says) in [
        ((Limit::Fuel, "5000"), "5000 of the 5000 that the setting `limits.fuel` allows"),
        ((Limit::Crossing, "64KiB"), "the setting `limits.crossing` allows 64KiB"),
        ((Limit::Memory, "1MiB"), "of the 1MiB that the setting `limits.memory` allows"),
        ((Limit::Fuel, "9_000_000_000"), "its input schema is longer than"),
    ] {
        let sandbox = with(&bench, &bytes, &[setting]).await;
        let [skipped] = sandbox.skipped().try_into().unwrap();
        let reason = skipped.reason.to_string();
        assert!(reason.contains(says), "{setting:?}: {reason}");
    }
}

#[tokio::test]
async fn a_start_that_never_ends_is_a_load_error() {
    let bench = Bench::new();
    let bytes = made::with_module(NOOP.bytes, &made::start_loop(), 1);
    bench.add("starts.wasm", &bytes);
    bench.add("noop.wasm", NOOP.bytes);
    let limits = Limits { deadline: Duration::from_millis(300), ..Limits::default() };
    let sandbox = Sandbox::open(SandboxConfig { limits, ..bench.config() }).await.unwrap();
    let [skipped] = sandbox.skipped().try_into().unwrap();
    let reason = skipped.reason.to_string();
    assert!(reason.contains("could not be asked for its tools"), "{reason}");
    assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
}

#[tokio::test]
async fn calls_beyond_the_plugins_own_number_wait_for_a_place() {
    let bench = Bench::new();
    for (setting, runs_at_once) in [("1", false), ("2", true)] {
        let sandbox = with(&bench, HOSTILE.bytes, &[(Limit::Calls, setting)]).await;
        let cancel = CancellationToken::new();
        let prepared = sandbox.prepare(&call("hostile__sleep_for_ever", json!({}))).unwrap();
        let mut first = prepared.run(None, ignore(), cancel.clone());
        assert!(futures::poll!(&mut first).is_pending());
        let second = sandbox.prepare(&call("hostile__count", json!({}))).unwrap();
        let mut second = second.run(None, ignore(), CancellationToken::new());
        if runs_at_once {
            assert_eq!(text(&second.await), "1");
            cancel.cancel();
            assert_eq!(kind(&first.await), ToolErrorKind::Canceled);
        } else {
            // It has its place as soon as the first gives up its own, and not before.
            assert!(futures::poll!(&mut second).is_pending());
            cancel.cancel();
            assert_eq!(kind(&first.await), ToolErrorKind::Canceled);
            assert_eq!(text(&second.await), "1");
        }
    }
}
