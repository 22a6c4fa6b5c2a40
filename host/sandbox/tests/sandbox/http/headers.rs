//! Header fields and trailers: which the guest may set, and how many.

use super::{answers, denied, granted, send, told};
use crate::{
    server::{Server, response},
    support::{Bench, error, kind, run},
};
use belljar_types::ToolErrorKind;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_the_hosts_cannot_be_set() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let sandbox = granted(&bench, &[&server.grant()]).await;
    for name in [
        "host",
        "Host",
        "connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "proxy-anything",
        "te",
        "trailer",
        "transfer-encoding",
        "Transfer-Encoding",
        "upgrade",
        "http2-settings",
        "expect",
    ] {
        let report = run(&sandbox, "http__set_header", json!({ "name": name, "value": "x" })).await;
        assert_eq!(error(&report).message, format!("{name}: HeaderError::Forbidden"));
    }
    for (name, value) in [
        ("x-a", "b\r\nhost: evil"),
        ("x-a", "b\nx-b: c"),
        ("x-a", "b\u{0}"),
        ("x-a\r\nx-b", "c"),
        ("x a", "b"),
        ("x-a:", "b"),
        (":authority", "evil"),
        ("", "b"),
    ] {
        let report =
            run(&sandbox, "http__set_header", json!({ "name": name, "value": value })).await;
        let message = &error(&report).message;
        assert!(message.ends_with("HeaderError::InvalidSyntax"), "{name:?}: {message}");
    }
    // Two lengths, a wrong one, one that is no number.
    let length = |value: &str| json!({ "name": "content-length", "value": value });
    for headers in [
        json!([length("1"), length("2")]),
        json!([length("4"), length("4")]),
        json!([length("+4")]),
        json!([length("4, 5")]),
        json!([length("100")]),
        json!([length("1")]),
    ] {
        let report = send(
            &sandbox,
            json!([{
                "method": "POST", "authority": server.authority(), "body": "body",
                "headers": headers,
            }]),
        )
        .await;
        assert!(told(&report)[0].get("Err").is_some(), "{headers}");
    }
    for trailer in ["host", "transfer-encoding", "content-length", "x-fine"] {
        let report = send(
            &sandbox,
            json!([{
                "method": "POST", "authority": server.authority(), "body": "body",
                "trailers": [{ "name": trailer, "value": "1" }],
            }]),
        )
        .await;
        assert!(told(&report)[0].get("Err").is_some(), "{trailer}");
    }
    // A body may have been on its way when the rest was refused: such a request is never finished,
    // or ends where its length says.
    for request in server.seen() {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.matches("HTTP/1.1").count(), 1, "{request}");
        match head.contains("\r\ntransfer-encoding: chunked") {
            true => assert!("4\r\nbody\r\n".starts_with(body), "{request}"),
            false => assert!("body".starts_with(body), "{request}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_cannot_ask_for_a_method_that_is_not_granted() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let grant = format!("GET,POST {}", server.grant());
    let request = |name: &str| {
        json!([{
            "method": "POST", "authority": server.authority(),
            "headers": [{ "name": name, "value": "DELETE" }],
        }])
    };
    for name in ["x-http-method-override", "X-HTTP-Method", "X-Method-Override"] {
        let report = send(&granted(&bench, &[&grant]).await, request(name)).await;
        let [denial] = denied(&report) else { panic!("{report:?}") };
        assert!(denial.reason.contains("is not the tool's to set"), "{denial:?}");
        let report = send(&granted(&bench, &[&server.grant()]).await, request(name)).await;
        assert!(report.outcome.is_ok(), "{report:?}");
    }
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn header_fields_are_bounded() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let sandbox = granted(&bench, &[&server.grant()]).await;
    let report = run(&sandbox, "http__fill_fields", json!({})).await;
    assert_eq!(kind(&report), ToolErrorKind::Trap);
    let many = Server::start(|_| {
        let headers: String = (0..200).map(|n| format!("x-{n}: {}\r\n", "y".repeat(400))).collect();
        response("200 OK", &headers, "hello")
    })
    .await;
    let report =
        send(&granted(&bench, &[&many.grant()]).await, json!([{ "authority": many.authority() }]))
            .await;
    assert!(told(&report)[0].get("Err").is_some(), "{report:?}");
    // The next call is served as ever.
    let report = send(&sandbox, json!([{ "authority": server.authority() }])).await;
    assert_eq!(answers(&report)[0]["Ok"]["body"], "hello");
}
