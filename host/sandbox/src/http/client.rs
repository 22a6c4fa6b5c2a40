//! The HTTP clients of one call: one for each host and port, bound to the addresses that were
//! checked for it.

use super::resolve::Pinned;
use belljar_capability::{Host, NetRequest, Scheme};
use reqwest::{Client, redirect, retry};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Header fields in a response, and their bytes where the protocol counts them.
const HEADERS: usize = 100;
const HEADER_BYTES: u32 = 64 << 10;

/// The clients, by origin. They go with the call, and so do their connections.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<HashMap<String, Client>>);

impl Clients {
    /// The client for a request. The addresses are those that were checked for its host and port,
    /// which are the same for the whole call.
    pub(super) fn get(
        &self,
        request: &NetRequest,
        addresses: &[IpAddr],
    ) -> Result<Client, reqwest::Error> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = request.origin();
        if let Some(client) = clients.get(&origin) {
            return Ok(client.clone());
        }
        let client = build(request, addresses)?;
        clients.insert(origin, client.clone());
        Ok(client)
    }
}

fn build(request: &NetRequest, addresses: &[IpAddr]) -> Result<Client, reqwest::Error> {
    // Only one program-wide default can be: where the embedding program has set its own, that
    // one serves just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // An address in a URL is connected to without asking a resolver.
    let name = match request.host() {
        Host::Name(name) => name.clone(),
        Host::Address(_) => String::new(),
    };
    let builder = Client::builder()
        .dns_resolver(Pinned { name, addresses: addresses.to_vec() })
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .connect_timeout(CONNECT_TIMEOUT)
        .http1_max_headers(HEADERS)
        .http2_max_header_list_size(HEADER_BYTES)
        .user_agent(concat!("belljar/", env!("CARGO_PKG_VERSION")));
    match request.scheme() {
        // No certificate is ever looked at.
        Scheme::Http => builder.tls_certs_only([]).build(),
        Scheme::Https => builder.https_only(true).build(),
    }
}
