use belljar_sdk::prelude::*;

/// Does nothing.
#[tool]
fn noop() -> String {
    String::new()
}

/// Does nothing either.
#[tool(name = "noop")]
fn idle() -> String {
    String::new()
}

belljar_sdk::plugin!(noop, idle);

fn main() {}
