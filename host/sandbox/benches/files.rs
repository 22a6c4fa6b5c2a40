//! Reading files: a guest in the sandbox, the same guest on plain wasmtime-wasi with operations in
//! place, and the same code natively, in turn within the same run.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod support;

use belljar_test_guests::{BENCH, work};
use serde_json::{Value, json};
use std::{fs, path::Path};
use support::{Machine, bare::Bare, call, in_turn, run, text, write_many_files};
use tokio::runtime::Runtime;

const WAYS: [&str; 4] = ["sandbox", "sandbox, deny globs", "plain wasmtime-wasi", "native"];

/// Work on the workspace: the tool, its arguments, the same natively.
struct Work<'a> {
    name: &'a str,
    rounds: usize,
    tool: &'a str,
    arguments: Value,
    natively: &'a dyn Fn(&Path) -> usize,
}

fn main() {
    let mut machine = Machine::with(&[BENCH]);
    let folder = machine.workspace();
    write_many_files(&folder.join("many"));
    fs::write(folder.join("large.txt"), "x".repeat(64 << 10)).unwrap();
    let runtime = Runtime::new().unwrap();
    let sandbox = runtime.block_on(machine.sandbox());
    machine.deny(BENCH.name, &[".env", "keys/**"]);
    let denying = runtime.block_on(machine.sandbox());
    let bare = Bare::prepare(BENCH.bytes, false);

    let many = || json!({"path": "/many"});
    let works = [
        Work {
            name: "read one file of 64 KiB",
            rounds: 2_000,
            tool: "read_file",
            arguments: json!({"path": "/large.txt"}),
            natively: &|folder| work::read_file(&folder.join("large.txt")).unwrap(),
        },
        Work {
            name: "read 2 000 files of 1 KiB",
            rounds: 60,
            tool: "read_all",
            arguments: many(),
            natively: &|folder| work::read_all(&folder.join("many")).unwrap(),
        },
        Work {
            name: "grep 2 000 files of 1 KiB",
            rounds: 60,
            tool: "grep",
            arguments: json!({"path": "/many", "text": "needle"}),
            natively: &|folder| work::grep(&folder.join("many"), "needle").unwrap(),
        },
    ];
    for Work { name, rounds, tool, arguments, natively } in works {
        let expected = natively(&folder).to_string();
        let in_sandbox = call(&format!("bench__{tool}"), arguments.clone());
        let on_bare = arguments.to_string();
        let times = in_turn(
            rounds,
            &mut [
                &mut || {
                    let report = runtime.block_on(run(&sandbox, &in_sandbox));
                    assert_eq!(text(&report), expected);
                },
                &mut || {
                    let report = runtime.block_on(run(&denying, &in_sandbox));
                    assert_eq!(text(&report), expected);
                },
                &mut || {
                    let answer = runtime.block_on(bare.call_with_hop(&folder, tool, &on_bare));
                    assert_eq!(answer, expected);
                },
                &mut || assert_eq!(natively(&folder).to_string(), expected),
            ],
        );
        let medians: Vec<_> = times.iter().map(|times| times.percentile(50)).collect();
        println!("{name}, {rounds} rounds in turn:");
        for (what, times) in WAYS.iter().zip(&times) {
            println!(
                "  {what:<20} median {:>9.1?}  p99 {:>9.1?}",
                times.percentile(50),
                times.percentile(99),
            );
        }
        let ratio = |of: usize| medians[0].as_secs_f64() / medians[of].as_secs_f64();
        println!(
            "  the sandbox: {:.2} of plain wasmtime-wasi, {:.2} of native",
            ratio(2),
            ratio(3)
        );
    }
}
