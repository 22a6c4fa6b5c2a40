//! Failures, as a tool reports them to the model, and the ways that Rust errors become one.

use std::{error::Error, fmt, io, time::Duration};

/// Why a tool gave no output. The model reads the message: say what went wrong and what to do.
///
/// `?` turns any [`std::error::Error`] into [`Failure::Failed`], with the error's sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The plugin has no tool of this name. The SDK answers this itself.
    UnknownTool,
    /// The arguments do not fit; the message tells the model what to correct.
    InvalidArguments(String),
    /// The tool will not or may not do this; the message says what it may do.
    Denied(String),
    /// The tool ran and could not do what was asked.
    Failed(String),
    /// A passing fault: the same call may work later.
    Unavailable {
        message: String,
        /// When to try again, from now, where the tool knows.
        retry_after: Option<Duration>,
    },
}

impl Failure {
    /// The arguments do not fit: say which, and what would.
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::InvalidArguments(message.into())
    }

    /// The tool will not or may not do this: say what it may do.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied(message.into())
    }

    /// The tool ran and could not do what was asked.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// A passing fault: the same call may work later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::Unavailable { message: message.into(), retry_after: None }
    }

    /// A passing fault that is over after `delay`, as far as the tool knows.
    pub fn unavailable_for(message: impl Into<String>, delay: Duration) -> Self {
        Self::Unavailable { message: message.into(), retry_after: Some(delay) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool => f.write_str("the plugin has no such tool"),
            Self::InvalidArguments(message)
            | Self::Denied(message)
            | Self::Failed(message)
            | Self::Unavailable { message, .. } => f.write_str(message),
        }
    }
}

// `Failure` itself is no `Error`: the two could not both be.
impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(chain(&error))
    }
}

/// Says what was being done when a call failed: `` fs::read(path).context("cannot read `a`")? ``
pub trait Context<T> {
    /// # Errors
    ///
    /// [`Failure::Failed`] with the message, a colon and the error, where there was one.
    fn context(self, message: impl fmt::Display) -> Result<T, Failure>;

    /// Like [`Context::context`], with a message made only where it is needed.
    ///
    /// # Errors
    ///
    /// [`Failure::Failed`] with the message, a colon and the error, where there was one.
    fn with_context<M: fmt::Display>(self, message: impl FnOnce() -> M) -> Result<T, Failure>;
}

impl<T, E: Error + 'static> Context<T> for Result<T, E> {
    fn context(self, message: impl fmt::Display) -> Result<T, Failure> {
        self.with_context(|| message)
    }

    fn with_context<M: fmt::Display>(self, message: impl FnOnce() -> M) -> Result<T, Failure> {
        self.map_err(|error| Failure::Failed(format!("{}: {}", message(), chain(&error))))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, message: impl fmt::Display) -> Result<T, Failure> {
        self.with_context(|| message)
    }

    fn with_context<M: fmt::Display>(self, message: impl FnOnce() -> M) -> Result<T, Failure> {
        self.ok_or_else(|| Failure::Failed(message().to_string()))
    }
}

/// The error and its sources, each once.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = describe(error);
    let mut source = error.source();
    while let Some(error) = source {
        let cause = describe(error);
        // Many errors print their source themselves.
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}

/// The error's text, without the number of an operating system that the model does not see.
fn describe(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let code = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
    match code.and_then(|code| text.strip_suffix(&format!(" (os error {code})"))) {
        Some(text) => text.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_question_mark_gives_failed_with_the_sources() {
        fn fails() -> Result<(), Failure> {
            Err(Outer(io::Error::other("inner")))?
        }
        assert_eq!(fails(), Err(Failure::failed("outer: inner")));
    }

    #[test]
    fn an_io_error_loses_its_number() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(Failure::from(error), Failure::failed("No such file or directory"));
    }

    #[test]
    fn context_says_what_was_being_done() {
        let result: Result<(), _> = Err(io::Error::other("broken"));
        assert_eq!(
            result.context("cannot read `a`"),
            Err(Failure::failed("cannot read `a`: broken"))
        );
        assert_eq!(None::<()>.context("no line"), Err(Failure::failed("no line")));
        assert_eq!(Some(1).with_context(|| "no line"), Ok(1));
    }
}
