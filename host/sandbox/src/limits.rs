//! What one call may use, and the limiter that holds its memory to that.

use std::time::Duration;
use wasmtime::ResourceLimiter;

/// The limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time for instantiating, running, every wait in the host and dropping.
    pub deadline: Duration,
    /// Units of computing; one is about one WebAssembly instruction.
    pub fuel: u64,
    /// Bytes over all memories and tables of all instances in the call.
    pub memory: usize,
    /// Core instances, memories and tables in the call.
    pub instances: usize,
    pub memories: usize,
    pub tables: usize,
    /// Bytes that one crossing from the guest to the host may copy.
    pub crossing: usize,
    /// Bytes of text in a result; the rest is cut, and said.
    pub result_text: usize,
    /// Bytes of all other content in a result.
    pub result_data: usize,
    /// Bytes of each of log, emitted text, standard output and standard error.
    pub output: usize,
    /// Files and folders that the guest holds open at a time.
    pub handles: usize,
    /// Random bytes in one request.
    pub random: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            fuel: 100_000_000_000,
            memory: 256 << 20,
            instances: 32,
            memories: 4,
            tables: 16,
            crossing: 8 << 20,
            result_text: 64 << 10,
            result_data: 6 << 20,
            output: 64 << 10,
            handles: 256,
            random: 64 << 10,
        }
    }
}

impl Limits {
    /// The limits under which a plugin is asked for its tools: it only has to answer.
    pub(crate) fn describing(self) -> Self {
        Self {
            deadline: self.deadline.min(Duration::from_secs(5)),
            fuel: self.fuel.min(10_000_000_000),
            ..self
        }
    }
}

/// Counts what all memories and tables of a call hold together.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    limit: usize,
    instances: usize,
    memories: usize,
    tables: usize,
    used: usize,
    pub(crate) peak: usize,
    /// Something was refused. The guest only sees a failed `memory.grow`, and most answer that
    /// with a trap of no particular kind: this tells the kind.
    pub(crate) refused: bool,
}

/// A table element is a pointer on the host.
const TABLE_ELEMENT: usize = size_of::<usize>();

impl MemoryLimiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit: limits.memory,
            instances: limits.instances,
            memories: limits.memories,
            tables: limits.tables,
            used: 0,
            peak: 0,
            refused: false,
        }
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let wanted = self.used.saturating_add(desired.saturating_sub(current));
        if wanted > self.limit {
            self.refused = true;
            return false;
        }
        self.used = wanted;
        self.peak = self.peak.max(wanted);
        true
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        Ok(self.grow(current, desired))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let bytes = |elements: usize| elements.saturating_mul(TABLE_ELEMENT);
        Ok(self.grow(bytes(current), bytes(desired)))
    }

    fn instances(&self) -> usize {
        self.instances
    }

    fn memories(&self) -> usize {
        self.memories
    }

    fn tables(&self) -> usize {
        self.tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_are_summed() {
        let mut limiter = MemoryLimiter::new(&Limits { memory: 1_000, ..Limits::default() });
        // Each far below the limit, and over it together.
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.table_growing(0, 20, None).unwrap());
        assert!(!limiter.refused);
        assert!(!limiter.table_growing(20, 26, None).unwrap());
        assert!(limiter.refused);
        assert!(!limiter.memory_growing(400, 441, None).unwrap());
        assert!(limiter.memory_growing(400, 440, None).unwrap());
        assert_eq!(limiter.peak, 1_000);
        // What a module sets for itself is refused without being our limit.
        let mut limiter = MemoryLimiter::new(&Limits::default());
        assert!(!limiter.memory_growing(0, 200, Some(100)).unwrap());
        assert!(!limiter.refused);
    }
}
