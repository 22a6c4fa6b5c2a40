//! Resolving names: once for each name in a call.

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::OnceCell;

/// Turns a host's name into addresses.
#[async_trait]
pub trait Resolver: fmt::Debug + Send + Sync {
    /// The addresses of a name, in no particular order.
    ///
    /// # Errors
    ///
    /// There is no such name, or nobody can be asked.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// The most addresses of one name that are looked at.
const ADDRESSES: usize = 16;

/// What a call has resolved: a name has the same addresses from its first request to its last.
#[derive(Debug)]
pub(super) struct Resolved {
    resolver: Arc<dyn Resolver>,
    names: Mutex<HashMap<String, Arc<OnceCell<Vec<IpAddr>>>>>,
}

impl Resolved {
    pub(super) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, names: Mutex::default() }
    }

    /// The addresses of a name, IPv4 first, each once. A name that has none now may have some the
    /// next time; one that has keeps them.
    pub(super) async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let cell = {
            let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(names.entry(name.to_owned()).or_default())
        };
        let addresses = cell
            .get_or_try_init(|| async {
                let found: BTreeSet<_> = self.resolver.resolve(name).await?.into_iter().collect();
                if found.is_empty() {
                    return Err(io::Error::from(io::ErrorKind::NotFound));
                }
                Ok(found.into_iter().take(ADDRESSES).collect())
            })
            .await?;
        Ok(addresses.clone())
    }
}

/// What a client resolves with: one name, and the addresses that were checked for it.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) name: String,
    pub(super) addresses: Vec<IpAddr>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let addresses =
            if name.as_str() == self.name { self.addresses.clone() } else { Vec::new() };
        Box::pin(async move {
            let addresses: Addrs =
                Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
