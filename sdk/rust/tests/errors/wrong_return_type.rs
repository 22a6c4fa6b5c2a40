use belljar_sdk::prelude::*;

/// Does nothing.
#[tool]
fn noop() -> Result<Option<u32>, Failure> {
    Ok(None)
}

fn main() {}
