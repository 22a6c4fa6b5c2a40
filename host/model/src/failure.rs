//! Failures of a provider as model errors: which kind each is, what a person reads, how long the
//! server asks to wait. What the provider said is repeated, bounded, without the key and without
//! control characters.

mod classify;
mod retry_after;

use crate::{ApiKey, body::BodyFault, client::error_chain};
use belljar_types::{ModelError, ModelErrorKind};
use classify::Report;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;
use std::{error::Error, io};

/// The most of a provider's own words that is repeated, in characters.
const MAX_WORDS: usize = 1000;

/// Whom failures are about, and which settings to name.
#[derive(Debug)]
pub(crate) struct Failures {
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) base_url: String,
    pub(crate) key: Option<ApiKey>,
    pub(crate) api_key_env: Option<String>,
}

impl Failures {
    /// An answer whose status is no success.
    pub(crate) fn refused(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> ModelError {
        if (300..400).contains(&status) {
            let place = headers.get(LOCATION).and_then(|place| place.to_str().ok());
            return self.redirected(status, place);
        }
        let report = Report::of_body(body).with_status(status);
        let mut error = self.error(&report);
        error.retry_after = retry_after::read(headers).or(error.retry_after);
        error
    }

    /// An error object inside an answer whose status is a success.
    pub(crate) fn reported(&self, error: &Value) -> ModelError {
        self.error(&Report::of_value(error))
    }

    /// A document where a stream of events should be.
    pub(crate) fn no_stream(&self, body: &[u8]) -> ModelError {
        let report = Report::of_body(body);
        if report.is_error {
            return self.error(&report);
        }
        let start = self.words(&String::from_utf8_lossy(body));
        let start: String = start.chars().take(120).collect();
        self.no_events(&format!(": it begins `{start}`"))
    }

    /// As [`Self::no_stream`], of a body that is not at hand.
    pub(crate) fn no_events(&self, detail: &str) -> ModelError {
        self.protocol(&format!(
            "the answer is no event stream{detail}; check whether `base_url` (`{}`) is right and \
             the server can stream",
            self.base_url
        ))
    }

    /// The request was not answered at all.
    pub(crate) fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let Self { provider, base_url, .. } = self;
        let error = error.without_url();
        let message = if is_refused(&error) {
            format!(
                "`{provider}` cannot be reached: connection refused; is the server at \
                 `{base_url}` running?"
            )
        } else if error.is_connect() || error.is_timeout() {
            format!(
                "`{provider}` cannot be reached: {}; check the network and `base_url` \
                 (`{base_url}`)",
                self.words(&error_chain(&error))
            )
        } else {
            format!(
                "`{provider}` broke the connection before it answered: {}",
                self.words(&error_chain(&error))
            )
        };
        ModelError::new(ModelErrorKind::Connection, message)
    }

    /// The answer broke off, or was not fit to be read.
    pub(crate) fn unreadable(&self, fault: &BodyFault) -> ModelError {
        let Self { provider, .. } = self;
        match fault {
            BodyFault::Idle(_) => ModelError::new(
                ModelErrorKind::Cut,
                format!("`{provider}` fell silent in the middle of its answer: {fault}"),
            ),
            BodyFault::Broken(cause) => ModelError::new(
                ModelErrorKind::Cut,
                format!("`{provider}` cut its answer off: {}", self.words(cause)),
            ),
            BodyFault::TooLong(_) | BodyFault::NotText => self.protocol(&fault.to_string()),
        }
    }

    /// The connection ended cleanly, the answer did not.
    pub(crate) fn unfinished(&self) -> ModelError {
        ModelError::new(
            ModelErrorKind::Cut,
            format!("`{}` ended the connection before its answer was complete", self.provider),
        )
    }

    /// The answer is not of the protocol.
    pub(crate) fn protocol(&self, problem: &str) -> ModelError {
        ModelError::new(
            ModelErrorKind::Protocol,
            format!("`{}` answered outside its protocol: {}", self.provider, self.words(problem)),
        )
    }

    fn redirected(&self, status: u16, place: Option<&str>) -> ModelError {
        let Self { provider, base_url, .. } = self;
        let place = place.map(|place| format!(" to `{}`", self.words(place))).unwrap_or_default();
        ModelError::new(
            ModelErrorKind::Request,
            format!(
                "`{provider}` redirects{place} ({status}), which is not followed; check \
                 `base_url` (`{base_url}`)"
            ),
        )
    }

    fn error(&self, report: &Report) -> ModelError {
        let Self { provider, model, base_url, .. } = self;
        let kind = report.kind();
        let said = match (self.words(&report.message), report.status) {
            (words, Some(status)) if words.is_empty() => format!("status {status}"),
            (words, None) if words.is_empty() => "an error without a message".to_owned(),
            (words, Some(status)) => format!("{words} ({status})"),
            (words, None) => words,
        };
        let message = match kind {
            ModelErrorKind::Authentication => {
                format!("`{provider}` refused access: {said}; {}", self.key_advice())
            }
            ModelErrorKind::ContextOverflow => {
                format!("the conversation does not fit the window of `{model}`: {said}")
            }
            ModelErrorKind::RateLimited => format!("`{provider}` limits the rate: {said}"),
            ModelErrorKind::Server => format!("`{provider}` failed: {said}"),
            _ if report.status == Some(404) => format!(
                "`{provider}` does not know what was asked for: {said}; check the model's name \
                 (`{model}`) and `base_url` (`{base_url}`)"
            ),
            _ if report.is_billing() => {
                format!("`{provider}` refused the request: {said}; check your account there")
            }
            _ => format!(
                "`{provider}` refused the request: {said}; check whether `{model}` at \
                 `{base_url}` can do what was asked"
            ),
        };
        // A wait helps no other kind.
        let retry_after = report.retry_after.filter(|_| kind.is_retryable());
        ModelError { kind, message, retry_after }
    }

    fn key_advice(&self) -> String {
        match (&self.api_key_env, &self.key) {
            (Some(variable), _) => format!("check `{variable}`"),
            (None, Some(_)) => "check the key".to_owned(),
            (None, None) => format!(
                "the server wants a key: name the variable that holds it as `api_key_env` of \
                 provider `{}`",
                self.provider
            ),
        }
    }

    /// Somebody else's words, fit to be shown.
    fn words(&self, text: &str) -> String {
        let text = match &self.key {
            Some(key) => key.redact(text),
            None => text.to_owned(),
        };
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let clean = clean.split_whitespace().collect::<Vec<_>>().join(" ");
        let clean = clean.trim_end_matches('.');
        match clean.char_indices().nth(MAX_WORDS) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None => clean.to_owned(),
        }
    }
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            return true;
        }
        cause = error.source();
    }
    false
}
