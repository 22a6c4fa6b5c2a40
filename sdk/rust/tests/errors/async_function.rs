use belljar_sdk::prelude::*;

/// Does nothing.
#[tool]
async fn noop() -> String {
    String::new()
}

fn main() {}
