use belljar_sdk::prelude::*;

/// Adds.
#[tool]
fn add(left: u32, right: u32) -> String {
    (left + right).to_string()
}

fn main() {}
