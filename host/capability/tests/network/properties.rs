//! What holds for all grants, requests and addresses.

use belljar_capability::{
    NetGrant, NetRequest, NetworkScope, decide_address, decide_request, is_public,
};
use proptest::{collection::vec, prelude::*, sample::select};
use std::net::IpAddr;

fn method() -> impl Strategy<Value = &'static str> {
    select(vec!["GET", "HEAD", "POST", "PUT", "DELETE"])
}

fn host() -> impl Strategy<Value = &'static str> {
    select(vec![
        "a.test",
        "b.a.test",
        "c.b.a.test",
        "xa.test",
        "localhost",
        "127.0.0.1",
        "10.0.0.1",
        "1.1.1.1",
        "[::1]",
        "[fd00::1]",
        "[2606:4700:4700::1111]",
    ])
}

fn authority() -> impl Strategy<Value = String> {
    (host(), select(vec!["", ":80", ":443", ":8080"]))
        .prop_map(|(host, port)| format!("{host}{port}"))
}

fn path() -> impl Strategy<Value = String> {
    let segment =
        select(vec!["v1", "v2", "v12", "x", "..", ".", "", "%2e%2e", "%76%31", "a%2fb", "..;"]);
    vec(segment, 0..4).prop_map(|segments| format!("/{}", segments.join("/")))
}

fn request() -> impl Strategy<Value = NetRequest> {
    (method(), select(vec!["http", "https"]), authority(), path()).prop_map(
        |(method, scheme, authority, path)| {
            NetRequest::new(method, scheme, &authority, &path).unwrap()
        },
    )
}

fn grant() -> impl Strategy<Value = NetGrant> {
    let methods = select(vec!["", "GET ", "GET,HEAD ", "POST "]);
    let target = prop_oneof![
        Just("public".to_owned()),
        (
            select(vec!["http://", "https://"]),
            prop_oneof![
                authority(),
                select(vec!["*.a.test".to_owned(), "*.b.a.test:8080".to_owned()])
            ],
            select(vec!["", "/v1", "/v1/", "/v1/x"]),
        )
            .prop_map(|(scheme, authority, path)| format!("{scheme}{authority}{path}")),
    ];
    (methods, target).prop_map(|(methods, target)| format!("{methods}{target}").parse().unwrap())
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
        any::<u128>().prop_map(|bits| IpAddr::V6(bits.into())),
        select(vec!["127.0.0.1", "10.0.0.1", "1.1.1.1", "::1", "fd00::1", "::ffff:127.0.0.1"])
            .prop_map(|text| text.parse().unwrap()),
    ]
}

fn scope() -> impl Strategy<Value = NetworkScope> {
    select(vec![NetworkScope::None, NetworkScope::ReadOnly, NetworkScope::Full])
}

/// Whether one decision allows no more than another.
fn within(
    grants: (&[NetGrant], NetworkScope),
    wider: (&[NetGrant], NetworkScope),
    request: &NetRequest,
    address: IpAddr,
) -> bool {
    let Ok(permit) = decide_request(grants.0, grants.1, request) else { return true };
    let Ok(wide) = decide_request(wider.0, wider.1, request) else { return false };
    let address_is_within = decide_address(grants.0, &permit, address).is_err()
        || decide_address(wider.0, &wide, address).is_ok();
    address_is_within
        && permit.takes_body() <= wide.takes_body()
        && permit.allows_any_method() <= wide.allows_any_method()
}

proptest! {
    #[test]
    fn a_grant_is_what_its_text_says(grant in grant()) {
        prop_assert_eq!(grant.to_string().parse::<NetGrant>().unwrap(), grant);
    }

    #[test]
    fn a_narrower_scope_never_allows_more(
        grants in vec(grant(), 0..5), one in scope(), other in scope(), request in request(),
        address in address(),
    ) {
        let (narrow, wide) = (one.min(other), one.max(other));
        prop_assert!(within((&grants, narrow), (&grants, wide), &request, address));
    }

    #[test]
    fn removing_a_grant_never_allows_more(
        grants in vec(grant(), 1..5), gone in any::<prop::sample::Index>(), scope in scope(),
        request in request(), address in address(),
    ) {
        let mut fewer = grants.clone();
        fewer.remove(gone.index(grants.len()));
        prop_assert!(within((&fewer, scope), (&grants, scope), &request, address));
    }

    #[test]
    fn the_order_of_grants_means_nothing(
        grants in vec(grant(), 0..5), scope in scope(), request in request(), address in address(),
    ) {
        let turned: Vec<_> = grants.iter().rev().cloned().collect();
        prop_assert!(within((&grants, scope), (&turned, scope), &request, address));
        prop_assert!(within((&turned, scope), (&grants, scope), &request, address));
    }

    #[test]
    fn without_a_grant_that_names_it_no_special_address_is_reached(
        grants in vec(grant(), 0..5), request in request(), address in address(),
    ) {
        let Ok(permit) = decide_request(&grants, NetworkScope::Full, &request) else {
            return Ok(());
        };
        let named = grants.iter().any(|grant| {
            let host = match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            grant.to_string().contains(&format!("://{host}"))
        });
        prop_assert!(
            is_public(address) || named || decide_address(&grants, &permit, address).is_err()
        );
    }

    #[test]
    fn the_offered_grant_allows_what_was_refused_and_no_other_host(
        grants in vec(grant(), 0..3), request in request(), other in request(),
    ) {
        let Err(denial) = decide_request(&grants, NetworkScope::Full, &request) else {
            return Ok(());
        };
        let only = [*denial.grant.unwrap()];
        prop_assert!(decide_request(&only, NetworkScope::Full, &request).is_ok());
        prop_assert_eq!(
            decide_request(&only, NetworkScope::Full, &other).is_ok(),
            request.origin() == other.origin()
        );
    }

    #[test]
    fn a_path_grant_reaches_no_path_outside(segments in path()) {
        let limited: [NetGrant; 1] = ["https://a.test/v1".parse().unwrap()];
        let request = NetRequest::new("GET", "https", "a.test", &segments).unwrap();
        if decide_request(&limited, NetworkScope::Full, &request).is_ok() {
            let sent = request.path().replace("%76%31", "v1");
            prop_assert!(sent == "/v1" || sent.starts_with("/v1/"), "{}", sent);
            prop_assert!(!sent.contains("..") && !sent.contains("%2"), "{}", sent);
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_what_is_read_is_canonical(url in "\\PC{0,40}") {
        let _ = url.parse::<NetGrant>();
        let url = format!("https://{url}");
        if let Ok(request) = NetRequest::for_url("GET", &url) {
            let again = NetRequest::for_url("GET", &request.url()).unwrap();
            prop_assert_eq!(again.url(), request.url());
            prop_assert_eq!(again.host(), request.host());
        }
    }
}
