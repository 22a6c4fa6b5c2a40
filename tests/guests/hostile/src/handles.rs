//! Handles, and single calls that ask the host for far too much.

use belljar_sdk::prelude::*;
use std::{fs::File, thread, time::Duration};
use wasip2::{
    cli::{stdin, stdout},
    clocks::monotonic_clock,
    filesystem::preopens,
    filesystem::types as filesystem,
    io::poll,
    random::random,
};

#[derive(Deserialize, JsonSchema)]
struct OpenMany {
    path: String,
    count: usize,
    /// Whether to keep them open until it is stopped, once there are enough or one is refused.
    #[serde(default)]
    hold: bool,
}

/// Opens a file again and again, and keeps it open.
#[tool(read_only)]
fn open_many(args: OpenMany) -> Result<String, Failure> {
    let mut files = Vec::new();
    for _ in 0..args.count {
        match File::open(&args.path) {
            Ok(file) => files.push(file),
            Err(_) if args.hold => break,
            Err(error) => {
                return Err(error).with_context(|| format!("refused with {} open", files.len()));
            }
        }
    }
    while args.hold {
        thread::sleep(Duration::from_secs(365 * 24 * 60 * 60));
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

/// Waits for one clock, named a great many times in one list.
#[tool(read_only)]
fn poll_one_many(args: PollMany) -> String {
    let clock = monotonic_clock::subscribe_duration(0);
    let list: Vec<_> = (0..args.count).map(|_| &clock).collect();
    format!("{} are ready", poll::poll(&list).len())
}

/// Takes standard input and output again and again, and keeps the streams.
#[tool(read_only)]
fn streams_many(args: PollMany) -> String {
    let mut streams = Vec::new();
    for _ in 0..args.count {
        streams.push((stdin::get_stdin(), stdout::get_stdout()));
    }
    format!("holds {}", streams.len())
}

/// Opens the workspace again and again as a folder, each within the one before it.
#[tool(read_only)]
fn folders_many(args: PollMany) -> Result<String, Failure> {
    let (root, _) = preopens::get_directories().into_iter().next().context("nothing is granted")?;
    let mut folders = vec![root];
    for _ in 0..args.count {
        let folder = folders[folders.len() - 1]
            .open_at(
                filesystem::PathFlags::empty(),
                ".",
                filesystem::OpenFlags::DIRECTORY,
                filesystem::DescriptorFlags::READ,
            )
            .map_err(|code| {
                Failure::failed(format!("refused with {} open: {}", folders.len(), code.name()))
            })?;
        folders.push(folder);
    }
    Ok(format!("holds {}", folders.len()))
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
