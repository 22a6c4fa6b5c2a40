//! Holding a call to its limits: its memory, and what it hands over.

use belljar_capability::{GrantPart, Limit, LimitSettings, Limits};
use belljar_types::{ToolError, ToolErrorKind};
use std::time::Duration;
use wasmtime::ResourceLimiter;

/// The limits under which a plugin is asked for its tools: it only has to answer, so it gets less
/// time than a call, unless a person set its time.
pub(crate) fn describing(defaults: Limits, settings: &LimitSettings) -> Limits {
    let short = Limits {
        deadline: defaults.deadline.min(Duration::from_secs(5)),
        fuel: defaults.fuel.min(10_000_000_000),
        ..defaults
    };
    short.with(settings)
}

/// The most of each limit among several: what the engine must have room for.
pub(crate) fn largest(all: impl IntoIterator<Item = Limits>) -> Limits {
    let mut most = LimitSettings::new();
    for limits in all {
        for limit in Limit::ALL {
            let value = most.entry(limit).or_insert(0);
            *value = limits.get(limit).max(*value);
        }
    }
    Limits::default().with(&most)
}

/// An error over a limit, worded around what was used, what is allowed and the setting. Its remedy
/// is what would raise the limit, in the form that grants take behind the plugin's name: whoever
/// knows that name puts it in front.
pub(crate) fn met(
    kind: ToolErrorKind,
    limits: &Limits,
    (limit, used): (Limit, Option<u64>),
    word: impl FnOnce(&str) -> String,
) -> ToolError {
    let error = ToolError::new(kind, word(&limits.met(limit, used)));
    match GrantPart::raised(limits, limit, used) {
        Some(raised) => error.with_remedy(raised.to_string()),
        None => error,
    }
}

/// A limit as a size of something in memory.
pub(crate) fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Counts what a guest hands over to the host, call by call of a host function, where nothing else
/// counts it: what is written to files or sent to servers, and what is dropped past the limit of a
/// log, have limits of their own.
#[derive(Debug)]
pub(crate) struct Crossings {
    limit: u64,
    crossed: u64,
}

/// A guest handed over more than it may in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{crossed} bytes crossed to the host")]
pub(crate) struct CrossedTooMuch {
    pub(crate) crossed: u64,
}

impl Crossings {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limit: limits.crossings, crossed: 0 }
    }

    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), CrossedTooMuch> {
        self.crossed = self.crossed.saturating_add(bytes as u64);
        if self.crossed > self.limit {
            return Err(CrossedTooMuch { crossed: self.crossed });
        }
        Ok(())
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
    /// How much was wanted when it was refused first. The guest only sees a failed `memory.grow`,
    /// and most answer that with a trap of no particular kind: this tells the kind.
    pub(crate) refused: Option<usize>,
}

/// A table element is a pointer on the host.
const TABLE_ELEMENT: usize = size_of::<usize>();

impl MemoryLimiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limit: size(limits.memory),
            instances: size(limits.instances),
            memories: size(limits.memories),
            tables: size(limits.tables),
            used: 0,
            peak: 0,
            refused: None,
        }
    }

    fn grow(&mut self, current: usize, desired: usize) -> bool {
        let wanted = self.used.saturating_add(desired.saturating_sub(current));
        if wanted > self.limit {
            self.refused.get_or_insert(wanted);
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
        assert_eq!(limiter.refused, None);
        assert!(!limiter.table_growing(20, 26, None).unwrap());
        assert_eq!(limiter.refused, Some(1_008));
        assert!(!limiter.memory_growing(400, 441, None).unwrap());
        assert!(limiter.memory_growing(400, 440, None).unwrap());
        assert_eq!(limiter.peak, 1_000);
        // What a module sets for itself is refused without being our limit.
        let mut limiter = MemoryLimiter::new(&Limits::default());
        assert!(!limiter.memory_growing(0, 200, Some(100)).unwrap());
        assert_eq!(limiter.refused, None);
    }
}
