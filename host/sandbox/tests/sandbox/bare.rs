//! The same component on plain wasmtime-wasi, with what every host of it needs and nothing of ours.

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

pub(crate) struct Bare(PluginPre<State>);

impl Bare {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut config = Config::new();
        config.concurrency_support(false);
        let engine = Engine::new(&config).unwrap();
        let mut linker = Linker::<State>::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        belljar::plugin::host::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)
            .unwrap();
        let component = Component::from_binary(&engine, bytes).unwrap();
        Self(PluginPre::new(linker.instantiate_pre(&component).unwrap()).unwrap())
    }

    /// Calls a tool with a folder at `/`, for reading and writing, and gives back its text.
    pub(crate) async fn call(&self, folder: &Path, tool: &str, arguments: &str) -> String {
        let mut wasi = WasiCtx::builder();
        wasi.allow_blocking_current_thread(true);
        wasi.preopened_dir(folder, "/", FsPerms::ReadWrite).unwrap();
        let state = State { table: ResourceTable::new(), wasi: wasi.build() };
        let mut store = Store::new(self.0.engine(), state);
        let plugin = self.0.instantiate_async(&mut store).await.unwrap();
        let tools = plugin.belljar_plugin_tools();
        let output = tools.call_call_tool(&mut store, tool, arguments).await.unwrap().unwrap();
        let [belljar::plugin::types::Content::Text(text)] = &output.content[..] else {
            panic!("not one text: {:?}", output.content.len());
        };
        text.clone()
    }
}
