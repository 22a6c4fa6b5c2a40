//! What guarding files costs: a guest reads 2 000 files, guarded and on plain wasmtime-wasi, both
//! with file operations in place.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

#[path = "../tests/sandbox/bare.rs"]
mod bare;

use belljar_capability::{Binding, FolderGrant, PluginGrant, Rules};
use belljar_sandbox::{PluginFolder, Policy, Sandbox, SandboxConfig};
use belljar_types::{Arguments, PermissionMode, ToolCall, Toolbox};
use criterion::{Criterion, criterion_group, criterion_main};
use std::{collections::BTreeMap, fs, hint::black_box, sync::Arc};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const FILES: usize = 2_000;

async fn sandbox(root: &TempDir, deny: &[&str]) -> Sandbox {
    let plugins = root.path().join("plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("raw.wasm"), belljar_test_guests::RAW.bytes).unwrap();
    let grant = PluginGrant {
        binding: Some(Binding::Digest(belljar_test_guests::RAW.digest.to_owned())),
        write: vec![FolderGrant { host: ".".to_owned(), guest: None }],
        deny: deny.iter().map(|glob| (*glob).to_owned()).collect(),
        ..PluginGrant::default()
    };
    Sandbox::open(SandboxConfig {
        workspace: Some(root.path().join("workspace")),
        cache: Some(root.path().join("cache")),
        scratch: Some(root.path().join("scratch")),
        folders: vec![PluginFolder { path: plugins, named: true }],
        grants: BTreeMap::from([("raw".to_owned(), grant)]),
        ..SandboxConfig::new(Policy { mode: PermissionMode::Bypass, rules: Rules::default() })
    })
    .await
    .unwrap()
}

fn reading(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let root = TempDir::new().unwrap();
    let folder = root.path().join("workspace/files");
    fs::create_dir_all(&folder).unwrap();
    for number in 0..FILES {
        fs::write(folder.join(format!("{number}.txt")), "x".repeat(1_000)).unwrap();
    }
    let arguments = serde_json::json!({"path": "files"});
    let mut group = criterion.benchmark_group("read 2 000 files");
    group.sample_size(20);

    let plain = Arc::new(bare::Bare::new(belljar_test_guests::RAW.bytes));
    let workspace = root.path().join("workspace");
    let text = arguments.to_string();
    group.bench_function("plain wasmtime-wasi", |bencher| {
        bencher.iter(|| {
            let (plain, workspace, text) = (Arc::clone(&plain), workspace.clone(), text.clone());
            let handle = runtime.handle().clone();
            let call = runtime
                .spawn_blocking(move || handle.block_on(plain.call(&workspace, "read_all", &text)));
            assert_eq!(runtime.block_on(call).unwrap(), "2000 files of 2000000 bytes");
        });
    });
    for (name, deny) in [("guarded", &[][..]), ("guarded, with deny globs", &[".env", "keys/**"])] {
        let sandbox = runtime.block_on(sandbox(&root, deny));
        let call = ToolCall {
            id: "1".into(),
            tool: "raw__read_all".into(),
            arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
        };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    let prepared = sandbox.prepare(&call).unwrap();
                    let report =
                        prepared.run(None, Arc::new(|_| {}), CancellationToken::new()).await;
                    assert!(report.outcome.is_ok());
                    black_box(report)
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
