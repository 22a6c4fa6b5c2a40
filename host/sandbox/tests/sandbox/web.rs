//! The bundled plugin `web`: pages and requests, by grant and by a person's answer.

use crate::{
    server::{Reply, Server, response},
    support::{Bench, bundled, call, error, ignore, kind, run},
};
use belljar_capability::PluginGrant;
use belljar_sandbox::{Sandbox, SandboxConfig};
use belljar_types::{
    Action, ApprovalAnswer, CallReport, Content, PermissionMode, ToolErrorKind, Toolbox,
};
use serde_json::json;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

async fn open(bench: &Bench, mode: PermissionMode, net: &[&str]) -> Sandbox {
    let net = net.iter().map(|text| text.parse().unwrap()).collect();
    let grants =
        BTreeMap::from([("web".to_owned(), PluginGrant { net, ..PluginGrant::default() })]);
    let mut config = bench.config();
    config.policy.mode = mode;
    Sandbox::open(SandboxConfig { bundled: bundled(), grants, ..config }).await.unwrap()
}

/// The texts of a result.
fn texts(report: &CallReport) -> Vec<&str> {
    let output = report.outcome.as_ref().unwrap_or_else(|error| panic!("{error}"));
    output
        .content
        .iter()
        .map(|piece| match piece {
            Content::Text { text } => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn html(text: &str) -> Reply {
    response("200 OK", "content-type: text/html\r\n", text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_read_as_markdown_in_pages() {
    let bench = Bench::new();
    let server = Server::start(|_| {
        let items: String = (1..=100).map(|n| format!("<li>item {n}</li>")).collect();
        html(&format!("<title>List</title><ul>{items}</ul>"))
    })
    .await;
    let sandbox = open(&bench, PermissionMode::Bypass, &[&server.grant()]).await;
    let url = format!("{}/list", server.grant());
    let report = run(&sandbox, "fetch_url", json!({ "url": url, "limit": 4 })).await;
    assert_eq!(
        texts(&report),
        ["# List\n\n- item 1\n- item 2\n", "[lines 1 to 4 of 102; read on with `offset` 5]",]
    );
    let receipt = report.receipt.unwrap();
    assert_eq!(receipt.hosts, [server.grant()]);
    assert!(receipt.read_only);
    let report = run(&sandbox, "fetch_url", json!({ "url": url, "offset": 101 })).await;
    assert_eq!(texts(&report)[0], "- item 99\n- item 100\n");
    assert!(server.seen()[0].starts_with("GET /list HTTP/1.1\r\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_sent_and_its_answer_is_shown() {
    let bench = Bench::new();
    let server = Server::start(|request| {
        let body = request.split_once("\r\n\r\n").unwrap().1;
        response("201 Created", "content-type: application/json\r\n", &format!("{{{body:?}: 1}}"))
    })
    .await;
    let sandbox = open(&bench, PermissionMode::Bypass, &[&server.grant()]).await;
    let arguments = json!({
        "method": "PUT", "url": format!("{}/x?y", server.grant()),
        "headers": { "x-a": "1", "content-type": "text/plain" }, "body": "",
    });
    let report = run(&sandbox, "http_request", arguments).await;
    let [head, body] = texts(&report).try_into().unwrap();
    assert!(head.starts_with("201 Created\ncontent-type: application/json\n"), "{head}");
    assert!(body.starts_with("{\""), "{body}");
    let seen = server.seen();
    assert!(seen[0].starts_with("PUT /x?y HTTP/1.1\r\n"), "{seen:?}");
    assert!(seen[0].contains("\r\nx-a: 1\r\n"), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grant_nothing_is_sent_and_the_line_that_is_missing_makes_it_work() {
    let bench = Bench::new();
    let server = Server::start(|_| html("<p>hello</p>")).await;
    let arguments = json!({ "url": server.grant() });
    let sandbox = open(&bench, PermissionMode::Bypass, &["public"]).await;
    for tool in ["fetch_url", "http_request"] {
        let report = run(&sandbox, tool, arguments.clone()).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied);
        let [denial] = report.receipt.unwrap().denied.try_into().unwrap();
        assert_eq!(denial.grant.as_deref(), Some(&*format!("web.net={}", server.grant())));
    }
    assert_eq!(server.seen(), <[String; 0]>::default());
    let sandbox = open(&bench, PermissionMode::Bypass, &["public", &server.grant()]).await;
    assert_eq!(texts(&run(&sandbox, "fetch_url", arguments).await), ["hello\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_is_asked_about_first_and_a_yes_is_for_that_host() {
    let bench = Bench::new();
    let other = Server::start(|_| html("<p>other</p>")).await;
    let location = format!("location: {}/x\r\n", other.grant());
    let server = Server::start(move |request| match request.starts_with("GET /away") {
        true => response("302 Found", &location, ""),
        false => html("<p>hello</p>"),
    })
    .await;
    let sandbox = open(&bench, PermissionMode::Default, &[]).await;
    let fetch = |url: &str| sandbox.prepare(&call("fetch_url", json!({ "url": url }))).unwrap();
    let prepared = fetch(&server.grant());
    assert_eq!(prepared.decision().action, Action::Ask);
    let question = prepared.question().text;
    assert!(question.contains(&server.grant()), "{question}");
    let yes = || Some(ApprovalAnswer::Once);
    let report = prepared.run(yes(), ignore(), CancellationToken::new()).await;
    assert_eq!(texts(&report), ["hello\n"]);
    // Where the server leads is another host.
    let prepared = fetch(&format!("{}/away", server.grant()));
    let report = prepared.run(yes(), ignore(), CancellationToken::new()).await;
    assert_eq!(kind(&report), ToolErrorKind::Denied);
    assert_eq!(other.seen(), <[String; 0]>::default());
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_made_to_break_the_reader_do_not() {
    let bench = Bench::new();
    let server = Server::start(|request| {
        let nested = |tag: &str, depth: usize| {
            format!("{}deep{}", format!("<{tag}>").repeat(depth), format!("</{tag}>").repeat(depth))
        };
        let path = request.split(' ').nth(1).unwrap();
        html(&match path {
            "/div" => nested("div", 150),
            "/quote" => nested("blockquote", 150),
            "/list" => nested("ul><li", 75),
            "/item" => nested("div><li", 75),
            "/table" => nested("table><tr><td", 50),
            "/span" => nested("span", 150),
            "/link" => nested("b><i><a href=x", 50),
            "/pre" => nested("pre><code", 75),
            "/far" => nested("div", 200_000),
            "/open" => "<b><i><a href=x><p>".repeat(20_000),
            "/entities" => "&amp;&#x41;&#xfffffffff;".repeat(50_000),
            _ => "<".repeat(200_000),
        })
    })
    .await;
    let sandbox = open(&bench, PermissionMode::Bypass, &[&server.grant()]).await;
    for path in [
        "div", "quote", "list", "item", "table", "span", "link", "pre", "far", "open", "entities",
        "angles",
    ] {
        let url = format!("{}/{path}", server.grant());
        let report = run(&sandbox, "fetch_url", json!({ "url": url })).await;
        assert!(report.outcome.is_ok(), "{path}: {}", error(&report));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_told_before_the_deadline() {
    let bench = Bench::new();
    let server = Server::start(|_| Reply::Silence(Vec::new())).await;
    let mut config = bench.config();
    config.limits.deadline = std::time::Duration::from_millis(1_200);
    let net = vec![server.grant().parse().unwrap()];
    let grants =
        BTreeMap::from([("web".to_owned(), PluginGrant { net, ..PluginGrant::default() })]);
    let sandbox =
        Sandbox::open(SandboxConfig { bundled: bundled(), grants, ..config }).await.unwrap();
    let report = run(&sandbox, "fetch_url", json!({ "url": server.grant() })).await;
    assert_eq!(kind(&report), ToolErrorKind::Unavailable);
    assert_eq!(error(&report).message, "`127.0.0.1` did not answer in time");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_plan_mode_granted_pages_are_read_and_nothing_else_is_sent() {
    let bench = Bench::new();
    let server = Server::start(|_| html("<p>hello</p>")).await;
    let sandbox = open(&bench, PermissionMode::Plan, &[&server.grant()]).await;
    let report = run(&sandbox, "fetch_url", json!({ "url": server.grant() })).await;
    assert_eq!(texts(&report), ["hello\n"]);
    let other = json!({ "url": "http://127.0.0.1:1/" });
    for (tool, arguments) in
        [("http_request", json!({ "url": server.grant() })), ("fetch_url", other)]
    {
        let refused = sandbox.prepare(&call(tool, arguments)).err().unwrap();
        assert_eq!(refused.kind, ToolErrorKind::Denied, "{tool}");
    }
    assert_eq!(server.seen().len(), 1);
}
