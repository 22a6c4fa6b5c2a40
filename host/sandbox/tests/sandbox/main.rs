//! The sandbox through its public face: every call goes the way that the loop's calls go.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod calls;
mod files;
mod http;
mod limit_settings;
mod limits;
mod loading;
mod manifests;
mod secrets;
mod server;
mod support;
mod watching;
mod web;
