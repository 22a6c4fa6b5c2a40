//! Belljar end to end: through its binary, as a person or a script uses it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod architecture;
mod bad_input;
mod call;
mod demo;
mod dependencies;
mod loading;
mod plugin_commands;
mod plugins;
mod run;
mod support;
mod wire;
