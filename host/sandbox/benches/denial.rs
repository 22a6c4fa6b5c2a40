//! What it costs to say no: to a call, and to a guest that opens what it may not.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod support;

use belljar_capability::Rules;
use belljar_sandbox::{Policy, Sandbox, SandboxConfig};
use belljar_types::{PermissionMode, ToolErrorKind, Toolbox};
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use support::{Machine, call, run};
use tokio::runtime::Runtime;

fn denials(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let machine = Machine::with(&[belljar_test_guests::BENCH]);
    let rules = Rules { deny: vec!["bench/grep".parse().unwrap()], ..Rules::default() };
    let config = SandboxConfig {
        policy: Policy { mode: PermissionMode::Default, rules },
        ..machine.config()
    };
    let sandbox = runtime.block_on(Sandbox::open(config)).unwrap();
    let mut group = criterion.benchmark_group("denial");

    let denied = call("bench__grep", json!({"path": "/", "text": "x"}));
    group.bench_function("a call, by a rule", |bencher| {
        bencher.iter(|| {
            let error = sandbox.prepare(&denied).err().unwrap();
            assert_eq!(error.kind, ToolErrorKind::Denied);
        });
    });

    std::os::unix::fs::symlink("/etc/passwd", machine.workspace().join("link")).unwrap();
    for (name, path) in [("an open that climbs", "../secret"), ("an open through a link", "/link")]
    {
        let call = call("bench__read_file", json!({"path": path}));
        group.bench_function(name, |bencher| {
            bencher.iter(|| assert!(runtime.block_on(run(&sandbox, &call)).outcome.is_err()));
        });
    }
    group.finish();
}

criterion_group!(benches, denials);
criterion_main!(benches);
