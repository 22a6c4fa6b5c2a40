//! OpenAI-compatible chat completions: the request as JSON, the stream of its answer, and the
//! tool calls in it, in the dialects of the servers that have one. Nothing of the wire's own types leaves this module.

mod calls;
mod kept;
mod request;
mod schema;
mod stream;

pub(crate) use request::{body, parameters};
pub(crate) use stream::OpenAiDecoder;
