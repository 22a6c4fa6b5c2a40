//! A component on plain wasmtime, with what every host of it needs and nothing of ours.

use std::path::Path;
use wasmtime::{
    Config, Engine, Store,
    component::{Component, HasSelf, Linker, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView, filesystem::FsPerms};

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "plugin",
    exports: { default: async },
});

pub(crate) struct State {
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

/// A component, linked, on an engine with fuel and the pool at its defaults.
#[derive(Clone)]
pub(crate) struct Bare(PluginPre<State>);

impl Bare {
    pub(crate) fn prepare(bytes: &[u8], concurrency: bool) -> Self {
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
        let component = Component::from_binary(&engine, bytes).unwrap();
        Self(PluginPre::new(linker.instantiate_pre(&component).unwrap()).unwrap())
    }

    /// One call in a fresh store with one folder, file operations in place.
    pub(crate) async fn call(&self, folder: &Path, tool: &str, arguments: &str) -> String {
        let mut wasi = WasiCtx::builder();
        wasi.allow_blocking_current_thread(true);
        wasi.preopened_dir(folder, "/", FsPerms::ReadOnly).unwrap();
        let state = State { table: ResourceTable::new(), wasi: wasi.build() };
        let mut store = Store::new(self.0.engine(), state);
        store.set_fuel(100_000_000_000).unwrap();
        store.fuel_async_yield_interval(Some(1_000_000)).unwrap();
        let plugin = self.0.instantiate_async(&mut store).await.unwrap();
        let tools = plugin.belljar_plugin_tools();
        let output = tools.call_call_tool(&mut store, tool, arguments).await.unwrap().unwrap();
        match output.content.into_iter().next() {
            Some(belljar::plugin::types::Content::Text(text)) => text,
            other => panic!("not a text: {other:?}"),
        }
    }

    /// The same on a thread that may block, as the sandbox does it.
    pub(crate) async fn call_with_hop(&self, folder: &Path, tool: &str, arguments: &str) -> String {
        let (bare, folder) = (self.clone(), folder.to_owned());
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        let runtime = tokio::runtime::Handle::current();
        let call = tokio::task::spawn_blocking(move || {
            runtime.block_on(bare.call(&folder, &tool, &arguments))
        });
        call.await.unwrap()
    }
}
