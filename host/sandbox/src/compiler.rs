//! Compiling: a component's bytes to code for this machine, by an engine's settings.
//!
//! Components are hostile, and a compiler is large: small inputs can cost it minutes and gigabytes.
//! So a program compiles in a child that limits itself before it reads the component, and that is
//! killed when its time is over; a library that trusts its components may compile in its own
//! process. Never runs what it compiled.

mod child;

pub use child::{CompilerChild, compile_in_child};

use crate::load_error::LoadError;
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};
use wasmtime::Engine;

/// What one compilation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Wall time, whatever the component's size.
    pub time: Duration,
    /// And more of it for each MiB of the component.
    pub time_per_mib: Duration,
    /// Bytes of address space.
    pub memory: u64,
    pub threads: u32,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(20),
            time_per_mib: Duration::from_secs(2),
            memory: 2 << 30,
            threads: 4,
        }
    }
}

impl CompileLimits {
    /// How long a component of this size may take.
    fn time_for(&self, bytes: usize) -> Duration {
        let size = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        self.time.saturating_add(self.time_per_mib.saturating_mul(size))
    }
}

/// Told, in words for people, when compiling takes longer than a moment. By default nobody is.
#[derive(Clone)]
pub struct CompileObserver(Arc<dyn Fn(&str) + Send + Sync>);

impl CompileObserver {
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(crate) fn tell(&self, text: &str) {
        (self.0)(text);
    }
}

impl Default for CompileObserver {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for CompileObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompileObserver")
    }
}

/// Who compiles.
#[derive(Clone, Debug, Default)]
pub enum Compiler {
    /// This process, without limits on time and memory: for components that are trusted.
    #[default]
    InProcess,
    /// A child process with limits, which can be killed.
    Child(CompilerChild),
}

impl Compiler {
    /// A child of this very program, which must hand what follows `arguments` on its command line
    /// to [`compile_in_child`].
    pub fn this_program(arguments: &[&str]) -> Self {
        let program = if cfg!(target_os = "linux") {
            // The program itself, also where its file was replaced since it started.
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        Self::Child(CompilerChild {
            program,
            arguments: arguments.iter().map(|argument| (*argument).into()).collect(),
            limits: CompileLimits::default(),
        })
    }

    /// The compiled component, serialized. Blocks.
    pub(crate) fn compile(
        &self,
        engine: &Engine,
        key: &str,
        concurrency: bool,
        component: &[u8],
    ) -> Result<Vec<u8>, LoadError> {
        match self {
            Self::InProcess => engine
                .precompile_component(component)
                .map_err(|error| LoadError::Invalid(crate::plugin::one_line(&error))),
            Self::Child(child) => child.compile(key, concurrency, component),
        }
    }
}
