use belljar_sdk::prelude::*;

/// Does nothing.
#[tool]
struct Noop;

fn main() {}
