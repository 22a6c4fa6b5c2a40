//! Why a tool did not do what it was asked, in words for the model. It never ends a run.

/// The failures that a tool over files can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    InvalidArguments(String),
    Denied(String),
    Failed(String),
}

impl Failure {
    pub fn invalid_arguments(text: impl Into<String>) -> Self {
        Self::InvalidArguments(text.into())
    }

    pub fn denied(text: impl Into<String>) -> Self {
        Self::Denied(text.into())
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}
