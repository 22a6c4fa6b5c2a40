//! OpenAI-compatible chat completions: the request as JSON, the stream of its answer, and the
//! tool calls in it. Nothing of the wire's own types leaves this module.

mod calls;
mod request;
mod stream;

pub(crate) use request::body;
pub(crate) use stream::OpenAiDecoder;
