//! What the benches share: a sandbox over the tests' guests, its calls, and files to read.

#![expect(dead_code, reason = "each bench uses a part of this")]

pub(crate) mod bare;

use belljar_capability::{Binding, FolderGrant, PluginGrant, Rules};
use belljar_sandbox::{PluginFolder, Policy, Sandbox, SandboxConfig};
use belljar_test_guests::Embedded;
use belljar_types::{
    Arguments, CallReport, Content, PermissionMode, ToolCall, ToolOutput, Toolbox,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A workspace, a folder of plugins and a cache, gone when dropped.
pub(crate) struct Machine {
    root: TempDir,
    grants: BTreeMap<String, PluginGrant>,
}

impl Machine {
    /// With these guests in the plugins folder, each with the workspace granted.
    pub(crate) fn with(guests: &[Embedded]) -> Self {
        let mut machine = Self { root: TempDir::new().unwrap(), grants: BTreeMap::new() };
        fs::create_dir(machine.workspace()).unwrap();
        fs::create_dir(machine.plugins()).unwrap();
        for guest in guests {
            machine.add(guest.name, guest.digest, guest.bytes);
        }
        machine
    }

    pub(crate) fn add(&mut self, name: &str, digest: &str, bytes: &[u8]) {
        fs::write(self.plugins().join(name).with_extension("wasm"), bytes).unwrap();
        let grant = PluginGrant {
            binding: Some(Binding::Digest(digest.to_owned())),
            write: vec![FolderGrant { host: ".".to_owned(), guest: None }],
            ..PluginGrant::default()
        };
        self.grants.insert(name.to_owned(), grant);
    }

    /// Closes names in the folders of one plugin.
    pub(crate) fn deny(&mut self, plugin: &str, globs: &[&str]) {
        let grant = self.grants.get_mut(plugin).unwrap();
        grant.deny = globs.iter().map(|glob| (*glob).to_owned()).collect();
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("workspace")
    }

    pub(crate) fn plugins(&self) -> PathBuf {
        self.root.path().join("plugins")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    pub(crate) fn config(&self) -> SandboxConfig {
        let policy = Policy { mode: PermissionMode::Default, rules: Rules::default() };
        SandboxConfig {
            workspace: Some(self.workspace()),
            cache: Some(self.cache()),
            scratch: Some(self.root.path().join("scratch")),
            folders: vec![PluginFolder { path: self.plugins(), named: true }],
            grants: self.grants.clone(),
            ..SandboxConfig::new(policy)
        }
    }

    pub(crate) async fn sandbox(&self) -> Sandbox {
        Sandbox::open(self.config()).await.unwrap()
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolCall { id: "1".into(), tool: tool.into(), arguments: Arguments::Object(arguments) }
}

/// A whole call through the toolbox, from the decision to the receipt.
pub(crate) async fn run(sandbox: &Sandbox, call: &ToolCall) -> CallReport {
    let prepared = sandbox.prepare(call).unwrap();
    prepared.run(None, Arc::new(|_| {}), CancellationToken::new()).await
}

/// What the call answered.
pub(crate) fn text(report: &CallReport) -> &str {
    match &report.outcome {
        Ok(ToolOutput { content, .. }) => match content.as_slice() {
            [Content::Text { text }] => text,
            other => panic!("not one text: {other:?}"),
        },
        Err(error) => panic!("failed: {error}"),
    }
}

/// A tree of 2 000 files of 1 KiB in 20 folders. One line in each holds the word `needle`.
pub(crate) fn write_many_files(folder: &Path) {
    for number in 0..2_000 {
        let folder = folder.join(format!("folder{}", number / 100));
        fs::create_dir_all(&folder).unwrap();
        let line = "a line of ordinary text that says nothing at all\n";
        let mut text = line.repeat(10) + "here is the needle\n" + &line.repeat(20);
        text.truncate(1 << 10);
        assert_eq!(text.len(), 1 << 10);
        fs::write(folder.join(format!("file{number}.txt")), text).unwrap();
    }
}

/// The measured times, sorted.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The smallest time that so many of a hundred do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// How many do not exceed a time.
    pub(crate) fn within(&self, time: Duration) -> usize {
        self.0.partition_point(|measured| *measured <= time)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// `count` times of each of several things, in turn, so that what disturbs the machine meanwhile
/// disturbs them alike.
pub(crate) fn in_turn(count: usize, things: &mut [&mut dyn FnMut()]) -> Vec<Times> {
    let mut times = vec![Vec::with_capacity(count); things.len()];
    for _ in 0..count {
        for (thing, times) in things.iter_mut().zip(&mut times) {
            let start = Instant::now();
            thing();
            times.push(start.elapsed());
        }
    }
    times.into_iter().map(Times::new).collect()
}
