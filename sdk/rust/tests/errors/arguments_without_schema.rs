use belljar_sdk::prelude::*;

#[derive(belljar_sdk::serde::Deserialize)]
#[serde(crate = "belljar_sdk::serde")]
struct Plain {}

/// Does nothing.
#[tool]
fn noop(_args: Plain) -> String {
    String::new()
}

fn main() {}
