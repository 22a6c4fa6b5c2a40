//! A host in its one canonical form.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// A host as it is compared and sent: a name in lower case, with what is not ASCII as Punycode, or
/// an address. It is made with the host parser of the URL standard, so `0x7f.1` is `127.0.0.1`
/// here as it is for whatever connects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    Name(String),
    Address(IpAddr),
}

/// A host that is none, or is written in a way that not every program reads alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the host is missing")]
    Empty,
    #[error("the host has a character that no host has")]
    Character,
    #[error("the host ends in a dot: write it without")]
    TrailingDot,
    #[error("the host is no name and no address")]
    Invalid,
    #[error("the host or a part of it is too long")]
    TooLong,
}

const NAME: usize = 253;
const LABEL: usize = 63;

impl FromStr for Host {
    type Err = HostError;

    /// Reads a name, an IPv4 address in any spelling of the URL standard, or an IPv6 address in
    /// brackets.
    fn from_str(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        // The URL standard would decode an escape; a host has no need of any.
        let odd = |c: char| c.is_control() || c.is_whitespace() || "%/\\?#@".contains(c);
        if text.contains(odd) {
            return Err(HostError::Character);
        }
        let name = match url::Host::parse(text) {
            Ok(url::Host::Ipv4(address)) if !text.ends_with('.') => return Ok(address.into()),
            Ok(url::Host::Ipv4(_)) => return Err(HostError::TrailingDot),
            Ok(url::Host::Ipv6(address)) => return Ok(address.into()),
            Ok(url::Host::Domain(name)) => name,
            Err(_) if text.len() > NAME => return Err(HostError::TooLong),
            Err(_) => return Err(HostError::Invalid),
        };
        // Looked at after mapping: there are other dots than the one in ASCII.
        if name.ends_with('.') {
            return Err(HostError::TrailingDot);
        }
        if name.len() > NAME || name.split('.').any(|label| label.len() > LABEL) {
            return Err(HostError::TooLong);
        }
        let of_a_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        if !name.chars().all(of_a_name) {
            return Err(HostError::Character);
        }
        if name.split('.').any(str::is_empty) {
            return Err(HostError::Invalid);
        }
        Ok(Self::Name(name))
    }
}

impl Host {
    /// The address, where the host is one.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Address(address) => Some(*address),
        }
    }

    /// Whether it is this very machine, by address or by the name that is kept for it.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.is_loopback(),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address)
    }
}

impl From<Ipv4Addr> for Host {
    fn from(address: Ipv4Addr) -> Self {
        Self::Address(address.into())
    }
}

impl From<Ipv6Addr> for Host {
    fn from(address: Ipv6Addr) -> Self {
        Self::Address(address.into())
    }
}

/// As in a URL: an IPv6 address in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            // `url`'s form, which is the URL standard's: never with an IPv4 address in it.
            Self::Address(IpAddr::V6(address)) => url::Host::<&str>::Ipv6(*address).fmt(f),
        }
    }
}
