//! Anthropic Messages: the request as JSON, and the stream of its answer. Nothing of the wire's
//! own types leaves this module.

mod request;
mod stream;

pub(crate) use request::body;
pub(crate) use stream::AnthropicDecoder;
