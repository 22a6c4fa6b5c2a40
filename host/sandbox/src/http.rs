//! The interface `wasi:http/outgoing-handler`: requests by grant, and nothing else.
//!
//! What may go out is decided by `belljar-capability`; this module holds a call to it. A host is
//! resolved once for a call, every address is checked, and connections go to checked addresses
//! only. No connection is shared between calls, no proxy is used, and no redirect is followed: a
//! guest that follows one makes a request like any other. A call that sends nothing makes nothing
//! of this.

mod body;
mod client;
mod exchange;
mod fault;
mod headers;
mod prepare;
mod redact;
mod resolve;

pub use redact::Redactor;
pub use resolve::{Resolver, SystemResolver};

use crate::state::{CallState, Denials};
use belljar_capability::{World, is_forbidden_header};
use exchange::Exchange;
use std::{fmt, future::Future, sync::Arc};
use wasmtime::component::Linker;
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView,
    WasiHttpHooks, WasiHttpView,
};

/// What the sandbox reaches the network and the secrets of its environment with.
#[derive(Clone)]
pub struct Outside {
    pub resolver: Arc<dyn Resolver>,
    /// The value of a variable of the host's environment, for secrets.
    pub secrets: SecretSource,
}

/// Looks up the value of a secret by the variable that it is granted from.
pub type SecretSource = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

impl Default for Outside {
    /// The system's own resolver and environment.
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            secrets: Arc::new(|name| std::env::var(name).ok()),
        }
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("resolver", &self.resolver).finish_non_exhaustive()
    }
}

/// What a call's HTTP is made of beside its world.
#[derive(Clone, Debug)]
pub(crate) struct HttpSetup {
    /// The plugin's name, as grants have it.
    pub(crate) plugin: Arc<str>,
    pub(crate) outside: Outside,
    /// Where the plugin has secrets.
    pub(crate) redactor: Option<Arc<Redactor>>,
}

/// Bytes that the header fields of one message may take in memory.
const FIELDS: usize = 64 << 10;
/// Bytes that the guest may write to a request's body at a time.
const BODY_CHUNK: usize = 64 << 10;

/// The part of a call's state that is about HTTP.
pub(crate) struct HttpContext {
    ctx: WasiHttpCtx,
    guard: Guard,
}

impl HttpContext {
    pub(crate) fn new(world: World, setup: HttpSetup, denials: Denials) -> Self {
        let mut ctx = WasiHttpCtx::new();
        ctx.set_field_size_limit(FIELDS);
        Self { ctx, guard: Guard { world, setup, denials, exchange: None } }
    }

    /// The origins that were contacted, sorted.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.guard.exchange.as_ref().map(|exchange| exchange.hosts()).unwrap_or_default()
    }
}

/// Stands between the guest's requests and the network.
struct Guard {
    world: World,
    setup: HttpSetup,
    denials: Denials,
    /// Made for the first request.
    exchange: Option<Arc<Exchange>>,
}

pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}

impl WasiHttpView for CallState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let HttpContext { ctx, guard } = &mut self.http;
        WasiHttpCtxView { hooks: guard, table: &mut self.table, ctx }
    }
}

type Response = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

impl WasiHttpHooks for Guard {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(|name| is_forbidden_to_guests(name.as_str()))
    }

    fn set_host_header(&mut self) -> bool {
        // The client writes it, from the URL that was decided about.
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_CHUNK
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Result<Response, Error>> + Send> {
        let exchange = self.exchange.get_or_insert_with(|| {
            Arc::new(Exchange::new(&self.world, &self.setup, self.denials.clone()))
        });
        // Decided before the guest goes on: a refusal is recorded whether or not it looks.
        let prepared = exchange.prepare(request);
        let exchange = Arc::clone(exchange);
        let options = options.unwrap_or_default();
        Box::new(async move {
            let response = exchange.send(prepared?, options).await?;
            let nothing_more: Box<dyn Future<Output = Result<(), Error>> + Send> =
                Box::new(async { Ok(()) });
            Ok((response, nothing_more))
        })
    }
}

/// The length of a body is the guest's to say; that it says the truth is checked as it writes.
fn is_forbidden_to_guests(name: &str) -> bool {
    name != "content-length" && is_forbidden_header(name)
}
