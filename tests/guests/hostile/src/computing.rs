//! Endless computing, runaway recursion, and ends that are no answer.

use belljar_sdk::prelude::*;
use std::{hint::black_box, process};

/// Computes without end.
#[tool(read_only)]
fn spin() -> Output {
    let mut number = 1_u64;
    loop {
        number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Calls the host without end, and computes next to nothing itself.
#[tool(read_only)]
fn spin_in_host_calls() -> Output {
    loop {
        black_box(host::remaining());
    }
}

#[derive(Deserialize, JsonSchema)]
struct Recurse {
    /// How deep; without it, without end.
    depth: Option<u64>,
    /// Whether each level calls the host.
    #[serde(default)]
    host_calls: bool,
}

/// Calls itself.
#[tool(read_only)]
fn recurse(args: Recurse) -> String {
    fn descend(level: u64, depth: u64, host_calls: bool) -> u64 {
        // A frame worth the name, which the compiler cannot turn into a loop.
        let frame = black_box([level; 32]);
        if host_calls {
            host::progress(level, None, "deeper");
        }
        if level == depth {
            return frame[0];
        }
        descend(level + 1, depth, host_calls).wrapping_add(frame[31] & 1)
    }
    format!("{}", descend(0, args.depth.unwrap_or(u64::MAX), args.host_calls))
}

/// Panics.
#[tool(read_only)]
fn panic() -> Output {
    panic!("the tool lost its head");
}

/// Traps without a word.
#[tool(read_only)]
fn abort() -> Output {
    process::abort()
}

#[derive(Deserialize, JsonSchema)]
struct Exit {
    code: i32,
}

/// Exits, as a program would.
#[tool(read_only)]
fn exit(args: Exit) -> Output {
    process::exit(args.code)
}
