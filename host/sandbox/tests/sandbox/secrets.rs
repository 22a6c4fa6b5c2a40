//! Secrets: where they go, and every place that they must not come out of.

use crate::{
    http::{World, answers},
    server::{Reply, Server, ok, response},
    support::{Bench, bundled, error, kind, recorder, run, run_with, text},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use belljar_capability::{Limits, PluginGrant, SecretGrant};
use belljar_sandbox::{Outside, Sandbox, SandboxConfig};
use belljar_types::{CallReport, ToolErrorKind};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};
use tokio_util::sync::CancellationToken;

const SECRET: &str = "c4nary+value/of=secret&more";

fn outside(value: Option<&'static str>) -> Outside {
    Outside {
        secrets: Arc::new(move |name| value.filter(|_| name == "CANARY").map(str::to_owned)),
        ..Outside::default()
    }
}

fn bound(host: &str) -> SecretGrant {
    SecretGrant::new("CANARY", "CANARY", host, "authorization", "Bearer {}").unwrap()
}

async fn open(bench: &Bench, servers: &[&Server], secret: SecretGrant) -> Sandbox {
    let grants: Vec<_> = servers.iter().map(|server| server.grant()).collect();
    let net: Vec<_> = grants.iter().map(String::as_str).collect();
    World { net: &net, secrets: vec![secret], outside: outside(Some(SECRET)), ..World::default() }
        .open(bench)
        .await
}

async fn get(sandbox: &Sandbox, server: &Server, path: &str) -> CallReport {
    let request = json!({ "authority": server.authority(), "path": path });
    run(sandbox, "http__send", json!({ "requests": [request] })).await
}

/// Every way to write the secret that the tests know.
fn forms() -> Vec<String> {
    let escape = |upper: bool| {
        SECRET.bytes().fold(String::new(), |mut text, byte| {
            match (byte.is_ascii_alphanumeric(), upper) {
                (true, _) => text.push(char::from(byte)),
                (false, true) => text.push_str(&format!("%{byte:02X}")),
                (false, false) => text.push_str(&format!("%{byte:02x}")),
            }
            text
        })
    };
    let mut forms = vec![
        SECRET.to_owned(),
        escape(true),
        escape(false),
        SECRET.replace('&', "&amp;"),
        SECRET.replace('&', "\\u0026"),
        SECRET.replace('/', "\\/"),
        SECRET.bytes().map(|byte| format!("{byte:02x}")).collect(),
    ];
    for before in ["", "u", "us", "user:", "Bearer "] {
        forms.push(STANDARD.encode(format!("{before}{SECRET}")));
        forms
            .push(STANDARD.encode(format!("{before}{SECRET}")).replace('+', "-").replace('/', "_"));
    }
    forms
}

/// Whether a text has the secret or most of it in any form.
fn tells(text: &str) -> Option<String> {
    forms().into_iter().find(|form| {
        let core = &form[form.len() / 4..form.len() * 3 / 4];
        text.contains(core)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_added_for_its_host_and_never_comes_back() {
    let bench = Bench::new();
    let server = Server::echo().await;
    let sandbox = open(&bench, &[&server], bound(&server.authority())).await;
    let report = get(&sandbox, &server, "/").await;
    let seen = server.seen();
    assert!(seen[0].contains(&format!("\r\nauthorization: Bearer {SECRET}\r\n")), "{seen:?}");
    let answers = answers(&report);
    let body = answers[0]["Ok"]["body"].as_str().unwrap();
    assert!(body.contains("authorization: Bearer [secret CANARY]\r\n"), "{body}");
    let whole = format!("{report:?}{}", serde_json::to_string(&report.receipt).unwrap());
    assert_eq!(tells(&whole), None, "{whole}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_sent_nowhere_else() {
    let bench = Bench::new();
    let (own, other) = (Server::saying("own").await, Server::saying("other").await);
    let sandbox = open(&bench, &[&own, &other], bound(&own.authority())).await;
    get(&sandbox, &other, "/").await;
    assert!(!other.seen()[0].contains("authorization"), "{:?}", other.seen());
    // Nor where the server of its own host sends the guest.
    let location = format!("location: http://{}/\r\n", other.authority());
    let front = Server::start(move |_| response("302 Found", &location, "")).await;
    let sandbox = open(&bench, &[&front, &other], bound(&front.authority())).await;
    let request = json!({ "authority": front.authority(), "follow": 1 });
    let report = run(&sandbox, "http__send", json!({ "requests": [request] })).await;
    assert_eq!(answers(&report)[0]["Ok"]["body"], "other");
    assert!(front.seen()[0].contains(SECRET));
    assert_eq!(other.seen().len(), 2);
    assert!(other.seen().iter().all(|request| !request.contains("authorization")));
}

/// Over plain http a secret goes to this machine only, so a name never carries one.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_a_name_does_not_go_over_plain_http() {
    let bench = Bench::new();
    let server = Server::echo().await;
    let named = format!("http://localhost:{}", server.port);
    let secret = bound(&format!("localhost:{}", server.port));
    let sandbox = World {
        net: &[&named, &server.grant()],
        secrets: vec![secret],
        outside: outside(Some(SECRET)),
        ..World::default()
    }
    .open(&bench)
    .await;
    let request = json!({ "authority": format!("localhost:{}", server.port) });
    let report = run(&sandbox, "http__send", json!({ "requests": [request] })).await;
    assert!(report.outcome.is_ok(), "{report:?}");
    assert!(!server.seen()[0].contains("authorization"), "{:?}", server.seen());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guest_cannot_set_the_header_itself() {
    let bench = Bench::new();
    let server = Server::echo().await;
    let sandbox = open(&bench, &[&server], bound(&server.authority())).await;
    for name in ["authorization", "Authorization"] {
        let request = json!({
            "authority": server.authority(),
            "headers": [{ "name": name, "value": "mine" }],
        });
        let report = run(&sandbox, "http__send", json!({ "requests": [request] })).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied);
        let denied = report.receipt.unwrap().denied;
        assert!(denied[0].reason.contains("carries the secret `CANARY`"), "{denied:?}");
    }
    assert_eq!(server.seen(), <[String; 0]>::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_without_a_value_that_serves_is_not_sent() {
    let bench = Bench::new();
    let server = Server::echo().await;
    let grant = server.grant();
    for (value, words) in [
        (None, "has no value: set the variable `CANARY`"),
        (Some("sh0rt!"), "is shorter than 8 bytes"),
        (Some("with\r\nx-line: break"), "holds characters that no header takes"),
    ] {
        let sandbox = World {
            net: &[&grant],
            secrets: vec![bound(&server.authority())],
            outside: outside(value),
            ..World::default()
        }
        .open(&bench)
        .await;
        let report = get(&sandbox, &server, "/").await;
        assert_eq!(kind(&report), ToolErrorKind::Denied);
        let message = &error(&report).message;
        assert!(message.contains(words), "{message}");
        assert!(value.is_none_or(|value| !message.contains(value)), "{message}");
    }
    assert_eq!(server.seen(), <[String; 0]>::default());
}

/// Each form, whole and in pieces of every size, in the body; and in headers, their names, and
/// trailers.
#[tokio::test(flavor = "multi_thread")]
async fn every_form_is_taken_out_wherever_the_server_puts_it() {
    let bench = Bench::new();
    let server = Server::start(|request| {
        let path = request.split(' ').nth(1).unwrap();
        let [_, form, size] = path.split('/').collect::<Vec<_>>().try_into().unwrap();
        let form = &forms()[form.parse::<usize>().unwrap()];
        let size: usize = size.parse().unwrap();
        if size == 0 {
            let headers = format!("x-plain: {form}\r\nset-cookie: a={form}; b\r\n");
            return response("200 OK", &headers, "headers");
        }
        let body = format!("before {form} after {form}");
        let mut pieces =
            vec![b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-t\r\n\r\n".to_vec()];
        for piece in body.as_bytes().chunks(size) {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            pieces.push(chunk);
        }
        pieces.push(format!("0\r\nx-t: {form}\r\n\r\n").into_bytes());
        Reply::Pieces(pieces)
    })
    .await;
    let sandbox = open(&bench, &[&server], bound(&server.authority())).await;
    for form in 0..forms().len() {
        for size in [0, 1, 2, 3, 5, 8, 13, 1_000] {
            let report = get(&sandbox, &server, &format!("/{form}/{size}")).await;
            let answers = answers(&report);
            let answer = answers[0]["Ok"].to_string();
            assert_eq!(tells(&answer), None, "{answer}");
            assert!(answer.contains("[secret CANARY]"), "{answer}");
            if size > 0 {
                let body = answers[0]["Ok"]["body"].as_str().unwrap();
                assert!(body.starts_with("before ") && body.contains(" after "), "{body}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_in_a_form_that_cannot_be_read_is_not_given() {
    let bench = Bench::new();
    let server =
        Server::start(|_| response("200 OK", "content-encoding: gzip\r\n", "packed")).await;
    let sandbox = open(&bench, &[&server], bound(&server.authority())).await;
    let request = json!({
        "authority": server.authority(),
        "headers": [
            { "name": "accept-encoding", "value": "gzip" },
            { "name": "range", "value": "bytes=0-3" },
        ],
    });
    let report = run(&sandbox, "http__send", json!({ "requests": [request] })).await;
    assert!(error(&report).message.contains("HttpResponseContentCoding"), "{report:?}");
    let seen = server.seen();
    assert!(seen[0].contains("\r\naccept-encoding: identity\r\n"), "{seen:?}");
    assert!(!seen[0].contains("gzip") && !seen[0].contains("range"), "{seen:?}");
}

/// A guest that was given the secret by its server, in a form or two, says it everywhere.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_the_plugin_says_has_it() {
    let bench = Bench::new();
    let server = Server::start(|_| ok(&forms().join(" "))).await;
    let sandbox = open(&bench, &[&server], bound(&server.authority())).await;
    let (observer, updates) = recorder();
    let arguments: Value = json!({ "authority": server.authority() });
    let report =
        run_with(&sandbox, "http__emit_response", arguments, observer, CancellationToken::new())
            .await;
    assert_eq!(kind(&report), ToolErrorKind::Failed);
    let whole = format!(
        "{report:?}{}{:?}",
        serde_json::to_string(&report.receipt).unwrap(),
        updates.lock().unwrap()
    );
    assert!(whole.contains("[secret CANARY]"), "{whole}");
    assert_eq!(tells(&whole), None, "{whole}");
}

/// A plugin that finds the secret in a file has it by no way of the host's, and still cannot say
/// it: not whole, and not in halves where a text is cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_the_plugin_found_elsewhere_is_not_shown() {
    let bench = Bench::new();
    bench.write("a.txt", &format!("key = {SECRET}\n"));
    bench.write(&format!("{}.txt", SECRET.replace('/', "_")), "");
    let grant = PluginGrant { secrets: vec![bound("a.test")], ..PluginGrant::default() };
    let open = async |limits| {
        Sandbox::open(SandboxConfig {
            bundled: bundled(),
            grants: BTreeMap::from([("files".to_owned(), grant.clone())]),
            outside: outside(Some(SECRET)),
            limits,
            ..bench.config()
        })
        .await
        .unwrap()
    };
    let read = json!({ "path": "a.txt" });
    let report = run(&open(Limits::default()).await, "read_file", read.clone()).await;
    assert_eq!(text(&report), "key = [secret CANARY]\n");
    let limits = Limits { result: 12, ..Limits::default() };
    let report = run(&open(limits).await, "read_file", read).await;
    assert!(!format!("{report:?}").contains(&SECRET[..4]), "{report:?}");
    let missing = json!({ "path": format!("{SECRET}/x") });
    let report = run(&open(Limits::default()).await, "read_file", missing).await;
    let whole = format!("{report:?}");
    assert!(whole.contains("[secret CANARY]"), "{whole}");
    assert_eq!(tells(&whole), None, "{whole}");
}
