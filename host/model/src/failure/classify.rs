//! What an error is, told by its status, the provider's own names for it and, where neither says
//! enough, its wording.

use super::retry_after;
use belljar_types::ModelErrorKind;
use serde_json::Value;
use std::time::Duration;

/// An error in the provider's own words.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Report {
    pub(crate) status: Option<u16>,
    /// `type` and `code`, as far as they are texts.
    names: Vec<String>,
    pub(crate) message: String,
    /// Whether there is an error at all.
    pub(crate) is_error: bool,
    /// The least wait, where the error itself names one.
    pub(crate) retry_after: Option<Duration>,
}

impl Report {
    /// Reads a body: an error object of any known shape, or a text.
    pub(crate) fn of_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(list)) if list.len() == 1 => Self::of_value(&list[0]),
            Ok(value) => Self::of_value(&value),
            Err(_) => {
                Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() }
            }
        }
    }

    /// Reads an error object: `{"error": {…}}`, `{"error": "…"}`, or the fields themselves.
    pub(crate) fn of_value(value: &Value) -> Self {
        let inner = value.get("error").filter(|error| !error.is_null());
        let error = inner.unwrap_or(value);
        let message = match error {
            Value::String(message) => message.clone(),
            _ => ["message", "detail", "msg"]
                .iter()
                .find_map(|key| match error.get(key)? {
                    Value::String(text) => Some(text.clone()),
                    Value::Null => None,
                    other => Some(other.to_string()),
                })
                .unwrap_or_default(),
        };
        let names: Vec<_> = [error.get("type"), error.get("code"), error.get("status")]
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_ascii_lowercase()))
            .collect();
        let status = ["code", "status", "status_code"]
            .iter()
            .find_map(|key| number(error.get(key)?))
            .or_else(|| names.iter().find_map(|name| status_of(name)));
        let is_error = inner.is_some() || value["object"] == "error" || value["type"] == "error";
        let retry_after =
            retry_after::in_details(error).or_else(|| retry_after::in_words(&message));
        Self { status, names, message, is_error, retry_after }
    }

    /// The status of the answer itself, which counts more than one inside it.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    pub(crate) fn kind(&self) -> ModelErrorKind {
        match self.status {
            Some(401 | 403) => ModelErrorKind::Authentication,
            _ if self.is_about_key() => ModelErrorKind::Authentication,
            // Waiting does not fill an account.
            _ if self.is_billing() => ModelErrorKind::Request,
            Some(429) => ModelErrorKind::RateLimited,
            Some(413) => ModelErrorKind::ContextOverflow,
            _ if self.is_overflow() => ModelErrorKind::ContextOverflow,
            Some(408 | 409 | 500..) => ModelErrorKind::Server,
            Some(_) => ModelErrorKind::Request,
            // Nothing says what it is: a fault of the moment is the likelier one, since what is
            // wrong with a request is said before the stream begins.
            None => ModelErrorKind::Server,
        }
    }

    /// Whether it is the account that lacks something.
    pub(crate) fn is_billing(&self) -> bool {
        self.status == Some(402) || self.has_name("insufficient_quota")
    }

    /// Some providers call a wrong key a bad request.
    fn is_about_key(&self) -> bool {
        let message = self.message.to_lowercase();
        ["api key not valid", "api key expired", "invalid api key", "incorrect api key"]
            .iter()
            .any(|words| message.contains(words))
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    fn is_overflow(&self) -> bool {
        const NAMES: [&str; 3] =
            ["context_length_exceeded", "exceed_context_size_error", "request_too_large"];
        if NAMES.iter().any(|name| self.has_name(name)) {
            return true;
        }
        let message = self.message.to_lowercase();
        OVERFLOW.iter().any(|words| words.iter().all(|word| message.contains(word)))
    }
}

/// How providers say that a conversation is too long: all words of one row occur.
const OVERFLOW: &[&[&str]] = &[
    &["prompt is too long"],
    &["prompt too long"],
    &["input is too long"],
    &["exceed", "context limit"],
    &["exceed", "context length"],
    &["maximum context length"],
    &["maximum model length"],
    &["context size"],
    &["context window"],
    &["context the overflows"],
    &["context length", "greater than"],
    &["context length", "longer than"],
    &["exceeds the maximum number of tokens"],
    &["maximum prompt length"],
    &["too large for model with", "context"],
    &["reduce the length of the messages"],
    &["tokens", "must be <="],
    &["too many tokens in the prompt"],
    &["request too large for model"],
];

fn number(value: &Value) -> Option<u16> {
    let number = match value {
        Value::Number(number) => number.as_u64()?,
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    u16::try_from(number).ok().filter(|number| (400..600).contains(number))
}

/// The HTTP status that a provider's name for an error stands for.
fn status_of(name: &str) -> Option<u16> {
    Some(match name {
        "invalid_request_error"
        | "invalid_argument"
        | "bad_request"
        | "bad_request_error"
        | "badrequesterror"
        | "context_length_exceeded"
        | "exceed_context_size_error" => 400,
        "authentication_error" | "invalid_api_key" | "unauthenticated" | "unauthorized" => 401,
        "billing_error" => 402,
        "permission_error" | "permission_denied" | "forbidden" => 403,
        "not_found_error" | "model_not_found" | "not_found" | "notfounderror" => 404,
        "request_too_large" => 413,
        "rate_limit_error"
        | "rate_limit_exceeded"
        | "resource_exhausted"
        | "rate_limited"
        | "insufficient_quota"
        | "too_many_requests" => 429,
        "timeout_error" => 504,
        "overloaded_error" | "overloaded" | "unavailable" => 529,
        "api_error"
        | "server_error"
        | "internal_error"
        | "internal"
        | "internal_server_error"
        | "internalservererror" => 500,
        // `invalid_prompt`, `invalid_image_format` and the like.
        _ if name.starts_with("invalid_") => 400,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ModelErrorKind::{Authentication, ContextOverflow, RateLimited, Request, Server};
    use serde_json::json;

    #[test]
    fn context_overflow_is_told_in_each_providers_wording() {
        for (status, message) in [
            (400, "prompt is too long: 210000 tokens > 200000 maximum"),
            (400, "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"),
            (400, "This model's maximum context length is 8192 tokens. However, you requested 9"),
            (400, "the request exceeds the available context size, try increasing it"),
            (500, "the request exceeds the available context size. try increasing the context"),
            (400, "The input token count (1200000) exceeds the maximum number of tokens allowed"),
            (
                400,
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with \
                   32768 maximum context length",
            ),
            (400, "This model's maximum prompt length is 131072 but the request contains 140000"),
            (400, "Input is too long for requested model."),
            (400, "Trying to keep the first 9000 tokens when context the overflows."),
            (422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"),
            (400, "Your input exceeds the context window of this model."),
            (413, "Request exceeds the maximum size"),
            (400, "Your input exceeds the context window of this model. Please adjust your input"),
            (400, "The input token count exceeds the maximum number of tokens allowed 1048575."),
        ] {
            let report = Report::of_value(&json!({"error": {"message": message}}));
            assert_eq!(report.with_status(status).kind(), ContextOverflow, "{message}");
        }
    }

    #[test]
    fn errors_of_every_shape_are_read() {
        for (value, message, kind) in [
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
                "m",
                Server,
            ),
            (
                json!({"type": "error", "error": {"type": "rate_limit_error", "message": "m"}}),
                "m",
                RateLimited,
            ),
            (
                json!({"error": {"type": "authentication_error", "message": "m"}}),
                "m",
                Authentication,
            ),
            (json!({"error": {"message": "m", "code": 429}}), "m", RateLimited),
            (json!({"error": {"message": "m", "code": "502"}}), "m", Server),
            (json!({"error": {"message": "m", "type": "invalid_request_error"}}), "m", Request),
            (json!({"error": {"message": "m", "code": "insufficient_quota"}}), "m", Request),
            (json!({"type": "error", "code": "invalid_prompt", "message": "m"}), "m", Request),
            (json!({"error": {"code": "rate_limit_exceeded", "message": "m"}}), "m", RateLimited),
            (
                json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
                    "message": "API key not valid. Please pass a valid API key."}}),
                "API key not valid. Please pass a valid API key.",
                Authentication,
            ),
            (
                json!({"error": {"message": "m", "type": "invalid_request_error",
                    "code": "context_length_exceeded"}}),
                "m",
                ContextOverflow,
            ),
            (json!({"error": "context deadline exceeded"}), "context deadline exceeded", Server),
            (json!("worker died"), "worker died", Server),
            (json!({"object": "error", "message": "m", "code": 400}), "m", Request),
            (json!({"detail": [{"msg": "bad"}]}), "[{\"msg\":\"bad\"}]", Server),
        ] {
            let report = Report::of_value(&value);
            assert_eq!((report.message.as_str(), report.kind()), (message, kind), "{value}");
        }
    }

    #[test]
    fn the_status_decides_where_it_says_enough() {
        for (status, kind) in [
            (400, Request),
            (401, Authentication),
            (402, Request),
            (403, Authentication),
            (404, Request),
            (408, Server),
            (409, Server),
            (413, ContextOverflow),
            (422, Request),
            (429, RateLimited),
            (500, Server),
            (503, Server),
            (529, Server),
        ] {
            assert_eq!(Report::of_body(b"").with_status(status).kind(), kind, "{status}");
        }
    }
}
