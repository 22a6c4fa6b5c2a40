//! The wire protocols through a loopback server: what is made of each answer, and what is sent.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the whole crate is tests: what fails here fails a test"
)]

mod answers;
mod cuts;
mod fixtures;
mod http;
mod noise;
mod recording;
mod requests;
mod rounds;
mod server;
mod table;
mod vector;
