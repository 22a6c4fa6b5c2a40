//! The engine and the linker: made once, shared by every call.

use crate::{cache::CacheError, filesystem::MountError, state::CallState};
use belljar_capability::Limits;
use std::hash::{DefaultHasher, Hash, Hasher};
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, Strategy,
    component::{HasSelf, Linker},
};

/// Settings of the engine that are measured against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Whether components may use the component model's async features, as WASI 0.3 does.
    pub concurrency: bool,
    /// Whether memories come from a pool that is laid out when the engine starts.
    pub pooling: bool,
    /// Calls that may run at a time; the pool is sized for them.
    pub calls_in_flight: u32,
}

impl Default for EngineSettings {
    fn default() -> Self {
        Self { concurrency: false, pooling: true, calls_in_flight: 64 }
    }
}

/// The sandbox cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the WebAssembly engine does not start on this machine")]
    Engine(#[source] wasmtime::Error),
    #[error("the workspace `{path}` cannot be opened")]
    Workspace {
        path: String,
        #[source]
        source: MountError,
    },
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// Guests yield to the host at least this often, so that a deadline or a cancel is seen in time.
pub(crate) const FUEL_YIELD_INTERVAL: u64 = 1_000_000;

const WASM_STACK: usize = 512 << 10;
/// Host functions run on what the guest has left of the stack, and need room of their own.
const HOST_STACK: usize = 512 << 10;
/// The most core instances, memories or tables of one component or module, whatever a person sets.
const MOST_PARTS: u32 = 1_000;
const MEMORY_RESERVATION: u64 = 4 << 30;

/// Where the memories of calls come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memories {
    /// From a pool that was laid out when the engine started.
    Pooled,
    /// Made for each call.
    OnDemand,
}

/// Starts an engine and drops it again, to see whether it does and how.
///
/// # Errors
///
/// It does not start.
pub fn try_engine(settings: EngineSettings, limits: &Limits) -> Result<Memories, SandboxError> {
    engine_and_memories(settings, limits).map(|(_, memories)| memories)
}

/// Makes the engine. Where the address space for the pool cannot be had (a `ulimit -v`, a small
/// container), memories are made on demand instead: slower, equally safe.
pub(crate) fn engine(settings: EngineSettings, largest: &Limits) -> Result<Engine, SandboxError> {
    engine_and_memories(settings, largest).map(|(engine, _)| engine)
}

fn engine_and_memories(
    settings: EngineSettings,
    largest: &Limits,
) -> Result<(Engine, Memories), SandboxError> {
    if settings.pooling {
        let mut config = config(settings);
        config.allocation_strategy(pool(settings.calls_in_flight, largest));
        if let Ok(engine) = Engine::new(&config) {
            return Ok((engine, Memories::Pooled));
        }
    }
    let engine = Engine::new(&config(settings)).map_err(SandboxError::Engine)?;
    Ok((engine, Memories::OnDemand))
}

/// The engine of a process that only compiles: what it makes fits the other.
pub(crate) fn compiling(settings: EngineSettings) -> wasmtime::Result<Engine> {
    Engine::new(&config(settings))
}

fn config(settings: EngineSettings) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .concurrency_support(settings.concurrency)
        .consume_fuel(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(WASM_STACK + HOST_STACK)
        .memory_reservation(MEMORY_RESERVATION)
        .memory_init_cow(true)
        // What the model reads must not name the inside of anything.
        .wasm_backtrace_max_frames(None)
        .native_unwind_info(false);
    config
}

/// Sized for what calls use, not for what they may: a component of any of the known toolchains
/// has at most two memories and four tables, and a call beyond the pool's share fails with an
/// error of its own. The semaphore in front is smaller than the pool, so a well-behaved call
/// never meets a full one.
fn pool(calls: u32, largest: &Limits) -> InstanceAllocationStrategy {
    let slots = calls.saturating_add(calls / 4).max(8);
    let count = |limit: u64| u32::try_from(limit).unwrap_or(u32::MAX);
    // And never less than what one call may have.
    let total = |share: u32, limit: u64| slots.saturating_mul(share).max(count(limit));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(total(16, largest.instances))
        .total_memories(total(2, largest.memories))
        .total_tables(total(4, largest.tables))
        .total_stacks(slots)
        // The call's own limiter refuses what is too much, and names the setting; the pool would
        // refuse to load the component.
        .max_core_instances_per_component(MOST_PARTS)
        .max_memories_per_component(MOST_PARTS)
        .max_tables_per_component(MOST_PARTS)
        .max_memories_per_module(MOST_PARTS)
        .max_tables_per_module(MOST_PARTS)
        .max_memory_size(usize::try_from(MEMORY_RESERVATION).unwrap_or(usize::MAX))
        .table_elements(20_000)
        .max_component_instance_size(1 << 20)
        .max_core_instance_size(1 << 20)
        // The low part of a call's memory is cleared in place, all of it, which costs less than
        // the page faults of giving it back; a small guest has no other part. Clearing only the
        // dirty pages, which `PAGEMAP_SCAN` finds, would be a little faster still, but it passes
        // over a page that is not present at that moment (swapped out, or being moved) and leaves
        // it to the next call as it is: another call's data is not worth the microseconds.
        .linear_memory_keep_resident(512 << 10)
        .pagemap_scan(Enabled::No)
        .table_keep_resident(64 << 10);
    InstanceAllocationStrategy::Pooling(pool)
}

/// What a compiled component depends on besides its own bytes.
pub(crate) fn compatibility_key(engine: &Engine) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Links every interface that a component may import. What it reaches through them is decided by
/// each call's world.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<CallState>, SandboxError> {
    fn link(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
        let mut linker = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        // Ours stand in front of the stock implementations.
        linker.allow_shadowing(true);
        crate::filesystem::add_to_linker(&mut linker)?;
        crate::sockets::add_to_linker(&mut linker)?;
        crate::http::add_to_linker(&mut linker)?;
        linker.allow_shadowing(false);
        crate::bindings::host::add_to_linker::<CallState, HasSelf<CallState>>(
            &mut linker,
            |state| state,
        )?;
        Ok(linker)
    }
    link(engine).map_err(SandboxError::Engine)
}
