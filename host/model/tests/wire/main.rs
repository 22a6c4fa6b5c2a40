//! The wire protocols through a loopback server: what is made of each answer, and what is sent.

mod answers;
mod fixtures;
mod http;
mod requests;
mod server;
mod vector;
