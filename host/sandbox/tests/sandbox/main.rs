//! The sandbox through its public face: every call goes the way that the loop's calls go.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod bare;
mod calls;
mod files;
mod files_apart;
mod files_conformance;
mod files_limits;
mod files_races;
mod files_read_only;
mod files_rights;
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
