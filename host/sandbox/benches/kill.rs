//! Ending guests that never end: how long after its deadline a call comes back.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod support;

use belljar_capability::Limits;
use belljar_sandbox::{Sandbox, SandboxConfig};
use belljar_types::ToolErrorKind;
use serde_json::{Value, json};
use std::{
    fs,
    time::{Duration, Instant},
};
use support::{Machine, Times, call, run, write_many_files};
use tokio::runtime::Builder;

const DEADLINE: Duration = Duration::from_millis(100);
const GOAL: Duration = Duration::from_millis(10);
const KILLS: usize = 100;

fn main() {
    let machine = Machine::with(&[belljar_test_guests::BENCH, belljar_test_guests::HOSTILE]);
    let folder = machine.workspace();
    write_many_files(&folder.join("many"));
    fs::write(folder.join("large"), vec![b'x'; 16 << 20]).unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let limits = Limits { deadline: DEADLINE, ..Limits::default() };
    let config = SandboxConfig { limits, ..machine.config() };
    let sandbox = runtime.block_on(Sandbox::open(config)).unwrap();

    let for_ever = |what: &str, path: &str| json!({"what": what, "path": path});
    let loops: [(&str, &str, Value); 7] = [
        ("computes", "bench__for_ever", for_ever("compute", "")),
        ("calls the host", "bench__for_ever", for_ever("host_calls", "")),
        ("opens a file", "bench__for_ever", for_ever("open_file", "/many/folder0/file0.txt")),
        ("reads 1 KiB", "bench__for_ever", for_ever("read_file", "/many/folder0/file0.txt")),
        ("reads 16 MiB", "bench__for_ever", for_ever("read_file", "/large")),
        ("lists a folder", "bench__for_ever", for_ever("list_folder", "/many/folder0")),
        ("sleeps", "hostile__sleep_for_ever", json!({})),
    ];
    println!("{KILLS} kills each at a deadline of {DEADLINE:?}, time past it:");
    for (name, tool, arguments) in loops {
        let call = call(tool, arguments);
        // The first call loads the plugin.
        let mut past = Vec::with_capacity(KILLS);
        for number in 0..=KILLS {
            let start = Instant::now();
            let report = runtime.block_on(run(&sandbox, &call));
            let taken = start.elapsed();
            let kind = report.outcome.as_ref().unwrap_err().kind;
            assert_eq!(kind, ToolErrorKind::Deadline, "{:?}", report.outcome);
            if number > 0 {
                past.push(taken.saturating_sub(DEADLINE));
            }
        }
        let past = Times::new(past);
        println!(
            "  {name:<16} median {:>8.1?}  p99 {:>8.1?}  worst {:>8.1?}  {} of {KILLS} within \
             {GOAL:?}",
            past.percentile(50),
            past.percentile(99),
            past.percentile(100),
            past.within(GOAL),
        );
    }
}
