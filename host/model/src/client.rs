//! The HTTP client: what it sends along with every request, and what it never does (follow a
//! redirect, retry, send a loopback request through a proxy, end a long answer by a clock).

use crate::{ApiKey, Protocol};
use reqwest::{
    Client, ClientBuilder, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect, retry,
};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The headers of every request, or `None` where the key cannot be one.
pub(crate) fn headers(protocol: Protocol, key: Option<&ApiKey>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if protocol == Protocol::Anthropic {
        headers.insert(
            HeaderName::from_static("anthropic-version"),
            HeaderValue::from_static(ANTHROPIC_VERSION),
        );
    }
    if let Some(key) = key {
        let (name, text) = match protocol {
            Protocol::Anthropic => (HeaderName::from_static("x-api-key"), key.expose().to_owned()),
            Protocol::OpenAi | Protocol::OpenAiResponses => {
                (AUTHORIZATION, format!("Bearer {}", key.expose()))
            }
        };
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

/// A client for requests to `url`, or what is wrong.
pub(crate) fn build(url: &Url, headers: HeaderMap) -> Result<Client, String> {
    builder(url, headers).build().map_err(|error| error_chain(&error))
}

/// What every client of ours has in common.
pub(crate) fn builder(url: &Url, headers: HeaderMap) -> ClientBuilder {
    // Only one program-wide default can be: where the embedding program has set its own, that
    // one serves just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .retry(retry::never());
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // No certificate is ever looked at: a machine without any can still use a local server.
        builder = builder.tls_certs_only([]);
    }
    builder
}

/// What the layers of the HTTP client say of every error below them.
const SAYS_NOTHING: [&str; 4] = [
    "error sending request",
    "client error",
    "error decoding response body",
    "error reading a body from connection",
];

/// An error's causes in one line, as far as they say something.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let is_telling = !SAYS_NOTHING.iter().any(|words| text.starts_with(words));
        if is_telling && !causes.iter().any(|cause| cause.contains(&text)) {
            causes.push(text);
        }
        next = error.source();
    }
    if causes.is_empty() { error.to_string() } else { causes.join(": ") }
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_by_address_and_by_name() {
        let loopback = |url: &str| is_loopback(&Url::parse(url).unwrap());
        for url in ["http://127.0.0.1:1", "http://127.9.9.9/", "http://[::1]:1", "http://localhost"]
        {
            assert!(loopback(url), "{url}");
        }
        for url in ["http://10.0.0.1", "https://localhost.test", "http://[fe80::1]/"] {
            assert!(!loopback(url), "{url}");
        }
    }

    #[test]
    fn the_key_is_marked_as_sensitive() {
        let headers = headers(Protocol::OpenAi, ApiKey::new("sk-secret").as_ref()).unwrap();
        assert!(!format!("{headers:?}").contains("sk-secret"));
    }
}
