//! What the tests share: a sandbox over guests in a folder, and calls through the toolbox.

use belljar_capability::{Binding, FolderGrant, Limits, PluginGrant, Rules};
use belljar_sandbox::{
    BundledPlugin, CompileObserver, Compiler, EngineSettings, Outside, PluginFolder, Policy,
    Sandbox, SandboxConfig, Watching,
};
use belljar_types::{
    Arguments, CallObserver, CallReport, CallUpdate, PermissionMode, ToolCall, ToolError,
    ToolErrorKind, ToolOutput, Toolbox,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A workspace, a folder of plugins and a cache, gone when dropped.
pub(crate) struct Bench {
    pub(crate) root: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        for folder in ["workspace", "plugins"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        self.root.path().join("workspace")
    }

    pub(crate) fn plugins(&self) -> std::path::PathBuf {
        self.root.path().join("plugins")
    }

    /// A cache of its own, for tests that are about it.
    pub(crate) fn cache(&self) -> std::path::PathBuf {
        self.root.path().join("cache")
    }

    pub(crate) fn add(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.plugins().join(name), bytes).unwrap();
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        fs::read_to_string(self.workspace().join(path)).unwrap()
    }

    /// No bundled plugins, everything allowed, nothing granted, and one cache for all tests, so
    /// that each guest is compiled once.
    pub(crate) fn config(&self) -> SandboxConfig {
        SandboxConfig {
            workspace: Some(self.workspace()),
            cache: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")),
            bundled: Vec::new(),
            folders: vec![PluginFolder { path: self.plugins(), named: true }],
            grants: BTreeMap::new(),
            home: None,
            policy: Policy { mode: PermissionMode::Bypass, rules: Rules::default() },
            limits: Limits::default(),
            engine: EngineSettings::default(),
            outside: Outside::default(),
            watch: Watching::No,
            compiler: Compiler::InProcess,
            observer: CompileObserver::default(),
        }
    }

    /// The hostile guest, with the workspace granted for writing.
    pub(crate) async fn hostile(&self, limits: Limits) -> Sandbox {
        self.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
        let grants = BTreeMap::from([("hostile".to_owned(), writing())]);
        Sandbox::open(SandboxConfig { limits, grants, ..self.config() }).await.unwrap()
    }
}

/// The workspace granted to the hostile guest for reading.
pub(crate) fn reading() -> PluginGrant {
    let workspace = FolderGrant { host: ".".to_owned(), guest: None };
    PluginGrant {
        binding: Some(Binding::Digest(belljar_test_guests::HOSTILE.digest.to_owned())),
        read: vec![workspace],
        ..PluginGrant::default()
    }
}

/// The workspace granted to the hostile guest for writing.
pub(crate) fn writing() -> PluginGrant {
    let PluginGrant { binding, read, .. } = reading();
    PluginGrant { binding, write: read, ..PluginGrant::default() }
}

pub(crate) fn bundled() -> Vec<BundledPlugin> {
    belljar_plugins::bundled()
        .iter()
        .map(|plugin| BundledPlugin {
            name: plugin.name,
            digest: plugin.digest,
            bytes: plugin.bytes,
        })
        .collect()
}

pub(crate) fn call(tool: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolCall { id: "1".into(), tool: tool.into(), arguments: Arguments::Object(arguments) }
}

pub(crate) fn ignore() -> CallObserver {
    Arc::new(|_| {})
}

/// Runs a call that nobody is asked about.
pub(crate) async fn run(sandbox: &Sandbox, tool: &str, arguments: Value) -> CallReport {
    run_with(sandbox, tool, arguments, ignore(), CancellationToken::new()).await
}

pub(crate) async fn run_with(
    sandbox: &Sandbox,
    tool: &str,
    arguments: Value,
    observer: CallObserver,
    cancel: CancellationToken,
) -> CallReport {
    let prepared = sandbox.prepare(&call(tool, arguments)).unwrap();
    prepared.run(None, observer, cancel).await
}

pub(crate) fn text(report: &CallReport) -> &str {
    match &report.outcome {
        Ok(ToolOutput { content, .. }) => match content.as_slice() {
            [belljar_types::Content::Text { text }] => text,
            other => panic!("not one text: {other:?}"),
        },
        Err(error) => panic!("failed: {error}"),
    }
}

pub(crate) fn error(report: &CallReport) -> &ToolError {
    report.outcome.as_ref().unwrap_err()
}

pub(crate) fn kind(report: &CallReport) -> ToolErrorKind {
    error(report).kind
}

/// An observer that keeps what it is told.
pub(crate) fn recorder() -> (CallObserver, Arc<Mutex<Vec<CallUpdate>>>) {
    let updates = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&updates);
    (Arc::new(move |update| kept.lock().unwrap().push(update)), updates)
}
