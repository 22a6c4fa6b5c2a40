//! The bindings of `belljar:plugin`. Nothing outside this crate sees them.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "plugin",
    imports: { default: trappable },
    exports: { default: async },
});

pub(crate) use belljar::plugin::{host, types};

/// The version of `belljar:plugin` that this host speaks.
pub(crate) const INTERFACE: &str = "belljar:plugin/tools";
pub(crate) const INTERFACE_VERSION: &str = "0.1.0";
