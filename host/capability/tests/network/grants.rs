//! Texts of grants, and what each covers.

use belljar_capability::{
    NetDenial, NetGrant, NetRequest, NetworkScope, decide_address, decide_request,
};

fn grant(text: &str) -> NetGrant {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn texts_are_read_and_shown_in_one_form() {
    for (text, shown) in [
        ("https://a.test", "https://a.test"),
        ("https://a.test/", "https://a.test"),
        ("https://A.test:443", "https://a.test"),
        ("HTTP://a.test:80", "http://a.test"),
        ("https://a.test:8443", "https://a.test:8443"),
        ("https://*.a.test", "https://*.a.test"),
        ("https://*.a.test:8443/v1", "https://*.a.test:8443/v1"),
        ("https://a.test/v1", "https://a.test/v1"),
        ("https://a.test/v1/", "https://a.test/v1/"),
        ("https://a.test/v1/x%20y", "https://a.test/v1/x%20y"),
        ("HEAD,GET https://a.test", "GET,HEAD https://a.test"),
        ("GET,GET https://a.test", "GET https://a.test"),
        ("PROPFIND https://a.test/dav", "PROPFIND https://a.test/dav"),
        ("public", "public"),
        ("GET,HEAD public", "GET,HEAD public"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
    ] {
        assert_eq!(grant(text).to_string(), shown, "{text}");
        assert_eq!(grant(shown), grant(text), "{text}");
        let json = serde_json::to_string(&grant(text)).unwrap();
        assert_eq!(json, format!("\"{shown}\""));
        assert_eq!(serde_json::from_str::<NetGrant>(&json).unwrap(), grant(text));
    }
}

#[test]
fn what_is_no_grant_says_what_to_write() {
    for (text, words) in [
        ("", "write `https://host`"),
        ("a.test", "write `https://host`"),
        ("*", "write `https://host`"),
        ("Public", "write `https://host`"),
        ("public/v1", "write `https://host`"),
        ("ftp://a.test", "write `https://host`"),
        ("https:a.test", "write `https://host`"),
        ("https://a.test, https://b.test", "is not a method"),
        ("get https://a.test", "is not a method"),
        ("GET, HEAD https://a.test", "is not a method"),
        ("GET  https://a.test", "write `https://host`"),
        (" https://a.test", "is not a method"),
        ("https://a.test ", "is not a method"),
        (",GET https://a.test", "is not a method"),
        ("CONNECT https://a.test", "is not a method"),
        ("TRACE https://a.test", "is not a method"),
        ("https://", "the host is missing"),
        ("https://a.test.", "ends in a dot"),
        ("https://u@a.test", "a user name or password"),
        ("https://a.test:0", "the port is not a number"),
        ("https://a.test:", "the port is not a number"),
        ("https://a.test:*", "is too wide"),
        ("https://a b.test", "is not a method"),
        ("https://*", "is too wide"),
        ("https://*.test", "is too wide"),
        ("https://*.*.a.test", "is too wide"),
        ("https://a.*.test", "is too wide"),
        ("https://*a.test", "is too wide"),
        ("https://*.127.0.0.1", "is too wide"),
        ("https://*.[::1]", "is too wide"),
        ("http://127.1", "write `127.0.0.1`"),
        ("http://0x7f000001", "write `127.0.0.1`"),
        ("http://[0:0:0:0:0:0:0:1]", "write `[::1]`"),
        ("http://[::ffff:127.0.0.1]", "write `[::ffff:7f00:1]`"),
        ("https://a.test?q", "a query or a fragment"),
        ("https://a.test/v1?q", "a query or a fragment"),
        ("https://a.test/v1#x", "a query or a fragment"),
        ("https://a.test/v1/../v2", "could be read in two ways"),
        ("https://a.test/v1/.", "could be read in two ways"),
        ("https://a.test/v1/%2e%2e", "could be read in two ways"),
        ("https://a.test/v1%2fx", "could be read in two ways"),
        ("https://a.test//v1", "could be read in two ways"),
        ("https://a.test/v1\\x", "could be read in two ways"),
        ("https://a.test/v1/%00", "could be read in two ways"),
        ("https://a.test/v1/..;", "could be read in two ways"),
    ] {
        let error = text.parse::<NetGrant>().unwrap_err().to_string();
        assert!(error.contains(words), "{text:?}: {error}");
    }
}

#[test]
fn each_grant_covers_what_it_says_and_nothing_else() {
    for (text, method, url, expected) in [
        ("https://a.test", "GET", "https://a.test/x", true),
        ("https://a.test", "DELETE", "https://a.test/", true),
        ("https://a.test", "GET", "http://a.test/", false),
        ("https://a.test", "GET", "https://a.test:8443/", false),
        ("https://a.test", "GET", "https://b.a.test/", false),
        ("https://a.test", "GET", "https://a.test.evil.test/", false),
        ("https://a.test", "GET", "https://xa.test/", false),
        ("https://a.test:8443", "GET", "https://a.test:8443/", true),
        ("https://a.test:8443", "GET", "https://a.test/", false),
        ("http://a.test:443", "GET", "https://a.test/", false),
        ("https://*.a.test", "GET", "https://b.a.test/", true),
        ("https://*.a.test", "GET", "https://c.b.a.test/", true),
        ("https://*.a.test", "GET", "https://a.test/", false),
        ("https://*.a.test", "GET", "https://ba.test/", false),
        ("https://*.a.test", "GET", "https://b.a.test.evil.test/", false),
        ("GET,HEAD https://a.test", "HEAD", "https://a.test/", true),
        ("GET,HEAD https://a.test", "POST", "https://a.test/", false),
        ("GET public", "GET", "https://anything.test/", true),
        ("GET public", "POST", "https://anything.test/", false),
        ("public", "POST", "http://anything.test/", true),
        ("public", "GET", "https://anything.test:8443/", false),
        ("https://a.test/v1", "GET", "https://a.test/v1", true),
        ("https://a.test/v1", "GET", "https://a.test/v1?q=../x", true),
        ("https://a.test/v1", "GET", "https://a.test/v1/x", true),
        ("https://a.test/v1", "GET", "https://a.test/v12", false),
        ("https://a.test/v1", "GET", "https://a.test/", false),
        ("https://a.test/v1", "GET", "https://a.test/v1/../v2", false),
        ("https://a.test/v1", "GET", "https://a.test/v2/../v1/x", true),
        ("https://a.test/v1", "GET", "https://a.test/v1/%2e%2e/v2", false),
        ("https://a.test/v1", "GET", "https://a.test/v2/%2e%2e/v1", false),
        ("https://a.test/v1", "GET", "https://a.test/v1/a%2fb", false),
        ("https://a.test", "GET", "https://a.test/v1/a%2fb", true),
        ("https://a.test/v1", "GET", "https://a.test/v1/..;/v2", false),
        ("https://a.test/v1", "GET", "https://a.test/v1/%252e%252e/v2", false),
        ("https://a.test/v1", "GET", "https://a.test/%76%31/x", true),
        ("https://a.test/v1", "GET", "https://a.test//v1/x", false),
        ("http://127.0.0.1:8080", "GET", "http://127.1:8080/", true),
        ("http://127.0.0.1:8080", "GET", "http://localhost:8080/", false),
        ("http://127.0.0.1:8080", "GET", "http://[::ffff:127.0.0.1]:8080/", false),
    ] {
        let request = NetRequest::for_url(method, url).unwrap();
        assert_eq!(grant(text).covers(&request), expected, "{text}: {method} {url}");
    }
}

fn decide(grants: &[&str], scope: NetworkScope, method: &str, url: &str) -> Result<(), NetDenial> {
    let grants: Vec<_> = grants.iter().map(|text| grant(text)).collect();
    decide_request(&grants, scope, &NetRequest::for_url(method, url).unwrap()).map(|_| ())
}

fn denial(target: &str, reason: &str, line: Option<&str>) -> Result<(), NetDenial> {
    Err(NetDenial {
        target: target.to_owned(),
        reason: reason.to_owned(),
        grant: line.map(grant).map(Box::new),
    })
}

#[test]
fn a_refusal_says_what_is_missing() {
    let full = NetworkScope::Full;
    assert_eq!(
        decide(&[], full, "GET", "https://a.test/x?token=1"),
        denial("GET https://a.test/x", "the host is not granted", Some("https://a.test"))
    );
    assert_eq!(
        decide(&["GET https://a.test"], full, "POST", "https://a.test:443/x"),
        denial(
            "POST https://a.test/x",
            "the method is not granted for this host",
            Some("https://a.test")
        )
    );
    assert_eq!(
        decide(&["https://a.test/v1"], full, "GET", "https://a.test/v2"),
        denial(
            "GET https://a.test/v2",
            "the path is not granted for this host",
            Some("https://a.test")
        )
    );
    assert_eq!(
        decide(&["public"], NetworkScope::None, "GET", "https://a.test/"),
        denial("GET https://a.test/", "this call has no network", None)
    );
    assert_eq!(
        decide(&["public"], NetworkScope::ReadOnly, "POST", "https://a.test/"),
        denial(
            "POST https://a.test/",
            "this call may only read: its requests are `GET` or `HEAD`",
            None
        )
    );
    assert_eq!(decide(&["public"], NetworkScope::ReadOnly, "HEAD", "https://a.test/"), Ok(()));
}

#[test]
fn only_a_full_scope_takes_bodies_and_other_methods_by_header() {
    let request = NetRequest::for_url("GET", "https://a.test/").unwrap();
    for (text, scope, takes_body, any_method) in [
        ("https://a.test", NetworkScope::Full, true, true),
        ("GET https://a.test", NetworkScope::Full, true, false),
        ("https://a.test", NetworkScope::ReadOnly, false, false),
    ] {
        let permit = decide_request(&[grant(text)], scope, &request).unwrap();
        assert_eq!(
            (permit.takes_body(), permit.allows_any_method()),
            (takes_body, any_method),
            "{text} {scope}"
        );
    }
}

#[test]
fn a_special_address_needs_a_grant_of_its_own() {
    for (grants, url, address, missing) in [
        (&["https://a.test"][..], "https://a.test/", "1.1.1.1", None),
        (&["https://a.test"], "https://a.test/", "10.0.0.1", Some("https://10.0.0.1")),
        (&["public"], "http://a.test/", "::1", Some("http://[::1]")),
        (&["https://*.a.test"], "https://b.a.test/", "127.0.0.1", Some("https://127.0.0.1")),
        (&["https://a.test", "https://10.0.0.1"], "https://a.test/", "10.0.0.1", None),
        (
            &["https://a.test", "https://10.0.0.2"],
            "https://a.test/",
            "10.0.0.1",
            Some("https://10.0.0.1"),
        ),
        (
            &["https://a.test", "https://10.0.0.1:8443"],
            "https://a.test/",
            "10.0.0.1",
            Some("https://10.0.0.1"),
        ),
        (
            &["https://a.test:8443", "https://10.0.0.1"],
            "https://a.test:8443/",
            "10.0.0.1",
            Some("https://10.0.0.1:8443"),
        ),
        (&["http://127.0.0.1:80"], "http://127.0.0.1/", "127.0.0.1", None),
    ] {
        let grants: Vec<_> = grants.iter().map(|text| grant(text)).collect();
        let request = NetRequest::for_url("GET", url).unwrap();
        let permit = decide_request(&grants, NetworkScope::Full, &request).unwrap();
        let decided = decide_address(&grants, &permit, address.parse().unwrap());
        let offered = decided.err().map(|denial| denial.grant.unwrap().to_string());
        assert_eq!(offered.as_deref(), missing, "{url} {address}");
    }
}
