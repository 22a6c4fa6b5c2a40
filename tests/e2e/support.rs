//! What the tests share: a person's machine in a temporary folder, and the binary on it.

use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};
use tempfile::TempDir;

/// A home of its own and a workspace; nothing of the real machine's settings is seen.
pub(crate) struct Machine {
    root: TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("workspace")).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// Writes a file into the workspace.
    pub(crate) fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        self.write_at(&format!("workspace/{relative}"), text);
    }

    pub(crate) fn write_at(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.workspace().join(relative)).unwrap()
    }

    /// The binary, in the workspace. The compiled plugins are shared by all tests: they are made
    /// once, and no test is about them.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_belljar"));
        command
            .args(arguments)
            .current_dir(self.workspace())
            .env_clear()
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_input<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &str,
    ) -> Ended {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // A program that does not want its input may have closed it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Ended::of(child.wait_with_output().unwrap())
    }

    pub(crate) fn spawn<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// Writes a script for the scripted model and names it as a model.
    pub(crate) fn script(&self, turns: &[Value]) -> String {
        let lines: Vec<String> = turns.iter().map(ToString::to_string).collect();
        self.write_at("script.jsonl", lines.join("\n"));
        format!("script/{}", self.path("script.jsonl").display())
    }

    /// The records of the only session.
    pub(crate) fn session(&self) -> Vec<Value> {
        let folder = self.path("state/belljar/sessions");
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension() == Some(OsStr::new("jsonl")))
            .collect();
        assert_eq!(files.len(), 1, "{files:?}");
        json_lines(&fs::read_to_string(files.remove(0)).unwrap())
    }
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            // A process that a signal ended has no code.
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The events of a `stream-json` run, checked for what holds for every run.
    pub(crate) fn events(&self) -> Vec<Value> {
        let events = json_lines(&self.stdout);
        for (seq, event) in events.iter().enumerate() {
            assert_eq!(event["seq"], json!(seq), "{event}");
            assert!(event["iteration"].is_u64(), "{event}");
        }
        let stops: Vec<_> = types(&events)
            .iter()
            .enumerate()
            .filter(|(_, kind)| **kind == "stop")
            .map(|(at, _)| at)
            .collect();
        assert_eq!(stops, [events.len() - 1], "one stop, last: {self:#?}");
        events
    }
}

pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

pub(crate) fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// A turn of the scripted model with one call.
pub(crate) fn calls(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": arguments}]})
}

pub(crate) fn says(text: &str) -> Value {
    json!({"text": text})
}

/// The repository that these tests belong to.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}
