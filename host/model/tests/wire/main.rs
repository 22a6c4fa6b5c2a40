//! The wire protocols through a loopback server: what is made of each answer, and what is sent.

mod answers;
mod fixtures;
mod http;
mod requests;
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the whole crate is tests: what fails here fails a test"
)]

mod server;
mod vector;
