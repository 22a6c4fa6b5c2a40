//! Network that was not granted.

use belljar_sdk::prelude::*;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};

#[derive(Deserialize, JsonSchema)]
struct Address {
    /// A host and a port, such as `127.0.0.1:80`.
    address: String,
}

/// Opens a TCP connection.
#[tool(read_only)]
fn connect(args: Address) -> Result<&'static str, Failure> {
    TcpStream::connect(&args.address).context("refused")?;
    Ok("connected")
}

/// Looks a name up.
#[tool(read_only)]
fn resolve(args: Address) -> Result<String, Failure> {
    let addresses: Vec<_> = args.address.to_socket_addrs().context("refused")?.collect();
    Ok(format!("{addresses:?}"))
}

/// Listens for TCP connections.
#[tool(read_only)]
fn listen(args: Address) -> Result<&'static str, Failure> {
    TcpListener::bind(&args.address).context("refused")?;
    Ok("listening")
}
