//! A guest that does nothing: what a call costs by itself.

use belljar_sdk::prelude::*;

/// Does nothing.
#[tool(read_only, idempotent)]
fn noop() -> &'static str {
    "ok"
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    /// What to say back.
    text: String,
}

/// Says the text back.
#[tool(read_only, idempotent)]
fn echo(args: Echo) -> String {
    args.text
}

belljar_sdk::plugin!(noop, echo);
