//! One request and what comes back.

use belljar_sdk::prelude::*;
use wasip2::{
    http::{
        outgoing_handler,
        types::{
            ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method,
            OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
        },
    },
    io::streams::StreamError,
};

#[arguments]
#[derive(Clone)]
pub struct Request {
    #[serde(default = "get")]
    pub method: String,
    #[serde(default = "http")]
    pub scheme: String,
    pub authority: String,
    #[serde(default = "root")]
    pub path: String,
    #[serde(default)]
    pub headers: Vec<Header>,
    pub body: Option<String>,
    /// So many zeros, instead of a body.
    pub zeros: Option<u64>,
    #[serde(default)]
    pub trailers: Vec<Header>,
    pub first_byte_ms: Option<u64>,
    pub between_bytes_ms: Option<u64>,
    /// Follow redirects, this many.
    #[serde(default)]
    pub follow: u32,
}

#[arguments]
#[derive(Clone, Serialize)]
pub struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Serialize)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub trailers: Vec<(String, String)>,
}

fn get() -> String {
    "GET".to_owned()
}

fn http() -> String {
    "http".to_owned()
}

fn root() -> String {
    "/".to_owned()
}

pub fn fields(headers: &[Header]) -> Result<Fields, String> {
    let fields = Fields::new();
    for Header { name, value } in headers {
        fields.append(name, value.as_bytes()).map_err(|error| format!("{name}: {error:?}"))?;
    }
    Ok(fields)
}

fn told(error: ErrorCode) -> String {
    format!("{error:?}")
}

pub fn start(request: &Request) -> Result<FutureIncomingResponse, String> {
    let outgoing = OutgoingRequest::new(fields(&request.headers)?);
    let method = match request.method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "TRACE" => Method::Trace,
        other => Method::Other(other.to_owned()),
    };
    let scheme = match request.scheme.as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    outgoing.set_method(&method).map_err(|()| "the method is refused".to_owned())?;
    outgoing.set_scheme(Some(&scheme)).map_err(|()| "the scheme is refused".to_owned())?;
    outgoing
        .set_authority(Some(&request.authority))
        .map_err(|()| "the authority is refused".to_owned())?;
    outgoing
        .set_path_with_query(Some(&request.path))
        .map_err(|()| "the path is refused".to_owned())?;
    let body = match (&request.body, request.zeros, request.trailers.is_empty()) {
        (None, None, true) => None,
        _ => Some(outgoing.body().map_err(|()| "there is no body".to_owned())?),
    };
    let options = RequestOptions::new();
    let nanoseconds = |milliseconds: u64| milliseconds * 1_000_000;
    let _ = options.set_first_byte_timeout(request.first_byte_ms.map(nanoseconds));
    let _ = options.set_between_bytes_timeout(request.between_bytes_ms.map(nanoseconds));
    let future = outgoing_handler::handle(outgoing, Some(options)).map_err(told)?;
    if let Some(body) = body {
        write(request, &body)?;
        let trailers = match request.trailers.as_slice() {
            [] => None,
            trailers => Some(fields(trailers)?),
        };
        OutgoingBody::finish(body, trailers).map_err(told)?;
    }
    Ok(future)
}

/// What the host no longer takes is left: the response says why.
fn write(request: &Request, body: &OutgoingBody) -> Result<(), String> {
    let stream = body.write().map_err(|()| "the body is taken".to_owned())?;
    if let Some(text) = &request.body {
        for piece in text.as_bytes().chunks(4096) {
            if stream.blocking_write_and_flush(piece).is_err() {
                return Ok(());
            }
        }
    }
    let mut left = request.zeros.unwrap_or(0);
    while left > 0 {
        let size = left.min(4096);
        if stream.blocking_write_zeroes_and_flush(size).is_err() {
            return Ok(());
        }
        left -= size;
    }
    Ok(())
}

pub fn wait(future: &FutureIncomingResponse) -> Result<IncomingResponse, String> {
    loop {
        if let Some(response) = future.get() {
            return response.map_err(|()| "taken".to_owned())?.map_err(told);
        }
        future.subscribe().block();
    }
}

fn list(fields: &Fields) -> Vec<(String, String)> {
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    fields.entries().into_iter().map(|(name, value)| (name, text(value))).collect()
}

pub fn read(response: IncomingResponse, mut each: impl FnMut(&[u8])) -> Result<Answer, String> {
    let status = response.status();
    let headers = list(&response.headers());
    let body = response.consume().map_err(|()| "the body is taken".to_owned())?;
    let mut bytes = Vec::new();
    {
        let stream = body.stream().map_err(|()| "the stream is taken".to_owned())?;
        loop {
            match stream.blocking_read(64 << 10) {
                Ok(piece) => {
                    each(&piece);
                    bytes.extend(piece);
                }
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(error)) => {
                    let code = wasip2::http::types::http_error_code(&error);
                    return Err(format!("after {} bytes: {code:?}", bytes.len()));
                }
            }
        }
    }
    let future = IncomingBody::finish(body);
    let trailers = loop {
        if let Some(trailers) = future.get() {
            break trailers.map_err(|()| "taken".to_owned())?.map_err(told)?;
        }
        future.subscribe().block();
    };
    let trailers = trailers.map(|fields| list(&fields)).unwrap_or_default();
    Ok(Answer { status, headers, body: String::from_utf8_lossy(&bytes).into_owned(), trailers })
}

/// Sends a request, and follows where it leads.
pub fn run(request: &Request) -> Result<Answer, String> {
    let mut request = request.clone();
    loop {
        let answer = read(wait(&start(&request)?)?, |_| {})?;
        let location = answer.headers.iter().find(|(name, _)| name == "location");
        let Some((_, location)) = location.filter(|_| request.follow > 0) else {
            return Ok(answer);
        };
        let (scheme, rest) = location.split_once("://").ok_or("no absolute location")?;
        let end = rest.find('/').unwrap_or(rest.len());
        request.scheme = scheme.to_owned();
        request.authority = rest[..end].to_owned();
        request.path = rest[end..].to_owned();
        request.follow -= 1;
    }
}
