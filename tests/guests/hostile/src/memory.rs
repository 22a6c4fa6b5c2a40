//! Memory: as much as there is, and slow work on it in few instructions.

use belljar_sdk::prelude::*;
use std::{arch::wasm32, hint::black_box};

#[derive(Deserialize, JsonSchema)]
struct GrowMemory {
    /// Pages of 64 KiB at a time.
    #[serde(default = "one")]
    pages: usize,
}

fn one() -> usize {
    1
}

/// Grows its memory until that is refused, and says how far it came.
#[tool(read_only)]
fn grow_memory(args: GrowMemory) -> String {
    while wasm32::memory_grow::<0>(args.pages) != usize::MAX {}
    format!("refused at {} pages", wasm32::memory_size::<0>())
}

/// Allocates and writes memory until it is stopped.
#[tool(read_only)]
fn touch_memory() -> Output {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
    }
}

#[derive(Deserialize, JsonSchema)]
struct FillMemory {
    /// Bytes at a time.
    bytes: usize,
}

/// Overwrites one large block again and again: much work in one instruction.
#[tool(read_only)]
fn fill_memory(args: FillMemory) -> Output {
    let mut block = vec![0_u8; args.bytes];
    let mut byte = 0_u8;
    loop {
        block.fill(black_box(byte));
        black_box(&mut block);
        byte = byte.wrapping_add(1);
    }
}
