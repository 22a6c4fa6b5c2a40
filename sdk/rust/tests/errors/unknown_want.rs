use belljar_sdk::prelude::*;

/// Does nothing.
#[tool]
fn noop() -> String {
    String::new()
}

belljar_sdk::plugin! {
    tools: [noop],
    wants: { disk: [] },
}

fn main() {}
