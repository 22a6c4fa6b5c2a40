//! Requests: what goes out by grant and what does not, and what hostile servers can do. All
//! servers are on loopback, and started here.

use crate::commands::selftest::{
    case::{Case, Outcome, next_call},
    server::{Says, Server},
    stage::{self, CANARY, Stage, call, words},
};
use anyhow::ensure;
use belljar_capability::{Binding, Limits, PluginGrant, SecretGrant};
use belljar_sandbox::{Outside, Sandbox, SandboxConfig};
use belljar_test_guests::HTTP;
use belljar_types::{
    CallReport, Receipt,
    ToolErrorKind::{Deadline, Denied},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

pub(super) fn cases() -> Vec<Case> {
    let soon = Limits { deadline: Duration::from_millis(300), ..stage::limits() };
    vec![
        Case::scene(14, "a host without a grant", |stage| Box::pin(not_granted(stage))),
        Case::scene(14, "private hosts in every spelling", |stage| Box::pin(spellings(stage))),
        Case::scene(15, "headers with line ends", |stage| Box::pin(injected(stage))),
        Case::scene(15, "headers that are the host's", |stage| Box::pin(forbidden(stage))),
        Case::scene(16, "a body without end", |stage| Box::pin(endless(stage)))
            .under(Limits { response_bytes: 1 << 20, ..stage::patient() }),
        Case::scene(16, "a server that says nothing", |stage| Box::pin(silent(stage))).under(soon),
        Case::scene(17, "a request by a tool without the hint", |stage| {
            Box::pin(without_hint(stage))
        }),
        Case::scene(18, "a server that says the secret", |stage| Box::pin(secret(stage))),
    ]
}

/// A sandbox with the guest that sends requests.
async fn open(stage: &Stage, net: &[&str], secrets: Vec<SecretGrant>) -> anyhow::Result<Sandbox> {
    stage.add("http.wasm", HTTP.bytes)?;
    let net = net.iter().map(|grant| grant.parse()).collect::<Result<_, _>>()?;
    let grant = PluginGrant {
        binding: Some(Binding::Digest(HTTP.digest.to_owned())),
        net,
        secrets,
        ..PluginGrant::default()
    };
    let known = |name: &str| (name == "SELFTEST").then(|| CANARY.to_owned());
    let outside = Outside { secrets: Arc::new(known), ..Outside::default() };
    let grants = BTreeMap::from([("http".to_owned(), grant)]);
    stage.open_with(SandboxConfig { grants, outside, ..stage.config() }).await
}

async fn send(sandbox: &Sandbox, tool: &str, request: Value) -> CallReport {
    call(sandbox, &format!("http__{tool}"), json!({"requests": [request]})).await
}

fn refused(report: &CallReport) -> anyhow::Result<()> {
    let words = words(report);
    ensure!(report.outcome.as_ref().is_err_and(|error| error.kind == Denied), "it says: {words}");
    Ok(())
}

async fn not_granted(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Echo).await?;
    let sandbox = open(stage, &["https://example.com"], Vec::new()).await?;
    let report = send(&sandbox, "send", json!({"authority": server.authority})).await;
    refused(&report)?;
    ensure!(server.connections() == 0, "the server was reached");
    let remedy = report.outcome.err().and_then(|error| error.remedy).unwrap_or_default();
    let grant = format!("--grant 'http.net=http://{}'", server.authority);
    ensure!(remedy == grant, "what would allow it is said to be {remedy:?}");
    next_call(&sandbox).await?;
    Ok(format!("refused; `{remedy}` would allow it"))
}

/// Any public host is granted, and the server on loopback is none, however it is written.
async fn spellings(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Echo).await?;
    let sandbox = open(stage, &["public"], Vec::new()).await?;
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "0",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "169.254.169.254",
        "0xa9fea9fe",
        "10.0.0.1",
        "192.168.0.1",
        "[fd00:ec2::254]",
        "user@127.0.0.1",
        "127.0.0.1.",
    ];
    for host in hosts {
        let authority = format!("{host}:{}", server.port());
        let report = send(&sandbox, "send", json!({"authority": authority})).await;
        ensure!(report.outcome.is_err(), "`{authority}` answered: {}", words(&report));
    }
    ensure!(server.connections() == 0, "the server was reached");
    Ok(format!("{} spellings were refused", hosts.len()))
}

async fn injected(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Echo).await?;
    let sandbox = open(stage, &[&format!("http://{}", server.authority)], Vec::new()).await?;
    for (name, value) in [
        ("x", "a\r\nx-injected: 1"),
        ("x", "a\nx-injected: 1"),
        ("x", "a\0b"),
        ("x\r\nx-injected", "1"),
        ("x-injected: 1\r\nx", "1"),
    ] {
        let headers = json!([{"name": name, "value": value}]);
        let request = json!({"authority": server.authority, "headers": headers});
        let report = send(&sandbox, "send", request).await;
        ensure!(report.outcome.is_err(), "{name:?}: {value:?} was sent: {}", words(&report));
    }
    for path in ["/a b", "/a\r\nx-injected: 1", "http://127.0.0.1:1/", "//127.0.0.1:1/"] {
        let request = json!({"authority": server.authority, "path": path});
        let text = words(&send(&sandbox, "send", request).await);
        ensure!(!text.contains("\r\nx-injected"), "{path:?} was sent: {text}");
    }
    Ok("nothing was injected".to_owned())
}

async fn forbidden(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Echo).await?;
    let sandbox = open(stage, &[&format!("http://{}", server.authority)], Vec::new()).await?;
    let names = ["host", "Connection", "transfer-encoding", "te", "upgrade", "proxy-authorization"];
    for name in names {
        let headers = json!([{"name": name, "value": "elsewhere"}]);
        let request = json!({"authority": server.authority, "headers": headers});
        let text = words(&send(&sandbox, "send", request).await);
        ensure!(!text.contains("elsewhere"), "`{name}` was sent: {text}");
    }
    Ok(format!("{} headers were not sent", names.len()))
}

async fn endless(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Endless).await?;
    let sandbox = open(stage, &[&format!("http://{}", server.authority)], Vec::new()).await?;
    let report = send(&sandbox, "send", json!({"authority": server.authority})).await;
    let text = words(&report);
    ensure!(report.outcome.is_err(), "it answered: {text}");
    ensure!(text.contains("limits.response_bytes"), "the limit is not named: {text}");
    next_call(&sandbox).await?;
    Ok("stopped at `limits.response_bytes`".to_owned())
}

async fn silent(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Nothing).await?;
    let sandbox = open(stage, &[&format!("http://{}", server.authority)], Vec::new()).await?;
    let report = send(&sandbox, "send", json!({"authority": server.authority})).await;
    let text = words(&report);
    ensure!(report.outcome.is_err_and(|error| error.kind == Deadline), "it ended so: {text}");
    next_call(&sandbox).await?;
    Ok(text)
}

async fn without_hint(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Echo).await?;
    let sandbox = open(stage, &[&format!("http://{}", server.authority)], Vec::new()).await?;
    for tool in ["send_closed", "send_reading_closed"] {
        let report = send(&sandbox, tool, json!({"authority": server.authority})).await;
        refused(&report)?;
    }
    ensure!(server.connections() == 0, "the server was reached");
    let report = send(&sandbox, "send", json!({"authority": server.authority})).await;
    ensure!(report.outcome.is_ok(), "the tool with the hint: {}", words(&report));
    Ok("refused, though the host is granted".to_owned())
}

/// The server gets the secret and says it in every way it can; the guest gets it in none.
async fn secret(stage: &Stage) -> Outcome {
    let server = Server::start(Says::Echo).await?;
    let bound =
        SecretGrant::new("SELFTEST", "SELFTEST", &server.authority, "authorization", "Bearer {}")?;
    let grant = format!("http://{}", server.authority);
    let sandbox = open(stage, &[&grant], vec![bound]).await?;
    let request = json!({"authority": server.authority});
    let report = send(&sandbox, "send", request.clone()).await;
    ensure!(report.outcome.is_ok(), "it failed: {}", words(&report));
    ensure!(
        words(&report).contains("authorization"),
        "the header was not sent: {}",
        words(&report)
    );
    let emitted = call(&sandbox, "http__emit_response", request).await;
    for report in [&report, &emitted] {
        let receipt = report.receipt.as_ref().map(serde_json::to_string::<Receipt>).transpose()?;
        let all = format!("{}{}", words(report), receipt.unwrap_or_default());
        ensure!(!all.contains(CANARY), "the secret came out: {all}");
    }
    Ok("the server got it, the guest did not".to_owned())
}
