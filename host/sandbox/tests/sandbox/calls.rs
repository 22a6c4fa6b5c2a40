//! Ordinary calls: what comes back, what is kept about them, who is asked.

use crate::support::{Bench, bundled, call, error, ignore, kind, recorder, run, run_with, text};
use belljar_capability::Limits;
use belljar_capability::{Rule, Rules};
use belljar_sandbox::{Policy, Sandbox, SandboxConfig};
use belljar_types::{
    Action, ApprovalAnswer, Arguments, CallUpdate, DecidedBy, Decision, Origin, PermissionMode,
    ToolCall, ToolError, ToolErrorKind, Toolbox,
};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

fn policy(mode: PermissionMode, allow: &[&str], deny: &[&str]) -> Policy {
    let rules = |texts: &[&str]| texts.iter().map(|text| text.parse::<Rule>().unwrap()).collect();
    Policy {
        mode,
        rules: Rules { allow_this_run: rules(allow), deny: rules(deny), ..Rules::default() },
    }
}

async fn with_files(bench: &Bench, policy: Policy) -> Sandbox {
    Sandbox::open(SandboxConfig { bundled: bundled(), policy, ..bench.config() }).await.unwrap()
}

#[tokio::test]
async fn a_call_reads_a_file_and_leaves_a_receipt() {
    let bench = Bench::new();
    bench.write("notes/a.txt", "first\nsecond\n");
    let sandbox = with_files(&bench, policy(PermissionMode::Default, &[], &[])).await;
    let report = run(&sandbox, "read_file", json!({"path": "notes/a.txt"})).await;
    assert!(text(&report).contains("first\nsecond"), "{report:?}");
    let receipt = report.receipt.unwrap();
    assert_eq!(&*receipt.source.plugin, "files");
    assert_eq!(receipt.tool, "read_file");
    let by = DecidedBy::Mode { mode: PermissionMode::Default };
    assert_eq!(receipt.decision, Decision { action: Action::Allow, by });
    assert!(receipt.read_only);
    assert_eq!(receipt.files_read, ["notes/a.txt"]);
    assert_eq!(receipt.files_written, Vec::<String>::new());
    assert_eq!(receipt.denied, []);
    assert_eq!(receipt.error, None);
    assert!(receipt.fuel_used > 0 && receipt.fuel_used < receipt.fuel_limit);
    assert!(receipt.peak_memory_bytes > 0);
    let source = receipt.source;
    assert_eq!(report.origin, Origin::Plugin { plugin: source.plugin, digest: source.digest });
}

#[tokio::test]
async fn a_writing_call_writes_once_allowed_and_only_then() {
    let bench = Bench::new();
    let sandbox = with_files(&bench, policy(PermissionMode::Default, &[], &[])).await;
    let write = call("write_file", json!({"path": "a.txt", "content": "x"}));
    for answer in [None, Some(ApprovalAnswer::No), Some(ApprovalAnswer::NoBecause("why".into()))] {
        let prepared = sandbox.prepare(&write).unwrap();
        assert_eq!(prepared.decision().action, Action::Ask);
        let report = prepared.run(answer, ignore(), CancellationToken::new()).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied);
        assert_eq!((report.receipt, report.origin), (None, Origin::Host));
        assert!(!bench.workspace().join("a.txt").exists());
    }
    let prepared = sandbox.prepare(&write).unwrap();
    let report = prepared.run(Some(ApprovalAnswer::Once), ignore(), CancellationToken::new()).await;
    assert!(report.outcome.is_ok(), "{report:?}");
    assert_eq!(bench.read("a.txt"), "x");
    let receipt = report.receipt.unwrap();
    assert_eq!(receipt.files_written, ["a.txt"]);
    assert_eq!(receipt.decision, Decision { action: Action::Allow, by: DecidedBy::Person });
    // Once means once.
    assert_eq!(sandbox.prepare(&write).unwrap().decision().action, Action::Ask);
}

#[tokio::test]
async fn an_answer_for_the_session_holds_for_that_tool_only() {
    let bench = Bench::new();
    let sandbox = with_files(&bench, policy(PermissionMode::Default, &[], &[])).await;
    let write = call("write_file", json!({"path": "a.txt", "content": "x"}));
    let prepared = sandbox.prepare(&write).unwrap();
    prepared.run(Some(ApprovalAnswer::Session), ignore(), CancellationToken::new()).await;
    let decision = |call| sandbox.prepare(&call).unwrap().decision().clone();
    let allowed = Decision { action: Action::Allow, by: DecidedBy::Person };
    assert_eq!(decision(call("write_file", json!({"path": "b.txt", "content": "y"}))), allowed);
    assert_eq!(decision(call("delete_path", json!({"path": "a.txt"}))).action, Action::Ask);
}

#[tokio::test]
async fn what_is_denied_outright_is_not_offered_and_says_how_it_would_be() {
    let bench = Bench::new();
    let cases = [
        (policy(PermissionMode::DontAsk, &[], &[]), "--allow files/write_file"),
        (policy(PermissionMode::Plan, &["files/*"], &[]), "plan the change"),
        (
            policy(PermissionMode::Bypass, &["files/*"], &["files/write_*"]),
            "the rule `files/write_*`",
        ),
    ];
    for (policy, says) in cases {
        let sandbox = with_files(&bench, policy).await;
        assert!(sandbox.tools().iter().all(|tool| &*tool.name != "write_file"));
        assert!(sandbox.withheld().iter().any(|tool| &*tool.name == "write_file"));
        let error = sandbox
            .prepare(&call("write_file", json!({"path": "a", "content": ""})))
            .err()
            .unwrap();
        assert_eq!(error.kind, ToolErrorKind::Denied);
        assert!(error.message.contains(says), "{error}");
    }
    let sandbox = with_files(&bench, policy(PermissionMode::DontAsk, &["write_file"], &[])).await;
    assert!(sandbox.tools().iter().any(|tool| &*tool.name == "write_file"));
}

#[tokio::test]
async fn an_unknown_tool_names_what_may_have_been_meant() {
    let bench = Bench::new();
    let sandbox = with_files(&bench, policy(PermissionMode::Default, &[], &[])).await;
    let error = sandbox.prepare(&call("read_fil", json!({}))).err().unwrap();
    assert_eq!(error.kind, ToolErrorKind::UnknownTool);
    assert!(error.message.contains("did you mean `read_file`?"), "{error}");
    assert!(error.message.contains("`search_text`"), "{error}");
}

#[tokio::test]
async fn arguments_that_are_no_object_never_run() {
    let bench = Bench::new();
    let sandbox = with_files(&bench, policy(PermissionMode::Default, &[], &[])).await;
    let arguments = Arguments::parse("{\"path\": ");
    let call = ToolCall { id: "1".into(), tool: "read_file".into(), arguments };
    let error = sandbox.prepare(&call).err().unwrap();
    assert_eq!(error.kind, ToolErrorKind::InvalidArguments);
    assert!(error.message.contains("line 1 column 9"), "{error}");
}

#[tokio::test]
async fn every_kind_of_failure_keeps_its_kind_and_words() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let cases = [
        ("invalid_arguments", ToolErrorKind::InvalidArguments, None),
        ("denied", ToolErrorKind::Denied, None),
        ("failed", ToolErrorKind::Failed, None),
        ("unavailable", ToolErrorKind::Unavailable, Some(1_500)),
    ];
    for (name, kind, retry_after_ms) in cases {
        let arguments = json!({"kind": name, "message": "says why", "retry_after_ms": 1_500});
        let report = run(&sandbox, "hostile__fail", arguments).await;
        let expected = ToolError { retry_after_ms, ..ToolError::new(kind, "says why") };
        assert_eq!(error(&report), &expected);
    }
}

#[tokio::test]
async fn progress_output_and_logs_come_through_and_stay_apart() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let (observer, updates) = recorder();
    let arguments = json!({"stdout": "out", "stderr": "err", "log": "logged", "emit": "shown"});
    let cancel = CancellationToken::new();
    let report = run_with(&sandbox, "hostile__print", arguments, observer, cancel).await;
    assert_eq!(text(&report), "written");
    assert_eq!(*updates.lock().unwrap(), [CallUpdate::Output { text: "shown".into() }]);
    let receipt = report.receipt.unwrap();
    assert_eq!(receipt.log, "[log]\ninfo: logged\n[stdout]\nout\n[stderr]\nerr\n");
}

#[tokio::test]
async fn nothing_is_left_for_the_next_call() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    for _ in 0..5 {
        assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
    }
}

#[tokio::test]
async fn a_guest_sees_no_variable_no_argument_and_no_input() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let report = run(&sandbox, "hostile__environment", json!({})).await;
    assert_eq!(report.outcome.as_ref().unwrap().content, []);
    assert_eq!(text(&run(&sandbox, "hostile__read_stdin", json!({})).await), "read \"\"");
}

#[tokio::test]
async fn cancelling_ends_a_call_and_the_next_one_runs() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    for tool in ["hostile__spin", "hostile__sleep_for_ever", "hostile__spin_in_host_calls"] {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let running = {
            let sandbox = sandbox.clone();
            tokio::spawn(async move { run_with(&sandbox, tool, json!({}), ignore(), token).await })
        };
        tokio::task::yield_now().await;
        cancel.cancel();
        let report = running.await.unwrap();
        assert_eq!(kind(&report), ToolErrorKind::Canceled, "{tool}");
        assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
    }
}

#[tokio::test]
async fn a_dropped_call_frees_its_place() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    // More than may run at a time: if a dropped call kept its place, the last would never start.
    for _ in 0..20 {
        let prepared = sandbox.prepare(&call("hostile__sleep_for_ever", json!({}))).unwrap();
        let mut running = prepared.run(None, ignore(), CancellationToken::new());
        assert!(futures::poll!(&mut running).is_pending());
        drop(running);
    }
    assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
}

#[tokio::test]
async fn spinners_and_sleepers_do_not_hold_up_others() {
    let bench = Bench::new();
    bench.add("noop.wasm", belljar_test_guests::NOOP.bytes);
    let sandbox = bench.hostile(Limits::default()).await;
    let cancel = CancellationToken::new();
    let crowd: Vec<_> = (0..20)
        .map(|index| {
            let tool = ["hostile__spin", "hostile__sleep_for_ever"][index % 2];
            let (sandbox, cancel) = (sandbox.clone(), cancel.clone());
            tokio::spawn(async move { run_with(&sandbox, tool, json!({}), ignore(), cancel).await })
        })
        .collect();
    tokio::task::yield_now().await;
    for _ in 0..20 {
        assert_eq!(text(&run(&sandbox, "noop__noop", json!({})).await), "ok");
    }
    cancel.cancel();
    for call in crowd {
        assert_eq!(kind(&call.await.unwrap()), ToolErrorKind::Canceled);
    }
}

#[tokio::test]
async fn an_observer_that_panics_ends_that_call_only() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let report = run_with(
        &sandbox,
        "hostile__print",
        json!({"emit": "x"}),
        Arc::new(|_| panic!("a fault in the host")),
        CancellationToken::new(),
    )
    .await;
    assert_eq!(kind(&report), ToolErrorKind::Trap);
    assert!(error(&report).message.contains("bug in the host"), "{report:?}");
    assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
}

#[tokio::test]
async fn a_short_sleep_is_let_sleep() {
    let bench = Bench::new();
    let limits = Limits { deadline: Duration::from_secs(20), ..Limits::default() };
    let sandbox = bench.hostile(limits).await;
    let report = run(&sandbox, "hostile__sleep", json!({"milliseconds": 20})).await;
    assert_eq!(text(&report), "slept");
}

#[tokio::test]
async fn a_guest_that_only_calls_the_host_sees_a_cancel_too() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    for tool in ["hostile__flood_emit", "hostile__flood_progress"] {
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        // From the middle of the call, and on its own thread.
        let observer = Arc::new(move |_| token.cancel());
        let report = run_with(&sandbox, tool, json!({}), observer, cancel).await;
        assert_eq!(kind(&report), ToolErrorKind::Canceled, "{tool}");
        assert!(report.receipt.is_some(), "{tool}");
        assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
    }
}

/// JSON so deep that reading it by recursion would end the host's own stack.
#[tokio::test]
async fn deep_json_is_refused_or_passed_on_whole() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    for depth in [50, 127, 128, 1_000, 1_000_000] {
        let deep = |open: &str, close: &str| {
            format!("{{\"text\": {}1{}}}", open.repeat(depth), close.repeat(depth))
        };
        for text in [deep("[", "]"), deep("{\"a\":", "}")] {
            let call = ToolCall {
                id: "1".into(),
                tool: "hostile__print".into(),
                arguments: Arguments::parse(&text),
            };
            let kind = match sandbox.prepare(&call) {
                Ok(prepared) => {
                    let report = prepared.run(None, ignore(), CancellationToken::new()).await;
                    // The guest takes no such argument, and reads by recursion too.
                    kind(&report)
                }
                Err(error) => error.kind,
            };
            let expected = [ToolErrorKind::InvalidArguments, ToolErrorKind::Trap];
            assert!(expected.contains(&kind), "{depth}: {kind}");
        }
    }
    assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
}

/// A schema is what a plugin says of itself, and no check of what it gives: the value is passed on
/// as the data that it is.
#[tokio::test]
async fn a_value_that_is_not_as_promised_is_passed_on_as_what_it_is() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    let report = run(&sandbox, "hostile__wrong_structured", json!({})).await;
    assert_eq!(report.outcome.unwrap().structured, Some(json!("not a number")));
}
