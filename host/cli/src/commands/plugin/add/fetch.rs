//! A component from a URL: over https, or from this very machine, and never more than a component
//! may have. What was fetched is believed only by its digest, which the caller checks.

use super::Source;
use crate::exit::Usage;
use anyhow::Context as _;
use reqwest::{Client, Url, redirect};
use std::time::Duration;

const COMPONENT_SIZE: usize = 128 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const TIMEOUT: Duration = Duration::from_secs(10 * 60);
const REDIRECTS: usize = 5;

pub(super) async fn fetch(url: &str) -> anyhow::Result<Source> {
    let url: Url = url.parse().map_err(|_| Usage(format!("`{url}` is not a URL")))?;
    if !is_safe(&url) {
        return Err(Usage(format!("`{url}` is not fetched: a plugin comes over `https`")).into());
    }
    let name = url
        .path_segments()
        .and_then(|mut segments| segments.next_back())
        .and_then(|file| file.strip_suffix(".wasm"))
        .unwrap_or_default()
        .to_owned();
    let client = client(&url).context("cannot make an HTTP client")?;
    let context = || format!("`{url}` cannot be fetched");
    let mut answer = client.get(url.clone()).send().await.with_context(context)?;
    anyhow::ensure!(
        answer.status().is_success(),
        "`{url}` cannot be fetched: the server says {}",
        answer.status()
    );
    let mut component = Vec::new();
    while let Some(chunk) = answer.chunk().await.with_context(context)? {
        component.extend_from_slice(&chunk);
        anyhow::ensure!(
            component.len() <= COMPONENT_SIZE,
            "`{url}` is longer than the {COMPONENT_SIZE} bytes that a plugin may have"
        );
    }
    Ok(Source { name, component, beside: None })
}

fn client(url: &Url) -> reqwest::Result<Client> {
    // Only one program-wide default can be: another's serves just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let policy = redirect::Policy::custom(|attempt| {
        if attempt.previous().len() > REDIRECTS {
            attempt.error("too many redirects")
        } else if is_safe(attempt.url()) {
            attempt.follow()
        } else {
            attempt.error("it redirects away from https")
        }
    });
    let mut builder = Client::builder()
        .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(policy);
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // No certificate is ever looked at.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// Over https, or in the clear on this machine alone.
fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || url.scheme() == "http" && is_loopback(url)
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']');
        address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_comes_over_https_or_from_this_machine() {
        for (url, expected) in [
            ("https://example.org/a.wasm", true),
            ("http://127.0.0.1:8080/a.wasm", true),
            ("http://[::1]/a.wasm", true),
            ("http://example.org/a.wasm", false),
            ("http://127.0.0.1.example.org/a.wasm", false),
            ("http://localhost/a.wasm", false),
            ("ftp://127.0.0.1/a.wasm", false),
            ("file:///a.wasm", false),
        ] {
            assert_eq!(is_safe(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
