//! Handles, and single calls that ask the host for far too much.

use belljar_sdk::prelude::*;
use std::fs::File;
use wasip2::{
    clocks::monotonic_clock, filesystem::preopens, filesystem::types as filesystem, io::poll,
    random::random,
};

#[derive(Deserialize, JsonSchema)]
struct OpenMany {
    path: String,
    count: usize,
}

/// Opens a file again and again, and keeps it open.
#[tool(read_only)]
fn open_many(args: OpenMany) -> Result<String, Failure> {
    let mut files = Vec::new();
    for _ in 0..args.count {
        let file =
            File::open(&args.path).with_context(|| format!("refused with {} open", files.len()))?;
        files.push(file);
    }
    Ok(format!("holds {}", files.len()))
}

#[derive(Deserialize, JsonSchema)]
struct PollMany {
    count: usize,
}

/// Waits for a great many clocks at once.
#[tool(read_only)]
fn poll_many(args: PollMany) -> String {
    let clocks: Vec<_> = (0..args.count).map(|_| monotonic_clock::subscribe_duration(0)).collect();
    let list: Vec<_> = clocks.iter().collect();
    format!("{} are ready", poll::poll(&list).len())
}

#[derive(Deserialize, JsonSchema)]
struct HugeRandom {
    bytes: u64,
}

/// Asks for random bytes, all at once.
#[tool(read_only)]
fn huge_random(args: HugeRandom) -> String {
    format!("got {} bytes", random::get_random_bytes(args.bytes).len())
}

#[derive(Deserialize, JsonSchema)]
struct HugeRead {
    path: String,
    bytes: u64,
}

/// Reads a file with one call that asks for far more than is sensible.
#[tool(read_only)]
fn huge_read(args: HugeRead) -> Result<String, Failure> {
    let (root, _) = preopens::get_directories().into_iter().next().context("nothing is granted")?;
    let refused = |what: &str, code: filesystem::ErrorCode| {
        Failure::failed(format!("{what}: {}", code.name()))
    };
    let file = root
        .open_at(
            filesystem::PathFlags::empty(),
            args.path.trim_start_matches('/'),
            filesystem::OpenFlags::empty(),
            filesystem::DescriptorFlags::READ,
        )
        .map_err(|code| refused("open", code))?;
    let (bytes, _) = file.read(args.bytes, 0).map_err(|code| refused("read", code))?;
    Ok(format!("got {} bytes", bytes.len()))
}
