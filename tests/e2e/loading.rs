//! Loading through the real binary: components that attack whoever compiles them, and a host that
//! goes on.

use crate::support::Machine;
use belljar_capability::Rules;
use belljar_sandbox::{
    CompileLimits, Compiler, CompilerChild, EngineSettings, LoadError, PluginFolder, Policy,
    Sandbox, SandboxConfig,
};
use belljar_test_guests::{HOSTILE, NOOP, Odd, made, odd};
use belljar_types::{Arguments, Content, PermissionMode, ToolCall, Toolbox};
use std::{fs::File, path::Path, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// The binary as the compiler of a sandbox.
fn child(limits: CompileLimits) -> Compiler {
    Compiler::Child(CompilerChild {
        program: env!("CARGO_BIN_EXE_belljar").into(),
        arguments: vec!["compile-component".into()],
        limits,
    })
}

fn config(machine: &Machine, compiler: Compiler) -> SandboxConfig {
    SandboxConfig {
        cache: Some(machine.path("cache")),
        folders: vec![PluginFolder { path: machine.path("plugins"), named: true }],
        compiler,
        ..SandboxConfig::new(Policy { mode: PermissionMode::Default, rules: Rules::default() })
    }
}

async fn noop(sandbox: &Sandbox) -> String {
    let call = ToolCall {
        id: "1".into(),
        tool: "noop__noop".into(),
        arguments: Arguments::Object(serde_json::Map::new()),
    };
    let prepared = sandbox.prepare(&call).unwrap();
    let report = prepared.run(None, Arc::new(|_| {}), CancellationToken::new()).await;
    match report.outcome.unwrap().content.as_slice() {
        [Content::Text { text }] => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn reasons(sandbox: &Sandbox) -> Vec<(String, String)> {
    let skipped = sandbox.skipped();
    let line = |skipped: &belljar_sandbox::Skipped| {
        let name = skipped.path.file_name().unwrap().to_string_lossy().into_owned();
        (name, skipped.reason.to_string())
    };
    skipped.iter().map(line).collect()
}

#[tokio::test]
async fn what_the_child_compiles_fits_this_engine_and_is_kept() {
    for pooling in [true, false] {
        let machine = Machine::new();
        machine.write_at("plugins/noop.wasm", NOOP.bytes);
        let engine = EngineSettings { pooling, ..EngineSettings::default() };
        let first = config(&machine, child(CompileLimits::default()));
        let sandbox = Sandbox::open(SandboxConfig { engine, ..first }).await.unwrap();
        assert_eq!(reasons(&sandbox), []);
        assert_eq!(noop(&sandbox).await, "ok");
        drop(sandbox);
        // A compiler that is not there cannot be asked: all comes from the cache.
        let missing = Compiler::Child(CompilerChild {
            program: machine.path("missing"),
            arguments: Vec::new(),
            limits: CompileLimits::default(),
        });
        let again = SandboxConfig { engine, ..config(&machine, missing) };
        let sandbox = Sandbox::open(again).await.unwrap();
        assert_eq!(noop(&sandbox).await, "ok");
    }
}

#[tokio::test]
async fn a_component_that_takes_too_long_to_compile_is_given_up() {
    let short = CompileLimits {
        time: Duration::from_secs(3),
        time_per_mib: Duration::ZERO,
        ..CompileLimits::default()
    };
    let machine = Machine::new();
    let bombs = [
        ("a.wasm", made::with_module(HOSTILE.bytes, &made::many_functions(300_000), 1)),
        ("b.wasm", made::with_module(NOOP.bytes, &made::huge_function(2_500_000), 1)),
        ("c.wasm", {
            let half = made::with_module(NOOP.bytes, &made::many_functions(200_000), 1);
            made::with_module(&half, &made::huge_function(1_000_000), 1)
        }),
    ];
    for (name, bytes) in &bombs {
        machine.write_at(&format!("plugins/{name}"), bytes);
    }
    let sandbox = Sandbox::open(config(&machine, child(short))).await.unwrap();
    let says = "takes more than the 3s that a component of its size may take to compile";
    let reasons = reasons(&sandbox);
    assert_eq!(reasons.len(), bombs.len(), "{reasons:?}");
    for (name, reason) in reasons {
        assert!(reason.contains(says), "{name}: {reason}");
    }
    // The host goes on.
    machine.write_at("plugins/noop.wasm", NOOP.bytes);
    let sandbox = Sandbox::open(config(&machine, child(CompileLimits::default()))).await.unwrap();
    assert_eq!(noop(&sandbox).await, "ok");
}

#[tokio::test]
async fn a_component_that_takes_too_much_memory_to_compile_is_given_up() {
    let machine = Machine::new();
    machine.write_at("plugins/noop.wasm", NOOP.bytes);
    for (memory, shown) in [(16 << 20, "16MiB"), (48 << 20, "48MiB"), (1 << 20, "1MiB")] {
        let tight = CompileLimits { memory, ..CompileLimits::default() };
        let tight = SandboxConfig { cache: None, ..config(&machine, child(tight)) };
        let sandbox = Sandbox::open(tight).await.unwrap();
        let [skipped] = sandbox.skipped().try_into().unwrap();
        assert!(matches!(*skipped.reason, LoadError::CompileMemory(_)), "{}", skipped.reason);
        let says = format!("takes more than {shown} of memory to compile");
        assert!(skipped.reason.to_string().starts_with(&says), "{}", skipped.reason);
    }
    let sandbox = Sandbox::open(config(&machine, child(CompileLimits::default()))).await.unwrap();
    assert_eq!(noop(&sandbox).await, "ok");
}

#[test]
fn every_compile_bomb_gets_its_line_and_the_others_are_offered() {
    let machine = Machine::new();
    let plugins = machine.path("plugins");
    machine.write_at("plugins/noop.wasm", NOOP.bytes);
    machine.write_at("plugins/nested.wasm", made::nested(2_000));
    machine.write_at("plugins/types.wasm", made::huge_type(60));
    machine.write_at("plugins/many.wasm", made::many_types(1_200_000));
    machine.write_at("plugins/function.wasm", {
        made::with_module(NOOP.bytes, &made::huge_function(6_000_000), 1)
    });
    machine.write_at("plugins/cut.wasm", &HOSTILE.bytes[..HOSTILE.bytes.len() - 100]);
    machine.write_at("plugins/version.wasm", {
        let mut bytes = NOOP.bytes.to_vec();
        bytes[4] = 0x7f;
        bytes
    });
    sparse(&plugins.join("large.wasm"), (128 << 20) + 1);
    sparse(&plugins.join("larger.wasm"), 10 << 40);
    let ended = machine.run(["tools", "--plugins", &plugins.display().to_string()]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains("noop__noop"), "{ended:?}");
    for (file, reason) in [
        ("nested.wasm", ""),
        ("types.wasm", "is not a valid component"),
        ("many.wasm", "is not a valid component"),
        ("function.wasm", "is not a valid component"),
        ("cut.wasm", "is not a valid component"),
        ("version.wasm", "is not a valid component"),
        ("large.wasm", "is 134217729 bytes long; a plugin has at most 134217728"),
        ("larger.wasm", "bytes long; a plugin has at most 134217728"),
    ] {
        let line = ended.stderr.lines().find(|line| line.contains(&format!("/{file}`")));
        let line = line.unwrap_or_else(|| panic!("no line for {file}: {ended:?}"));
        assert!(line.contains("no plugin: ") && line.contains(reason), "{line}");
    }
}

fn sparse(path: &Path, size: u64) {
    File::create(path).unwrap().set_len(size).unwrap();
}

#[test]
fn a_plugin_that_spins_when_it_is_asked_costs_its_time_once() {
    let machine = Machine::new();
    machine.write_at("plugins/spins.wasm", odd(Odd::ListSpins));
    let plugins = machine.path("plugins").display().to_string();
    let mut command = machine.command(["tools", "--plugins", &plugins]);
    command.env("XDG_CACHE_HOME", machine.path("own-cache"));
    let first = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(first.contains("could not be asked for its tools"), "{first}");
    assert!(!first.contains("found at an earlier start"), "{first}");
    let again = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(again.contains("found at an earlier start"), "{again}");
}

#[test]
fn the_compiler_is_for_the_program_itself() {
    let machine = Machine::new();
    for arguments in [&["compile-component"][..], &["compile-component", "x"]] {
        let ended = machine.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{ended:?}");
        assert!(ended.stderr.contains("for the program itself"), "{ended:?}");
    }
    // Of another build than the one that asks.
    let ended = machine.run(["compile-component", "0", "sync", "2147483648", "60"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (3, ""), "{ended:?}");
    assert!(ended.stderr.contains("another build"), "{ended:?}");
    assert!(!machine.run(["--help"]).stdout.contains("compile-component"));
}
