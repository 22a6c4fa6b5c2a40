//! What the requests of one call share, and the sending of each.

use super::{
    HttpSetup, SecretSource,
    body::{self, RequestBody, ResponseBody},
    client::Clients,
    fault, headers,
    prepare::Prepared,
    redact::Redactor,
    resolve::Resolved,
};
use crate::state::Denials;
use belljar_capability::{
    Host, Limits, NetGrant, NetRequest, Permit, SecretGrant, World, decide_address,
};
use http_body_util::BodyExt;
use std::{
    collections::BTreeSet,
    future::Future,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

/// Header bytes of one response.
const HEADER_BYTES: usize = 64 << 10;

pub(super) struct Exchange {
    pub(super) world: World,
    /// All that is granted to this call: to its plugin, and by a person's answer.
    pub(super) grants: Vec<NetGrant>,
    pub(super) plugin: Arc<str>,
    pub(super) denials: Denials,
    /// Where the plugin has secrets.
    pub(super) redactor: Option<Arc<Redactor>>,
    source: SecretSource,
    resolved: Resolved,
    clients: Clients,
    requests: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    hosts: Mutex<BTreeSet<String>>,
}

impl Exchange {
    pub(super) fn new(world: &World, setup: &HttpSetup, denials: Denials) -> Self {
        let HttpSetup { plugin, outside, redactor } = setup;
        let approved = world.approved.host.clone();
        Self {
            world: world.clone(),
            grants: world.granted.net.iter().cloned().chain(approved).collect(),
            plugin: Arc::clone(plugin),
            denials,
            redactor: redactor.clone(),
            source: Arc::clone(&outside.secrets),
            resolved: Resolved::new(Arc::clone(&outside.resolver)),
            clients: Clients::default(),
            requests: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            hosts: Mutex::default(),
        }
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Whether one more request may be sent.
    pub(super) fn take_request(&self) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed) < self.limits().requests
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.world.granted.limits
    }

    pub(super) fn secret_value(&self, secret: &SecretGrant) -> Option<String> {
        (self.source)(secret.from_env())
    }

    /// Sends a request and gives its response as soon as its headers are there.
    pub(super) async fn send(
        self: Arc<Self>,
        prepared: Prepared,
        options: RequestOptions,
    ) -> Result<http::Response<WasiBody>, Error> {
        let Prepared { permit, headers, body } = prepared;
        let addresses = self.addresses(&permit).await?;
        let request = permit.request();
        let client = self.client(request, addresses).await?;
        let url = reqwest::Url::parse(&request.url()).map_err(|_| Error::HttpRequestUriInvalid)?;
        let method = http::Method::from_bytes(request.method().as_bytes())
            .map_err(|_| Error::HttpRequestMethodInvalid)?;
        let mut outgoing = reqwest::Request::new(method, url);
        *outgoing.headers_mut() = headers;
        if permit.takes_body() {
            *outgoing.body_mut() = RequestBody::wrap(body, Arc::clone(&self), request.to_string());
        } else if !body::is_empty(body).await? {
            let reason = "this call may only read: its requests have no bodies";
            return Err(self.refuse(&request.to_string(), reason));
        }

        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(request.origin());
        let response = within(first_byte(&options), client.execute(outgoing)).await?;
        let response = response.map_err(|error| fault::of_client(&error))?;
        self.receive(response, &permit, options)
    }

    /// The client for a request. The first of a call for https reads the system's certificates,
    /// which is not done on the loop's runtime.
    async fn client(
        self: &Arc<Self>,
        request: &NetRequest,
        addresses: Vec<IpAddr>,
    ) -> Result<reqwest::Client, Error> {
        let (this, request) = (Arc::clone(self), request.clone());
        tokio::task::spawn_blocking(move || this.clients.get(&request, &addresses))
            .await
            .map_err(|_| Error::InternalError(None))?
            .map_err(|error| fault::of_client(&error))
    }

    /// The addresses that the request may go to.
    async fn addresses(&self, permit: &Permit) -> Result<Vec<IpAddr>, Error> {
        let found = match permit.request().host() {
            Host::Address(address) => vec![*address],
            Host::Name(name) => {
                self.resolved.addresses(name).await.map_err(|e| fault::of_lookup(&e))?
            }
        };
        let mut checked = Vec::with_capacity(found.len());
        let mut refused = None;
        for address in found {
            match decide_address(&self.grants, permit, address) {
                Ok(()) => checked.push(address),
                Err(denial) => refused = refused.or(Some(denial)),
            }
        }
        match (checked.is_empty(), refused) {
            (true, Some(denial)) => Err(self.refuse_by(denial)),
            (true, None) => Err(Error::DestinationNotFound),
            (false, _) => Ok(checked),
        }
    }

    fn receive(
        self: Arc<Self>,
        response: reqwest::Response,
        permit: &Permit,
        options: RequestOptions,
    ) -> Result<http::Response<WasiBody>, Error> {
        let (mut parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
        // What the client keeps there is its own.
        parts.extensions.clear();
        if headers::size(&parts.headers) > HEADER_BYTES {
            return Err(Error::HttpResponseHeaderSectionSize(None));
        }
        if let Some(redactor) = &self.redactor {
            if !headers::is_plain(&parts.headers) {
                return Err(Error::HttpResponseContentCoding(None));
            }
            redactor.headers(&mut parts.headers);
        }
        let redacting = self.redactor.as_ref().map(Redactor::stream);
        let target = permit.request().to_string();
        let body = ResponseBody::new(body, self, target, redacting, options.between_bytes_timeout);
        Ok(http::Response::from_parts(parts, body.boxed_unsync()))
    }
}

/// How long the guest wants to wait for a response at most. Connecting is a part of it.
fn first_byte(options: &RequestOptions) -> Option<Duration> {
    let first_byte = options.first_byte_timeout?;
    Some(first_byte + options.connect_timeout.unwrap_or_default())
}

async fn within<T>(limit: Option<Duration>, work: impl Future<Output = T>) -> Result<T, Error> {
    match limit {
        None => Ok(work.await),
        Some(limit) => {
            tokio::time::timeout(limit, work).await.map_err(|_| Error::ConnectionReadTimeout)
        }
    }
}
