//! Why a run ends, as a value that travels up from wherever it was decided.

use crate::retry::GaveUp;
use belljar_types::{JournalError, ModelError, ModelErrorKind, StopReason};

/// The end of a run, not yet told to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) reason: StopReason,
    /// For people; empty where there is nothing to add.
    pub(crate) message: String,
    /// The `error` event that comes before the stop.
    pub(crate) error: Option<RunError>,
}

/// The fields of an `error` event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunError {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn new(reason: StopReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), error: None }
    }

    pub(crate) fn completed() -> Self {
        Self::new(StopReason::Completed, String::new())
    }

    pub(crate) fn canceled() -> Self {
        Self::new(StopReason::Canceled, "interrupted by the user")
    }

    /// A stop with an `error` event of the same message before it.
    pub(crate) fn failed(
        reason: StopReason,
        kind: &'static str,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self { reason, message: message.clone(), error: Some(RunError { kind, message }) }
    }

    pub(crate) fn panicked(message: &str) -> Self {
        Self::failed(
            StopReason::StreamError,
            "panic",
            format!("the run broke off in a panic, which is a bug: {message}"),
        )
    }

    /// The model failed for good.
    pub(crate) fn model(error: &ModelError, gave_up: Option<GaveUp>) -> Self {
        let reason = match error.kind {
            ModelErrorKind::ContextOverflow => StopReason::ContextOverflow,
            _ => StopReason::StreamError,
        };
        let message = match gave_up {
            Some(GaveUp::AfterAttempts(attempts)) if attempts > 1 => {
                format!("{error} ({attempts} attempts)")
            }
            Some(GaveUp::WaitTooLong { asked, longest }) => format!(
                "{error}; the server asks to wait {} s, more than the {} s that a run waits: \
                 try again later",
                asked.as_secs(),
                longest.as_secs()
            ),
            _ => error.to_string(),
        };
        Self::failed(reason, error.kind.name(), message)
    }
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::failed(StopReason::SessionError, "session", error.message)
    }
}
