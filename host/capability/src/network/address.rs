//! Which addresses are public: reachable from anywhere on the internet, and so nobody's inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is a public one. What IANA's registries of special addresses call not
/// globally reachable is not, nor is multicast, nor what no registry has given out. An IPv6
/// address that carries an IPv4 address is judged by that one, or refused outright.
///
/// A network may have a prefix of its own for carrying IPv4 in IPv6 (RFC 6052, section 2.2). Such
/// an address looks like any other, and is taken for what it looks like.
pub fn is_public(address: IpAddr) -> bool {
    special_range(address).is_none()
}

/// What kind of address it is, where it is not a public one, for people: `loopback`.
pub fn special_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => special_v6(address),
    }
}

/// First address, length of the prefix, what it is.
type Range<A> = (A, u32, &'static str);

const V4: [Range<[u8; 4]>; 17] = [
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared by a provider's customers"),
    ([127, 0, 0, 0], 8, "loopback"),
    // The virtual machine's way to its own platform, credentials included, at the one vendor
    // whose address for that lies in a public range.
    ([168, 63, 129, 16], 32, "platform metadata"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "protocol assignments"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([255, 255, 255, 255], 32, "broadcast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

const V6: [Range<[u16; 8]>; 11] = [
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "private"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local IPv4 translation"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "Teredo tunnel"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4 tunnel"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

const MAPPED: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0);
const TRANSLATED: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
/// All that has been given out for addresses of single hosts.
const GLOBAL_UNICAST: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    V4.iter()
        .find(|(first, length, _)| {
            let differing = bits ^ u32::from_be_bytes(*first);
            differing.leading_zeros() >= *length
        })
        .map(|(_, _, what)| *what)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let [.., a, b] = address.segments();
    let last = Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b));
    if within(address, MAPPED, 96) || within(address, TRANSLATED, 96) {
        return special_v4(last);
    }
    let listed = V6
        .iter()
        .find(|(first, length, _)| within(address, Ipv6Addr::from(*first), *length))
        .map(|(_, _, what)| *what);
    if listed.is_some() {
        return listed;
    }
    if !within(address, GLOBAL_UNICAST, 3) {
        return Some("reserved");
    }
    // An interface identifier of this form makes a router inside a site send to the IPv4 address
    // that follows it.
    let is_isatap = matches!(address.segments()[4..6], [0 | 0x200, 0x5efe]);
    if is_isatap { special_v4(last) } else { None }
}

fn within(address: Ipv6Addr, first: Ipv6Addr, length: u32) -> bool {
    (address.to_bits() ^ first.to_bits()).leading_zeros() >= length
}
