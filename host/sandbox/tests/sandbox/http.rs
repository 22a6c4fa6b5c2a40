//! Requests: what goes out by grant, what is refused, and what a hostile server can do.

mod headers;
mod servers;

use crate::{
    server::{Reply, Server, response},
    support::{Bench, error, kind, run, text},
};
use async_trait::async_trait;
use belljar_capability::{Binding, Limits, Manifest, PluginGrant, SecretGrant};
use belljar_sandbox::{Outside, Resolver, Sandbox, SandboxConfig, digest, pack};
use belljar_test_guests::HTTP;
use belljar_types::{CallReport, Denial, PermissionMode, ToolErrorKind};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

/// A sandbox for the guest that sends requests, under grants written as people write them.
pub(crate) struct World<'a> {
    pub(crate) net: &'a [&'a str],
    pub(crate) secrets: Vec<SecretGrant>,
    pub(crate) limits: Limits,
    pub(crate) mode: PermissionMode,
    pub(crate) outside: Outside,
}

impl Default for World<'_> {
    fn default() -> Self {
        Self {
            net: &[],
            secrets: Vec::new(),
            limits: Limits::default(),
            mode: PermissionMode::Bypass,
            outside: Outside::default(),
        }
    }
}

impl World<'_> {
    pub(crate) async fn open(self, bench: &Bench) -> Sandbox {
        bench.add("http.wasm", HTTP.bytes);
        let grant = PluginGrant {
            binding: Some(Binding::Digest(HTTP.digest.to_owned())),
            net: self.net.iter().map(|text| text.parse().unwrap()).collect(),
            secrets: self.secrets,
            ..PluginGrant::default()
        };
        let mut config = bench.config();
        config.policy.mode = self.mode;
        Sandbox::open(SandboxConfig {
            grants: BTreeMap::from([("http".to_owned(), grant)]),
            limits: self.limits,
            outside: self.outside,
            ..config
        })
        .await
        .unwrap()
    }
}

async fn granted(bench: &Bench, net: &[&str]) -> Sandbox {
    World { net, ..World::default() }.open(bench).await
}

/// The answers of a call that succeeded.
pub(crate) fn answers(report: &CallReport) -> Vec<Value> {
    serde_json::from_str(text(report)).unwrap()
}

/// What the guest was told of each of its requests, in a call that failed.
fn told(report: &CallReport) -> Vec<Value> {
    let message = &error(report).message;
    serde_json::from_str(message.lines().next().unwrap()).unwrap()
}

fn denied(report: &CallReport) -> &[Denial] {
    &report.receipt.as_ref().unwrap().denied
}

fn denial(target: &str, reason: &str, grant: Option<&str>) -> Denial {
    Denial {
        operation: "request".into(),
        target: target.into(),
        reason: reason.into(),
        grant: grant.map(Into::into),
    }
}

fn hosts(report: &CallReport) -> &[String] {
    &report.receipt.as_ref().unwrap().hosts
}

async fn send(sandbox: &Sandbox, requests: Value) -> CallReport {
    run(sandbox, "http__send", json!({ "requests": requests })).await
}

/// Names that lead where a test wants, another way each time, and what was asked.
#[derive(Debug, Default)]
struct Names {
    answers: Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    fn new(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let answers = names
            .iter()
            .map(|(name, answers)| {
                let parse =
                    |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
                ((*name).to_owned(), answers.iter().map(parse).collect())
            })
            .collect();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    fn outside(self: &Arc<Self>) -> Outside {
        Outside { resolver: Arc::<Self>::clone(self), ..Outside::default() }
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let mut answers = self.answers.lock().unwrap();
        let list = answers.get_mut(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(if list.len() > 1 { list.remove(0) } else { list[0].clone() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_granted_request_goes_out_and_its_answer_comes_back() {
    let bench = Bench::new();
    let server = Server::start(|_| {
        Reply::Bytes(
            b"HTTP/1.1 201 Created\r\nx-a: 1\r\nx-a: 2\r\ntransfer-encoding: chunked\r\n\
              trailer: x-t\r\n\r\n5\r\nhello\r\n0\r\nx-t: end\r\n\r\n"
                .to_vec(),
        )
    })
    .await;
    let sandbox = granted(&bench, &[&server.grant()]).await;
    let report = send(
        &sandbox,
        json!([{
            "method": "POST", "authority": server.authority(), "path": "/a?b=c",
            "headers": [{ "name": "x-mine", "value": "yes" }], "body": "sent",
        }]),
    )
    .await;
    let answer = json!([{ "Ok": {
        "status": 201,
        "headers": [["x-a", "1"], ["x-a", "2"]],
        "body": "hello",
        "trailers": [["x-t", "end"]],
    }}]);
    assert_eq!(json!(answers(&report)), answer);
    assert_eq!(hosts(&report), [server.grant()]);
    assert_eq!(denied(&report), []);
    let seen = server.seen();
    let [request] = seen.as_slice() else { panic!("{seen:?}") };
    assert!(request.starts_with("POST /a?b=c HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nx-mine: yes\r\n"), "{request}");
    assert!(request.contains(&format!("\r\nhost: {}\r\n", server.authority())), "{request}");
    assert!(request.ends_with("\r\n4\r\nsent\r\n0\r\n\r\n"), "{request}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_grant_nothing_goes_out_and_the_line_that_is_missing_makes_it_work() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let request = json!([{ "authority": server.authority(), "path": "/x" }]);
    for net in [&[][..], &["public"], &["https://127.0.0.1"], &["http://127.0.0.1:1"]] {
        let report = send(&granted(&bench, net).await, request.clone()).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied);
        assert_eq!(told(&report), [json!({ "Err": "ErrorCode::HttpRequestDenied" })]);
        let target = format!("GET {}/x", server.grant());
        let grant = format!("http.net={}", server.grant());
        assert_eq!(
            denied(&report),
            [denial(&target, "the host is not granted", Some(&grant))],
            "{net:?}"
        );
        assert_eq!(hosts(&report), <[String; 0]>::default());
        let line = grant.strip_prefix("http.net=").unwrap();
        let report = send(&granted(&bench, &[line]).await, request.clone()).await;
        assert_eq!(answers(&report)[0]["Ok"]["body"], "hello");
    }
    assert_eq!(server.seen().len(), 4);
}

/// Of what is granted a plugin gets what its manifest asks for, and is told so.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_manifest_does_not_ask_for_is_not_reached() {
    let bench = Bench::new();
    let (asked, other) = (Server::saying("asked").await, Server::saying("other").await);
    let wants = format!("manifest = 1\n[[wants.net]]\nhost = \"{}\"\n", asked.grant());
    let bytes = pack(HTTP.bytes, &Manifest::from_toml(&wants).unwrap()).unwrap();
    bench.add("http.wasm", &bytes);
    let open = async |net: &[String]| {
        let grant = PluginGrant {
            binding: Some(Binding::Digest(digest(&bytes, None))),
            net: net.iter().map(|text| text.parse().unwrap()).collect(),
            ..PluginGrant::default()
        };
        let grants = BTreeMap::from([("http".to_owned(), grant)]);
        Sandbox::open(SandboxConfig { grants, ..bench.config() }).await.unwrap()
    };
    let to = |server: &Server| json!([{ "authority": server.authority() }]);
    let both = open(&[asked.grant(), other.grant()]).await;
    assert_eq!(answers(&send(&both, to(&asked)).await)[0]["Ok"]["body"], "asked");
    let refused = send(&both, to(&other)).await;
    assert_eq!(kind(&refused), ToolErrorKind::Denied);
    let [denial] = denied(&refused) else { panic!("{refused:?}") };
    assert!(denial.reason.contains("manifest"), "{denial:?}");
    assert_eq!(denial.grant, None, "no grant would help");
    // And asking grants nothing.
    assert_eq!(kind(&send(&open(&[]).await, to(&asked)).await), ToolErrorKind::Denied);
    assert_eq!((asked.seen().len(), other.seen().len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_not_open_world_sends_nothing_whatever_is_granted() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let sandbox = granted(&bench, &["public", &server.grant()]).await;
    for tool in ["http__send_closed", "http__send_reading_closed"] {
        let requests = json!({ "requests": [{ "authority": server.authority() }] });
        let report = run(&sandbox, tool, requests).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied);
        assert_eq!(told(&report), [json!({ "Err": "ErrorCode::HttpRequestDenied" })]);
        let target = format!("GET {}/", server.grant());
        assert_eq!(denied(&report), [denial(&target, "this call has no network", None)], "{tool}");
    }
    assert_eq!(server.seen(), <[String; 0]>::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_hold_for_methods_and_paths() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let grant = format!("GET,PUT {}/v1", server.grant());
    let sandbox = granted(&bench, &[&grant]).await;
    let request = |method: &str, path: &str| json!({ "method": method, "authority": server.authority(), "path": path });
    let report =
        send(&sandbox, json!([request("GET", "/v1"), request("PUT", "/v1/%61?q=../..")])).await;
    assert!(report.outcome.is_ok(), "{report:?}");
    let refused = [
        ("POST", "/v1"),
        ("HEAD", "/v1"),
        ("GET", "/v12"),
        ("GET", "/"),
        ("GET", "/v1/../v2"),
        ("GET", "/v1/%2e%2e/v2"),
        ("GET", "/v1/%2E./v2"),
        ("GET", "/v1%2fv2"),
        ("GET", "/v1/..;/v2"),
        ("GET", "/v1/%252e%252e/v2"),
        ("GET", "//v1"),
    ];
    for (method, path) in refused {
        let report = send(&sandbox, json!([request(method, path)])).await;
        assert_eq!(told(&report), [json!({ "Err": "ErrorCode::HttpRequestDenied" })], "{path}");
        assert_eq!(denied(&report).len(), 1, "{method} {path}");
    }
    let seen: Vec<_> =
        server.seen().iter().map(|text| text.lines().next().unwrap().to_owned()).collect();
    assert_eq!(seen, ["GET /v1 HTTP/1.1", "PUT /v1/%61?q=../.. HTTP/1.1"]);
}

/// Every spelling of a private host reaches nothing, though any public host is granted.
#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_refused_in_every_spelling() {
    let bench = Bench::new();
    let sandbox = granted(&bench, &["public"]).await;
    let spellings = [
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "100.64.0.1",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "224.0.0.1",
        "255.255.255.255",
    ];
    for host in spellings {
        let report = send(&sandbox, json!([{ "authority": host }])).await;
        assert_eq!(told(&report), [json!({ "Err": "ErrorCode::HttpRequestDenied" })], "{host}");
        let [denial] = denied(&report) else { panic!("{host}: {report:?}") };
        assert!(denial.reason.contains("not a public one"), "{host}: {denial:?}");
        assert!(denial.grant.as_deref().unwrap().starts_with("http.net=http://"), "{denial:?}");
        assert_eq!(hosts(&report), <[String; 0]>::default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_clear_request_is_refused() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let sandbox = granted(&bench, &["public", &server.grant()]).await;
    let authority = server.authority();
    let requests = [
        json!({ "authority": format!("user@{authority}") }),
        json!({ "authority": format!("user:pass@{authority}") }),
        json!({ "authority": "127.0.0.1:0" }),
        json!({ "authority": "127.0.0.1:" }),
        json!({ "authority": "127.0.0.1.:80" }),
        json!({ "authority": "example.com.:80" }),
        json!({ "authority": authority, "method": "CONNECT" }),
        json!({ "authority": authority, "method": "TRACE" }),
        json!({ "authority": authority, "method": "get" }),
        json!({ "authority": authority, "path": "/a\\b" }),
    ];
    for request in requests {
        let report = send(&sandbox, json!([request.clone()])).await;
        let [outcome] = told(&report).try_into().unwrap();
        assert!(outcome.get("Err").is_some(), "{request}: {outcome}");
    }
    assert_eq!(server.seen(), <[String; 0]>::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_resolved_once_for_a_call_and_the_connection_goes_to_what_was_checked() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let port = server.port;
    let named = format!("http://rebind.test:{port}");
    // Granted as a name and as the address that it first leads to; later it leads elsewhere.
    let names = Names::new(&[("rebind.test", &[&["127.0.0.1"], &["10.0.0.1"]])]);
    let sandbox =
        World { net: &[&named, &server.grant()], outside: names.outside(), ..World::default() }
            .open(&bench)
            .await;
    let request = json!({ "authority": format!("rebind.test:{port}") });
    let report = send(&sandbox, json!([request, request, request])).await;
    assert_eq!(answers(&report).len(), 3);
    assert_eq!(*names.asked.lock().unwrap(), ["rebind.test"]);
    assert_eq!(hosts(&report), std::slice::from_ref(&named));
    // The next call asks again, and what it is told now is refused.
    let report = send(&sandbox, json!([request, request])).await;
    let refused = json!({ "Err": "ErrorCode::HttpRequestDenied" });
    assert_eq!(told(&report), [refused.clone(), refused]);
    assert_eq!(*names.asked.lock().unwrap(), ["rebind.test", "rebind.test"]);
    let reason = "`rebind.test` leads to 10.0.0.1, which is not a public address (private)";
    let grant = format!("http.net=http://10.0.0.1:{port}");
    assert_eq!(denied(&report), [denial(&format!("GET {named}/"), reason, Some(&grant))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_addresses_only_those_are_used_that_may_be() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let port = server.port;
    let named = format!("http://mixed.test:{port}");
    let addresses: &[&str] = &["10.0.0.1", "::1", "127.0.0.1", "169.254.169.254"];
    let names = Names::new(&[("mixed.test", &[addresses])]);
    let request = json!([{ "authority": format!("mixed.test:{port}") }]);
    let both = [named.as_str(), &server.grant()];
    let sandbox = World { net: &both, outside: names.outside(), ..World::default() };
    let report = send(&sandbox.open(&bench).await, request.clone()).await;
    assert_eq!(answers(&report)[0]["Ok"]["body"], "hello");
    let sandbox = World { net: &both[..1], outside: names.outside(), ..World::default() };
    let report = send(&sandbox.open(&bench).await, request).await;
    assert_eq!(denied(&report).len(), 1);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_a_new_request() {
    let bench = Bench::new();
    let inside = Server::saying("inside").await;
    let location = format!("location: http://{}/secret\r\n", inside.authority());
    let front = Server::start(move |_| response("302 Found", &location, "elsewhere")).await;
    let request = json!([{ "authority": front.authority(), "follow": 3 }]);
    let report = send(&granted(&bench, &["public", &front.grant()]).await, request.clone()).await;
    assert_eq!(told(&report), [json!({ "Err": "ErrorCode::HttpRequestDenied" })]);
    let target = format!("GET {}/secret", inside.grant());
    let grant = format!("http.net={}", inside.grant());
    assert_eq!(denied(&report), [denial(&target, "the host is not granted", Some(&grant))]);
    assert_eq!((front.seen().len(), inside.seen().len()), (1, 0));
    // The host never follows one by itself.
    let alone = json!([{ "authority": front.authority() }]);
    let report = send(&granted(&bench, &[&front.grant(), &inside.grant()]).await, alone).await;
    assert_eq!(answers(&report)[0]["Ok"]["status"], 302);
    assert_eq!(inside.seen().len(), 0);
    let report = send(&granted(&bench, &[&front.grant(), &inside.grant()]).await, request).await;
    assert_eq!(answers(&report)[0]["Ok"]["body"], "inside");
    assert_eq!(hosts(&report).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_plan_mode_requests_only_read() {
    let bench = Bench::new();
    let server = Server::saying("hello").await;
    let grant = server.grant();
    let mode = PermissionMode::Plan;
    let sandbox = World { net: &[&grant], mode, ..World::default() }.open(&bench).await;
    let reading = async |requests: Value| {
        run(&sandbox, "http__send_reading", json!({ "requests": requests })).await
    };
    let authority = server.authority();
    let report = reading(json!([
        { "authority": authority },
        { "authority": authority, "method": "HEAD" },
        { "authority": authority, "body": "" },
    ]))
    .await;
    assert!(report.outcome.is_ok(), "{report:?}");
    let before = server.seen().len();
    for request in [
        json!({ "authority": authority, "method": "POST" }),
        json!({ "authority": authority, "method": "DELETE" }),
        json!({ "authority": authority, "method": "OPTIONS" }),
        json!({ "authority": authority, "body": "sent" }),
        json!({ "authority": authority, "method": "HEAD", "zeros": 10_000 }),
        json!({ "authority": authority, "trailers": [{ "name": "x-a", "value": "b" }] }),
        json!({
            "authority": authority,
            "headers": [{ "name": "x-http-method-override", "value": "DELETE" }],
        }),
    ] {
        let report = reading(json!([request.clone()])).await;
        let refused = json!({ "Err": "ErrorCode::HttpRequestDenied" });
        assert_eq!(told(&report), [refused], "{request}");
        assert_eq!(denied(&report).len(), 1, "{request}");
    }
    assert_eq!(server.seen().len(), before);
}
