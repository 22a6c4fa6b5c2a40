//! Loading: what is no plugin, what takes a name that is not its own, what the cache is trusted
//! with.

use crate::commands::selftest::{
    case::{Case, Outcome, next_call},
    stage::{self, Stage, call, words},
};
use anyhow::{bail, ensure};
use belljar_sandbox::{CompileLimits, Sandbox, SandboxConfig};
use belljar_test_guests::{HOSTILE, NOOP, Odd, made, odd};
use belljar_types::Toolbox as _;
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

pub(super) fn cases() -> Vec<Case> {
    let half = NOOP.bytes.len() / 2;
    vec![
        Case::scene(19, "a huge function", |stage| {
            Box::pin(bomb(stage, made::with_module(NOOP.bytes, &made::huge_function(2_500_000), 1)))
        }),
        Case::scene(19, "functions without number", |stage| {
            Box::pin(bomb(stage, made::with_module(NOOP.bytes, &made::many_functions(300_000), 1)))
        }),
        Case::file(19, "components without end", ("deep.wasm", made::nested(2_000)), ""),
        Case::file(19, "a type that doubles", ("type.wasm", made::huge_type(40)), ""),
        Case::scene(20, "flipped bytes in the cache", |stage| {
            Box::pin(forged(stage, |path| {
                let mut bytes = fs::read(path)?;
                let middle = bytes.len() / 2;
                if let Some(byte) = bytes.get_mut(middle) {
                    *byte ^= 1;
                }
                fs::write(path, bytes)
            }))
        }),
        Case::scene(20, "a cache that others may write", |stage| {
            Box::pin(forged(stage, |path| {
                fs::set_permissions(path, fs::Permissions::from_mode(0o666))
            }))
        }),
        Case::scene(20, "links in the cache", |stage| {
            Box::pin(forged(stage, |path| {
                let away = path.with_extension("away");
                fs::rename(path, &away)?;
                std::os::unix::fs::symlink(&away, path)
            }))
        }),
        Case::file(21, "a core module", ("module.wasm", *b"\0asm\x01\0\0\0"), "core WebAssembly"),
        Case::file(21, "text", ("text.wasm", *b"hello"), "is not WebAssembly"),
        Case::file(21, "an empty file", ("empty.wasm", *b""), "is empty"),
        Case::file(21, "half a component", ("half.wasm", &NOOP.bytes[..half]), "not a valid"),
        Case::file(
            21,
            "a component without tools",
            ("none.wasm", *b"\0asm\x0d\0\x01\0"),
            "no tools",
        ),
        Case::file(21, "a schema that is none", ("odd.wasm", odd(Odd::SchemaNotJson)), "not JSON"),
        Case::file(21, "tools without number", ("odd.wasm", odd(Odd::ManyTools)), "too much"),
        Case::file(23, "the name of a bundled plugin", ("files.wasm", NOOP.bytes), "reserved"),
        Case::file(23, "a look-alike of one", ("FILES.wasm", NOOP.bytes), ""),
        Case::file(23, "two tools of one name", ("odd.wasm", odd(Odd::NameTwice)), "two tools"),
        Case::file(23, "a name in another script", ("odd.wasm", odd(Odd::NameNotAscii)), "names"),
        Case::scene(23, "the name of a bundled tool", |stage| Box::pin(name_taken(stage))),
        Case::scene(24, "one byte changed after approval", |stage| Box::pin(changed(stage))),
        Case::scene(24, "swapped while it serves", |stage| Box::pin(swapped(stage))),
    ]
}

/// A component that takes too long to compile is given up, in a process of its own.
async fn bomb(stage: &Stage, bytes: Vec<u8>) -> Outcome {
    stage.add("bomb.wasm", &bytes)?;
    let limits = CompileLimits {
        time: Duration::from_secs(1),
        time_per_mib: Duration::ZERO,
        ..CompileLimits::default()
    };
    let config = SandboxConfig { compiler: stage::compiler(limits), ..stage.config() };
    let sandbox = stage.open_with(config).await?;
    let skipped = sandbox.skipped();
    let Some(skipped) = skipped.iter().find(|skipped| skipped.path.ends_with("bomb.wasm")) else {
        bail!("it was compiled")
    };
    let reason = crate::setup::error_chain(&*skipped.reason);
    ensure!(reason.contains("to compile"), "it {reason}");
    next_call(&sandbox).await?;
    Ok(format!("not taken: it {reason}"))
}

/// Touches everything in a cache, and expects that nothing of it is used.
async fn forged(stage: &Stage, touch: fn(&PathBuf) -> std::io::Result<()>) -> Outcome {
    let cache = stage.path("cache");
    let config = || SandboxConfig { cache: Some(cache.clone()), ..stage.config() };
    drop(stage.open_with(config()).await?);
    let entries: Vec<PathBuf> =
        fs::read_dir(&cache)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    ensure!(entries.len() > 1, "nothing was kept: {entries:?}");
    for path in &entries {
        touch(path)?;
    }
    let sandbox = Sandbox::open(config()).await?;
    next_call(&sandbox).await?;
    Ok(format!("{} entries were made anew", entries.len()))
}

/// A plugin with a tool `read_file` gets its own name before it.
async fn name_taken(stage: &Stage) -> Outcome {
    stage.add("odd.wasm", &odd(Odd::NameTaken))?;
    let config = SandboxConfig { bundled: stage::bundled(), ..stage.config() };
    let sandbox = stage.open_with(config).await?;
    let tools = sandbox.tools();
    let of = |name: &str| tools.iter().find(|tool| &*tool.name == name).map(|tool| &tool.source);
    let (bundled, other) = (of("read_file"), of("odd__read_file"));
    ensure!(bundled.is_some_and(|source| &*source.plugin == "files"), "`read_file`: {bundled:?}");
    ensure!(other.is_some_and(|source| &*source.plugin == "odd"), "`odd__read_file`: {other:?}");
    Ok("it is `odd__read_file` to the model".to_owned())
}

/// A grant is bound to a digest: with another one it holds no longer.
async fn changed(stage: &Stage) -> Outcome {
    let sandbox = stage.open().await?;
    let read = json!({"path": "note.txt"});
    let before = call(&sandbox, "hostile__read_path", read.clone()).await;
    ensure!(before.outcome.is_ok(), "the grant does not hold at all: {}", words(&before));
    drop(sandbox);
    let mut bytes = HOSTILE.bytes.to_vec();
    // An empty custom section at the end changes the file and nothing that it does.
    bytes.extend([0, 1, 0]);
    stage.add("hostile.wasm", &bytes)?;
    let sandbox = Sandbox::open(stage.config()).await?;
    let said = sandbox.notices().join("\n");
    ensure!(said.contains("has changed since it was allowed"), "nobody is told: {said:?}");
    let after = call(&sandbox, "hostile__read_path", read).await;
    ensure!(after.outcome.is_err(), "its grants hold still");
    next_call(&sandbox).await?;
    Ok(said)
}

/// Another file in the place of one that was looked at is never run in its name.
async fn swapped(stage: &Stage) -> Outcome {
    drop(stage.open().await?);
    let sandbox = stage.open().await?;
    stage.add("hostile.wasm", NOOP.bytes)?;
    let report = call(&sandbox, "hostile__count", json!({})).await;
    let text = words(&report);
    // It was taken before and serves still, or it is refused: never the other file's answer.
    ensure!(text == "1" || report.outcome.is_err(), "another file answered: {text}");
    next_call(&sandbox).await?;
    Ok(format!("the digest that was looked at answered: {text}"))
}
