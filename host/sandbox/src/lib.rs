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
mod engine;
mod filesystem;
mod host;
mod http;
mod limits;
mod names;
mod output;
mod plugin;
mod prepared;
mod question;
mod redaction;
mod sockets;
mod state;
mod stdio;
mod toolbox;
mod watchdog;

pub use cache::CacheError;
pub use catalog::{BundledPlugin, PluginFolder, Skipped};
pub use engine::{EngineSettings, SandboxError};
pub use http::{Outside, Redactor, Resolver, SecretSource, SystemResolver};
pub use plugin::LoadError;
pub use toolbox::{Policy, Sandbox, SandboxConfig};
