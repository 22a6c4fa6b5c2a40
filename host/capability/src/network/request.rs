//! A request as it is decided about: made strictly from what a guest hands over.

use super::{Host, HostError, path::PathKey};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| name.eq_ignore_ascii_case(scheme.name()))
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one request is about, in canonical form. What is sent is made from this value and from
/// nothing else, so that what was decided about is what goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetRequest {
    method: String,
    scheme: Scheme,
    host: Host,
    port: u16,
    path: String,
    query: Option<String>,
    /// The path for comparing; nothing where its meaning depends on who reads it.
    path_key: Option<PathKey>,
}

/// A request that is none, or that could be read in two ways.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the method is not one that tools may use: write it in capitals, such as `GET`")]
    Method,
    #[error("only `http` and `https` can be requested")]
    Scheme,
    #[error("a URL has the form `https://host/path`")]
    NotAUrl,
    #[error("a user name or password in a URL is not taken: send it as a header")]
    UserInfo,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("the URL has a control character, a space or a backslash: escape it")]
    Character,
    #[error("the path does not begin with `/`")]
    Path,
    #[error("the URL is longer than {URL} bytes")]
    TooLong,
}

/// The longest URL, in bytes.
const URL: usize = 16 << 10;
const METHOD: usize = 32;

impl NetRequest {
    /// Takes a request apart as `wasi:http` hands it over: the authority is `host[:port]`, the
    /// path is empty or begins with `/`, and has its query with it.
    ///
    /// # Errors
    ///
    /// Anything that two programs could read in two ways.
    pub fn new(
        method: &str,
        scheme: &str,
        authority: &str,
        path_with_query: &str,
    ) -> Result<Self, RequestError> {
        if !is_method(method) {
            return Err(RequestError::Method);
        }
        let scheme = Scheme::from_name(scheme).ok_or(RequestError::Scheme)?;
        if authority.len() + path_with_query.len() > URL {
            return Err(RequestError::TooLong);
        }
        let odd = |c: char| c.is_control() || c.is_whitespace() || "\\#".contains(c);
        if path_with_query.contains(odd) {
            return Err(RequestError::Character);
        }
        if !(path_with_query.is_empty() || path_with_query.starts_with(['/', '?'])) {
            return Err(RequestError::Path);
        }
        let (host, port) = split_authority(authority)?;
        let port = port.unwrap_or(scheme.default_port());

        let raw_path = path_with_query.split('?').next().unwrap_or_default();
        let raw_path = if raw_path.is_empty() { "/" } else { raw_path };
        // Made whole once, by the parser that the client uses as well: dots are resolved and
        // characters escaped here, and what comes out passes through the client unchanged.
        let whole = format!("{scheme}://{host}:{port}{path_with_query}");
        let url = url::Url::parse(&whole).map_err(|_| RequestError::NotAUrl)?;
        Ok(Self {
            method: method.to_owned(),
            scheme,
            host,
            port,
            path: url.path().to_owned(),
            query: url.query().map(str::to_owned),
            // From the path as it was written: an escaped dot is gone from the other.
            path_key: unescaped_dots(raw_path).and_then(|()| PathKey::new(url.path())),
        })
    }

    /// Takes a request for a URL in text, as an argument of a tool has it. What follows `#` is
    /// never sent, and is dropped.
    ///
    /// # Errors
    ///
    /// Anything that two programs could read in two ways.
    pub fn for_url(method: &str, url: &str) -> Result<Self, RequestError> {
        let url = url.split('#').next().unwrap_or_default();
        let (scheme, rest) = url.split_once("://").ok_or(RequestError::NotAUrl)?;
        let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        if scheme.is_empty() || !scheme.chars().all(is_scheme) {
            return Err(RequestError::NotAUrl);
        }
        let end = rest.find(['/', '?', '\\']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        Self::new(method, scheme, authority, path)
    }

    pub fn method(&self) -> &str {
        &self.method
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path, dots resolved, without the query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `https://host[:port]`.
    pub fn origin(&self) -> String {
        let Self { scheme, host, port, .. } = self;
        if *port == scheme.default_port() {
            format!("{scheme}://{host}")
        } else {
            format!("{scheme}://{host}:{port}")
        }
    }

    /// The whole URL, as it is to be sent.
    pub fn url(&self) -> String {
        let mut url = self.origin();
        url.push_str(&self.path);
        if let Some(query) = &self.query {
            url.push('?');
            url.push_str(query);
        }
        url
    }

    pub(super) fn path_key(&self) -> Option<&PathKey> {
        self.path_key.as_ref()
    }
}

/// `METHOD https://host[:port]/path`, without the query: it may hold what is nobody's business.
impl fmt::Display for NetRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.origin(), self.path)
    }
}

/// Capitals only: servers do not agree on whether `get` is `GET`. `CONNECT` asks for a tunnel and
/// `TRACE` for all headers back, those that the host added included.
pub(super) fn is_method(method: &str) -> bool {
    let of_a_method = |c: char| c.is_ascii_uppercase() || c == '-';
    let is_token = (1..=METHOD).contains(&method.len()) && method.chars().all(of_a_method);
    is_token && method != "CONNECT" && method != "TRACE"
}

/// `host[:port]`, where an IPv6 address is in brackets.
pub(super) fn split_authority(authority: &str) -> Result<(Host, Option<u16>), RequestError> {
    if authority.contains('@') {
        return Err(RequestError::UserInfo);
    }
    let host_end = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']').map(|end| end + 2).ok_or(HostError::Invalid)?,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(host_end);
    let port = match port.strip_prefix(':') {
        Some(digits) => Some(port_number(digits).ok_or(RequestError::Port)?),
        None if port.is_empty() => None,
        None => return Err(HostError::Invalid.into()),
    };
    Ok((host.parse()?, port))
}

/// One spelling for each port: no sign, no zeros in front.
fn port_number(digits: &str) -> Option<u16> {
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Nothing where a path has a segment of dots with an escape in it.
fn unescaped_dots(path: &str) -> Option<()> {
    let lower = path.to_ascii_lowercase();
    (!lower.contains("%2e")).then_some(())
}
