//! What a call's store holds: one context for each capability, composed and nothing more.

use crate::{
    filesystem::{FilesContext, FilesSetup, Mounts, Scratch},
    host::HostContext,
    http::{HttpContext, HttpSetup},
    limits::{Crossings, MemoryLimiter, size},
    stdio::OutputSink,
};
use belljar_capability::{Limits, World};
use belljar_types::{CallObserver, Denial};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use wasmtime::{CallHook, component::ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// Distinct denials kept for a receipt; a guest that tries more is told the same, uncounted.
const DENIALS: usize = 100;

/// What the host refused during a call; clones share the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denials(Arc<Mutex<Vec<Denial>>>);

impl Denials {
    pub(crate) fn note(&self, operation: &str, target: &str, reason: &str) {
        self.note_with_grant(operation, target, reason, None);
    }

    /// The same where a grant would help: its text is what `--grant` takes.
    pub(crate) fn note_with_grant(
        &self,
        operation: &str,
        target: &str,
        reason: &str,
        grant: Option<String>,
    ) {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let denial = Denial {
            operation: operation.to_owned(),
            target: target.chars().take(400).collect(),
            reason: reason.to_owned(),
            grant,
        };
        if list.len() < DENIALS && !list.contains(&denial) {
            list.push(denial);
        }
    }

    pub(crate) fn list(&self) -> Vec<Denial> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// When a call must be over, and how much of it went by in the host.
///
/// It is looked at whenever the guest calls the host, and so is whether the call was cancelled: a
/// guest that does little but call the host burns next to no fuel, and most host functions never
/// give way to the deadline's timer.
#[derive(Clone, Debug)]
pub(crate) struct CallClock {
    deadline: Instant,
    cancel: CancellationToken,
    entered_host: Instant,
    pub(crate) in_host: Duration,
}

/// What ends a call on its way into the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TimeUp {
    #[error("the call's deadline has passed")]
    Deadline,
    #[error("the call was canceled")]
    Canceled,
}

impl CallClock {
    pub(crate) fn start(deadline: Duration, cancel: CancellationToken) -> Self {
        let now = Instant::now();
        Self { deadline: now + deadline, cancel, entered_host: now, in_host: Duration::ZERO }
    }

    /// For the store, which reports each way that a call goes between guest and host.
    pub(crate) fn turn(&mut self, hook: CallHook) -> wasmtime::Result<()> {
        match hook {
            CallHook::CallingHost => {
                self.entered_host = Instant::now();
                if self.entered_host >= self.deadline {
                    return Err(TimeUp::Deadline.into());
                }
                if self.cancel.is_cancelled() {
                    return Err(TimeUp::Canceled.into());
                }
            }
            CallHook::ReturningFromHost => self.in_host += self.entered_host.elapsed(),
            CallHook::CallingWasm | CallHook::ReturningFromWasm => {}
        }
        Ok(())
    }

    pub(crate) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

pub(crate) struct CallState {
    pub(crate) clock: CallClock,
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
    pub(crate) files: FilesContext,
    pub(crate) http: HttpContext,
    pub(crate) host: HostContext,
    pub(crate) limiter: MemoryLimiter,
    pub(crate) crossings: Crossings,
    pub(crate) denials: Denials,
    pub(crate) stdout: OutputSink,
    pub(crate) stderr: OutputSink,
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Everything that a call's world is made of.
pub(crate) struct WorldParts<'a> {
    pub(crate) world: &'a World,
    pub(crate) plugin: Arc<str>,
    /// The folders that its plugin is granted, open.
    pub(crate) mounts: Arc<Mounts>,
    /// Where it gets a temporary folder, if it gets one.
    pub(crate) scratch: Option<Arc<Scratch>>,
    pub(crate) http: HttpSetup,
    pub(crate) limits: &'a Limits,
    pub(crate) clock: CallClock,
    pub(crate) observer: CallObserver,
    /// The plugin looks at the paths in its arguments itself and refuses those that leave.
    pub(crate) checks_paths: bool,
}

impl CallState {
    /// Builds a world: empty, then exactly what is granted.
    pub(crate) fn new(parts: WorldParts<'_>) -> Self {
        let WorldParts {
            world,
            plugin,
            mounts,
            scratch,
            http,
            limits,
            clock,
            observer,
            checks_paths,
        } = parts;
        let denials = Denials::default();
        let (stdout, stderr) =
            (OutputSink::new(size(limits.log)), OutputSink::new(size(limits.log)));

        let mut table = ResourceTable::new();
        // The runtime traps at this cap; the guard's own, which guests can handle, lies below.
        table.set_max_capacity(size(limits.open_files).saturating_add(64));

        let mut wasi = WasiCtx::builder();
        wasi.stdout(stdout.clone()).stderr(stderr.clone()).max_random_size(limits.random);
        for (name, value) in &world.granted.env {
            wasi.env(name, value);
        }

        let files = FilesContext::new(FilesSetup {
            mounts,
            world,
            scratch,
            limits,
            plugin,
            denials: denials.clone(),
            checks_paths,
        });
        Self {
            clock,
            table,
            wasi: wasi.build(),
            files,
            http: HttpContext::new(world.clone(), http, denials.clone()),
            host: HostContext::new(limits, observer),
            limiter: MemoryLimiter::new(limits),
            crossings: Crossings::new(limits),
            denials,
            stdout,
            stderr,
        }
    }

    /// What the guest wrote to its log, standard output and standard error.
    pub(crate) fn log_text(&self) -> String {
        let (stdout, stderr) = (self.stdout.lock(), self.stderr.lock());
        let log = self.host.log();
        let mut text: String = [("log", log), ("stdout", &*stdout), ("stderr", &*stderr)]
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| format!("[{name}]\n{}\n", text.text().trim_end()))
            .collect();
        if self.files.left_out > 0 {
            let names = self.files.left_out;
            text.push_str(&format!(
                "[files]\n{names} names that a deny glob closes were left out of listings\n"
            ));
        }
        text
    }
}
