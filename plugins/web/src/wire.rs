//! The way to the network, so that everything else can be tried without one.

use belljar_sdk::http::{Error, Request, Response};

/// How much of a body is read.
pub(crate) const BODY_BYTES: usize = 4 * 1024 * 1024;

pub(crate) type Send<'a> = &'a mut dyn FnMut(&Request) -> Result<Response, Error>;

/// Through the host.
pub(crate) fn send(request: &Request) -> Result<Response, Error> {
    request.send(BODY_BYTES)
}
