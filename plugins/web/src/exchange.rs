//! URLs as they are given, redirects as they are followed, failures as they are told.

use crate::wire::Send;
use belljar_sdk::{
    Failure,
    http::{Error, Request, Response},
};
use std::time::Duration;
use url::Url;

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// What is asked for: pages come as Markdown where a server has it.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/json;q=0.8, \
     text/*;q=0.8, */*;q=0.1";

/// Reads an argument as a URL.
pub(crate) fn url(text: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| {
        Failure::invalid_arguments(format!(
            "`{text}` {why}: give a whole URL such as `https://example.com/page`"
        ))
    };
    let url = Url::parse(text).map_err(|error| wrong(&format!("is not a URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("is neither http nor https"));
    }
    Ok(url)
}

/// Gets what is at a URL, and follows where it leads. Each step is a request of its own, which the
/// host allows or refuses.
pub(crate) fn get(start: Url, send: Send<'_>) -> Result<(Url, Response), Failure> {
    let mut url = start;
    for _ in 0..=REDIRECTS {
        let request = Request::new("GET", without_fragment(&url)).header("accept", ACCEPT);
        let response = send(&request).map_err(|error| failure(&url, &error))?;
        let Some(location) = redirect(&response) else { return Ok((url, response)) };
        let next = url.join(location).map_err(|_| {
            Failure::failed(format!("`{url}` leads to `{location}`, which is not a URL"))
        })?;
        if !matches!(next.scheme(), "http" | "https") {
            return Err(Failure::failed(format!(
                "`{url}` leads to `{next}`, which is neither http nor https"
            )));
        }
        url = next;
    }
    Err(Failure::failed(format!(
        "more than {REDIRECTS} redirects; the last led to `{url}`, which you can ask for itself"
    )))
}

/// The part of a URL that is sent.
pub(crate) fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

fn redirect(response: &Response) -> Option<&str> {
    matches!(response.status, 301 | 302 | 303 | 307 | 308)
        .then(|| response.header("location"))
        .flatten()
}

/// A response that is no success, as a failure. Of those that pass, it says when to try again.
pub(crate) fn refused(url: &Url, response: &Response, told: &str) -> Failure {
    let mut message = format!("`{url}` answered {}", status(response.status));
    if !told.is_empty() {
        message.push_str(":\n");
        message.push_str(told);
    }
    if !matches!(response.status, 429 | 502 | 503 | 504) {
        return Failure::failed(message);
    }
    let after = response.header("retry-after").and_then(|value| value.trim().parse().ok());
    match after {
        Some(seconds) => Failure::unavailable_for(message, Duration::from_secs(seconds)),
        None => Failure::unavailable(message),
    }
}

/// What went wrong before there was a response.
pub(crate) fn failure(url: &Url, error: &Error) -> Failure {
    let host = url.host_str().unwrap_or_default();
    match error {
        Error::Denied => Failure::denied(format!("the request to `{url}` was refused")),
        Error::NoName => Failure::failed(format!("there is no host `{host}`")),
        Error::NoConnection => Failure::unavailable(format!("`{host}` cannot be reached")),
        Error::TimedOut => Failure::unavailable(format!("`{host}` did not answer in time")),
        error => Failure::failed(format!("`{url}` failed: {error}")),
    }
}

/// A status with its name, where it has a well-known one.
pub(crate) fn status(code: u16) -> String {
    let name = match code {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        410 => "Gone",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return code.to_string(),
    };
    format!("{code} {name}")
}
