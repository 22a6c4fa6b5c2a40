//! MCP servers over stdio, started once and asked again and again.

use super::{Pace, Peer, node_itself, python_itself};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::{
    cell::RefCell,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
};

pub(super) fn python() -> anyhow::Result<Peer<'static>> {
    let (python, version) = python_itself()?;
    let server = Server::start(&python, &["-c", include_str!("../scripts/mcp.py")])?;
    Ok(peer("warm MCP server in Python", version, server))
}

pub(super) fn node() -> anyhow::Result<Peer<'static>> {
    let (node, version) = node_itself()?;
    let server = Server::start(&node, &["-e", include_str!("../scripts/mcp.js")])?;
    Ok(peer("warm MCP server in Node", version, server))
}

fn peer(name: &'static str, version: String, server: Server) -> Peer<'static> {
    let server = Rc::new(RefCell::new(server));
    let same = Rc::clone(&server);
    Peer {
        name,
        version,
        pace: Pace::Fast,
        run: Box::new(move |input| server.borrow_mut().call(input)),
        memory: Box::new(move |_| Ok(same.borrow().memory())),
    }
}

struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    last_id: u64,
}

impl Server {
    fn start(program: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take().context("no stdin")?;
        let from = BufReader::new(child.stdout.take().context("no stdout")?);
        let mut server = Self { child, to, from, last_id: 0 };
        let greeting = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "side-by-side", "version": "1"},
        });
        server.request("initialize", &greeting.to_string())?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(server.to, "{initialized}")?;
        Ok(server)
    }

    fn call(&mut self, input: &str) -> anyhow::Result<String> {
        let params = format!(r#"{{"name":"count_words","arguments":{input}}}"#);
        let mut result = self.request("tools/call", &params)?;
        match result["content"][0]["text"].take() {
            Value::String(text) => Ok(text),
            other => anyhow::bail!("not a text: {other}"),
        }
    }

    fn request(&mut self, method: &str, params: &str) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let request = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
        );
        self.to.write_all(request.as_bytes())?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)?;
        ensure!(answer["id"] == json!(id), "it answers another request: {line}");
        Ok(answer["result"].take())
    }

    /// The most that it held until now.
    fn memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(kib << 10)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
