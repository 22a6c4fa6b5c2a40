//! Spellings of URLs and addresses: each is one canonical request or none, and what `public`
//! decides about it.

use belljar_capability::{
    NetGrant, NetRequest, NetworkScope, decide_address, decide_request, request_in_arguments,
};
use serde_json::{Value, json};

/// What a URL is, once read.
#[derive(Debug, PartialEq)]
enum Read {
    /// A request of this URL, which `public` covers; where its host is an address, a public one.
    Open(&'static str),
    /// A request of this origin, whose host is an address that `public` does not cover.
    Special(&'static str),
    /// A request of this origin, whose port `public` does not cover.
    Port(&'static str),
    /// No request. The words are a part of the reason.
    Not(&'static str),
}
use Read::{Not, Open, Port, Special};

const CHARACTER: &str = "has a character that no host has";
const ESCAPE: &str = "control character, a space or a backslash";
const NO_HOST: &str = "no name and no address";
const DOT: &str = "ends in a dot";
const USER: &str = "a user name or password";
const PORT: &str = "the port is not a number";
const SHAPE: &str = "has the form `https://host/path`";
const SCHEME: &str = "only `http` and `https`";

const TABLE: &[(&str, Read)] = &[
    // Plain ones, and what is the same.
    ("https://example.com", Open("https://example.com/")),
    ("https://example.com/", Open("https://example.com/")),
    ("HTTPS://example.com/", Open("https://example.com/")),
    ("https://EXAMPLE.com/A", Open("https://example.com/A")),
    ("https://example.com:443/", Open("https://example.com/")),
    ("http://example.com:80/", Open("http://example.com/")),
    ("http://example.com", Open("http://example.com/")),
    ("https://example.com?q=1", Open("https://example.com/?q=1")),
    ("https://example.com/?q=a/../b", Open("https://example.com/?q=a/../b")),
    ("https://example.com/#top", Open("https://example.com/")),
    ("https://example.com#top", Open("https://example.com/")),
    ("https://example.com/#@127.0.0.1/", Open("https://example.com/")),
    ("https://example.com/?@127.0.0.1/", Open("https://example.com/?@127.0.0.1/")),
    ("https://example.com/@127.0.0.1/", Open("https://example.com/@127.0.0.1/")),
    ("https://example.com/http://127.0.0.1/", Open("https://example.com/http://127.0.0.1/")),
    ("https://a_b.example.com/", Open("https://a_b.example.com/")),
    ("https://a-b.example.com/", Open("https://a-b.example.com/")),
    ("https://localhost/", Open("https://localhost/")),
    ("https://metadata.google.internal/", Open("https://metadata.google.internal/")),
    ("https://127.0.0.1.example.com/", Open("https://127.0.0.1.example.com/")),
    ("https://10.0.0.1.nip.example/", Open("https://10.0.0.1.nip.example/")),
    ("https://1.1.1.1/", Open("https://1.1.1.1/")),
    ("https://8.8.8.8", Open("https://8.8.8.8/")),
    ("https://[2606:4700:4700::1111]/", Open("https://[2606:4700:4700::1111]/")),
    ("https://[2606:4700:4700:0:0:0:0:1111]/", Open("https://[2606:4700:4700::1111]/")),
    ("https://[2606:4700:4700:0000::1111]/", Open("https://[2606:4700:4700::1111]/")),
    ("https://[2606:4700:4700::0.0.17.17]/", Open("https://[2606:4700:4700::1111]/")),
    ("https://[::FFFF:8.8.8.8]/", Open("https://[::ffff:808:808]/")),
    ("https://[64:ff9b::8.8.8.8]/", Open("https://[64:ff9b::808:808]/")),
    // Paths.
    ("https://example.com/a/../b", Open("https://example.com/b")),
    ("https://example.com/a/./b", Open("https://example.com/a/b")),
    ("https://example.com/../../b", Open("https://example.com/b")),
    ("https://example.com/a/%2e%2e/b", Open("https://example.com/b")),
    ("https://example.com/a/.%2E/b", Open("https://example.com/b")),
    ("https://example.com/a%2fb", Open("https://example.com/a%2fb")),
    ("https://example.com//a", Open("https://example.com//a")),
    ("https://example.com/ü", Open("https://example.com/%C3%BC")),
    ("https://example.com/\"<>`{}", Open("https://example.com/%22%3C%3E%60%7B%7D")),
    ("https://example.com/?q='", Open("https://example.com/?q=%27")),
    ("https://example.com/%", Open("https://example.com/%")),
    ("https://example.com/a;b", Open("https://example.com/a;b")),
    ("https://example.com/a b", Not(ESCAPE)),
    ("https://example.com/a\tb", Not(ESCAPE)),
    ("https://example.com/a\nb", Not(ESCAPE)),
    ("https://example.com/a\r\nHost: x", Not(ESCAPE)),
    ("https://example.com/a\u{0}", Not(ESCAPE)),
    ("https://example.com/a\u{7f}", Not(ESCAPE)),
    ("https://example.com/a\u{85}", Not(ESCAPE)),
    ("https://example.com/a\u{a0}b", Not(ESCAPE)),
    ("https://example.com/a\u{2028}b", Not(ESCAPE)),
    ("https://example.com/a\\b", Not(ESCAPE)),
    ("https://example.com/?a\\b", Not(ESCAPE)),
    ("https://example.com\\@127.0.0.1/", Not(ESCAPE)),
    ("https://example.com\\/", Not(ESCAPE)),
    // Shapes and schemes.
    ("", Not(SHAPE)),
    ("example.com", Not(SHAPE)),
    ("//example.com/", Not(SHAPE)),
    ("/path", Not(SHAPE)),
    ("https:example.com", Not(SHAPE)),
    ("https:/example.com", Not(SHAPE)),
    ("https:\\\\example.com", Not(SHAPE)),
    (" https://example.com", Not(SHAPE)),
    ("https ://example.com", Not(SHAPE)),
    ("://example.com", Not(SHAPE)),
    ("javascript://example.com/", Not(SCHEME)),
    ("ftp://example.com/", Not(SCHEME)),
    ("file:///etc/passwd", Not(SCHEME)),
    ("gopher://example.com/", Not(SCHEME)),
    ("ws://example.com/", Not(SCHEME)),
    ("data://text", Not(SCHEME)),
    ("https+unix://example.com/", Not(SCHEME)),
    ("https:///", Not("the host is missing")),
    ("https://", Not("the host is missing")),
    ("https://?", Not("the host is missing")),
    ("https:///example.com/", Not("the host is missing")),
    ("https://:443/", Not("the host is missing")),
    // Names that are none.
    ("https://example.com./", Not(DOT)),
    ("https://example.com。/", Not(DOT)),
    ("https://localhost./", Not(DOT)),
    ("https://127.0.0.1./", Not(DOT)),
    ("https://1.1.1.1./", Not(DOT)),
    ("https://./", Not(DOT)),
    ("https://../", Not(DOT)),
    ("https://.example.com/", Not(NO_HOST)),
    ("https://a..b/", Not(NO_HOST)),
    ("https://exa mple.com/", Not(CHARACTER)),
    (" https:// example.com/", Not(SHAPE)),
    ("https://example.com /", Not(CHARACTER)),
    ("https://exa\tmple.com/", Not(CHARACTER)),
    ("https://exa\nmple.com/", Not(CHARACTER)),
    ("https://exam\u{0}ple.com/", Not(CHARACTER)),
    ("https://%65xample.com/", Not(CHARACTER)),
    ("https://127.0.0.1%2f.example.com/", Not(CHARACTER)),
    ("https://example.com%00.evil.test/", Not(CHARACTER)),
    ("https://example.com%2eevil.test/", Not(CHARACTER)),
    ("https://ex^ample.com/", Not(NO_HOST)),
    ("https://ex|ample.com/", Not(NO_HOST)),
    ("https://ex<ample.com/", Not(NO_HOST)),
    ("https://ex*ample.com/", Not(CHARACTER)),
    ("https://*.example.com/", Not(CHARACTER)),
    ("https://ex!ample.com/", Not(CHARACTER)),
    ("https://ex'ample.com/", Not(CHARACTER)),
    ("https://ex,ample.com/", Not(CHARACTER)),
    ("https://xn--/", Not(NO_HOST)),
    ("https://xn--a/", Not(NO_HOST)),
    ("https://xn--zz-zz-zz-9/", Not(NO_HOST)),
    ("https://example.1/", Not(NO_HOST)),
    ("https://a.0x1/", Not(NO_HOST)),
    // Names of other scripts, as Punycode; what maps to ASCII is ASCII.
    ("https://bücher.example/", Open("https://xn--bcher-kva.example/")),
    ("https://xn--bcher-kva.example/", Open("https://xn--bcher-kva.example/")),
    ("https://XN--BCHER-KVA.example/", Open("https://xn--bcher-kva.example/")),
    ("https://еxample.com/", Open("https://xn--xample-2of.com/")),
    ("https://ｅｘａｍｐｌｅ.com/", Open("https://example.com/")),
    ("https://ⓔⓧⓐⓜⓟⓛⓔ.com/", Open("https://example.com/")),
    ("https://example。com/", Open("https://example.com/")),
    ("https://exam\u{ad}ple.com/", Open("https://example.com/")),
    ("https://exam\u{200b}ple.com/", Open("https://example.com/")),
    ("https://faß.example/", Open("https://xn--fa-hia.example/")),
    ("https://K.example/", Open("https://k.example/")),
    ("https://example.com\u{ff0f}evil.test/", Not(NO_HOST)),
    ("https://example.com\u{2044}evil.test/", Open("https://example.xn--comevil-3d7c.test/")),
    ("https://example.com\u{ff20}evil.test/", Not(NO_HOST)),
    ("https://example.com\u{ff1a}80/", Not(NO_HOST)),
    // User names.
    ("https://user@example.com/", Not(USER)),
    ("https://user:pass@example.com/", Not(USER)),
    ("https://@example.com/", Not(USER)),
    ("https://:@example.com/", Not(USER)),
    ("https://example.com@127.0.0.1/", Not(USER)),
    ("https://example.com:443@127.0.0.1/", Not(USER)),
    ("https://a@b@example.com/", Not(USER)),
    // Ports.
    ("https://example.com:8443/", Port("https://example.com:8443")),
    ("https://example.com:80/", Port("https://example.com:80")),
    ("http://example.com:443/", Port("http://example.com:443")),
    ("http://example.com:22/", Port("http://example.com:22")),
    ("http://example.com:25/", Port("http://example.com:25")),
    ("http://example.com:6379/", Port("http://example.com:6379")),
    ("http://example.com:65535/", Port("http://example.com:65535")),
    ("https://example.com:/", Not(PORT)),
    ("https://example.com:0/", Not(PORT)),
    ("https://example.com:00443/", Not(PORT)),
    ("https://example.com:65536/", Not(PORT)),
    ("https://example.com:4294967739/", Not(PORT)),
    ("https://example.com:+443/", Not(PORT)),
    ("https://example.com:-1/", Not(PORT)),
    ("https://example.com:443:443/", Not(PORT)),
    ("https://example.com:４４３/", Not(PORT)),
    ("https://example.com: 443/", Not(PORT)),
    ("https://example.com:https/", Not(PORT)),
    ("https://1.1.1.1:1.1.1.1/", Not(PORT)),
    // IPv4, as many programs read it.
    ("http://127.0.0.1/", Special("http://127.0.0.1")),
    ("http://127.0.0.1:8080/", Port("http://127.0.0.1:8080")),
    ("http://127.1/", Special("http://127.0.0.1")),
    ("http://127.0.1/", Special("http://127.0.0.1")),
    ("http://127/", Special("http://0.0.0.127")),
    ("http://0/", Special("http://0.0.0.0")),
    ("http://0.0.0.0/", Special("http://0.0.0.0")),
    ("http://2130706433/", Special("http://127.0.0.1")),
    ("http://017700000001/", Special("http://127.0.0.1")),
    ("http://0177.0.0.1/", Special("http://127.0.0.1")),
    ("http://0177.1/", Special("http://127.0.0.1")),
    ("http://0x7f.1/", Special("http://127.0.0.1")),
    ("http://0X7F.0.0.1/", Special("http://127.0.0.1")),
    ("http://0x7f000001/", Special("http://127.0.0.1")),
    ("http://0x7f.0x0.0x0.0x1/", Special("http://127.0.0.1")),
    ("http://0x/", Special("http://0.0.0.0")),
    ("http://127.0.0.1.0/", Not(NO_HOST)),
    ("http://127.0.0.256/", Not(NO_HOST)),
    ("http://256.0.0.1/", Not(NO_HOST)),
    ("http://4294967296/", Not(NO_HOST)),
    ("http://0x100000000/", Not(NO_HOST)),
    ("http://127.0.0.08/", Not(NO_HOST)),
    ("http://127..1/", Not(NO_HOST)),
    ("http://１２７.0.0.1/", Special("http://127.0.0.1")),
    ("http://①②⑦.0.0.①/", Special("http://127.0.0.1")),
    ("http://127。0。0。1/", Special("http://127.0.0.1")),
    ("http://127\u{ff0e}0\u{ff0e}0\u{ff0e}1/", Special("http://127.0.0.1")),
    ("http://127.0.0.1\u{ad}/", Special("http://127.0.0.1")),
    ("http://10.0.0.1/", Special("http://10.0.0.1")),
    ("http://10.1/", Special("http://10.0.0.1")),
    ("http://172.16.0.1/", Special("http://172.16.0.1")),
    ("http://172.31.255.255/", Special("http://172.31.255.255")),
    ("http://172.32.0.1/", Open("http://172.32.0.1/")),
    ("http://192.168.0.1/", Special("http://192.168.0.1")),
    ("http://100.64.0.1/", Special("http://100.64.0.1")),
    ("http://100.100.100.200/", Special("http://100.100.100.200")),
    ("http://169.254.169.254/latest/", Special("http://169.254.169.254")),
    ("http://2852039166/", Special("http://169.254.169.254")),
    ("http://0xa9fea9fe/", Special("http://169.254.169.254")),
    ("http://0251.0376.0251.0376/", Special("http://169.254.169.254")),
    ("http://169.254.43518/", Special("http://169.254.169.254")),
    ("http://168.63.129.16/", Special("http://168.63.129.16")),
    ("http://192.0.0.192/", Special("http://192.0.0.192")),
    ("http://192.0.2.1/", Special("http://192.0.2.1")),
    ("http://198.18.0.1/", Special("http://198.18.0.1")),
    ("http://203.0.113.7/", Special("http://203.0.113.7")),
    ("http://224.0.0.1/", Special("http://224.0.0.1")),
    ("http://240.0.0.1/", Special("http://240.0.0.1")),
    ("http://255.255.255.255/", Special("http://255.255.255.255")),
    // IPv6.
    ("http://[::1]/", Special("http://[::1]")),
    ("http://[::1]:80/", Special("http://[::1]")),
    ("http://[0:0:0:0:0:0:0:1]/", Special("http://[::1]")),
    ("http://[0000:0000:0000:0000:0000:0000:0000:0001]/", Special("http://[::1]")),
    ("http://[::]/", Special("http://[::]")),
    ("http://[::127.0.0.1]/", Special("http://[::7f00:1]")),
    ("http://[::ffff:127.0.0.1]/", Special("http://[::ffff:7f00:1]")),
    ("http://[::ffff:7f00:1]/", Special("http://[::ffff:7f00:1]")),
    ("http://[::FFFF:169.254.169.254]/", Special("http://[::ffff:a9fe:a9fe]")),
    ("http://[::ffff:0:127.0.0.1]/", Special("http://[::ffff:0:7f00:1]")),
    ("http://[64:ff9b::127.0.0.1]/", Special("http://[64:ff9b::7f00:1]")),
    ("http://[64:ff9b::a9fe:a9fe]/", Special("http://[64:ff9b::a9fe:a9fe]")),
    ("http://[64:ff9b:1::8.8.8.8]/", Special("http://[64:ff9b:1::808:808]")),
    ("http://[2002:7f00:1::]/", Special("http://[2002:7f00:1::]")),
    ("http://[2001:0:0:0:0:0:80ff:fffe]/", Special("http://[2001::80ff:fffe]")),
    ("http://[fe80::1]/", Special("http://[fe80::1]")),
    ("http://[fec0::1]/", Special("http://[fec0::1]")),
    ("http://[fc00::1]/", Special("http://[fc00::1]")),
    ("http://[fd00:ec2::254]/", Special("http://[fd00:ec2::254]")),
    ("http://[ff02::1]/", Special("http://[ff02::1]")),
    ("http://[2001:db8::1]/", Special("http://[2001:db8::1]")),
    ("http://[2a00::5efe:10.0.0.1]/", Special("http://[2a00::5efe:a00:1]")),
    ("http://[fe80::1%25eth0]/", Not(CHARACTER)),
    ("http://[fe80::1%eth0]/", Not(CHARACTER)),
    ("http://[::1/", Not(NO_HOST)),
    ("http://::1/", Not(PORT)),
    ("http://[::1]x/", Not(NO_HOST)),
    ("http://[[::1]]/", Not(NO_HOST)),
    ("http://[127.0.0.1]/", Not(NO_HOST)),
    ("http://[]/", Not(NO_HOST)),
    ("http://[1::2::3]/", Not(NO_HOST)),
    ("http://[::ffff:127.1]/", Not(NO_HOST)),
    ("http://[::ffff:0x7f.0.0.1]/", Not(NO_HOST)),
    ("http://[::00001]/", Not(NO_HOST)),
    ("http://[v1.x]/", Not(NO_HOST)),
];

fn read(url: &str) -> Result<NetRequest, String> {
    NetRequest::for_url("GET", url).map_err(|error| error.to_string())
}

#[test]
fn every_spelling_is_one_canonical_request_or_none() {
    assert!(TABLE.len() >= 150, "{}", TABLE.len());
    let public: [NetGrant; 1] = ["public".parse().unwrap()];
    let decide = |request: &NetRequest| decide_request(&public, NetworkScope::Full, request);
    let outcome = |url: &str| -> (&str, String) {
        let request = match read(url) {
            Ok(request) => request,
            Err(reason) => return ("refused", reason),
        };
        let permit = match decide(&request) {
            Ok(permit) => permit,
            Err(denial) => {
                assert_eq!(denial.reason, "the host is not granted", "{url:?}");
                return ("port", denial.grant.unwrap().to_string());
            }
        };
        match request.host().address().map(|address| decide_address(&public, &permit, address)) {
            None | Some(Ok(())) => ("open", request.url()),
            Some(Err(denial)) => ("special", denial.grant.unwrap().to_string()),
        }
    };
    let mut wrong = Vec::new();
    for (url, expected) in TABLE {
        let (kind, text) = outcome(url);
        let is_so = match expected {
            Not(words) => kind == "refused" && text.contains(words),
            Open(whole) => (kind, text.as_str()) == ("open", *whole),
            Special(origin) => (kind, text.as_str()) == ("special", *origin),
            Port(origin) => (kind, text.as_str()) == ("port", *origin),
        };
        if !is_so {
            wrong.push(format!("{url:?} is {kind}: {text}; expected {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is sent is read once more, by the client.
#[test]
fn a_canonical_url_is_canonical() {
    for (url, expected) in TABLE {
        if matches!(expected, Not(_)) {
            continue;
        }
        let first = read(url).unwrap();
        let again = read(&first.url()).unwrap();
        assert_eq!(again.url(), first.url(), "{url:?}");
        assert_eq!(url::Url::parse(&first.url()).unwrap().as_str(), first.url(), "{url:?}");
    }
}

/// The line that a refusal offers is the line that helps.
#[test]
fn adding_the_offered_grant_allows_exactly_that() {
    for (url, expected) in TABLE {
        let (Special(_) | Port(_)) = expected else { continue };
        let request = read(url).unwrap();
        let mut grants = Vec::new();
        let denial = decide_request(&grants, NetworkScope::Full, &request).unwrap_err();
        grants.push(denial.grant.unwrap().to_string().parse().unwrap());
        let permit = decide_request(&grants, NetworkScope::Full, &request).unwrap();
        let address = request.host().address();
        if let Some(address) = address {
            assert_eq!(decide_address(&grants, &permit, address), Ok(()), "{url:?}");
        }
        let other = read(&request.url().replacen("://", "://x", 1));
        if let Ok(other) = other {
            assert!(decide_request(&grants, NetworkScope::Full, &other).is_err(), "{url:?}");
        }
    }
}

#[test]
fn what_a_guest_hands_over_is_as_strict() {
    let request = |method, scheme, authority, path| {
        NetRequest::new(method, scheme, authority, path)
            .map(|request| request.url())
            .map_err(|error| error.to_string())
    };
    assert_eq!(request("GET", "https", "a.test", ""), Ok("https://a.test/".to_owned()));
    assert_eq!(request("POST", "https", "a.test", "?q"), Ok("https://a.test/?q".to_owned()));
    assert_eq!(request("PROPFIND", "http", "a.test", "/x"), Ok("http://a.test/x".to_owned()));
    let endless = "/x".repeat(9_000);
    for (method, scheme, authority, path, words) in [
        ("get", "https", "a.test", "/", "the method"),
        ("Get", "https", "a.test", "/", "the method"),
        ("", "https", "a.test", "/", "the method"),
        ("GET ", "https", "a.test", "/", "the method"),
        ("GET\r\nX: y", "https", "a.test", "/", "the method"),
        ("CONNECT", "https", "a.test", "/", "the method"),
        ("TRACE", "https", "a.test", "/", "the method"),
        ("GET", "HTTPS:", "a.test", "/", SCHEME),
        ("GET", "ftp", "a.test", "/", SCHEME),
        ("GET", "https", "a.test/x", "/", CHARACTER),
        ("GET", "https", "a.test?x", "/", CHARACTER),
        ("GET", "https", "a.test#x", "/", CHARACTER),
        ("GET", "https", "a.test\r\nX: y", "/", PORT),
        ("GET", "https", "a.test\r\n", "/", CHARACTER),
        ("GET", "https", "", "/", "the host is missing"),
        ("GET", "https", "a.test", "x", "does not begin with `/`"),
        ("GET", "https", "a.test", "*", "does not begin with `/`"),
        ("GET", "https", "a.test", "http://127.0.0.1/", "does not begin with `/`"),
        ("GET", "https", "a.test", "@127.0.0.1/", "does not begin with `/`"),
        ("GET", "https", "a.test", ":80/", "does not begin with `/`"),
        ("GET", "https", "a.test", "/#x", ESCAPE),
        ("GET", "https", "a.test", "/ HTTP/1.1\r\nX: y", ESCAPE),
        ("GET", "https", "a.test", &endless, "longer than"),
    ] {
        let error = request(method, scheme, authority, path).unwrap_err();
        assert!(error.contains(words), "{method:?} {authority:?} {path:.40?}: {error}");
    }
    let long = format!("{}.test", "a".repeat(64));
    assert!(request("GET", "https", &long, "/").unwrap_err().contains("too long"));
    let long = format!("{}test", "a.".repeat(126));
    assert!(request("GET", "https", &long, "/").unwrap_err().contains("too long"));
}

#[test]
fn the_request_is_known_from_the_arguments() {
    let request = |arguments: Value| {
        request_in_arguments(arguments.as_object().unwrap()).map(|request| request.to_string())
    };
    for (arguments, expected) in [
        (json!({ "url": "https://example.com/a?b" }), Some("GET https://example.com/a")),
        (json!({ "url": "http://EXAMPLE.com:8080/" }), Some("GET http://example.com:8080/")),
        (json!({ "url": "http://0x7f.1/" }), Some("GET http://127.0.0.1/")),
        (json!({ "url": "https://b.test/", "method": "post" }), Some("POST https://b.test/")),
        (json!({ "url": "https://b.test/", "method": "CONNECT" }), None),
        (json!({ "url": "https://a@b.test/" }), None),
        (json!({ "url": "ftp://b.test/" }), None),
        (json!({ "url": "" }), None),
        (json!({ "url": 1 }), None),
        (json!({}), None),
    ] {
        assert_eq!(request(arguments.clone()).as_deref(), expected, "{arguments}");
    }
}
