//! What is wrong with a configuration, and where. Never repeats a value that may be a secret.

use crate::owner::Fault;
use std::{fmt, io, path::PathBuf};

/// Where a setting was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file and a line in it, from 1.
    File { path: PathBuf, line: usize },
    /// An environment variable.
    Environment(&'static str),
    /// An option of the command line.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment(name) | Self::Flag(name) => write!(f, "`{name}`"),
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration `{}` cannot be read: {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    #[error("the configuration `{}` is longer than 1 MiB: name a smaller one with `--config`", file.display())]
    TooLong { file: PathBuf },
    #[error(
        "the configuration `{}` {fault}, so it is not read: make it yours alone to write \
         (`chmod go-w`), or name it with `--config`", file.display()
    )]
    Refused { file: PathBuf, fault: Fault },
    #[error("{at}: not valid TOML: {message}")]
    Syntax { at: Source, message: String },
    #[error("{at}: unknown key `{key}`: {hint}")]
    UnknownKey { at: Source, key: String, hint: String },
    #[error("{at}: `{key}` must be {expected}, and is {found}")]
    WrongType { at: Source, key: String, expected: &'static str, found: &'static str },
    #[error("{at}: {problem}")]
    Value { at: Source, problem: String },
    #[error("{at}: `{key}` is not a workspace's to set: {why}")]
    NotTheWorkspaces { at: Source, key: String, why: &'static str },
}
