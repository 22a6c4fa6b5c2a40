//! What one call may use.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

/// The limits of one call. Every one can be set for each plugin, by its [`Limit`]'s name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time for instantiating, running, every wait in the host and dropping.
    pub deadline: Duration,
    /// Units of computing; one is about one WebAssembly instruction.
    pub fuel: u64,
    /// Bytes over all memories and tables of all instances in the call.
    pub memory: u64,
    /// Core instances, memories and tables in the call.
    pub instances: u64,
    pub memories: u64,
    pub tables: u64,
    /// Bytes that one crossing from the guest to the host may copy.
    pub crossing: u64,
    /// Bytes that all crossings of the call may copy.
    pub crossings: u64,
    /// Bytes of text in a result; the rest is cut, and said.
    pub result: u64,
    /// Bytes of all other content in a result.
    pub result_data: u64,
    /// Bytes of each of log, emitted text, standard output and standard error.
    pub log: u64,
    /// Files, folders and listings that the guest holds open at a time.
    pub open_files: u64,
    /// Bytes written to files; a file made longer counts as written.
    pub written_bytes: u64,
    /// Files, folders and links created.
    pub created_files: u64,
    /// Random bytes in one request.
    pub random: u64,
    /// HTTP requests sent.
    pub requests: u64,
    /// Bytes of all bodies sent.
    pub request_bytes: u64,
    /// Bytes of all bodies received, as they came over the wire.
    pub response_bytes: u64,
    /// Calls of the plugin that run at a time; the others wait.
    pub calls: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            fuel: 100_000_000_000,
            memory: 256 << 20,
            instances: 32,
            memories: 4,
            tables: 16,
            crossing: 8 << 20,
            crossings: 64 << 20,
            result: 64 << 10,
            result_data: 6 << 20,
            log: 64 << 10,
            open_files: 256,
            written_bytes: 256 << 20,
            created_files: 10_000,
            random: 64 << 10,
            requests: 100,
            request_bytes: 16 << 20,
            response_bytes: 64 << 20,
            calls: 8,
        }
    }
}

/// The name of a limit, in configuration, flags and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    Deadline,
    Fuel,
    Memory,
    Instances,
    Memories,
    Tables,
    Crossing,
    Crossings,
    Result,
    ResultData,
    Log,
    OpenFiles,
    WrittenBytes,
    CreatedFiles,
    Random,
    Requests,
    RequestBytes,
    ResponseBytes,
    Calls,
}

/// How a limit is written and read by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Time,
    Bytes,
    Count,
}

impl Limit {
    pub const ALL: [Self; 19] = [
        Self::Deadline,
        Self::Fuel,
        Self::Memory,
        Self::Instances,
        Self::Memories,
        Self::Tables,
        Self::Crossing,
        Self::Crossings,
        Self::Result,
        Self::ResultData,
        Self::Log,
        Self::OpenFiles,
        Self::WrittenBytes,
        Self::CreatedFiles,
        Self::Random,
        Self::Requests,
        Self::RequestBytes,
        Self::ResponseBytes,
        Self::Calls,
    ];

    /// The key in `limits = { … }`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Instances => "instances",
            Self::Memories => "memories",
            Self::Tables => "tables",
            Self::Crossing => "crossing",
            Self::Crossings => "crossings",
            Self::Result => "result",
            Self::ResultData => "result_data",
            Self::Log => "log",
            Self::OpenFiles => "open_files",
            Self::WrittenBytes => "written_bytes",
            Self::CreatedFiles => "created_files",
            Self::Random => "random",
            Self::Requests => "requests",
            Self::RequestBytes => "request_bytes",
            Self::ResponseBytes => "response_bytes",
            Self::Calls => "calls",
        }
    }

    fn unit(self) -> Unit {
        match self {
            Self::Deadline => Unit::Time,
            Self::Memory
            | Self::Crossing
            | Self::Crossings
            | Self::Result
            | Self::ResultData
            | Self::Log
            | Self::WrittenBytes
            | Self::Random
            | Self::RequestBytes
            | Self::ResponseBytes => Unit::Bytes,
            Self::Fuel
            | Self::Instances
            | Self::Memories
            | Self::Tables
            | Self::OpenFiles
            | Self::CreatedFiles
            | Self::Requests
            | Self::Calls => Unit::Count,
        }
    }

    /// The smallest and the largest value that can be held.
    fn range(self) -> (u64, u64) {
        match self {
            // Milliseconds: a day is no call any more.
            Self::Deadline => (1, 24 * 60 * 60 * 1_000),
            Self::Fuel => (1_000, u64::MAX / 4),
            // The address space that one memory is given.
            Self::Memory => (64 << 10, 4 << 30),
            Self::Instances => (1, 1_000),
            Self::Memories | Self::Tables => (1, 100),
            Self::Crossing | Self::Crossings => (1 << 10, 1 << 30),
            Self::Calls => (1, 64),
            Self::OpenFiles => (1, 4_096),
            Self::Log | Self::Result | Self::ResultData | Self::Random => (0, 64 << 20),
            Self::WrittenBytes
            | Self::CreatedFiles
            | Self::Requests
            | Self::RequestBytes
            | Self::ResponseBytes => (0, 1 << 40),
        }
    }

    /// Reads a value as it is written in configuration and flags: `10s`, `64MiB`, `1000`.
    ///
    /// # Errors
    ///
    /// What it must be instead.
    pub fn parse(self, text: &str) -> Result<u64, LimitError> {
        let value = match self.unit() {
            Unit::Time => text
                .parse::<jiff::SignedDuration>()
                .ok()
                .and_then(|time| u64::try_from(time.as_millis()).ok()),
            Unit::Bytes => text.parse::<bytesize::ByteSize>().ok().map(|size| size.as_u64()),
            Unit::Count => text.replace('_', "").parse().ok(),
        };
        self.checked(value.ok_or_else(|| LimitError {
            limit: self.name(),
            problem: format!("`{}` is not {}", text.escape_debug(), self.expected()),
        })?)
    }

    /// Checks a number in the limit's own unit: milliseconds, bytes, pieces.
    ///
    /// # Errors
    ///
    /// It is too small or too large to be held.
    pub fn checked(self, value: u64) -> Result<u64, LimitError> {
        let (least, most) = self.range();
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        let problem = format!(
            "{} is out of range: write something from {} to {}",
            self.show(value),
            self.show(least),
            self.show(most)
        );
        Err(LimitError { limit: self.name(), problem })
    }

    /// What a value must look like.
    pub fn expected(self) -> &'static str {
        match self.unit() {
            Unit::Time => "a time such as `10s` or `1m 30s`",
            Unit::Bytes => "a size such as `64MiB`",
            Unit::Count => "a whole number",
        }
    }

    /// Whether a bare number is taken in configuration.
    pub fn is_number(self) -> bool {
        self.unit() != Unit::Time
    }

    /// A value in words that people read; what it says can be parsed again.
    pub fn show(self, value: u64) -> String {
        match self.unit() {
            Unit::Count => value.to_string(),
            Unit::Time => match value {
                value if value.is_multiple_of(1_000) => format!("{}s", value / 1_000),
                value => format!("{value}ms"),
            },
            Unit::Bytes => {
                const UNITS: [(u64, &str); 3] =
                    [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
                match UNITS.iter().find(|(size, _)| value >= *size) {
                    Some((size, unit)) if value.is_multiple_of(*size) => {
                        format!("{}{unit}", value / size)
                    }
                    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
                    Some((size, unit)) => format!("{:.1}{unit}", value as f64 / *size as f64),
                    None => format!("{value}B"),
                }
            }
        }
    }
}

/// A limit that cannot be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limit `{limit}`: {problem}")]
pub struct LimitError {
    pub limit: &'static str,
    pub problem: String,
}

/// The name of no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no limit `{name}`: the limits are {}", known())]
pub struct UnknownLimit {
    pub name: String,
}

fn known() -> String {
    let names: Vec<_> = Limit::ALL.iter().map(|limit| format!("`{limit}`")).collect();
    names.join(", ")
}

impl FromStr for Limit {
    type Err = UnknownLimit;

    fn from_str(name: &str) -> Result<Self, UnknownLimit> {
        let named = |limit: &Self| limit.name() == name;
        Self::ALL.into_iter().find(named).ok_or_else(|| UnknownLimit { name: name.to_owned() })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Limits that were set for a plugin, in each limit's own unit.
pub type LimitSettings = BTreeMap<Limit, u64>;

impl Limits {
    /// These limits with those that were set in their place.
    #[must_use]
    pub fn with(mut self, settings: &LimitSettings) -> Self {
        for (limit, value) in settings {
            self.set(*limit, *value);
        }
        self
    }

    /// A limit's value in its own unit: milliseconds, bytes, pieces.
    pub fn get(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Deadline => u64::try_from(self.deadline.as_millis()).unwrap_or(u64::MAX),
            Limit::Fuel => self.fuel,
            Limit::Memory => self.memory,
            Limit::Instances => self.instances,
            Limit::Memories => self.memories,
            Limit::Tables => self.tables,
            Limit::Crossing => self.crossing,
            Limit::Crossings => self.crossings,
            Limit::Result => self.result,
            Limit::ResultData => self.result_data,
            Limit::Log => self.log,
            Limit::OpenFiles => self.open_files,
            Limit::WrittenBytes => self.written_bytes,
            Limit::CreatedFiles => self.created_files,
            Limit::Random => self.random,
            Limit::Requests => self.requests,
            Limit::RequestBytes => self.request_bytes,
            Limit::ResponseBytes => self.response_bytes,
            Limit::Calls => self.calls,
        }
    }

    fn set(&mut self, limit: Limit, value: u64) {
        let place = match limit {
            Limit::Deadline => {
                self.deadline = Duration::from_millis(value);
                return;
            }
            Limit::Fuel => &mut self.fuel,
            Limit::Memory => &mut self.memory,
            Limit::Instances => &mut self.instances,
            Limit::Memories => &mut self.memories,
            Limit::Tables => &mut self.tables,
            Limit::Crossing => &mut self.crossing,
            Limit::Crossings => &mut self.crossings,
            Limit::Result => &mut self.result,
            Limit::ResultData => &mut self.result_data,
            Limit::Log => &mut self.log,
            Limit::OpenFiles => &mut self.open_files,
            Limit::WrittenBytes => &mut self.written_bytes,
            Limit::CreatedFiles => &mut self.created_files,
            Limit::Random => &mut self.random,
            Limit::Requests => &mut self.requests,
            Limit::RequestBytes => &mut self.request_bytes,
            Limit::ResponseBytes => &mut self.response_bytes,
            Limit::Calls => &mut self.calls,
        };
        *place = value;
    }

    /// What an error says about a limit that was met: how much was used or wanted, where that is
    /// known, how much is allowed, and the setting that changes it.
    pub fn met(&self, limit: Limit, used: Option<u64>) -> String {
        let allowed = limit.show(self.get(limit));
        match used {
            Some(used) => format!(
                "{} of the {allowed} that the setting `limits.{limit}` allows",
                limit.show(used)
            ),
            None => format!("the setting `limits.{limit}` allows {allowed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_can_be_set_by_name_and_alone() {
        let before = Limits::default();
        for limit in Limit::ALL {
            assert_eq!(limit.name().parse(), Ok(limit));
            let value = before.get(limit) + 1;
            let after = before.with(&LimitSettings::from([(limit, value)]));
            for other in Limit::ALL {
                let expected = if other == limit { value } else { before.get(other) };
                assert_eq!(after.get(other), expected, "{limit} {other}");
            }
            limit.checked(before.get(limit)).unwrap();
        }
        assert_eq!("time".parse::<Limit>(), Err(UnknownLimit { name: "time".into() }));
    }

    #[test]
    fn values_are_times_sizes_and_counts() {
        let cases = [
            (Limit::Deadline, "10s", Some(10_000)),
            (Limit::Deadline, "1m 30s", Some(90_000)),
            (Limit::Deadline, "250ms", Some(250)),
            (Limit::Deadline, "10", None),
            (Limit::Deadline, "-3s", None),
            (Limit::Deadline, "0s", None),
            (Limit::Deadline, "48h", None),
            (Limit::Memory, "64MiB", Some(64 << 20)),
            (Limit::Memory, "64 MiB", Some(64 << 20)),
            (Limit::Memory, "1GB", Some(1_000_000_000)),
            (Limit::Memory, "8GiB", None),
            (Limit::Memory, "lots", None),
            (Limit::Memory, "0", None),
            (Limit::Requests, "0", Some(0)),
            (Limit::Requests, "1_000", Some(1_000)),
            (Limit::Requests, "1.5", None),
            (Limit::Fuel, "5", None),
        ];
        for (limit, text, expected) in cases {
            assert_eq!(limit.parse(text).ok(), expected, "{limit} {text}");
        }
        assert_eq!(
            Limit::Memory.parse("8GiB").unwrap_err().to_string(),
            "the limit `memory`: 8GiB is out of range: write something from 64KiB to 4GiB"
        );
        assert_eq!(
            Limit::Deadline.parse("x").unwrap_err().to_string(),
            "the limit `deadline`: `x` is not a time such as `10s` or `1m 30s`"
        );
    }

    #[test]
    fn what_is_shown_can_be_written_back() {
        for (limit, value) in [
            (Limit::Deadline, 30_000),
            (Limit::Deadline, 1_500),
            (Limit::Memory, 256 << 20),
            (Limit::Log, 100),
            (Limit::Requests, 12),
        ] {
            assert_eq!(limit.parse(&limit.show(value)), Ok(value), "{limit} {value}");
        }
        assert_eq!(
            Limits::default().met(Limit::Memory, Some((256 << 20) + 1)),
            "256.0MiB of the 256MiB that the setting `limits.memory` allows"
        );
    }
}
