//! One network grant, as a person writes it.

use super::{
    Host, NetRequest, RequestError, Scheme,
    path::PathKey,
    request::{is_method, split_authority},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{collections::BTreeSet, fmt, net::IpAddr, str::FromStr};

/// A grant of requests: `[METHOD,… ]TARGET`.
///
/// | text | what it grants |
/// | --- | --- |
/// | `https://api.example.com` | requests to that host over https, at port 443 |
/// | `http://127.0.0.1:8080` | requests to that address and port |
/// | `https://[fd00::1]` | the same for an IPv6 address |
/// | `https://*.example.com` | any name below `example.com`, not `example.com` itself |
/// | `https://api.example.com/v1` | only `/v1` and what is below it; `/v1/` only what is below |
/// | `GET,HEAD https://api.example.com` | only those methods |
/// | `public` | any host with public addresses, over http at port 80 and https at port 443 |
/// | `GET,HEAD public` | the same with only those methods |
///
/// A grant of a name is none of the private addresses that the name may lead to: those are granted
/// by naming the address. The text of a value is canonical; equal grants have equal texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetGrant {
    /// Nothing stands for every method.
    methods: BTreeSet<String>,
    target: Target,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    Public,
    Hosts {
        scheme: Scheme,
        /// The host itself, or with `below` all names under it.
        host: Host,
        below: bool,
        port: u16,
        path: Option<GrantPath>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct GrantPath {
    text: String,
    key: PathKey,
}

/// A text that is no grant. Each says what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetGrantError {
    #[error(
        "`{text}` is not a network grant: write `https://host`, `https://host:port`, \
         `https://*.host` for its subdomains, or `public`, with `GET,HEAD ` in front to limit the \
         methods and a path behind the host to limit the paths"
    )]
    Shape { text: String },
    #[error(
        "`{method}` is not a method that can be granted: write methods in capitals with commas \
         between them and one space behind, as in `GET,HEAD https://host`"
    )]
    Method { method: String },
    #[error("the network grant `{text}` is refused: {reason}")]
    Host { text: String, reason: RequestError },
    #[error("the network grant `{text}` has another way to write its host: write `{canonical}`")]
    Spelling { text: String, canonical: Host },
    #[error(
        "the network grant `{text}` is too wide: `*.` stands before a name of at least two parts, \
         as in `https://*.example.com`; any public host is `public`"
    )]
    Wildcard { text: String },
    #[error(
        "the network grant `{text}` has a query or a fragment, which no grant can be limited by: \
         write it without"
    )]
    Query { text: String },
    #[error(
        "the path of the network grant `{text}` could be read in two ways: write it without \
         escapes of `/`, `.`, `\\` and `%`, without `.` and `..`, and without empty parts"
    )]
    Path { text: String },
}

impl FromStr for NetGrant {
    type Err = NetGrantError;

    fn from_str(text: &str) -> Result<Self, NetGrantError> {
        let (methods, target) = match text.split_once(' ') {
            Some((methods, target)) => (read_methods(methods)?, target),
            None => (BTreeSet::new(), text),
        };
        Ok(Self { methods, target: read_target(target, text)? })
    }
}

fn read_methods(text: &str) -> Result<BTreeSet<String>, NetGrantError> {
    text.split(',')
        .map(|method| match is_method(method) {
            true => Ok(method.to_owned()),
            false => Err(NetGrantError::Method { method: method.to_owned() }),
        })
        .collect()
}

fn read_target(target: &str, whole: &str) -> Result<Target, NetGrantError> {
    let text = || whole.to_owned();
    if target == "public" {
        return Ok(Target::Public);
    }
    let (scheme, rest) =
        target.split_once("://").ok_or_else(|| NetGrantError::Shape { text: text() })?;
    let scheme = Scheme::from_name(scheme).ok_or_else(|| NetGrantError::Shape { text: text() })?;
    if rest.contains(['?', '#']) {
        return Err(NetGrantError::Query { text: text() });
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (authority, below) = match authority.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (authority, false),
    };
    if authority.contains('*') {
        return Err(NetGrantError::Wildcard { text: text() });
    }
    let (host, port) = split_authority(authority)
        .map_err(|reason| NetGrantError::Host { text: text(), reason })?;
    match &host {
        Host::Name(name) if below && !name.contains('.') => {
            return Err(NetGrantError::Wildcard { text: text() });
        }
        Host::Name(_) => {}
        Host::Address(_) if below => return Err(NetGrantError::Wildcard { text: text() }),
        // A person sees at once what `127.0.0.1` grants, and not what `0177.1` does.
        Host::Address(_) => {
            let canonical = host.to_string();
            if !authority.starts_with(&canonical) {
                return Err(NetGrantError::Spelling { text: text(), canonical: host });
            }
        }
    }
    let path = match path {
        "" | "/" => None,
        path => Some(read_path(path).ok_or_else(|| NetGrantError::Path { text: text() })?),
    };
    let port = port.unwrap_or(scheme.default_port());
    Ok(Target::Hosts { scheme, host, below, port, path })
}

fn read_path(path: &str) -> Option<GrantPath> {
    let canonical = NetRequest::new("GET", "https", "a", path).ok()?;
    if canonical.path() != path || path.contains("//") {
        return None;
    }
    Some(GrantPath { text: path.to_owned(), key: canonical.path_key()?.clone() })
}

impl NetGrant {
    /// The grant of one host and port, for whatever is asked there.
    pub fn of_host(scheme: Scheme, host: Host, port: u16) -> Self {
        let target = Target::Hosts { scheme, host, below: false, port, path: None };
        Self { methods: BTreeSet::new(), target }
    }

    /// Whether the grant is of any public host.
    pub fn is_public(&self) -> bool {
        self.target == Target::Public
    }

    /// Whether the grant covers a request. The address that its host leads to is another question.
    pub fn covers(&self, request: &NetRequest) -> bool {
        self.covers_host(request) && self.covers_method(request) && self.covers_path(request)
    }

    /// Whether the grant is limited to some methods.
    pub fn is_limited_to_methods(&self) -> bool {
        !self.methods.is_empty()
    }

    pub(super) fn covers_method(&self, request: &NetRequest) -> bool {
        self.methods.is_empty() || self.methods.contains(request.method())
    }

    pub(super) fn covers_host(&self, request: &NetRequest) -> bool {
        match &self.target {
            Target::Public => request.port() == request.scheme().default_port(),
            Target::Hosts { scheme, host, below, port, .. } => {
                let is_host =
                    if *below { is_below(request.host(), host) } else { request.host() == host };
                is_host && request.scheme() == *scheme && request.port() == *port
            }
        }
    }

    fn covers_path(&self, request: &NetRequest) -> bool {
        match &self.target {
            Target::Hosts { path: Some(path), .. } => {
                request.path_key().is_some_and(|key| path.key.covers(key))
            }
            Target::Public | Target::Hosts { path: None, .. } => true,
        }
    }

    /// Whether the grant names this very address and port.
    pub(super) fn names_address(&self, address: IpAddr, wanted: u16) -> bool {
        match &self.target {
            Target::Public => false,
            Target::Hosts { host, port, .. } => host.address() == Some(address) && *port == wanted,
        }
    }
}

fn is_below(host: &Host, parent: &Host) -> bool {
    match (host, parent) {
        (Host::Name(name), Host::Name(parent)) => name
            .strip_suffix(parent.as_str())
            .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        _ => false,
    }
}

impl fmt::Display for NetGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            let methods: Vec<_> = self.methods.iter().map(String::as_str).collect();
            write!(f, "{} ", methods.join(","))?;
        }
        let Target::Hosts { scheme, host, below, port, path } = &self.target else {
            return f.write_str("public");
        };
        write!(f, "{scheme}://{}{host}", if *below { "*." } else { "" })?;
        if *port != scheme.default_port() {
            write!(f, ":{port}")?;
        }
        f.write_str(path.as_ref().map_or("", |path| &path.text))
    }
}

impl Serialize for NetGrant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NetGrant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
