//! Results in the host's own words, for calls that did not run or did not end.

use super::Progress;
use crate::panics;
use belljar_types::{
    CallReport, Origin, PreparedCall, StopReason, ToolCall, ToolError, ToolErrorKind, ToolResult,
};

/// The result of a call that the run ended over.
pub(crate) fn interrupted(call: &ToolCall, cause: &str, progress: Progress) -> ToolResult {
    let message = match progress {
        Progress::NotStarted => format!("{cause} before the call ran"),
        Progress::Started => {
            format!("{cause} while the call ran; it may have taken effect")
        }
        Progress::StartedReadOnly => {
            format!("{cause} while the call ran; it only reads, so nothing was changed")
        }
    };
    by_host(call, ToolError::new(ToolErrorKind::Canceled, message))
}

/// A failure as a result.
pub(crate) fn by_host(call: &ToolCall, error: ToolError) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        tool: call.tool.clone(),
        outcome: Err(error),
        origin: Origin::Host,
    }
}

/// What ended the run over an open call, for the model.
pub(super) fn cause(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Canceled => "interrupted by the user",
        StopReason::Ended => "the run was ended",
        StopReason::SessionError => "the session could no longer be written",
        _ => "the run broke off",
    }
}

/// Arguments that are no object never run, whatever the toolbox makes of them.
pub(super) fn check_arguments(
    prepared: Result<Box<dyn PreparedCall>, ToolError>,
    call: &ToolCall,
    cut_by_length: bool,
) -> Result<Box<dyn PreparedCall>, ToolError> {
    if call.arguments.object().is_ok() {
        return prepared;
    }
    match prepared {
        Err(error) if error.kind != ToolErrorKind::InvalidArguments => Err(error),
        _ => Err(malformed(call, cut_by_length)),
    }
}

/// What is wrong with arguments that are no object.
pub(super) fn malformed(call: &ToolCall, cut_by_length: bool) -> ToolError {
    let place = call.arguments.object().err().unwrap_or_default();
    let message = if cut_by_length {
        format!(
            "the answer was cut by the model's length limit inside these arguments, so the call \
             did not run: {place}; send it again with less in it, or in several calls"
        )
    } else {
        format!(
            "{place}; the call did not run: send it again with one JSON object that fits the \
             tool's schema"
        )
    };
    ToolError::new(ToolErrorKind::InvalidArguments, message)
}

/// The report of a call whose task died.
pub(super) fn broken_report(call: &ToolCall, error: tokio::task::JoinError) -> CallReport {
    let why = match error.try_into_panic() {
        Ok(panic) => panics::message(panic.as_ref()),
        Err(error) => error.to_string(),
    };
    let message = format!(
        "the host's code for `{}` panicked, which is a bug: {why}; the call may have taken effect",
        call.tool
    );
    CallReport {
        outcome: Err(ToolError::new(ToolErrorKind::Trap, message)),
        origin: Origin::Host,
        receipt: None,
    }
}
