//! Belljar end to end: through its binary, as a person or a script uses it.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod architecture;
mod audit;
mod bad_input;
mod call;
mod demo;
mod dependencies;
mod doctor;
#[cfg(unix)]
mod going_on;
mod grants;
#[cfg(target_os = "linux")]
mod kills;
mod loading;
mod orders;
mod plugin_commands;
mod plugins;
mod run;
mod selftest;
#[cfg(target_os = "linux")]
mod session;
mod support;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod terminal;
mod threats;
#[cfg(target_os = "linux")]
mod trace;
mod trust;
mod wire;
