use belljar_sdk::prelude::*;

#[tool(read_only)]
fn noop() -> String {
    String::new()
}

fn main() {}
