//! The operations, and what holds the handles that they name.

use crate::words;
use belljar_sdk::serde_json::{Value, json};
use serde::Deserialize;
use std::collections::BTreeMap;
use wasip2::{
    filesystem::{
        preopens,
        types::{self, Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags},
    },
    io::streams::StreamError,
};

/// One operation. A handle is named by what opened it; granted folders by their paths.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// The paths of the granted folders.
    Preopens,
    Open {
        #[serde(default = "root")]
        at: String,
        path: String,
        /// The name by which later operations know the handle.
        #[serde(default, rename = "as")]
        name: Option<String>,
        #[serde(default)]
        follow: bool,
        /// Any of `create`, `exclusive`, `truncate`, `directory`, `read`, `write`, `mutate`,
        /// `sync`, by blanks.
        #[serde(default)]
        with: String,
    },
    Close {
        handle: String,
    },
    Read {
        handle: String,
        #[serde(default)]
        offset: u64,
        #[serde(default = "much")]
        length: u64,
    },
    Write {
        handle: String,
        text: String,
        #[serde(default)]
        offset: u64,
    },
    /// Through a stream.
    StreamRead {
        handle: String,
        #[serde(default)]
        offset: u64,
    },
    StreamWrite {
        handle: String,
        text: String,
        #[serde(default)]
        offset: u64,
    },
    StreamAppend {
        handle: String,
        text: String,
    },
    /// Zeros, through a stream, in pieces of 4 KiB.
    StreamZeros {
        handle: String,
        bytes: u64,
    },
    SetSize {
        handle: String,
        size: u64,
    },
    Stat {
        #[serde(default = "root")]
        handle: String,
    },
    StatAt {
        #[serde(default = "root")]
        at: String,
        path: String,
        #[serde(default)]
        follow: bool,
    },
    SetTimes {
        #[serde(default = "root")]
        handle: String,
        accessed: Option<u64>,
        modified: Option<u64>,
    },
    SetTimesAt {
        #[serde(default = "root")]
        at: String,
        path: String,
        #[serde(default)]
        follow: bool,
        accessed: Option<u64>,
        modified: Option<u64>,
    },
    List {
        #[serde(default = "root")]
        handle: String,
    },
    Mkdir {
        #[serde(default = "root")]
        at: String,
        path: String,
    },
    Rmdir {
        #[serde(default = "root")]
        at: String,
        path: String,
    },
    Unlink {
        #[serde(default = "root")]
        at: String,
        path: String,
    },
    Rename {
        #[serde(default = "root")]
        at: String,
        path: String,
        #[serde(default = "root")]
        to_at: String,
        to: String,
    },
    Link {
        #[serde(default = "root")]
        at: String,
        path: String,
        #[serde(default)]
        follow: bool,
        #[serde(default = "root")]
        to_at: String,
        to: String,
    },
    Symlink {
        #[serde(default = "root")]
        at: String,
        target: String,
        path: String,
    },
    Readlink {
        #[serde(default = "root")]
        at: String,
        path: String,
    },
    Sync {
        handle: String,
    },
    SyncData {
        handle: String,
    },
    Advise {
        handle: String,
    },
    Flags {
        #[serde(default = "root")]
        handle: String,
    },
    Type {
        #[serde(default = "root")]
        handle: String,
    },
    Same {
        a: String,
        b: String,
    },
    /// Whether two things have the same hash of what they are.
    SameHash {
        handle: String,
        #[serde(default = "root")]
        at: String,
        path: String,
        #[serde(default)]
        follow: bool,
    },
    /// Opens, reads all through a handle, and closes.
    Cat {
        #[serde(default = "root")]
        at: String,
        path: String,
        #[serde(default = "yes")]
        follow: bool,
    },
    /// Does steps again and again, and answers how often each answer came.
    Repeat {
        times: u64,
        steps: Vec<Step>,
    },
    /// The same in folders that are nested in each other: makes one, opens it, and goes on there.
    Nest {
        #[serde(default = "root")]
        at: String,
        name: String,
        depth: u64,
    },
}

fn root() -> String {
    "/".to_owned()
}

fn much() -> u64 {
    1 << 16
}

fn yes() -> bool {
    true
}

/// What the guest holds open.
pub(crate) struct Guest {
    handles: BTreeMap<String, Descriptor>,
    preopens: Vec<String>,
}

type Answer = Result<Value, Value>;

impl Guest {
    pub(crate) fn new() -> Self {
        let preopens = preopens::get_directories();
        let names = preopens.iter().map(|(_, path)| path.clone()).collect();
        let handles = preopens.into_iter().map(|(handle, path)| (path, handle)).collect();
        Self { handles, preopens: names }
    }

    /// Works in a folder below the root as if it were the root.
    pub(crate) fn enter(&mut self, path: String) -> Result<(), Value> {
        let folder = self.handle("/")?;
        let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
        let folder = told(folder.open_at(PathFlags::empty(), &path, OpenFlags::DIRECTORY, flags))?;
        self.handles.insert(root(), folder);
        Ok(())
    }

    pub(crate) fn run(&mut self, step: &Step) -> Value {
        match self.answer(step) {
            Ok(value) => json!({ "ok": value }),
            Err(error) => json!({ "error": error }),
        }
    }

    fn handle(&self, name: &str) -> Result<&Descriptor, Value> {
        self.handles.get(name).ok_or_else(|| json!("no such handle"))
    }

    fn answer(&mut self, step: &Step) -> Answer {
        match step {
            Step::Preopens => Ok(json!(self.preopens)),
            Step::Open { at, path, name, follow, with } => {
                let (open, flags) = opening(with)?;
                let opened = told(self.handle(at)?.open_at(paths(*follow), path, open, flags))?;
                let kind = told(opened.get_type()).map(words::kind)?;
                if let Some(name) = name {
                    self.handles.insert(name.clone(), opened);
                }
                Ok(json!(kind))
            }
            Step::Close { handle } => Ok(json!(self.handles.remove(handle).is_some())),
            Step::Read { handle, offset, length } => {
                let (bytes, end) = told(self.handle(handle)?.read(*length, *offset))?;
                Ok(json!([String::from_utf8_lossy(&bytes), end]))
            }
            Step::Write { handle, text, offset } => {
                Ok(json!(told(self.handle(handle)?.write(text.as_bytes(), *offset))?))
            }
            Step::StreamRead { handle, offset } => {
                let stream = told(self.handle(handle)?.read_via_stream(*offset))?;
                let mut bytes = Vec::new();
                loop {
                    match stream.blocking_read(1 << 16) {
                        Ok(more) => bytes.extend(more),
                        Err(StreamError::Closed) => break,
                        Err(error) => return Err(failed(error)),
                    }
                }
                Ok(json!(String::from_utf8_lossy(&bytes)))
            }
            Step::StreamWrite { handle, text, offset } => {
                let stream = told(self.handle(handle)?.write_via_stream(*offset))?;
                stream.blocking_write_and_flush(text.as_bytes()).map_err(failed)?;
                Ok(Value::Null)
            }
            Step::StreamAppend { handle, text } => {
                let stream = told(self.handle(handle)?.append_via_stream())?;
                stream.blocking_write_and_flush(text.as_bytes()).map_err(failed)?;
                Ok(Value::Null)
            }
            Step::StreamZeros { handle, bytes } => {
                let stream = told(self.handle(handle)?.append_via_stream())?;
                let mut written = 0;
                while written < *bytes {
                    let piece = (*bytes - written).min(4_096);
                    if let Err(error) = stream.blocking_write_zeroes_and_flush(piece) {
                        return Err(json!([written, failed(error)]));
                    }
                    written += piece;
                }
                Ok(json!(written))
            }
            Step::SetSize { handle, size } => done(self.handle(handle)?.set_size(*size)),
            Step::Stat { handle } => Ok(words::stat(&told(self.handle(handle)?.stat())?)),
            Step::StatAt { at, path, follow } => {
                Ok(words::stat(&told(self.handle(at)?.stat_at(paths(*follow), path))?))
            }
            Step::SetTimes { handle, accessed, modified } => {
                done(self.handle(handle)?.set_times(time(*accessed), time(*modified)))
            }
            Step::SetTimesAt { at, path, follow, accessed, modified } => {
                done(self.handle(at)?.set_times_at(
                    paths(*follow),
                    path,
                    time(*accessed),
                    time(*modified),
                ))
            }
            Step::List { handle } => {
                let stream = told(self.handle(handle)?.read_directory())?;
                let mut entries = Vec::new();
                while let Some(entry) = told(stream.read_directory_entry())? {
                    entries.push(format!("{} {}", words::kind(entry.type_), entry.name));
                }
                entries.sort();
                Ok(json!(entries))
            }
            Step::Mkdir { at, path } => done(self.handle(at)?.create_directory_at(path)),
            Step::Rmdir { at, path } => done(self.handle(at)?.remove_directory_at(path)),
            Step::Unlink { at, path } => done(self.handle(at)?.unlink_file_at(path)),
            Step::Rename { at, path, to_at, to } => {
                done(self.handle(at)?.rename_at(path, self.handle(to_at)?, to))
            }
            Step::Link { at, path, follow, to_at, to } => {
                done(self.handle(at)?.link_at(paths(*follow), path, self.handle(to_at)?, to))
            }
            Step::Symlink { at, target, path } => done(self.handle(at)?.symlink_at(target, path)),
            Step::Readlink { at, path } => Ok(json!(told(self.handle(at)?.readlink_at(path))?)),
            Step::Sync { handle } => done(self.handle(handle)?.sync()),
            Step::SyncData { handle } => done(self.handle(handle)?.sync_data()),
            Step::Advise { handle } => {
                done(self.handle(handle)?.advise(0, 0, types::Advice::Sequential))
            }
            Step::Flags { handle } => {
                Ok(json!(format!("{:?}", told(self.handle(handle)?.get_flags())?)))
            }
            Step::Type { handle } => Ok(json!(words::kind(told(self.handle(handle)?.get_type())?))),
            Step::Same { a, b } => Ok(json!(self.handle(a)?.is_same_object(self.handle(b)?))),
            Step::SameHash { handle, at, path, follow } => {
                let one = told(self.handle(handle)?.metadata_hash())?;
                let other = told(self.handle(at)?.metadata_hash_at(paths(*follow), path))?;
                Ok(json!(one.lower == other.lower && one.upper == other.upper))
            }
            Step::Cat { at, path, follow } => {
                let flags = DescriptorFlags::READ;
                let at = self.handle(at)?;
                let file = told(at.open_at(paths(*follow), path, OpenFlags::empty(), flags))?;
                let (bytes, _) = told(file.read(1 << 16, 0))?;
                Ok(json!(String::from_utf8_lossy(&bytes)))
            }
            Step::Repeat { times, steps } => {
                let mut answers = BTreeMap::<String, u64>::new();
                for _ in 0..*times {
                    for (number, step) in steps.iter().enumerate() {
                        let answer = format!("{number}: {}", self.run(step));
                        *answers.entry(answer).or_default() += 1;
                    }
                }
                Ok(json!(answers))
            }
            Step::Nest { at, name, depth } => {
                let mut inner: Option<Descriptor> = None;
                for deep in 0..*depth {
                    let here = match &inner {
                        Some(inner) => inner,
                        None => self.handle(at)?,
                    };
                    let step = here.create_directory_at(name).and_then(|()| {
                        let flags = DescriptorFlags::READ;
                        here.open_at(PathFlags::empty(), name, OpenFlags::DIRECTORY, flags)
                    });
                    match step {
                        Ok(opened) => inner = Some(opened),
                        Err(code) => return Err(json!([deep, words::code(code)])),
                    }
                }
                Ok(json!(depth))
            }
        }
    }
}

fn paths(follow: bool) -> PathFlags {
    if follow { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() }
}

fn time(seconds: Option<u64>) -> NewTimestamp {
    match seconds {
        None => NewTimestamp::NoChange,
        Some(seconds) => NewTimestamp::Timestamp(wasip2::clocks::wall_clock::Datetime {
            seconds,
            nanoseconds: 0,
        }),
    }
}

fn opening(with: &str) -> Result<(OpenFlags, DescriptorFlags), Value> {
    let (mut open, mut flags) = (OpenFlags::empty(), DescriptorFlags::empty());
    for word in with.split_whitespace() {
        match word {
            "create" => open = open | OpenFlags::CREATE,
            "exclusive" => open = open | OpenFlags::EXCLUSIVE,
            "truncate" => open = open | OpenFlags::TRUNCATE,
            "directory" => open = open | OpenFlags::DIRECTORY,
            "read" => flags = flags | DescriptorFlags::READ,
            "write" => flags = flags | DescriptorFlags::WRITE,
            "mutate" => flags = flags | DescriptorFlags::MUTATE_DIRECTORY,
            "sync" => flags = flags | DescriptorFlags::FILE_INTEGRITY_SYNC,
            other => return Err(json!(format!("no such flag: {other}"))),
        }
    }
    Ok((open, flags))
}

fn told<T>(result: Result<T, ErrorCode>) -> Result<T, Value> {
    result.map_err(|code| json!(words::code(code)))
}

fn done(result: Result<(), ErrorCode>) -> Answer {
    told(result)?;
    Ok(Value::Null)
}

fn failed(error: StreamError) -> Value {
    match error {
        StreamError::Closed => json!("closed"),
        StreamError::LastOperationFailed(error) => match types::filesystem_error_code(&error) {
            Some(code) => json!(words::code(code)),
            None => json!("failed"),
        },
    }
}
