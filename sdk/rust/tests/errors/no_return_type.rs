use belljar_sdk::prelude::*;

/// Does nothing.
#[tool]
fn noop() {}

fn main() {}
