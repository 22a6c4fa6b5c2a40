//! What a call costs: through the toolbox, and on bare wasmtime with the same component.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

use belljar_capability::{Binding, FolderGrant, PluginGrant, Rules};
use belljar_sandbox::{EngineSettings, PluginFolder, Policy, Sandbox, SandboxConfig};
use belljar_types::{Arguments, PermissionMode, ToolCall, Toolbox};
use criterion::{Criterion, criterion_group, criterion_main};
use std::{collections::BTreeMap, fs, hint::black_box, sync::Arc};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// The same component with what every host of it needs and nothing of ours.
mod bare {
    use wasmtime::{
        Config, Engine, Store,
        component::{HasSelf, Linker, ResourceTable},
    };
    use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "plugin",
        exports: { default: async },
    });

    pub(super) struct State {
        table: ResourceTable,
        wasi: WasiCtx,
    }

    impl WasiView for State {
        fn ctx(&mut self) -> WasiCtxView<'_> {
            WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
        }
    }

    impl belljar::plugin::host::Host for State {
        fn log(&mut self, _: belljar::plugin::host::Level, _: String) {}
        fn progress(&mut self, _: u64, _: Option<u64>, _: String) {}
        fn emit(&mut self, _: String) {}
        fn remaining_ms(&mut self) -> u64 {
            0
        }
    }

    /// On an engine with fuel and the pool at its defaults.
    pub(super) fn prepare(bytes: &[u8], concurrency: bool) -> PluginPre<State> {
        let mut config = Config::new();
        config
            .consume_fuel(true)
            .concurrency_support(concurrency)
            .wasm_backtrace_max_frames(None)
            .allocation_strategy(wasmtime::InstanceAllocationStrategy::pooling());
        let engine = Engine::new(&config).unwrap();
        let mut linker = Linker::<State>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        belljar::plugin::host::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)
            .unwrap();
        let component = wasmtime::component::Component::from_binary(&engine, bytes).unwrap();
        PluginPre::new(linker.instantiate_pre(&component).unwrap()).unwrap()
    }

    pub(super) async fn call(pre: &PluginPre<State>, folder: &std::path::Path) -> usize {
        let mut wasi = WasiCtx::builder();
        wasi.allow_blocking_current_thread(true);
        wasi.preopened_dir(folder, "/", wasmtime_wasi::filesystem::FsPerms::ReadOnly).unwrap();
        let state = State { table: ResourceTable::new(), wasi: wasi.build() };
        let mut store = Store::new(pre.engine(), state);
        store.set_fuel(100_000_000_000).unwrap();
        store.fuel_async_yield_interval(Some(1_000_000)).unwrap();
        let plugin = pre.instantiate_async(&mut store).await.unwrap();
        let tools = plugin.belljar_plugin_tools();
        let output = tools.call_call_tool(&mut store, "noop", "{}").await.unwrap().unwrap();
        output.content.len()
    }
}

fn noop_call() -> ToolCall {
    ToolCall {
        id: "1".into(),
        tool: "noop__noop".into(),
        arguments: Arguments::Object(Default::default()),
    }
}

async fn sandbox(root: &TempDir, engine: EngineSettings) -> Sandbox {
    let plugins = root.path().join("plugins");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("noop.wasm"), belljar_test_guests::NOOP.bytes).unwrap();
    Sandbox::open(SandboxConfig {
        workspace: Some(root.path().to_owned()),
        cache: Some(root.path().join("cache")),
        scratch: Some(root.path().join("scratch")),
        folders: vec![PluginFolder { path: plugins, named: true }],
        grants: BTreeMap::from([(
            "noop".to_owned(),
            PluginGrant {
                binding: Some(Binding::Digest(belljar_test_guests::NOOP.digest.to_owned())),
                write: vec![FolderGrant { host: ".".to_owned(), guest: None }],
                ..PluginGrant::default()
            },
        )]),
        engine,
        ..SandboxConfig::new(Policy { mode: PermissionMode::Default, rules: Rules::default() })
    })
    .await
    .unwrap()
}

fn calls(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let root = TempDir::new().unwrap();
    let mut group = criterion.benchmark_group("call");

    let settings = EngineSettings::default();
    for (name, engine) in [
        ("toolbox", settings),
        ("toolbox, concurrency on", EngineSettings { concurrency: true, ..settings }),
        ("toolbox, no pool", EngineSettings { pooling: false, ..settings }),
    ] {
        let sandbox = runtime.block_on(sandbox(&root, engine));
        let call = noop_call();
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

    for (name, concurrency) in [("bare wasmtime", false), ("bare wasmtime, concurrency on", true)] {
        let pre = bare::prepare(belljar_test_guests::NOOP.bytes, concurrency);
        let folder = root.path().to_owned();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                runtime.block_on(async {
                    let (pre, folder) = (pre.clone(), folder.clone());
                    let handle = tokio::runtime::Handle::current();
                    let call = tokio::task::spawn_blocking(move || {
                        handle.block_on(bare::call(&pre, &folder))
                    });
                    assert_eq!(call.await.unwrap(), 1);
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
