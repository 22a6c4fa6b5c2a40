//! What this process holds: threads, open handles, resident memory.

use anyhow::ensure;
use std::fs;

/// Threads that a few calls one after the other may add: the runtime keeps some for the next.
const THREADS: usize = 4;
/// Memory that may stay after a call: what the pool and the allocator keep for the next one.
const RESIDENT: u64 = 64 << 20;

/// Absent where the platform does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    threads: Option<usize>,
    handles: Option<usize>,
    resident: Option<u64>,
}

impl Levels {
    pub(super) fn now() -> Self {
        let count = |folder: &str| fs::read_dir(folder).ok().map(Iterator::count);
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        Self {
            threads: count("/proc/self/task"),
            handles: count("/proc/self/fd"),
            resident: resident.map(|kilobytes| kilobytes << 10),
        }
    }

    /// Whether what is held now is what was held then.
    pub(super) fn check_back_to(&self, before: &Self) -> anyhow::Result<()> {
        ensure!(
            self.handles == before.handles,
            "{:?} handles are open, and {:?} were before",
            self.handles,
            before.handles
        );
        ensure!(
            self.threads <= before.threads.map(|threads| threads + THREADS),
            "{:?} threads are there, and {:?} were before",
            self.threads,
            before.threads
        );
        ensure!(
            self.resident <= before.resident.map(|resident| resident + RESIDENT),
            "{:?} bytes are resident, and {:?} were before",
            self.resident,
            before.resident
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_behind_is_found() {
        let before = Levels { threads: Some(5), handles: Some(9), resident: Some(100 << 20) };
        let cases = [
            (before, true),
            (Levels { threads: Some(9), ..before }, true),
            (Levels { threads: Some(10), ..before }, false),
            (Levels { handles: Some(10), ..before }, false),
            (Levels { handles: Some(8), ..before }, false),
            (Levels { resident: Some(164 << 20), ..before }, true),
            (Levels { resident: Some(165 << 20), ..before }, false),
        ];
        for (after, is_back) in cases {
            assert_eq!(after.check_back_to(&before).is_ok(), is_back, "{after:?}");
        }
        let unknown = Levels { threads: None, handles: None, resident: None };
        assert!(unknown.check_back_to(&unknown).is_ok());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_open_file_counts() {
        let read = |levels: Levels| {
            levels.threads.is_some() && levels.handles.is_some() && levels.resident.is_some()
        };
        assert!(read(Levels::now()));
    }
}
