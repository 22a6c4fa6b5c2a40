//! Ways that need no other process.

use super::{Pace, Peer, locked};
use crate::bare::Bare;
use anyhow::{anyhow, bail};
use belljar_capability::{Binding, PluginGrant, Rules};
use belljar_sandbox::{PluginFolder, Policy, Sandbox, SandboxConfig};
use belljar_test_guests::{BENCH, work};
use belljar_types::{Arguments, CallReport, Content, PermissionMode, ToolCall, Toolbox};
use rquickjs::{Context, Function};
use serde_json::Value;
use std::{collections::BTreeMap, fs, sync::Arc};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// A whole call through the toolbox: arguments parsed, decided, a fresh world, the result and the
/// receipt.
pub(super) fn belljar(runtime: &Runtime) -> anyhow::Result<Peer<'_>> {
    let root = TempDir::new()?;
    let plugins = root.path().join("plugins");
    let workspace = root.path().join("workspace");
    fs::create_dir(&plugins)?;
    fs::create_dir(&workspace)?;
    fs::write(plugins.join("bench.wasm"), BENCH.bytes)?;
    let binding = Some(Binding::Digest(BENCH.digest.to_owned()));
    let grant = PluginGrant { binding, ..PluginGrant::default() };
    let policy = Policy { mode: PermissionMode::Default, rules: Rules::default() };
    let sandbox = runtime.block_on(Sandbox::open(SandboxConfig {
        workspace: Some(workspace),
        scratch: Some(root.path().join("scratch")),
        folders: vec![PluginFolder { path: plugins, named: true }],
        grants: BTreeMap::from([("bench".to_owned(), grant)]),
        ..SandboxConfig::new(policy)
    }))?;
    let call = move |input: &str| -> anyhow::Result<CallReport> {
        let call = ToolCall {
            id: "1".into(),
            tool: "bench__count_words".into(),
            arguments: Arguments::parse(input),
        };
        let prepared = sandbox.prepare(&call).map_err(|error| anyhow!("{error}"))?;
        let run = prepared.run(None, Arc::new(|_| {}), CancellationToken::new());
        // As long as the sandbox, so is its folder of plugins.
        let _ = &root;
        Ok(runtime.block_on(run))
    };
    let call = Arc::new(call);
    let again = Arc::clone(&call);
    Ok(Peer {
        name: "Belljar tool call",
        version: format!("belljar {}", env!("CARGO_PKG_VERSION")),
        pace: Pace::Fast,
        run: Box::new(move |input| match call(input)?.outcome {
            Ok(output) => match output.content.into_iter().next() {
                Some(Content::Text { text }) => Ok(text),
                other => bail!("not a text: {other:?}"),
            },
            Err(error) => bail!("{error}"),
        }),
        memory: Box::new(move |input| {
            Ok(again(input)?.receipt.map(|receipt| receipt.peak_memory_bytes))
        }),
    })
}

/// The same component with nothing of Belljar's around it, with the same change of threads.
pub(super) fn bare_wasmtime(runtime: &Runtime) -> anyhow::Result<Peer<'_>> {
    let bare = Bare::prepare(BENCH.bytes, false);
    let folder = TempDir::new()?;
    let run = move |input: &str| {
        Ok(runtime.block_on(bare.call_with_hop(folder.path(), "count_words", input)))
    };
    Ok(Peer {
        name: "the same component on bare wasmtime",
        version: format!("wasmtime {}", locked("wasmtime")),
        pace: Pace::Fast,
        run: Box::new(run),
        memory: Box::new(|_| Ok(None)),
    })
}

/// A fresh interpreter for each call.
pub(super) fn quickjs() -> Peer<'static> {
    fn run(input: &str) -> anyhow::Result<String> {
        let runtime = rquickjs::Runtime::new()?;
        let context = Context::full(&runtime)?;
        context.with(|context| {
            let count: Function<'_> = context.eval(include_str!("../scripts/quickjs.js"))?;
            Ok(count.call((input,))?)
        })
    }
    Peer {
        name: "fresh QuickJS in-process",
        version: format!("rquickjs {}", locked("rquickjs")),
        pace: Pace::Fast,
        run: Box::new(run),
        memory: Box::new(|_| Ok(None)),
    }
}

/// No sandbox at all: what the work itself takes.
pub(super) fn native() -> Peer<'static> {
    fn run(input: &str) -> anyhow::Result<String> {
        let input: Value = serde_json::from_str(input)?;
        let text = input["text"].as_str().ok_or_else(|| anyhow!("no text"))?;
        Ok(work::words_as_json(text))
    }
    Peer {
        name: "native code in-process, no sandbox",
        version: format!("rust {}", env!("CARGO_PKG_RUST_VERSION")),
        pace: Pace::Fast,
        run: Box::new(run),
        memory: Box::new(|_| Ok(None)),
    }
}
