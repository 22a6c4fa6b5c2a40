//! Deciding about one request, and about each address that its host leads to.

use super::{Host, NetGrant, NetRequest, special_range};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr};

/// What a call may do over the network at all, before any grant is looked at. Ordered from the
/// narrowest to the widest.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkScope {
    /// Nothing: the tool does not call itself open-world.
    #[default]
    None,
    /// `GET` and `HEAD` without bodies.
    ReadOnly,
    Full,
}

/// A request that was decided on. Only [`decide_request`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    request: NetRequest,
    takes_body: bool,
    any_method: bool,
}

impl Permit {
    pub fn request(&self) -> &NetRequest {
        &self.request
    }

    /// Whether the request may carry a body.
    pub fn takes_body(&self) -> bool {
        self.takes_body
    }

    /// Whether every method was granted, so that a header which asks the server for another one
    /// asks for nothing more.
    pub fn allows_any_method(&self) -> bool {
        self.any_method
    }
}

/// A refusal: what was refused, why, and the grant that would allow exactly that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{target} is refused: {reason}")]
pub struct NetDenial {
    /// What was tried: `GET https://host/path`.
    pub target: String,
    pub reason: String,
    /// Nothing where no grant would help.
    pub grant: Option<Box<NetGrant>>,
}

/// Decides about a request. What its host resolves to is decided after, by [`decide_address`].
///
/// # Errors
///
/// The scope does not reach as far, or no grant covers the request.
pub fn decide_request(
    grants: &[NetGrant],
    scope: NetworkScope,
    request: &NetRequest,
) -> Result<Permit, NetDenial> {
    let deny = |reason: &str, grant: Option<NetGrant>| {
        let grant = grant.map(Box::new);
        Err(NetDenial { target: request.to_string(), reason: reason.to_owned(), grant })
    };
    let is_read = matches!(request.method(), "GET" | "HEAD");
    match scope {
        NetworkScope::None => return deny("this call has no network", None),
        NetworkScope::ReadOnly if !is_read => {
            return deny("this call may only read: its requests are `GET` or `HEAD`", None);
        }
        NetworkScope::ReadOnly | NetworkScope::Full => {}
    }
    let covering = || grants.iter().filter(|grant| grant.covers(request));
    if covering().next().is_none() {
        let of_host = || grants.iter().filter(|grant| grant.covers_host(request));
        let reason = if of_host().next().is_none() {
            "the host is not granted"
        } else if !of_host().any(|grant| grant.covers_method(request)) {
            "the method is not granted for this host"
        } else {
            "the path is not granted for this host"
        };
        let grant = NetGrant::of_host(request.scheme(), request.host().clone(), request.port());
        return deny(reason, Some(grant));
    }
    Ok(Permit {
        request: request.clone(),
        takes_body: scope == NetworkScope::Full,
        any_method: scope == NetworkScope::Full
            && covering().any(|grant| !grant.is_limited_to_methods()),
    })
}

/// Decides about an address that the host of a permitted request leads to. A public one is
/// covered by the grant of the host; any other only where a grant names that very address and
/// port.
///
/// # Errors
///
/// The address is special, and no grant names it.
pub fn decide_address(
    grants: &[NetGrant],
    permit: &Permit,
    address: IpAddr,
) -> Result<(), NetDenial> {
    let Some(range) = special_range(address) else { return Ok(()) };
    let request = permit.request();
    if grants.iter().any(|grant| grant.names_address(address, request.port())) {
        return Ok(());
    }
    let grant = NetGrant::of_host(request.scheme(), Host::from(address), request.port());
    let reason = match request.host() {
        Host::Address(_) => format!("the address is not a public one ({range})"),
        Host::Name(name) => {
            format!("`{name}` leads to {address}, which is not a public address ({range})")
        }
    };
    Err(NetDenial { target: request.to_string(), reason, grant: Some(Box::new(grant)) })
}

impl fmt::Display for NetworkScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::ReadOnly => "read-only",
            Self::Full => "full",
        })
    }
}
