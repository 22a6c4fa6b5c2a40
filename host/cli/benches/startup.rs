//! From the start of the program to the first result of a tool, with plugins in the compile cache.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

use criterion::{Criterion, criterion_group, criterion_main};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// The program with a home of its own, whose plugins folder has so many plugins.
fn machine(plugins: u8) -> TempDir {
    let root = TempDir::new().unwrap();
    fs::create_dir(root.path().join("workspace")).unwrap();
    fs::create_dir(root.path().join("plugins")).unwrap();
    fs::write(root.path().join("workspace/README.md"), "read me\n").unwrap();
    for number in 0..plugins {
        let mut bytes = belljar_test_guests::NOOP.bytes.to_vec();
        // A custom section with a number: another digest, the same plugin.
        bytes.extend([0, 3, 1, b'n', number]);
        fs::write(root.path().join(format!("plugins/noop{number}.wasm")), bytes).unwrap();
    }
    root
}

fn run(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
    command
        .args(arguments)
        .current_dir(root.join("workspace"))
        .env_clear()
        .env("HOME", root)
        .env("XDG_CACHE_HOME", root.join("cache"))
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn startup(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("start-up");
    group.sample_size(50);
    let empty = machine(0);
    group.bench_function("exec alone (`--version`)", |bencher| {
        bencher.iter(|| run(empty.path(), &["--version"]));
    });
    for plugins in [0, 10, 100] {
        let machine = machine(plugins);
        let folder = machine.path().join("plugins");
        let folder = folder.to_str().unwrap();
        let read = ["call", "--plugins", folder, "read_file", r#"{"path": "README.md"}"#];
        let call = ["call", "--plugins", folder, "noop0__noop"];
        let first = if plugins == 0 { &read[..] } else { &call[..] };
        // Compiles everything.
        run(machine.path(), first);
        group.bench_function(format!("first result with {plugins} cached plugins"), |bencher| {
            bencher.iter(|| run(machine.path(), first));
        });
    }
    group.finish();
}

criterion_group!(benches, startup);
criterion_main!(benches);
