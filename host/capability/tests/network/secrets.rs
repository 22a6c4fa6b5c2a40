//! Secrets: what can be granted, where one goes, which values serve.

use belljar_capability::{NetRequest, SecretError, SecretGrant};
use serde_json::json;

fn secret(host: &str) -> SecretGrant {
    SecretGrant::new("KEY", "KEY", host, "authorization", "Bearer {}").unwrap()
}

#[test]
fn a_secret_goes_to_its_host_and_port_over_https_only() {
    for (host, url, expected) in [
        ("a.test", "https://a.test/x", true),
        ("A.test", "https://a.test/", true),
        ("a.test", "https://a.test:8443/", false),
        ("a.test", "http://a.test/", false),
        ("a.test", "https://b.a.test/", false),
        ("a.test", "https://a.test.evil.test/", false),
        ("a.test:8443", "https://a.test:8443/", true),
        ("a.test:8443", "https://a.test/", false),
        ("127.0.0.1:8080", "http://127.0.0.1:8080/", true),
        ("127.0.0.1:8080", "http://127.0.0.1:8081/", false),
        ("[::1]:8080", "http://[::1]:8080/", true),
        ("127.0.0.1", "http://127.0.0.1/", true),
        ("10.0.0.1", "http://10.0.0.1/", false),
        // What a name leads to is not known here.
        ("localhost", "http://localhost/", false),
        ("localhost", "https://localhost/", true),
    ] {
        let request = NetRequest::for_url("GET", url).unwrap();
        assert_eq!(secret(host).goes_with(&request), expected, "{host}: {url}");
    }
}

#[test]
fn what_cannot_be_granted_says_what_to_write() {
    let new = |name, env, host, header, format| {
        SecretGrant::new(name, env, host, header, format).unwrap_err().to_string()
    };
    for (error, words) in [
        (new("", "K", "a.test", "x", "{}"), "is not a name"),
        (new("K", "A=B", "a.test", "x", "{}"), "is not a name"),
        (new("K", "1K", "a.test", "x", "{}"), "is not a name"),
        (new("K", "K", "*.a.test", "x", "{}"), "is not a host that a secret can be bound to"),
        (new("K", "K", "https://a.test", "x", "{}"), "is not a host that a secret can be bound to"),
        (new("K", "K", "u@a.test", "x", "{}"), "is not a host that a secret can be bound to"),
        (new("K", "K", "a.test", "", "{}"), "is not a header that a secret can go in"),
        (new("K", "K", "a.test", "x y", "{}"), "is not a header that a secret can go in"),
        (new("K", "K", "a.test", "x:\r\ny", "{}"), "is not a header that a secret can go in"),
        (new("K", "K", "a.test", "Host", "{}"), "is not a header that a secret can go in"),
        (
            new("K", "K", "a.test", "content-length", "{}"),
            "is not a header that a secret can go in",
        ),
        (new("K", "K", "a.test", "Proxy-Authorization", "{}"), "is not a header"),
        (new("K", "K", "a.test", "x", "Bearer"), "with one `{}`"),
        (new("K", "K", "a.test", "x", "{}{}"), "with one `{}`"),
        (new("K", "K", "a.test", "x", "{}\r\nX: y"), "with one `{}`"),
    ] {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_value_must_be_long_and_visible() {
    let secret = secret("a.test");
    assert_eq!(secret.header_value("12345678"), Ok("Bearer 12345678".to_owned()));
    // A value is put in once: what it holds is no format.
    assert_eq!(secret.header_value("{}{}{}{}"), Ok("Bearer {}{}{}{}".to_owned()));
    let name = || "KEY".to_owned();
    assert_eq!(secret.header_value("1234567"), Err(SecretError::Short { name: name() }));
    for value in ["12345678\r\nX: y", "1234567\u{0}", "pässwörd", " 12345678", "12345678\n"] {
        let error = secret.header_value(value).unwrap_err();
        assert_eq!(error, SecretError::Value { name: name() });
        assert!(!error.to_string().contains(value));
    }
}

#[test]
fn the_form_in_configuration_is_read_strictly_and_written_back() {
    let text = json!({
        "name": "KEY", "from_env": "KEY", "host": "a.test:8443", "header": "X-Key",
        "format": "{}",
    });
    let secret: SecretGrant = serde_json::from_value(text.clone()).unwrap();
    let mut back = text.clone();
    back["header"] = json!("x-key");
    assert_eq!(serde_json::to_value(&secret).unwrap(), back);
    let mut wrong = text;
    wrong["value"] = json!("12345678");
    assert!(serde_json::from_value::<SecretGrant>(wrong).is_err());
}
