//! Requests over `wasi:http`.

use super::{Error, Request, Response};
use crate::host;
use std::time::Duration;
use wasip2::{
    http::{
        outgoing_handler,
        types::{
            ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
            RequestOptions, Scheme,
        },
    },
    io::streams::StreamError,
};

/// How long before the call's end a wait is given up, so that there is time to say so.
const RESERVE: Duration = Duration::from_secs(1);
/// What the host takes at a time.
const WRITE: usize = 4096;
const READ: u64 = 64 * 1024;

pub(super) fn send(request: &Request, limit: usize) -> Result<Response, Error> {
    let (scheme, authority, path) = request.parts()?;
    let outgoing = OutgoingRequest::new(fields(request)?);
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let bad_method = |()| Error::Field(request.method.clone());
    outgoing.set_method(&method(&request.method)).map_err(bad_method)?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| Error::Url)?;
    outgoing.set_authority(Some(authority)).map_err(|()| Error::Url)?;
    outgoing.set_path_with_query(Some(path)).map_err(|()| Error::Url)?;
    let body = match &request.body {
        Some(bytes) => Some((outgoing.body().map_err(|()| Error::Broken)?, bytes)),
        None => None,
    };
    let future = outgoing_handler::handle(outgoing, Some(patience())).map_err(|e| read_code(&e))?;
    if let Some((body, bytes)) = body {
        write(&body, bytes);
        OutgoingBody::finish(body, None).map_err(|error| read_code(&error))?;
    }
    let response = loop {
        if let Some(response) = future.get() {
            break response.map_err(|()| Error::Broken)?.map_err(|error| read_code(&error))?;
        }
        future.subscribe().block();
    };
    read(&response, limit)
}

/// Waits end before the call does.
fn patience() -> RequestOptions {
    let options = RequestOptions::new();
    let left = host::remaining().saturating_sub(RESERVE);
    let nanoseconds = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    // A host that does not support one waits as long as the call lasts.
    let _ = options.set_first_byte_timeout(Some(nanoseconds));
    let _ = options.set_between_bytes_timeout(Some(nanoseconds));
    options
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn fields(request: &Request) -> Result<Fields, Error> {
    let fields = Fields::new();
    for (name, value) in &request.headers {
        fields.append(name, value.as_bytes()).map_err(|_| Error::Field(name.clone()))?;
    }
    Ok(fields)
}

/// Writes what is taken: where the host stops, the response says why.
fn write(body: &OutgoingBody, bytes: &[u8]) {
    let Ok(stream) = body.write() else { return };
    for piece in bytes.chunks(WRITE) {
        if stream.blocking_write_and_flush(piece).is_err() {
            return;
        }
    }
}

fn read(response: &IncomingResponse, limit: usize) -> Result<Response, Error> {
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let headers =
        response.headers().entries().into_iter().map(|(name, value)| (name, text(value))).collect();
    let incoming = response.consume().map_err(|()| Error::Broken)?;
    let stream = incoming.stream().map_err(|()| Error::Broken)?;
    let mut body = Vec::new();
    let is_cut = loop {
        match stream.blocking_read(READ) {
            Ok(piece) => body.extend(piece),
            Err(StreamError::Closed) => break false,
            Err(StreamError::LastOperationFailed(_)) => return Err(Error::Broken),
        }
        if body.len() > limit {
            body.truncate(limit);
            break true;
        }
    };
    Ok(Response { status: response.status(), headers, body, is_cut })
}

fn read_code(code: &ErrorCode) -> Error {
    match code {
        ErrorCode::HttpRequestDenied => Error::Denied,
        ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => Error::NoName,
        ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTerminated
        | ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpUnroutable => Error::NoConnection,
        ErrorCode::DnsTimeout
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => Error::TimedOut,
        ErrorCode::TlsCertificateError => Error::Certificate,
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestUriTooLong => Error::Url,
        ErrorCode::HttpRequestMethodInvalid => Error::Field("the method".to_owned()),
        other => {
            let code = format!("{other:?}");
            let name = code.trim_start_matches("ErrorCode::");
            Error::Other(name.split('(').next().unwrap_or_default().to_owned())
        }
    }
}
