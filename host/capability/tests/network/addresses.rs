//! Which addresses are public, beside what CPython's `ipaddress` says of them.

use belljar_capability::is_public;
use std::net::{IpAddr, Ipv6Addr};

/// What `is_global.py` printed.
const EXPECTED: &str = include_str!("is_global.txt");

/// Blocks where the answer differs, and why. In every one of them it is CPython that says global.
const EXCEPTIONS: [(&str, u32, &str); 17] = [
    ("168.63.129.16", 32, "no RFC: one platform's endpoint for its virtual machines"),
    ("192.0.0.0", 24, "RFC 6890: protocol assignments, not globally reachable as a whole"),
    ("192.88.99.0", 24, "RFC 7526: 6to4 relays, deprecated; what answers there is nobody known"),
    ("224.0.0.0", 4, "RFC 5771: multicast, no single host"),
    ("::", 96, "RFC 4291, 2.5.5.1: IPv4-compatible, deprecated, carries any IPv4 address"),
    ("::ffff:0:0:0", 96, "RFC 2765: IPv4-translated, carries any IPv4 address"),
    ("64:ff9b::", 96, "RFC 6052, 3.1: carries an IPv4 address, and is judged by it"),
    ("64:ff9b:1::", 48, "RFC 8215: translation inside one network"),
    ("2002::", 16, "RFC 7526: 6to4, deprecated, carries any IPv4 address"),
    ("2a00:1450:4001:800:0:5efe::", 96, "RFC 5214: ISATAP, judged by the IPv4 address it carries"),
    (
        "2a00:1450:4001:800:200:5efe::",
        96,
        "RFC 5214: ISATAP, judged by the IPv4 address it carries",
    ),
    ("3fff::", 20, "RFC 9637: documentation"),
    ("ff00::", 8, "RFC 4291, 2.7: multicast, no single host"),
    ("fec0::", 10, "RFC 3879: site-local, deprecated"),
    ("::", 3, "RFC 4291, 2.4: given out for special purposes only"),
    ("4000::", 2, "RFC 4291, 2.4: not given out"),
    ("8000::", 1, "RFC 4291, 2.4: not given out for addresses of single hosts"),
];

fn within(address: IpAddr, block: &str, length: u32) -> bool {
    match (address, block.parse().unwrap()) {
        (IpAddr::V4(address), IpAddr::V4(block)) => {
            (address.to_bits() ^ block.to_bits()).leading_zeros() >= length
        }
        (IpAddr::V6(address), IpAddr::V6(block)) => {
            (address.to_bits() ^ block.to_bits()).leading_zeros() >= length
        }
        _ => false,
    }
}

#[test]
fn addresses_are_public_where_cpython_calls_them_global() {
    let mut met = [0; EXCEPTIONS.len()];
    let mut seen = 0;
    for line in EXPECTED.lines().filter(|line| !line.starts_with('#')) {
        let (address, expected) = line.split_once(' ').unwrap();
        let address: IpAddr = address.parse().unwrap();
        let expected: bool = expected.parse().unwrap();
        seen += 1;
        if is_public(address) == expected {
            continue;
        }
        // Never the other way round: nothing that CPython calls private is public here.
        assert!(expected, "{address} is public here");
        let exception = EXCEPTIONS
            .iter()
            .position(|(block, length, _)| within(address, block, *length))
            .unwrap_or_else(|| panic!("{address} is not public here, and no exception says why"));
        met[exception] += 1;
    }
    assert!(seen > 1_000, "{seen}");
    for (count, (block, length, reason)) in met.iter().zip(EXCEPTIONS) {
        assert!(*count > 0, "the exception {block}/{length} ({reason}) is not one");
    }
}

/// Later versions of CPython follow IANA's registries in calling a few blocks global that lie in
/// larger ones which are not. None of them is where a server has its address, and they stay closed.
#[test]
fn reachable_blocks_for_special_purposes_stay_closed() {
    for (address, purpose) in [
        ("192.0.0.9", "RFC 7723: port control, anycast"),
        ("192.0.0.10", "RFC 8155: TURN, anycast"),
        ("2001:1::1", "RFC 7723: port control, anycast"),
        ("2001:1::2", "RFC 8155: TURN, anycast"),
        ("2001:3::1", "RFC 7450: multicast tunnels"),
        ("2001:4:112::1", "RFC 7535: AS112, answers to queries that should not be asked"),
        ("2001:20::1", "RFC 7343: hashes that look like addresses"),
        ("2001:30::1", "RFC 9374: identifiers of drones"),
    ] {
        assert!(!is_public(address.parse().unwrap()), "{address} ({purpose})");
    }
}

#[test]
fn an_address_that_carries_another_is_never_public_where_that_one_is_not() {
    let carry: [fn(u32) -> u128; 9] = [
        |v4| u128::from(v4),
        |v4| 0xffff << 32 | u128::from(v4),
        |v4| 0xffff << 48 | u128::from(v4),
        |v4| 0x0064_ff9b << 96 | u128::from(v4),
        |v4| 0x0064_ff9b_0001 << 80 | u128::from(v4),
        |v4| 0x2002 << 112 | u128::from(v4) << 80 | 1,
        |v4| 0x2001_0000 << 96 | u128::from(!v4),
        |v4| 0x2a00_1450_4001_0800 << 64 | 0x5efe << 32 | u128::from(v4),
        |v4| 0x2a00_1450_4001_0800 << 64 | 0x0200_5efe << 32 | u128::from(v4),
    ];
    for private in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "100.64.0.1"] {
        let v4: std::net::Ipv4Addr = private.parse().unwrap();
        for (form, carry) in carry.iter().enumerate() {
            let address = Ipv6Addr::from_bits(carry(v4.to_bits()));
            assert!(!is_public(address.into()), "{private} in form {form}: {address}");
        }
    }
}
