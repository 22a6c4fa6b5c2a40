//! One call: a fresh store with its world, everything inside the deadline, and then nothing left.

use crate::{
    bindings::{Plugin as Exports, PluginPre},
    engine::FUEL_YIELD_INTERVAL,
    filesystem::{Mounts, Scratch},
    http::HttpSetup,
    limits::{CrossedTooMuch, met, size},
    state::{CallClock, CallState, TimeUp, WorldParts},
};
use belljar_capability::{Limit, Limits, World};
use belljar_types::{CallObserver, Denial, ToolError, ToolErrorKind};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap, component::ResourceTableError};

/// What a call is given.
pub(crate) struct CallSetup<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) world: &'a World,
    pub(crate) http: HttpSetup,
    pub(crate) plugin: Arc<str>,
    pub(crate) mounts: Arc<Mounts>,
    pub(crate) scratch: Option<Arc<Scratch>>,
    pub(crate) observer: CallObserver,
    pub(crate) checks_paths: bool,
}

/// What a call came to and what it used.
pub(crate) struct CallOutcome<T> {
    pub(crate) result: Result<T, ToolError>,
    pub(crate) fuel_used: u64,
    pub(crate) fuel_limit: u64,
    pub(crate) peak_memory: usize,
    pub(crate) instantiate: Duration,
    pub(crate) run: Duration,
    pub(crate) in_host: Duration,
    pub(crate) read: Vec<String>,
    pub(crate) written: Vec<String>,
    pub(crate) hosts: Vec<String>,
    pub(crate) denied: Vec<Denial>,
    pub(crate) log: String,
}

impl<T> CallOutcome<T> {
    /// Of a call that nobody came back from.
    pub(crate) fn lost(error: ToolError, limits: &Limits, run: Duration) -> Self {
        Self {
            result: Err(error),
            fuel_used: 0,
            fuel_limit: limits.fuel,
            peak_memory: 0,
            instantiate: Duration::ZERO,
            run,
            in_host: Duration::ZERO,
            read: Vec::new(),
            written: Vec::new(),
            hosts: Vec::new(),
            denied: Vec::new(),
            log: "[what it used and touched is not known]\n".to_owned(),
        }
    }
}

/// Makes a store, instantiates the plugin in it and lets `body` call it.
///
/// Runs on the thread that polls it, which therefore must be one that may block.
pub(crate) async fn run<T, F>(
    pre: &PluginPre<CallState>,
    setup: CallSetup<'_>,
    cancel: &CancellationToken,
    body: F,
) -> CallOutcome<T>
where
    F: AsyncFnOnce(&Exports, &mut Store<CallState>) -> wasmtime::Result<T>,
{
    let started = Instant::now();
    let CallSetup { limits, world, plugin, mounts, scratch, http, observer, checks_paths } = setup;
    let clock = CallClock::start(limits.deadline, cancel.clone());
    let state = CallState::new(WorldParts {
        world,
        plugin,
        mounts,
        scratch,
        http,
        limits,
        clock,
        observer,
        checks_paths,
    });
    let mut store = Store::new(pre.engine(), state);
    let mut instantiate = Duration::ZERO;

    let ended = {
        let store = &mut store;
        let instantiate = &mut instantiate;
        let guest = async move {
            store.limiter(|state| &mut state.limiter);
            store.call_hook(|mut context, hook| context.data_mut().clock.turn(hook));
            store.set_fuel(limits.fuel)?;
            store.fuel_async_yield_interval(Some(FUEL_YIELD_INTERVAL))?;
            store.set_hostcall_fuel(size(limits.crossing));
            store.set_max_component_handles(size(limits.open_files).saturating_mul(4));
            let exports = pre.instantiate_async(&mut *store).await?;
            *instantiate = started.elapsed();
            body(&exports, store).await
        };
        bounded(limits.deadline, cancel, guest).await
    };

    let run = started.elapsed().saturating_sub(instantiate);
    let fuel_used = limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
    let state = store.data_mut();
    let result = match ended {
        Ended::Returned(Ok(value)) => Ok(value),
        Ended::Returned(Err(error)) => {
            let used = Used { time: started.elapsed(), fuel: fuel_used };
            Err(classify(&error, state, limits, used))
        }
        Ended::Deadline => Err(deadline_error(limits, Some(started.elapsed()))),
        Ended::Canceled => Err(canceled_error()),
    };
    CallOutcome {
        result,
        fuel_used,
        fuel_limit: limits.fuel,
        peak_memory: state.limiter.peak,
        instantiate,
        run,
        in_host: state.clock.in_host,
        read: std::mem::take(&mut state.files.read).into_iter().collect(),
        written: std::mem::take(&mut state.files.written).into_iter().collect(),
        hosts: state.http.hosts(),
        denied: state.denials.list(),
        log: state.log_text(),
    }
}

enum Ended<T> {
    Returned(wasmtime::Result<T>),
    Deadline,
    Canceled,
}

async fn bounded<T>(
    deadline: Duration,
    cancel: &CancellationToken,
    guest: impl Future<Output = wasmtime::Result<T>>,
) -> Ended<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Ended::Canceled,
        timed = tokio::time::timeout(deadline, guest) => match timed {
            Ok(result) => Ended::Returned(result),
            Err(_) => Ended::Deadline,
        },
    }
}

/// `used` is not known of a call that did not come back.
pub(crate) fn deadline_error(limits: &Limits, used: Option<Duration>) -> ToolError {
    let used = used.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    met(ToolErrorKind::Deadline, limits, (Limit::Deadline, used), |met| {
        format!("it did not finish in time: {met}; ask for less at a time")
    })
}

fn canceled_error() -> ToolError {
    ToolError::new(
        ToolErrorKind::Canceled,
        "interrupted by the user while it ran; what it did until then stays done",
    )
}

/// What a call had used when it broke.
struct Used {
    time: Duration,
    fuel: u64,
}

/// Names the way in which a guest broke. Only the root cause is told: the chain above it names
/// functions and addresses that mean nothing to the model.
fn classify(error: &wasmtime::Error, state: &CallState, limits: &Limits, used: Used) -> ToolError {
    match error.downcast_ref::<TimeUp>() {
        Some(TimeUp::Deadline) => return deadline_error(limits, Some(used.time)),
        Some(TimeUp::Canceled) => return canceled_error(),
        None => {}
    }
    let trap = error.downcast_ref::<Trap>();
    if trap == Some(&Trap::OutOfFuel) {
        let fuel = (Limit::Fuel, Some(used.fuel));
        return met(ToolErrorKind::OutOfFuel, limits, fuel, |met| {
            format!("it computed for too long: {met} units of fuel; ask for less at a time")
        });
    }
    let root = error.root_cause().to_string();
    if let Some(what) = root.strip_prefix("resource limit exceeded: ") {
        let limit = match what {
            what if what.starts_with("memory") => Limit::Memories,
            what if what.starts_with("table") => Limit::Tables,
            _ => Limit::Instances,
        };
        let wanted = what.rsplit(' ').next().and_then(|number| number.parse().ok());
        return met(ToolErrorKind::MemoryLimit, limits, (limit, wanted), |met| {
            format!("it is made of more parts than a call may have ({limit}): {met}")
        });
    }
    if let Some(wanted) = state.limiter.refused {
        let memory = (Limit::Memory, Some(wanted as u64));
        return met(ToolErrorKind::MemoryLimit, limits, memory, |met| {
            format!("it wanted more memory than it may have: {met}; ask for less at a time")
        });
    }
    if let Some(CrossedTooMuch { crossed }) = error.downcast_ref() {
        let crossings = (Limit::Crossings, Some(*crossed));
        return met(ToolErrorKind::OutputLimit, limits, crossings, |met| {
            format!("it handed over too much in all: {met}; ask for less")
        });
    }
    if let Some(wanted) = root.strip_prefix("requested len ") {
        let wanted = wanted.split(' ').next().and_then(|number| number.parse().ok());
        return met(ToolErrorKind::OutputLimit, limits, (Limit::Random, wanted), |met| {
            format!("it wanted too many random bytes at a time: {met}")
        });
    }
    // The runtime's error for this has no public type.
    if root.contains("fuel allocated for hostcalls has been exhausted") {
        return met(ToolErrorKind::OutputLimit, limits, (Limit::Crossing, None), |met| {
            format!("it handed over too much at a time: {met}; ask for less")
        });
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return met(ToolErrorKind::MemoryLimit, limits, (Limit::OpenFiles, None), |met| {
            format!("it held too much open at a time: {met}; ask for less at a time")
        });
    }
    if error.downcast_ref::<PoolConcurrencyLimitError>().is_some() {
        return ToolError::new(
            ToolErrorKind::Unavailable,
            "too many calls run at this moment; try again",
        );
    }
    let what = match error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        Some(exit) => format!("it exited with status {} instead of answering", exit.0),
        None if trap == Some(&Trap::StackOverflow) => "it ran out of stack".to_owned(),
        None => format!("it crashed: {}", root.lines().next().unwrap_or_default()),
    };
    let stderr = state.stderr.lock();
    let tail = stderr.tail();
    let tail = tail.trim();
    let message = if tail.is_empty() { what } else { format!("{what}; its last words: {tail}") };
    ToolError::new(ToolErrorKind::Trap, message)
}
