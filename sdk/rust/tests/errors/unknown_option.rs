use belljar_sdk::prelude::*;

/// Does nothing.
#[tool(readonly)]
fn noop() -> String {
    String::new()
}

fn main() {}
