//! What was found about one thing.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    /// Worth knowing; everything works.
    Note,
    /// Something does not work until it is mended.
    Problem,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Problem => "problem",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) status: Status,
    pub(super) about: &'static str,
    pub(super) text: String,
    /// What to type or to change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mend: Option<String>,
}

impl Finding {
    fn new(status: Status, about: &'static str, text: impl Into<String>) -> Self {
        Self { status, about, text: text.into(), mend: None }
    }

    pub(super) fn ok(about: &'static str, text: impl Into<String>) -> Self {
        Self::new(Status::Ok, about, text)
    }

    pub(super) fn note(about: &'static str, text: impl Into<String>) -> Self {
        Self::new(Status::Note, about, text)
    }

    pub(super) fn problem(about: &'static str, text: impl Into<String>) -> Self {
        Self::new(Status::Problem, about, text)
    }

    pub(super) fn mended_by(self, mend: impl Into<String>) -> Self {
        Self { mend: Some(mend.into()), ..self }
    }
}
