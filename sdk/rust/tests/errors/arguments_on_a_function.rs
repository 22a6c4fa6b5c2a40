use belljar_sdk::prelude::*;

#[arguments]
fn noop() {}

fn main() {}
