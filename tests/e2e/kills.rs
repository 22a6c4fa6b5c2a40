//! The program ended at each of its changes to a file, and at random moments: sessions, grants and
//! caches stay readable, and no grant is lost or wider.

use crate::{
    support::{Machine, calls, json_lines, says},
    trace::{self, End, Traced},
};
use belljar_test_guests::NOOP;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
};

const CONFIG: &str = "config/belljar/config.toml";

/// A command that changes what must outlive it.
struct Scenario {
    /// Makes what is there before.
    prepare: fn(&Machine),
    /// The command, on a machine that is prepared.
    command: fn(&Machine) -> Command,
    /// Holds what is there after an end at any point against what must be.
    check: fn(&Machine),
}

impl Scenario {
    fn run(&self, end: End) -> Traced {
        let machine = Machine::new();
        (self.prepare)(&machine);
        let traced = trace::run((self.command)(&machine), &machine.path(""), end);
        (self.check)(&machine);
        traced
    }

    /// Ends it at each change in turn, until it comes to its own end.
    fn end_at_every_change(&self, least: usize) {
        let whole = self.run(End::Never);
        assert_eq!(whole.code, Some(0), "{whole:?}");
        assert!(whole.changes.len() >= least, "{whole:?}");
        // Threads may take turns, so the number of changes may differ by a few.
        for number in 1.. {
            let traced = self.run(End::AtChange(number));
            if traced.code.is_some() {
                assert_eq!(traced.code, Some(0), "{traced:?}");
                break;
            }
            assert_eq!(traced.changes.len(), number);
        }
    }

    fn end_at_random_calls(&self, seed: u64, times: usize) {
        let whole = self.run(End::Never);
        assert_eq!(whole.code, Some(0), "{whole:?}");
        let mut random = Random(seed);
        for _ in 0..times {
            self.run(End::AtCall(1 + random.below(whole.calls)));
        }
    }
}

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % (limit as u64)).unwrap()
    }
}

fn before_grant() -> String {
    "# mine\n[plugins.other]\nnet = [\"https://a.example\"] # stays\n".to_owned()
}

fn after_grant() -> String {
    format!(
        "{}\n[plugins.noop]\ndigest = \"{}\"\nfiles.read = [\"data\"]\nlimits = {{ memory = \
         \"64MiB\" }}\n",
        before_grant(),
        NOOP.digest
    )
}

const GRANT: [&str; 6] = ["plugin", "grant", "noop", "read=data", "limits.memory=64MiB", "--yes"];

fn put_noop(machine: &Machine) {
    machine.write("data/a.txt", "a");
    machine.write_at("data/belljar/plugins/noop.wasm", NOOP.bytes);
}

fn config(machine: &Machine) -> String {
    fs::read_to_string(machine.path(CONFIG)).unwrap()
}

/// What a plugin was at the last yes is there whole or not at all.
fn check_looks(machine: &Machine) {
    for file in fs::read_dir(machine.path("state/belljar/looked-at")).into_iter().flatten() {
        let path = file.unwrap().path();
        if !path.file_name().unwrap().to_string_lossy().starts_with('.') {
            let look: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(look["digest"], NOOP.digest);
        }
    }
}

const GRANTING: Scenario = Scenario {
    prepare: |machine| {
        put_noop(machine);
        machine.write_at(CONFIG, before_grant());
    },
    command: |machine| machine.command(GRANT),
    check: |machine| {
        let text = config(machine);
        assert!(text == before_grant() || text == after_grant(), "{text}");
        check_looks(machine);
        // The next one is not held up by what the first one left.
        let again = machine.run(GRANT);
        assert_eq!(again.code, 0, "{again:?}");
        assert_eq!(config(machine), after_grant());
        let left: Vec<_> = fs::read_dir(machine.path("config/belljar"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".new"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
        let called = machine.run(["call", "noop__echo", r#"{"text": "here"}"#]);
        assert_eq!((called.code, called.stdout.as_str()), (0, "here\n"), "{called:?}");
    },
};

const REVOKE: [&str; 4] = ["plugin", "revoke", "noop", "read"];

const REVOKING: Scenario = Scenario {
    prepare: |machine| {
        put_noop(machine);
        machine.write_at(CONFIG, after_grant());
    },
    command: |machine| machine.command(REVOKE),
    check: |machine| {
        let revoked = after_grant().replace("files.read = [\"data\"]\n", "");
        let text = config(machine);
        assert!(text == after_grant() || text == revoked, "{text}");
        let again = machine.run(REVOKE);
        // Where it was taken back already, there is nothing to take back.
        assert_eq!(again.code, i32::from(text == revoked), "{again:?}");
        assert_eq!(config(machine), revoked);
    },
};

fn scripted(machine: &Machine) -> Vec<String> {
    let model = machine.script(&[
        calls("read_file", json!({"path": "a.txt"})),
        calls("write_file", json!({"path": "b.txt", "content": "new"})),
        says("done"),
    ]);
    ["run", "-m", &model, "--allow", "files/write_file", "-o", "json", "do it"]
        .map(str::to_owned)
        .to_vec()
}

const RUNNING: Scenario = Scenario {
    prepare: |machine| {
        machine.write("a.txt", "content");
        machine.write_at(CONFIG, after_grant());
    },
    command: |machine| machine.command(scripted(machine)),
    check: |machine| {
        assert_eq!(config(machine), after_grant());
        let folder = machine.path("state/belljar/sessions");
        let sessions: Vec<_> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(sessions.len() <= 1, "{sessions:?}");
        for path in &sessions {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            let id = path.file_stem().unwrap().to_str().unwrap();
            // All but the end of the last line is whole.
            let text = fs::read_to_string(path).unwrap();
            let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
            let records = json_lines(whole);
            for command in [["sessions", "show"], ["audit", "--json"]] {
                let shown = machine.run(command.into_iter().chain([id]));
                assert_eq!(shown.code, 0, "{shown:?}");
            }
            let listed = machine.run(["sessions", "list"]);
            assert!(listed.code == 0 && listed.stdout.contains(id), "{listed:?}");
            // What changed a file was recorded before it was done.
            if machine.workspace().join("b.txt").exists() {
                let started = records.iter().filter(|record| record["record"] == "call_started");
                assert_eq!(started.count(), 2, "{text}");
            }
        }
        let again = machine.run(scripted(machine));
        assert_eq!(again.code, 0, "{again:?}");
        assert_eq!(machine.read("b.txt"), "new");
    },
};

fn own_cache(mut command: Command, machine: &Machine) -> Command {
    command.env("XDG_CACHE_HOME", machine.path("cache"));
    command
}

/// A cache that holds the bundled plugins and no other, made once.
fn template() -> PathBuf {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kills-cache");
    let machine = Machine::new();
    let mut command = machine.command(["tools"]);
    assert!(command.env("XDG_CACHE_HOME", &kept).output().unwrap().status.success());
    kept.join("belljar/components")
}

const LOADING: Scenario = Scenario {
    prepare: |machine| {
        put_noop(machine);
        machine.write_at(CONFIG, after_grant());
        let cache = machine.path("cache/belljar/components");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).unwrap();
        for entry in fs::read_dir(template()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), cache.join(entry.file_name())).unwrap();
        }
    },
    command: |machine| {
        own_cache(machine.command(["call", "noop__echo", r#"{"text": "here"}"#]), machine)
    },
    check: |machine| {
        for _ in 0..2 {
            let call = machine.command(["call", "noop__echo", r#"{"text": "there"}"#]);
            let called = own_cache(call, machine).output().unwrap();
            let (out, err) = (&called.stdout, String::from_utf8_lossy(&called.stderr));
            assert_eq!((called.status.code(), out.as_slice()), (Some(0), &b"there\n"[..]), "{err}");
            assert!(!err.contains("note:"), "{err}");
        }
    },
};

#[test]
fn a_grant_is_made_or_not_wherever_the_program_ends() {
    GRANTING.end_at_every_change(6);
    GRANTING.end_at_random_calls(1, 50);
}

#[test]
fn a_grant_is_taken_back_or_not_wherever_the_program_ends() {
    REVOKING.end_at_every_change(3);
    REVOKING.end_at_random_calls(2, 50);
}

#[test]
fn a_session_is_readable_wherever_the_program_ends() {
    RUNNING.end_at_every_change(10);
    RUNNING.end_at_random_calls(3, 50);
}

#[test]
fn a_cache_is_readable_wherever_the_program_ends() {
    LOADING.end_at_every_change(4);
    LOADING.end_at_random_calls(4, 50);
}
