//! What the program's exit codes mean.

use belljar_types::{StopReason, ToolErrorKind};
use std::io;

pub(crate) const COMPLETED: u8 = 0;
pub(crate) const FAILED: u8 = 1;
pub(crate) const USAGE: u8 = 2;
const MAX_ITERATIONS: u8 = 3;
const UNKNOWN_TOOL_LIMIT: u8 = 4;
const GUARD: u8 = 5;
const TOOL_FAILED: u8 = 6;
const REFUSED: u8 = 7;
pub(crate) const CANCELED: u8 = 130;

/// A command line that clap takes and that still says nothing sensible.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The code for an error that ended a command.
pub(crate) fn of_error(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<Usage>().is_some() { USAGE } else { FAILED }
}

/// The code for a write to standard output that failed.
///
/// # Errors
///
/// Anything but a reader that has seen enough and went away.
pub(crate) fn of_write_error(error: io::Error) -> anyhow::Result<u8> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(CANCELED),
        _ => Err(anyhow::Error::new(error).context("cannot write to standard output")),
    }
}

/// The code for the end of a run.
pub(crate) fn of_stop(reason: StopReason) -> u8 {
    match reason {
        StopReason::Completed | StopReason::Ended => COMPLETED,
        StopReason::StreamError | StopReason::SessionError => FAILED,
        StopReason::MaxIterations => MAX_ITERATIONS,
        StopReason::UnknownToolLimit => UNKNOWN_TOOL_LIMIT,
        StopReason::RepetitionLimit
        | StopReason::Refused
        | StopReason::Truncated
        | StopReason::ContextOverflow => GUARD,
        StopReason::Canceled => CANCELED,
    }
}

/// The code of `call` for a tool's failure.
pub(crate) fn of_tool_error(kind: ToolErrorKind) -> u8 {
    match kind {
        // Nothing was called: the command line names something that is not there.
        ToolErrorKind::UnknownTool => USAGE,
        ToolErrorKind::InvalidArguments
        | ToolErrorKind::Failed
        | ToolErrorKind::Unavailable
        | ToolErrorKind::Trap => TOOL_FAILED,
        ToolErrorKind::Denied
        | ToolErrorKind::Deadline
        | ToolErrorKind::OutOfFuel
        | ToolErrorKind::MemoryLimit
        | ToolErrorKind::OutputLimit => REFUSED,
        ToolErrorKind::Canceled => CANCELED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn every_stop_has_the_code_that_the_table_says() {
        let codes = [
            (StopReason::Completed, 0),
            (StopReason::Ended, 0),
            (StopReason::StreamError, 1),
            (StopReason::SessionError, 1),
            (StopReason::MaxIterations, 3),
            (StopReason::UnknownToolLimit, 4),
            (StopReason::RepetitionLimit, 5),
            (StopReason::Refused, 5),
            (StopReason::Truncated, 5),
            (StopReason::ContextOverflow, 5),
            (StopReason::Canceled, 130),
        ];
        for (reason, code) in codes {
            assert_eq!(of_stop(reason), code, "{reason:?}");
        }
    }

    #[test]
    fn every_failure_of_a_call_has_its_code() {
        let codes = [
            (ToolErrorKind::UnknownTool, 2),
            (ToolErrorKind::InvalidArguments, 6),
            (ToolErrorKind::Failed, 6),
            (ToolErrorKind::Unavailable, 6),
            (ToolErrorKind::Trap, 6),
            (ToolErrorKind::Denied, 7),
            (ToolErrorKind::Deadline, 7),
            (ToolErrorKind::OutOfFuel, 7),
            (ToolErrorKind::MemoryLimit, 7),
            (ToolErrorKind::OutputLimit, 7),
            (ToolErrorKind::Canceled, 130),
        ];
        for (kind, code) in codes {
            assert_eq!(of_tool_error(kind), code, "{kind}");
        }
    }

    #[test]
    fn a_reader_that_is_gone_is_a_cancel_and_a_full_disk_an_error() {
        let of_kind = |kind: io::ErrorKind| of_write_error(kind.into());
        assert_eq!(of_kind(io::ErrorKind::BrokenPipe).unwrap(), 130);
        assert_eq!(
            format!("{:#}", of_kind(io::ErrorKind::StorageFull).unwrap_err()),
            "cannot write to standard output: no storage space"
        );
    }

    #[test]
    fn a_usage_error_keeps_its_code_under_a_context() {
        let usage = anyhow::Error::new(Usage("no".to_owned()));
        assert_eq!(of_error(&usage), 2);
        assert_eq!(of_error(&Err::<(), _>(usage).context("more").unwrap_err()), 2);
        assert_eq!(of_error(&anyhow::anyhow!("no")), 1);
    }
}
