//! The OpenAI Responses API: the request as JSON, and the stream of its answer. Nothing is kept at
//! the server: every request carries the whole conversation, with the model's encrypted reasoning
//! in its place. Nothing of the wire's own types leaves this module.

mod kept;
mod request;
mod stream;

pub(crate) use request::body;
pub(crate) use stream::ResponsesDecoder;
