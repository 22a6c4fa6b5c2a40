//! Why a file does not become a plugin. Each text says what it is and what to do about it.

use crate::{bindings, plugin_file::COMPONENT_SIZE};
use belljar_capability::{Limit, ManifestError};
use belljar_types::ToolError;
use std::{io, time::Duration};

/// Tools of one plugin.
pub(crate) const TOOLS: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot be read")]
    Read(#[source] io::Error),
    #[error("is {size} bytes long; a plugin has at most {COMPONENT_SIZE}")]
    TooLarge { size: u64 },
    #[error("is empty")]
    Empty,
    #[error("is not WebAssembly: only components are plugins")]
    NotWebAssembly,
    #[error(
        "is a core WebAssembly module, not a component: build it for `wasm32-wasip2`, or wrap it \
         with `wasm-tools component new`"
    )]
    CoreModule,
    #[error("is WebAssembly text: turn it into a component with `wasm-tools parse`")]
    WebAssemblyText,
    #[error("is not a valid component: {0}")]
    Invalid(String),
    #[error(
        "takes more than the {} that a component of its size may take to compile: make it smaller, \
         or split it into several plugins",
        seconds(*.0)
    )]
    CompileTime(Duration),
    #[error(
        "takes more than {} of memory to compile: make its functions or its types smaller, or split \
         it into several plugins",
        Limit::Memory.show(*.0)
    )]
    CompileMemory(u64),
    #[error("breaks the compiler ({0}): build it with another version of its toolchain")]
    CompilerDied(String),
    #[error(
        "has larger memories or tables than any call gets here ({0}): build it with smaller ones"
    )]
    TooMuchForACall(String),
    #[error("cannot be compiled: the compiler does not start")]
    CompilerStart(#[source] io::Error),
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    #[error("has two manifests in its sections: keep one, with `belljar plugin pack --replace`")]
    TwoSections,
    #[error("has a manifest of its own and a file `{0}` beside it: remove one of them")]
    TwoManifests(String),
    #[error(
        "has no tools: it exports no `{}`; build it against the `plugin` world of `belljar:plugin`",
        bindings::INTERFACE
    )]
    NoTools,
    #[error(
        "speaks `belljar:plugin` {found}, and this host speaks {}: rebuild it against that version",
        bindings::INTERFACE_VERSION
    )]
    OtherVersion { found: String },
    #[error("does not fit this host: {0}")]
    Mismatch(String),
    #[error("could not be asked for its tools: {0}")]
    Describe(ToolError),
    #[error("offers no tool")]
    NoTool,
    #[error("offers {0} tools; a plugin has at most {TOOLS}")]
    TooManyTools(usize),
    #[error(
        "names a tool `{0}`: a name is a letter, then letters, digits or `_`, 64 characters at most"
    )]
    ToolName(String),
    #[error("names two tools `{0}`")]
    SameToolTwice(String),
    #[error("describes its tool `{tool}` badly: {reason}")]
    Tool { tool: String, reason: String },
    #[error("has the name of the bundled plugin `{0}`, which is reserved: rename the file")]
    Reserved(String),
    #[error("is shadowed by `{by}`, which has the same name: rename one of them")]
    Shadowed { by: String },
    #[error("would offer `{name}`, which reads like `{other}`: rename the file")]
    LookAlike { name: String, other: String },
    #[error("has changed since it was looked at: call it again to use it as it is now")]
    Changed,
    #[error("is still being written: it is taken when it has stopped changing")]
    StillChanging,
    /// What an earlier start found out about the same bytes.
    #[error("{0} (found at an earlier start; looked at again a day after that)")]
    Remembered(String),
    #[error("{0}")]
    NotAPluginFile(&'static str),
}

impl LoadError {
    /// Whether the same bytes would fail in the same way again, so that it is worth remembering.
    pub(crate) fn is_about_the_bytes(&self) -> bool {
        matches!(
            self,
            Self::Invalid(_)
                | Self::CompileTime(_)
                | Self::CompileMemory(_)
                | Self::CompilerDied(_)
                | Self::TooMuchForACall(_)
                | Self::NoTools
                | Self::OtherVersion { .. }
                | Self::Mismatch(_)
                | Self::Describe(_)
                | Self::NoTool
                | Self::TooManyTools(_)
                | Self::ToolName(_)
                | Self::SameToolTwice(_)
                | Self::Tool { .. }
        )
    }
}

fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs())
}
