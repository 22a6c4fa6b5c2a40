//! The sandbox: an engine, a catalog of plugins, and one guarded world per tool call.
//!
//! Link once, check at load, build per call: the engine and the linker are made once, a plugin is
//! compiled, checked and described when it is first seen, and every call gets a store of its own
//! with exactly the world that it was granted. This crate knows nothing of models and
//! conversations.

mod bindings;
mod cache;
mod call;
mod catalog;
mod code;
mod compiler;
mod describe;
mod engine;
mod filesystem;
mod handles;
mod host;
mod http;
mod inspect;
mod limits;
mod load_error;
mod manifest;
mod names;
mod output;
mod plugin;
mod plugin_file;
mod prepared;
mod question;
mod redaction;
mod snapshot;
mod sockets;
mod state;
mod stdio;
mod toolbox;
mod watch;
mod watchdog;

pub use cache::CacheError;
pub use catalog::{BundledPlugin, PluginFolder, PluginInfo, Skipped};
pub use compiler::{CompileLimits, CompileObserver, Compiler, CompilerChild, compile_in_child};
pub use engine::{EngineSettings, Memories, SandboxError, try_engine};
pub use filesystem::{MountError, check_grantable};
pub use handles::{handles_for, open_files, places_for, raise_open_files};
pub use http::{Outside, Redactor, Resolver, SecretSource, SystemResolver};
pub use inspect::{Inspected, inspect, inspect_bundled, inspect_bytes, read_plugin};
pub use load_error::LoadError;
pub use manifest::{Declared, pack};
pub use names::look_alike;
pub use plugin_file::{SEPARATOR as DIGEST_SEPARATOR, digest};
pub use toolbox::{Policy, Sandbox, SandboxConfig};
pub use watch::Watching;
