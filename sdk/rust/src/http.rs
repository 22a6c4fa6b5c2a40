//! HTTP requests, as far as the host grants them. It owns the way to `wasi:http` and back; it
//! follows no redirect and retries nothing. Natively nothing is sent.
//!
//! ```no_run
//! # use belljar_sdk::http::Request;
//! let response = Request::new("GET", "https://example.com/").send(1 << 20)?;
//! assert_eq!(response.status, 200);
//! # Ok::<(), belljar_sdk::http::Error>(())
//! ```

use crate::Failure;
use std::fmt;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// There was more than was to be read.
    pub is_cut: bool,
}

/// Why there is no response, or not all of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The host refused it: it is not granted, or a limit is met. People see which.
    Denied,
    /// The URL is not one that can be requested.
    Url,
    /// The method or a header field, by name, cannot be sent.
    Field(String),
    /// There is no host of this name.
    NoName,
    NoConnection,
    TimedOut,
    /// The server did not prove who it is.
    Certificate,
    /// The body broke off, or the host stopped it at a limit.
    Broken,
    /// Anything else, by the name that `wasi:http` has for it.
    Other(String),
}

impl Request {
    /// A request for a whole URL, without a fragment, in the form that is sent: what is not ASCII
    /// is escaped.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self { method: method.into(), url: url.into(), headers: Vec::new(), body: None }
    }

    /// Adds a header field.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends the request and reads up to `limit` bytes of the response's body.
    ///
    /// # Errors
    ///
    /// The host refused it, or there was no whole response before the call's deadline.
    pub fn send(&self, limit: usize) -> Result<Response, Error> {
        backend::send(self, limit)
    }

    /// Scheme, authority, path with query.
    #[cfg(any(target_family = "wasm", test))]
    fn parts(&self) -> Result<(&str, &str, &str), Error> {
        let (scheme, rest) = self.url.split_once("://").ok_or(Error::Url)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.is_empty() { Err(Error::Url) } else { Ok((scheme, authority, path)) }
    }
}

impl Response {
    /// The first value of a header field, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied => "the host refused the request",
            Self::Url => "the URL cannot be requested",
            Self::Field(name) => return write!(f, "`{name}` cannot be sent"),
            Self::NoName => "there is no such host",
            Self::NoConnection => "the host cannot be reached",
            Self::TimedOut => "the host did not answer in time",
            Self::Certificate => "the server's certificate is not valid",
            Self::Broken => "the response broke off",
            Self::Other(code) => return write!(f, "the exchange failed ({code})"),
        })
    }
}

impl std::error::Error for Error {}

/// A refusal stays one, and what may pass by itself is told as such.
impl Error {
    /// The failure that a tool reports for this.
    pub fn into_failure(self) -> Failure {
        let message = self.to_string();
        match self {
            Self::Denied => Failure::denied(message),
            Self::NoConnection | Self::TimedOut => Failure::unavailable(message),
            _ => Failure::failed(message),
        }
    }
}

#[cfg(target_family = "wasm")]
mod backend;

#[cfg(not(target_family = "wasm"))]
mod backend {
    use super::{Error, Request, Response};

    pub(super) fn send(_: &Request, _: usize) -> Result<Response, Error> {
        Err(Error::NoConnection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_as_it_is_sent() {
        for (url, expected) in [
            ("https://a.test", Ok(("https", "a.test", ""))),
            ("http://a.test:8080/x?y#z", Ok(("http", "a.test:8080", "/x?y"))),
            ("https://a.test?q", Ok(("https", "a.test", "?q"))),
            ("https://[::1]:80/", Ok(("https", "[::1]:80", "/"))),
            ("https:///x", Err(Error::Url)),
            ("a.test/x", Err(Error::Url)),
        ] {
            assert_eq!(Request::new("GET", url).parts(), expected, "{url}");
        }
    }

    #[test]
    fn natively_nothing_is_sent() {
        assert_eq!(Request::new("GET", "https://a.test/").send(10), Err(Error::NoConnection));
    }
}
