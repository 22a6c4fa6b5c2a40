//! What the tests share: a sandbox over guests in a folder, and calls through the toolbox.

use belljar_capability::{Binding, FolderGrant, Limits, PluginGrant, Rules};
use belljar_sandbox::{BundledPlugin, PluginFolder, Policy, Sandbox, SandboxConfig};
use belljar_types::{
    Arguments, CallObserver, CallReport, CallUpdate, PermissionMode, ToolCall, ToolError,
    ToolErrorKind, ToolOutput, Toolbox,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
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

    /// Where calls get their temporary folders.
    pub(crate) fn scratch(&self) -> std::path::PathBuf {
        self.root.path().join("scratch")
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
            scratch: Some(self.scratch()),
            folders: vec![PluginFolder { path: self.plugins(), named: true }],
            ..SandboxConfig::new(Policy { mode: PermissionMode::Bypass, rules: Rules::default() })
        }
    }

    /// The hostile guest, with the workspace granted for writing.
    pub(crate) async fn hostile(&self, limits: Limits) -> Sandbox {
        self.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
        let grants = BTreeMap::from([("hostile".to_owned(), writing())]);
        Sandbox::open(SandboxConfig { limits, grants, ..self.config() }).await.unwrap()
    }

    /// The guest that does what it is told, with the workspace granted for writing.
    pub(crate) async fn raw(&self) -> Sandbox {
        self.raw_with(raw_grant(&[], &["."])).await
    }

    /// The same with another grant.
    pub(crate) async fn raw_with(&self, grant: PluginGrant) -> Sandbox {
        Sandbox::open(self.raw_config(grant)).await.unwrap()
    }

    pub(crate) fn raw_config(&self, grant: PluginGrant) -> SandboxConfig {
        self.add("raw.wasm", belljar_test_guests::RAW.bytes);
        SandboxConfig { grants: BTreeMap::from([("raw".to_owned(), grant)]), ..self.config() }
    }
}

/// Folders of the workspace granted to the guest that does what it is told.
pub(crate) fn raw_grant(read: &[&str], write: &[&str]) -> PluginGrant {
    let folders = |hosts: &[&str]| {
        hosts.iter().map(|host| FolderGrant { host: (*host).to_owned(), guest: None }).collect()
    };
    PluginGrant {
        binding: Some(Binding::Digest(belljar_test_guests::RAW.digest.to_owned())),
        read: folders(read),
        write: folders(write),
        ..PluginGrant::default()
    }
}

/// Runs operations in one call, and gives back what came of each, and the call's report.
pub(crate) async fn steps(sandbox: &Sandbox, steps: Value) -> (Vec<Value>, CallReport) {
    told(run(sandbox, "raw__script", script(&steps, None)).await)
}

/// The same in a world for reading.
pub(crate) async fn steps_read_only(sandbox: &Sandbox, steps: Value) -> (Vec<Value>, CallReport) {
    told(run(sandbox, "raw__script_read_only", script(&steps, None)).await)
}

/// Arguments of the guest that does what it is told. What a call is asked for by its arguments is
/// decided before it runs; so the paths in these do not show.
pub(crate) fn script(steps: &Value, base: Option<&str>) -> Value {
    let hidden: String = steps.to_string().chars().flat_map(|character| [character, '%']).collect();
    serde_json::json!({ "steps": hidden, "base": base })
}

fn told(report: CallReport) -> (Vec<Value>, CallReport) {
    let answers = serde_json::from_str(text(&report)).unwrap();
    (answers, report)
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

/// Mode, size, time of change in seconds and nanoseconds, links, content.
pub(crate) type Facts = (u32, u64, i64, i64, u64, Vec<u8>);

/// Everything about a tree that a call could change.
pub(crate) fn snapshot(root: &Path) -> BTreeMap<String, Facts> {
    fn walk(path: &Path, into: &mut BTreeMap<String, Facts>) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let facts = (
                metadata.mode(),
                metadata.size(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.nlink(),
                content,
            );
            into.insert(path.display().to_string(), facts);
            if metadata.is_dir() {
                walk(&path, into);
            }
        }
    }
    let mut facts = BTreeMap::new();
    walk(root, &mut facts);
    facts
}
