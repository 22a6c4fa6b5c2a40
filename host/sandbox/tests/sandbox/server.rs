//! An HTTP server on loopback that says what a test makes it say, and keeps what it was sent.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What the server does with one request, whose text it is given.
type Answer = dyn Fn(&str) -> Reply + Send + Sync;

pub(crate) enum Reply {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// These bytes in pieces, each on its own, then the end.
    Pieces(Vec<Vec<u8>>),
    /// These bytes once, then the others again and again until nobody reads.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, and then nothing, with the connection open.
    Silence(Vec<u8>),
    /// These bytes, then one at a time, slowly, for as long as somebody reads.
    Drip(Vec<u8>),
}

/// Stops when dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
    open: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                let counted = Arc::clone(&counted);
                counted.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let _ = serve(stream, &kept, &*answer).await;
                    counted.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, seen, open, task }
    }

    /// A server that answers everything with a text.
    pub(crate) async fn saying(text: &'static str) -> Self {
        Self::start(move |_| ok(text)).await
    }

    /// A server that answers with the request itself, in a header and in the body.
    pub(crate) async fn echo() -> Self {
        Self::start(|request| {
            let one_line = request.replace("\r\n", " | ");
            Reply::Bytes(
                format!(
                    "HTTP/1.1 200 OK\r\nx-echo: {one_line}\r\ncontent-length: {}\r\n\
                     connection: close\r\n\r\n{request}",
                    request.len()
                )
                .into_bytes(),
            )
        })
        .await
    }

    /// The requests so far, headers and what of the body came with them.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns once no connection is open any more.
    pub(crate) async fn is_left_alone(&self) {
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The grant that reaches it.
    pub(crate) fn grant(&self) -> String {
        format!("http://{}", self.authority())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A response with a text.
pub(crate) fn ok(text: &str) -> Reply {
    response("200 OK", "", text)
}

pub(crate) fn response(status: &str, headers: &str, text: &str) -> Reply {
    let length = text.len();
    Reply::Bytes(
        format!(
            "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n\
             {text}"
        )
        .into_bytes(),
    )
}

async fn serve(
    mut stream: TcpStream,
    kept: &Mutex<Vec<String>>,
    answer: &Answer,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let end = loop {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            size => request.extend_from_slice(&piece[..size]),
        }
    };
    let head = String::from_utf8_lossy(&request[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    while is_unfinished(&request, end, length, head.to_ascii_lowercase().contains("chunked")) {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await? {
            0 => break,
            size => request.extend_from_slice(&piece[..size]),
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    kept.lock().unwrap().push(text.clone());
    match answer(&text) {
        Reply::Bytes(bytes) => stream.write_all(&bytes).await?,
        Reply::Pieces(pieces) => {
            stream.set_nodelay(true)?;
            for piece in pieces {
                stream.write_all(&piece).await?;
                stream.flush().await?;
                tokio::task::yield_now().await;
            }
        }
        Reply::Endless(first, more) => {
            stream.write_all(&first).await?;
            while stream.write_all(&more).await.is_ok() {}
        }
        Reply::Drip(first) => {
            stream.write_all(&first).await?;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Reply::Silence(first) => {
            stream.write_all(&first).await?;
            // Until the other side goes.
            while stream.read(&mut [0; 64]).await? > 0 {}
        }
    }
    stream.shutdown().await
}

fn is_unfinished(request: &[u8], end: usize, length: Option<usize>, chunked: bool) -> bool {
    if chunked {
        return !request.ends_with(b"0\r\n\r\n");
    }
    request.len() < end + length.unwrap_or(0)
}
