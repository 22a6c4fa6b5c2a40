//! A server on loopback that says what a case makes it say, and counts who comes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What the server does once it has a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Says {
    /// The request itself, in a header and as the body.
    Echo,
    /// A body without end.
    Endless,
    /// Nothing, with the connection open.
    Nothing,
}

/// Stops when dropped.
#[derive(Debug)]
pub(super) struct Server {
    /// Host and port.
    pub(super) authority: String,
    connections: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(says: Says) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let authority = listener.local_addr()?.to_string();
        let connections = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                // A client that goes away is what some cases are about.
                tokio::spawn(async move {
                    let _ = serve(stream, says).await;
                });
            }
        });
        Ok(Self { authority, connections, task })
    }

    pub(super) fn port(&self) -> &str {
        self.authority.rsplit(':').next().unwrap_or_default()
    }

    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, says: Says) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") && request.len() < 64 << 10 {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    match says {
        Says::Echo => {
            let request = String::from_utf8_lossy(&request);
            let one_line = request.replace("\r\n", " | ");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nx-echo: {one_line}\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{request}",
                request.len()
            );
            stream.write_all(answer.as_bytes()).await
        }
        Says::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'x'; 16 << 10]).await?;
            }
        }
        Says::Nothing => std::future::pending().await,
    }
}
