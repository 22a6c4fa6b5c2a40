//! Components, made at random and by changing real ones: each is taken or refused, and the host
//! goes on. What is taken is called.

use super::{Target, Verdict};
use arbitrary::{Arbitrary, Unstructured};
use belljar_capability::{Limits, Rules};
use belljar_sandbox::{EngineSettings, LoadError, PluginFolder, Policy, Sandbox, SandboxConfig};
use belljar_test_guests::{NOOP, Odd, odd};
use belljar_types::{Arguments, PermissionMode, ToolCall, Toolbox};
use fastrand::Rng;
use std::{fs, ops::Range, sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use wasm_mutate::WasmMutate;

pub(super) const TARGET: Target = Target { name: "loader", check, generate };

fn generate(rng: &mut Rng) -> Vec<u8> {
    // The larger of the two takes longer to compile.
    let bytes = if rng.u8(..4) == 0 { NOOP.bytes.to_vec() } else { odd(Odd::ALL[0]) };
    match rng.u8(..10) {
        0..=2 => random(rng),
        3..=7 => changed_within(rng, &bytes).unwrap_or(bytes),
        _ => damaged(rng, bytes),
    }
}

/// A valid component of no particular sense.
fn random(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.usize(1..4_096)];
    rng.fill(&mut bytes);
    let component = wasm_smith::Component::arbitrary(&mut Unstructured::new(&bytes));
    component.map(|component| component.to_bytes()).unwrap_or(bytes)
}

/// A real component in which one of the modules does something else.
fn changed_within(rng: &mut Rng, component: &[u8]) -> Option<Vec<u8>> {
    const MODULE: u8 = 1;
    let sections = sections(component);
    let modules: Vec<_> = sections.iter().filter(|section| section.id == MODULE).collect();
    let section = rng.choice(modules)?;
    let mut module = component[section.content.clone()].to_vec();
    for _ in 0..rng.usize(1..4) {
        let mut mutate = WasmMutate::default();
        mutate.seed(rng.u64(..)).fuel(300).preserve_semantics(rng.bool());
        // A change that cannot be made to this module leaves it as it is.
        let changed = mutate.run(&module).ok().and_then(|mut changes| changes.next()?.ok());
        module = changed.unwrap_or(module);
    }
    let mut whole = component[..section.whole.start].to_vec();
    whole.push(MODULE);
    leb128(module.len(), &mut whole);
    whole.extend_from_slice(&module);
    whole.extend_from_slice(&component[section.whole.end..]);
    Some(whole)
}

/// A real component with some bytes changed, sections left out, put twice or cut.
fn damaged(rng: &mut Rng, mut component: Vec<u8>) -> Vec<u8> {
    let sections = sections(&component);
    let section = rng.choice(sections).map_or(8..component.len(), |section| section.whole);
    match rng.u8(..5) {
        0 => drop(component.drain(section)),
        1 => component.extend_from_within(section),
        2 => component.truncate(rng.usize(section)),
        _ => {
            for _ in 0..rng.usize(1..8) {
                // Near the start of a section is what frames it.
                let end = section.end.min(section.start + 200);
                component[rng.usize(section.start..end)] = rng.u8(..);
            }
        }
    }
    component
}

/// A section of a component: all of it, and what is behind its kind and size.
struct Section {
    id: u8,
    whole: Range<usize>,
    content: Range<usize>,
}

fn sections(component: &[u8]) -> Vec<Section> {
    const HEADER: usize = 8;
    let mut sections = Vec::new();
    let mut at = HEADER;
    while let Some(&id) = component.get(at) {
        let (mut size, mut start) = (0, at + 1);
        for shift in (0..32).step_by(7) {
            let byte = component.get(start).copied().unwrap_or(0);
            size |= usize::from(byte & 0x7f) << shift;
            start += 1;
            if byte < 0x80 {
                break;
            }
        }
        let end = (start + size).min(component.len());
        sections.push(Section { id, whole: at..end, content: start.min(end)..end });
        at = end;
    }
    sections
}

fn leb128(mut number: usize, to: &mut Vec<u8>) {
    loop {
        let byte = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            return to.push(byte);
        }
        to.push(byte | 0x80);
    }
}

#[expect(clippy::expect_used, reason = "the sandbox starts, whatever is in the folder")]
fn check(component: &[u8]) -> Verdict {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let plugins = TempDir::new().expect("a temporary folder");
    fs::write(plugins.path().join("x.wasm"), component).expect("a file in it");
    runtime.block_on(async {
        let limits = Limits {
            deadline: Duration::from_millis(200),
            fuel: 1_000_000_000,
            ..Limits::default()
        };
        let policy = Policy { mode: PermissionMode::Bypass, rules: Rules::default() };
        let sandbox = Sandbox::open(SandboxConfig {
            folders: vec![PluginFolder { path: plugins.path().to_owned(), named: true }],
            limits,
            engine: EngineSettings { calls_in_flight: 4, ..EngineSettings::default() },
            ..SandboxConfig::new(policy)
        });
        let sandbox = sandbox.await.expect("the sandbox starts");
        let refused = sandbox.skipped().into_iter().next().map(|skipped| skipped.reason);
        if let Some(reason) = &refused {
            let text = chain(reason);
            assert!(!matches!(**reason, LoadError::CompilerDied(_)), "the compiler panics: {text}");
            assert!(!text.contains("bug in the host"), "the host panics: {text}");
        }
        let tools = sandbox.tools();
        assert!(refused.is_some() || !tools.is_empty(), "it is taken or refused");
        for tool in tools.iter() {
            let call = ToolCall {
                id: "1".into(),
                tool: tool.name.to_string(),
                arguments: Arguments::Object(Default::default()),
            };
            if let Ok(prepared) = sandbox.prepare(&call) {
                let run = prepared.run(None, Arc::new(|_| {}), CancellationToken::new());
                if let Err(error) = run.await.outcome {
                    let text = error.to_string();
                    assert!(!text.contains("bug in the host"), "the host panics: {text}");
                }
            }
        }
        if refused.is_none() { Verdict::Taken } else { Verdict::Refused }
    })
}

/// An error and its causes in one line.
fn chain(error: &LoadError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
