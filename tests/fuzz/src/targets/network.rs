//! Network grants, requests, addresses and secrets.

use super::{Target, Verdict, lines};
use crate::generate;
use belljar_capability::{
    NetGrant, NetRequest, NetworkScope, SecretGrant, decide_address, decide_request, is_public,
    special_range,
};
use std::net::IpAddr;

/// A grant, a method, a URL and an address, one a line.
pub(super) const TARGET: Target =
    Target { name: "network", check, generate: |rng| generate::text(rng, &SAMPLES, &WORDS) };

const SAMPLES: [&str; 8] = [
    "https://api.example.com\nGET\nhttps://api.example.com/v1/x?y=z#f\n93.184.215.14",
    "GET,HEAD https://*.example.com:8443/v1/\nHEAD\nhttps://a.b.example.com:8443/v1/a%20b\n::1",
    "http://127.0.0.1:8080\nPOST\nhttp://0x7f.1:8080/\n127.0.0.1",
    "https://[fd00::1]\nGET\nhttps://[fd00:0::1]:443/../a/./b\nfd00::1",
    "public\nGET\nhttps://bücher.example/%7Ea\n::ffff:10.0.0.1",
    "GET public\nDELETE\nhttp://example.com:80\n2002:7f00:1::",
    "https://a.example/v1\nGET\nhttps://a.example/v1/%2e%2e/admin\n64:ff9b::a00:1",
    "https://xn--bcher-kva.example/ü\nGET\nHTTPS://BÜCHER。example/%C3%BC/;x\n169.254.169.254",
];

const WORDS: [&str; 36] = [
    "https://",
    "http://",
    "public",
    "*.",
    "GET ",
    "GET,",
    "CONNECT",
    "localhost",
    "example.com",
    "0177.0.0.1",
    "2130706433",
    "0x7f000001",
    "127.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[fe80::1%25eth0]",
    "user:pass@",
    ":0",
    ":443",
    ":080",
    ":65536",
    "/",
    "//",
    "/..",
    "/.",
    "/%2f",
    "/%2e",
    "/..;/",
    "?",
    "#",
    "\\",
    "%",
    "。",
    "ß",
    "xn--",
    "\n",
];

fn check(input: &[u8]) -> Verdict {
    let Some([grant, method, url, address]) = lines(input) else { return Verdict::Refused };
    let _ = SecretGrant::new(method, "KEY", url, grant, address);

    let grant =
        grant.parse::<NetGrant>().inspect_err(|error| assert!(!error.to_string().is_empty()));
    if let Ok(grant) = &grant {
        assert_eq!(grant.to_string().parse().as_ref(), Ok(grant), "a grant is what was written");
    }
    let address = address.trim().parse::<IpAddr>();
    if let Ok(address) = address {
        assert_eq!(is_public(address), special_range(address).is_none());
        if let IpAddr::V4(address) = address {
            let mapped = address.to_ipv6_mapped().into();
            assert_eq!(is_public(mapped), is_public(address.into()), "a mapped address is itself");
        }
    }
    let Ok(request) = NetRequest::for_url(method, url) else { return Verdict::Refused };
    canonical(&request);
    let grants: Vec<_> = grant.into_iter().collect();
    decisions(&grants, &request, address.ok());
    match decide_request(&grants, NetworkScope::Full, &request) {
        Ok(_) => Verdict::Taken,
        Err(_) => Verdict::Refused,
    }
}

/// What was decided about is what a client sends, and reads the same a second time.
fn canonical(request: &NetRequest) {
    let url = request.url();
    match url::Url::parse(&url) {
        Ok(parsed) => assert_eq!(parsed.as_str(), url, "a client changes nothing"),
        Err(error) => panic!("a client does not take `{url}`: {error}"),
    }
    let again = NetRequest::for_url(request.method(), &url);
    assert_eq!(again.as_ref().map(NetRequest::url), Ok(url), "it is read as it was written");
}

fn decisions(grants: &[NetGrant], request: &NetRequest, address: Option<IpAddr>) {
    use NetworkScope::{Full, None as Nothing, ReadOnly};
    assert!(decide_request(grants, Nothing, request).is_err(), "no network is no network");
    assert!(decide_request(&[], Full, request).is_err(), "nothing is granted by itself");
    let full = decide_request(grants, Full, request);
    if let Ok(permit) = decide_request(grants, ReadOnly, request) {
        assert!(full.is_ok(), "reading is the narrower scope");
        assert!(matches!(request.method(), "GET" | "HEAD") && !permit.takes_body());
    }
    let permit = match full {
        Ok(permit) => permit,
        Err(denial) => {
            let Some(grant) = denial.grant else { panic!("a grant would help: {denial}") };
            decide_request(&[*grant], Full, request).unwrap_or_else(|denial| {
                panic!("the grant that a denial names does not help: {denial}")
            })
        }
    };
    assert_eq!(permit.request(), request, "the permit is for this very request");
    let Some(address) = address else { return };
    match decide_address(grants, &permit, address) {
        Ok(()) => {
            assert!(is_public(address) || !grants.is_empty(), "a special address is named");
        }
        Err(denial) => {
            assert!(!is_public(address), "a public address is covered by its name");
            let Some(grant) = denial.grant else { panic!("a grant would help: {denial}") };
            assert!(decide_address(&[*grant], &permit, address).is_ok(), "the grant helps");
        }
    }
}
