//! What a guest is told of a failure: a code, and never a word of the host's.

use std::{error::Error as StdError, io};
use wasmtime_wasi_http::Error;

/// The guest's error for what went wrong between the host and the server.
pub(super) fn of_client(error: &reqwest::Error) -> Error {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<Error>() {
            return copy(error);
        }
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return of_tls(error);
        }
        if let Some(known) = error.downcast_ref::<io::Error>().and_then(of_io) {
            return known;
        }
        cause = error.source();
    }
    if error.is_timeout() {
        Error::ConnectionTimeout
    } else if error.is_connect() {
        Error::ConnectionRefused
    } else {
        Error::HttpProtocolError
    }
}

pub(super) fn of_lookup(error: &io::Error) -> Error {
    let rcode = match error.kind() {
        io::ErrorKind::TimedOut => return Error::DnsTimeout,
        _ => "the name cannot be resolved",
    };
    Error::DnsError { rcode: Some(rcode.to_owned()), info_code: None }
}

/// What lies inside of an I/O error is not among its sources.
fn of_io(error: &io::Error) -> Option<Error> {
    let inner = error.get_ref();
    if let Some(inner) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return Some(of_tls(inner));
    }
    let inner = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    inner.and_then(of_io).or_else(|| of_kind(error.kind()))
}

fn of_tls(error: &rustls::Error) -> Error {
    match error {
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            Error::TlsCertificateError
        }
        _ => Error::TlsProtocolError,
    }
}

fn of_kind(kind: io::ErrorKind) -> Option<Error> {
    Some(match kind {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Error::DestinationIpUnroutable
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => Error::ConnectionTerminated,
        _ => return None,
    })
}

/// Of the errors that the bodies here end with.
fn copy(error: &Error) -> Error {
    match error {
        Error::HttpRequestDenied => Error::HttpRequestDenied,
        Error::HttpRequestBodySize(size) => Error::HttpRequestBodySize(*size),
        Error::HttpRequestTrailerSectionSize(size) => Error::HttpRequestTrailerSectionSize(*size),
        _ => Error::HttpProtocolError,
    }
}
