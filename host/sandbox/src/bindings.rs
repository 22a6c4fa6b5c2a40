//! The bindings of `belljar:plugin`. Nothing outside this crate sees them.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "plugin",
    imports: { default: trappable },
    exports: { default: async },
});

pub(crate) use belljar::plugin::{host, types};

/// What every plugin exports.
pub(crate) const INTERFACE: &str = "belljar:plugin/tools";
/// The version of it that this host speaks.
pub(crate) const INTERFACE_VERSION: &str = "0.1.0";
