//! A server for one request at a time, which answers with given bytes.

use serde_json::Value;
use std::collections::BTreeMap;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What follows the last byte of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    /// The connection ends as HTTP wants it.
    #[default]
    Close,
    /// The connection stays open until the client ends it.
    Hold,
    /// The connection ends in the middle of the body.
    Break,
}

/// An answer: the head's lines, and the body in the pieces in which it is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) head: Vec<String>,
    pub(crate) pieces: Vec<Vec<u8>>,
    pub(crate) then: Then,
}

impl Answer {
    pub(crate) fn new(head: &[&str], body: &str) -> Self {
        Self {
            head: head.iter().map(|line| (*line).to_owned()).collect(),
            pieces: vec![body.as_bytes().to_vec()],
            then: Then::Close,
        }
    }
}

/// A request as it came.
#[derive(Debug, PartialEq)]
pub(crate) struct Received {
    /// `POST /v1/messages`
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// A server that answers one request.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: String,
    task: JoinHandle<Received>,
}

impl Server {
    pub(crate) async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            serve(stream, answer).await
        });
        Self { address, task }
    }

    /// The request, once it is answered.
    pub(crate) async fn received(self) -> Received {
        self.task.await.unwrap()
    }
}

async fn serve(mut stream: TcpStream, answer: Answer) -> Received {
    stream.set_nodelay(true).unwrap();
    let received = read_request(&mut stream).await;
    let mut head = answer.head.join("\r\n");
    head.push_str("\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");
    // The client may end the connection as soon as it knows enough: writing can fail.
    let _ = stream.write_all(head.as_bytes()).await;
    for piece in answer.pieces.iter().filter(|piece| !piece.is_empty()) {
        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
        chunk.extend_from_slice(piece);
        chunk.extend_from_slice(b"\r\n");
        let _ = stream.write_all(&chunk).await;
        let _ = stream.flush().await;
    }
    match answer.then {
        Then::Close => {
            let _ = stream.write_all(b"0\r\n\r\n").await;
        }
        Then::Hold => {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
        Then::Break => {}
    }
    received
}

async fn read_request(stream: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "a request without an end");
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let target = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
    let headers: BTreeMap<_, _> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + 4 + length {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "a body without an end");
    }
    let body = &bytes[head_end + 4..];
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).unwrap() };
    Received { target, headers, body }
}
