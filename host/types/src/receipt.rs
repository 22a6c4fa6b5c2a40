//! The receipt that every call leaves.

use crate::{Decision, ToolErrorKind, ToolSource};
use serde::{Deserialize, Serialize};

/// Something that a call tried and the host refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// What was tried, in the guest's own terms: `read`, `write`, `connect` …
    pub operation: String,
    /// On what: a guest path, a host name.
    pub target: String,
    /// Why it was refused.
    pub reason: String,
    /// What would grant exactly this, in the form that `--grant` takes; absent where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

/// Where the wall time of a call went, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimes {
    /// For a free place to run in.
    pub waiting_us: u64,
    pub instantiate_us: u64,
    /// In the guest and in the host functions that it called.
    pub run_us: u64,
    /// Of that, in host functions.
    #[serde(default)]
    pub host_us: u64,
}

/// What one call was, used, touched and was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    #[serde(flatten)]
    pub source: ToolSource,
    /// The tool's own name inside its plugin.
    pub tool: String,
    pub decision: Decision,
    /// Whether the world was read-only.
    pub read_only: bool,
    pub fuel_used: u64,
    pub fuel_limit: u64,
    pub peak_memory_bytes: u64,
    pub times: CallTimes,
    /// Arguments in, in bytes of JSON.
    pub bytes_in: u64,
    /// Content out, in bytes.
    pub bytes_out: u64,
    /// Guest paths of files that were opened for reading.
    pub files_read: Vec<String>,
    /// Guest paths of what was created, written, moved or deleted.
    pub files_written: Vec<String>,
    /// Hosts contacted.
    pub hosts: Vec<String>,
    pub denied: Vec<Denial>,
    /// How it ended: nothing for a success, else the kind of the failure.
    pub error: Option<ToolErrorKind>,
    /// What the guest wrote to its log, standard output and standard error, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}
