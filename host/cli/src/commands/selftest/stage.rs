//! Where one case plays: a workspace, a folder beside it that nobody may see, a folder of plugins
//! and a sandbox over them. Everything is in a temporary folder.

use crate::arguments::COMPILE;
use anyhow::Context as _;
use belljar_capability::{Binding, FolderGrant, Limits, PluginGrant, Rules};
use belljar_sandbox::{
    BundledPlugin, CompileLimits, Compiler, CompilerChild, EngineSettings, PluginFolder, Policy,
    Sandbox, SandboxConfig,
};
use belljar_test_guests::{HOSTILE, NOOP};
use belljar_types::{
    Arguments, CallObserver, CallReport, Content, Origin, PermissionMode, ToolCall, Toolbox as _,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Stands in files that no guest may read; found in an answer, it has come out.
pub(super) const CANARY: &str = "canary-7b1e0c";

/// The limits of what never ends by itself: soon met, and far above what an honest call needs.
pub(super) fn limits() -> Limits {
    Limits {
        deadline: Duration::from_millis(100),
        fuel: 50_000_000_000,
        memory: 64 << 20,
        ..Limits::default()
    }
}

/// For cases that are about something else than time.
pub(super) fn patient() -> Limits {
    Limits { deadline: Duration::from_secs(20), ..limits() }
}

/// The folders of one case.
#[derive(Debug)]
pub(super) struct Stage {
    root: TempDir,
    /// Of all cases.
    cache: PathBuf,
    pub(super) limits: Limits,
}

impl Stage {
    pub(super) fn new(cache: &Path, limits: Limits) -> anyhow::Result<Self> {
        let root = tempfile::tempdir().context("no temporary folder can be made")?;
        let stage = Self { root, cache: cache.join("components"), limits };
        for folder in ["workspace", "outside", "plugins"] {
            fs::create_dir(stage.path(folder))?;
        }
        fs::write(stage.path("outside/canary.txt"), CANARY)?;
        fs::write(stage.path("workspace/note.txt"), "an ordinary file\n")?;
        stage.add("noop.wasm", NOOP.bytes)?;
        Ok(stage)
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// Puts a file into the folder of plugins.
    pub(super) fn add(&self, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(fs::write(self.path("plugins").join(name), bytes)?)
    }

    /// Everything is allowed, and nothing is granted but the workspace to the hostile guest.
    pub(super) fn config(&self) -> SandboxConfig {
        let workspace = FolderGrant { host: ".".to_owned(), guest: None };
        let grant = PluginGrant {
            binding: Some(Binding::Digest(HOSTILE.digest.to_owned())),
            write: vec![workspace],
            ..PluginGrant::default()
        };
        let policy = Policy { mode: PermissionMode::Bypass, rules: Rules::default() };
        SandboxConfig {
            workspace: Some(self.workspace()),
            cache: Some(self.cache.clone()),
            scratch: Some(self.path("scratch")),
            folders: vec![PluginFolder { path: self.path("plugins"), named: true }],
            grants: BTreeMap::from([("hostile".to_owned(), grant)]),
            limits: self.limits,
            engine: EngineSettings { calls_in_flight: 32, ..EngineSettings::default() },
            compiler: compiler(CompileLimits::default()),
            ..SandboxConfig::new(policy)
        }
    }

    /// A sandbox with the hostile guest.
    pub(super) async fn open(&self) -> anyhow::Result<Sandbox> {
        self.add("hostile.wasm", HOSTILE.bytes)?;
        self.open_with(self.config()).await
    }

    pub(super) async fn open_with(&self, config: SandboxConfig) -> anyhow::Result<Sandbox> {
        let sandbox = Sandbox::open(config).await?;
        let notices = sandbox.notices();
        anyhow::ensure!(notices.is_empty(), "the sandbox says: {}", notices.join("; "));
        Ok(sandbox)
    }
}

/// This very program, as it compiles for everybody. Under `cargo test` the program is the tests,
/// which compile nothing when they are started.
pub(super) fn compiler(limits: CompileLimits) -> Compiler {
    if cfg!(test) {
        return Compiler::InProcess;
    }
    match Compiler::this_program(&[COMPILE]) {
        Compiler::Child(child) => Compiler::Child(CompilerChild { limits, ..child }),
        other => other,
    }
}

/// The bundled plugins.
pub(super) fn bundled() -> Vec<BundledPlugin> {
    let plugins = belljar_plugins::bundled().iter();
    let plugins = plugins.map(|plugin| BundledPlugin {
        name: plugin.name,
        digest: plugin.digest,
        bytes: plugin.bytes,
    });
    plugins.collect()
}

pub(super) fn tool_call(tool: &str, arguments: &Value) -> ToolCall {
    let arguments = Arguments::parse(&arguments.to_string());
    ToolCall { id: "selftest".to_owned(), tool: tool.to_owned(), arguments }
}

/// One call that nobody is asked about.
pub(super) async fn call(sandbox: &Sandbox, tool: &str, arguments: Value) -> CallReport {
    call_with(sandbox, tool, arguments, Arc::new(|_| {}), CancellationToken::new()).await
}

pub(super) async fn call_with(
    sandbox: &Sandbox,
    tool: &str,
    arguments: Value,
    observer: CallObserver,
    cancel: CancellationToken,
) -> CallReport {
    match sandbox.prepare(&tool_call(tool, &arguments)) {
        Ok(prepared) => prepared.run(None, observer, cancel).await,
        Err(error) => CallReport { outcome: Err(error), origin: Origin::Host, receipt: None },
    }
}

/// Everything that the model reads of a call.
pub(super) fn words(report: &CallReport) -> String {
    match &report.outcome {
        Ok(output) => {
            let texts = output.content.iter().map(|content| match content {
                Content::Text { text } => text.clone(),
                other => format!("{other:?}"),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Err(error) => error.to_string(),
    }
}
