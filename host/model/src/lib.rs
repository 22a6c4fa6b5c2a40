//! The wire: model servers that speak Anthropic Messages, OpenAI-compatible chat completions or
//! OpenAI Responses, and the scripted model that plays turns from a file. Each is a
//! [`belljar_types::Model`].
//!
//! [`connect`] makes a model of a [`ProviderConfig`], a model's name and a key; [`Script`] makes
//! one of JSON lines (the format is described in this crate's `README.md`), and a [`Recorder`]
//! writes such lines while another model answers. One request is one HTTP request: nothing is
//! retried here, every failure is classified into a [`belljar_types::ModelError`] for the loop to
//! judge.
//!
//! This crate never reads the environment or a configuration file, never runs a tool and never
//! looks inside one, never writes to a terminal, and never shows a key.

mod answer;
mod anthropic;
mod body;
mod client;
mod config;
mod content;
mod decode;
mod dialect;
mod failure;
mod history;
mod ids;
mod key;
mod names;
mod openai;
mod probe;
mod record;
mod remote;
mod responses;
mod script;

pub use config::{ConfigError, Protocol, ProviderConfig, built_in_providers, connect};
pub use key::ApiKey;
pub use probe::{is_answering, models_at};
pub use record::{RecordError, Recorder};
pub use remote::decode;
pub use script::{Script, ScriptError, ScriptModel};
