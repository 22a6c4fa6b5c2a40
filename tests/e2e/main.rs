//! Belljar end to end: through its binary, as a person or a script uses it.

mod architecture;
mod bad_input;
mod call;
mod demo;
mod dependencies;
mod plugins;
mod run;
mod support;
mod wire;
