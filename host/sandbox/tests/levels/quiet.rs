//! One test at a time, and what the process holds before and after it.

use crate::support::{Bench, run, text};
use belljar_capability::Limits;
use belljar_sandbox::{Sandbox, SandboxConfig};
use serde_json::json;
use std::{
    fs,
    sync::{Mutex, PoisonError},
};
use tokio::runtime::Builder;

/// Memory that may stay: what allocators keep for the next time.
const RESIDENT: u64 = 96 << 20;
/// Threads that the test harness itself may start meanwhile.
const HARNESS: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Levels {
    pub(crate) threads: usize,
    pub(crate) handles: usize,
    pub(crate) resident: u64,
}

impl Levels {
    pub(crate) fn now() -> Self {
        let count = |folder: &str| fs::read_dir(folder).unwrap().count();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: u64 = resident.trim().strip_suffix(" kB").unwrap().parse().unwrap();
        Self {
            threads: count("/proc/self/task"),
            handles: count("/proc/self/fd"),
            resident: kilobytes << 10,
        }
    }
}

/// Runs a test alone, on a loop's runtime with one thread, which guests must never hold. It ends
/// when all threads of the runtime have ended; the process must then hold what it held before.
pub(crate) fn quiet(test: impl AsyncFnOnce()) {
    static ONE: Mutex<bool> = Mutex::new(false);
    let mut is_warm = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_warm {
        // The compiler's threads stay, and are made here.
        on_runtime(warm_up);
        *is_warm = true;
    }
    let before = Levels::now();
    on_runtime(test);
    let after = Levels::now();
    assert_eq!(after.handles, before.handles, "{after:?} {before:?}");
    assert!(after.threads <= before.threads + HARNESS, "{after:?} {before:?}");
    assert!(after.resident <= before.resident + RESIDENT, "{after:?} {before:?}");
}

fn on_runtime(test: impl AsyncFnOnce()) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test());
    // Waits for every thread that still runs a guest.
    drop(runtime);
}

async fn warm_up() {
    let bench = Bench::new();
    bench.add("guest.wasm", belljar_test_guests::text("state_in_global"));
    let config = SandboxConfig { cache: None, ..bench.config() };
    let sandbox = Sandbox::open(config).await.unwrap();
    assert_eq!(text(&run(&sandbox, "guest__probe", json!({})).await), "ok");
    drop(sandbox);
    drop(bench.hostile(Limits::default()).await);
}
