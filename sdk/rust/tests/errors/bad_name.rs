use belljar_sdk::prelude::*;

/// Does nothing.
#[tool(name = "no-op")]
fn noop() -> String {
    String::new()
}

fn main() {}
