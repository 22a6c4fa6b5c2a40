//! What a server can do to a call: say too much, too slowly, nothing, or nonsense.

use super::{Names, World, answers, denied, granted, send, told};
use crate::{
    server::{Reply, Server, ok, response},
    support::{Bench, ignore, kind, run_with},
};
use belljar_capability::{GrantSpec, Limit, Limits};
use belljar_types::ToolErrorKind;
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_is_held_and_named() {
    let bench = Bench::new();
    let server = Server::start(|request| match request.starts_with("GET /endless") {
        true => Reply::Endless(b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b'x'; 32 << 10]),
        false => ok("0123456789"),
    })
    .await;
    let grant = server.grant();
    let limits =
        Limits { requests: 3, request_bytes: 10_000, response_bytes: 100_000, ..Limits::default() };
    let sandbox = World { net: &[&grant], limits, ..World::default() }.open(&bench).await;
    let get = json!({ "authority": server.authority() });
    let endless = json!({ "authority": server.authority(), "path": "/endless" });
    let post =
        |zeros: u64| json!({ "authority": server.authority(), "method": "POST", "zeros": zeros });

    let report = send(&sandbox, json!([get, get, get])).await;
    assert_eq!(answers(&report).len(), 3);
    let report = send(&sandbox, json!([get, get, get, get])).await;
    assert_eq!(told(&report)[3], json!({ "Err": "ErrorCode::HttpRequestDenied" }));
    assert_eq!(denied(&report)[0].reason, "the setting `limits.requests` allows 3");

    let report = send(&sandbox, json!([post(4_000), post(6_000)])).await;
    assert_eq!(answers(&report).len(), 2);
    let report = send(&sandbox, json!([post(6_000), post(6_000)])).await;
    assert!(told(&report)[1].get("Err").is_some(), "{report:?}");
    assert_eq!(denied(&report)[0].reason, "the setting `limits.request_bytes` allows 9.8KiB");

    let report = send(&sandbox, json!([endless])).await;
    let [outcome] = told(&report).try_into().unwrap();
    assert!(outcome["Err"].as_str().unwrap().starts_with("after 98304 bytes"), "{outcome}");
    assert_eq!(denied(&report)[0].reason, "the setting `limits.response_bytes` allows 97.7KiB");
}

/// With less than a call needs it is refused, the refusal names the line that gives twice as much,
/// and with such lines, one after the other, the call works.
#[tokio::test(flavor = "multi_thread")]
async fn the_line_that_a_refusal_over_a_limit_names_is_enough() {
    let bench = Bench::new();
    let server = Server::start(|_| ok(&"0123456789".repeat(1_000))).await;
    let get = json!({ "authority": server.authority() });
    let post = json!({ "authority": server.authority(), "method": "POST", "zeros": 6_000 });
    let cases = [
        (Limit::Requests, 1, json!([get, get, get, get])),
        (Limit::RequestBytes, 5_000, json!([post, post])),
        (Limit::ResponseBytes, 1_000, json!([get])),
    ];
    let grant = server.grant();
    for (limit, less, requests) in cases {
        let mut settings = BTreeMap::from([(limit, less)]);
        let mut refusals = 0;
        loop {
            let limits = Limits::default().with(&settings);
            let sandbox = World { net: &[&grant], limits, ..World::default() }.open(&bench).await;
            let report = send(&sandbox, requests.clone()).await;
            if report.outcome.is_ok() {
                break;
            }
            let line = denied(&report)[0].grant.clone().unwrap();
            let GrantSpec { plugin, part } = line.parse().unwrap();
            assert_eq!(plugin, "http", "{line}");
            let raised = part.into_grant().limits;
            assert!(raised[&limit] > settings[&limit] && raised.len() == 1, "{line}");
            settings = raised;
            refusals += 1;
        }
        assert!(refusals > 0, "{limit}");
    }
}

/// A body that is small on the wire and large once unpacked is counted as it came, and comes to
/// the guest packed.
#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_left_as_it_is() {
    let bench = Bench::new();
    let server =
        Server::start(|_| response("200 OK", "content-encoding: gzip\r\n", "not gzip at all"))
            .await;
    let report = send(
        &granted(&bench, &[&server.grant()]).await,
        json!([{
            "authority": server.authority(),
            "headers": [{ "name": "accept-encoding", "value": "gzip" }],
        }]),
    )
    .await;
    assert_eq!(answers(&report)[0]["Ok"]["body"], "not gzip at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_nothing_or_ever_more_meets_the_deadline() {
    let bench = Bench::new();
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0".to_vec();
    let server = Server::start(move |request| match request {
        _ if request.starts_with("GET /silent") => Reply::Silence(Vec::new()),
        _ if request.starts_with("GET /begun") => Reply::Silence(head.clone()),
        _ if request.starts_with("GET /drip") => {
            Reply::Drip(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".to_vec())
        }
        _ if request.starts_with("GET /header") => {
            Reply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-a: b\r\n".to_vec())
        }
        _ => Reply::Endless(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec(),
            b"1\r\nx\r\n".to_vec(),
        ),
    })
    .await;
    let grant = server.grant();
    let limits = Limits { deadline: Duration::from_millis(300), ..Limits::default() };
    let sandbox = World { net: &[&grant], limits, ..World::default() }.open(&bench).await;
    for path in ["/silent", "/begun", "/drip"] {
        let request = json!([{ "authority": server.authority(), "path": path }]);
        assert_eq!(kind(&send(&sandbox, request).await), ToolErrorKind::Deadline, "{path}");
    }
    server.is_left_alone().await;
    // Either limit may be met first, and one is.
    let endless = json!([{ "authority": server.authority(), "path": "/endless" }]);
    let report = send(&sandbox, endless).await;
    assert!(matches!(kind(&report), ToolErrorKind::Deadline | ToolErrorKind::Denied), "{report:?}");
    let header = json!([{ "authority": server.authority(), "path": "/header" }]);
    let report = send(&sandbox, header).await;
    assert_eq!(told(&report), [json!({ "Err": "ErrorCode::HttpProtocolError" })]);
    // The guest's own patience is held to.
    for (path, field, words) in [
        ("/silent", "first_byte_ms", "ErrorCode::ConnectionReadTimeout"),
        ("/begun", "between_bytes_ms", "after 1 bytes"),
    ] {
        let request = json!([{ "authority": server.authority(), "path": path, field: 20 }]);
        let report = send(&sandbox, request).await;
        let [outcome] = told(&report).try_into().unwrap();
        assert!(outcome["Err"].as_str().unwrap().starts_with(words), "{outcome}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_cancelled_while_it_waits_for_a_server() {
    let bench = Bench::new();
    let server = Server::start(|_| Reply::Silence(Vec::new())).await;
    let sandbox = granted(&bench, &[&server.grant()]).await;
    let cancel = CancellationToken::new();
    let request = json!({ "authority": server.authority() });
    let requests = json!({ "requests": vec![request; 20] });
    let call = run_with(&sandbox, "http__hold_open", requests, ignore(), cancel.clone());
    let stop = async {
        while server.seen().len() < 20 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(call, stop);
    assert_eq!(kind(&report), ToolErrorKind::Canceled);
    server.is_left_alone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_is_shared_between_calls() {
    let bench = Bench::new();
    // A server that would keep a connection open and serve the next request on it.
    let connections = Arc::new(Mutex::new(0));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let counted = Arc::clone(&connections);
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            *counted.lock().unwrap() += 1;
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer).await {
                    let _ =
                        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
                }
            });
        }
    });
    let grant = format!("http://{authority}");
    let sandbox = granted(&bench, &[&grant]).await;
    for _ in 0..3 {
        let report = send(&sandbox, json!([{ "authority": authority }])).await;
        assert_eq!(answers(&report)[0]["Ok"]["body"], "ok");
    }
    assert_eq!(*connections.lock().unwrap(), 3);
    server.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_told_without_a_word_of_the_hosts() {
    let bench = Bench::new();
    // Nothing listens there; a port that was free a moment ago may be anybody's now.
    let closed = "127.0.0.1:1";
    let odd = Server::start(|_| Reply::Bytes(b"this is no HTTP\r\n\r\n".to_vec())).await;
    let cut = Server::start(|_| {
        Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort".to_vec())
    })
    .await;
    let names = Names::new(&[]);
    let (gone, unknown) = (format!("http://{closed}"), "http://unknown.test");
    let net = [gone.as_str(), &odd.grant(), &cut.grant(), unknown];
    let sandbox =
        World { net: &net, outside: names.outside(), ..World::default() }.open(&bench).await;
    for (authority, code) in [
        (closed, "ErrorCode::ConnectionRefused"),
        (&odd.authority(), "ErrorCode::HttpProtocolError"),
        ("unknown.test", "ErrorCode::DnsError"),
        (&cut.authority(), "after 5 bytes: "),
    ] {
        let report = send(&sandbox, json!([{ "authority": authority }])).await;
        assert_eq!(kind(&report), ToolErrorKind::Failed, "{authority}");
        let [outcome] = told(&report).try_into().unwrap();
        assert!(outcome["Err"].as_str().unwrap().starts_with(code), "{authority}: {outcome}");
    }
}

/// Whatever stands behind an https grant gets no word in the clear.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_said_in_the_clear_where_https_is_granted() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let bench = Bench::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = vec![0; 4096];
        let size = stream.read(&mut heard).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        heard.truncate(size);
        heard
    });
    let sandbox = granted(&bench, &[&format!("https://{authority}")]).await;
    let request = json!({ "scheme": "https", "authority": authority, "path": "/in-the-path" });
    let report = send(&sandbox, json!([request])).await;
    assert_eq!(told(&report), [json!({ "Err": "ErrorCode::TlsProtocolError" })]);
    let heard = server.await.unwrap();
    // A TLS handshake, and nothing of the request.
    assert_eq!(heard[0], 0x16);
    assert!(!heard.windows(11).any(|window| window == b"in-the-path"));
    let plain = json!([{ "authority": authority }]);
    assert_eq!(kind(&send(&sandbox, plain).await), ToolErrorKind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancels_at_any_moment_leave_no_connection_behind() {
    let bench = Bench::new();
    let server = Server::start(|request| match request.starts_with("GET /begun") {
        true => Reply::Silence(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n0".to_vec()),
        false => ok("hello"),
    })
    .await;
    let sandbox = granted(&bench, &[&server.grant()]).await;
    let requests = json!({ "requests": [
        { "authority": server.authority() },
        { "authority": server.authority(), "path": "/begun" },
    ] });
    for moments in 0..300 {
        let cancel = CancellationToken::new();
        let call = run_with(&sandbox, "http__send", requests.clone(), ignore(), cancel.clone());
        let stop = async {
            for _ in 0..moments {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (report, ()) = tokio::join!(call, stop);
        assert_eq!(kind(&report), ToolErrorKind::Canceled);
    }
    server.is_left_alone().await;
    let report = send(&sandbox, json!([{ "authority": server.authority() }])).await;
    assert_eq!(answers(&report)[0]["Ok"]["body"], "hello");
}
