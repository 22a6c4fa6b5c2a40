use belljar_sdk::prelude::*;

/// Does nothing.
#[tool(read_only, destructive)]
fn noop() -> String {
    String::new()
}

fn main() {}
