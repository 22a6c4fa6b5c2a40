//! The tools: the same requests under different hints, and misuse of the interface itself.

use crate::exchange::{Answer, Header, Request, fields, read, run, start, wait};
use belljar_sdk::prelude::*;
use wasip2::http::types::Fields;

#[arguments]
pub struct Requests {
    pub requests: Vec<Request>,
}

/// Sends requests, one after the other. Fails with all answers where one failed.
fn all(requests: Requests) -> Result<String, Failure> {
    let answers: Vec<Result<Answer, String>> = requests.requests.iter().map(run).collect();
    let failed = answers.iter().any(Result::is_err);
    let text = serde_json::to_string(&answers)?;
    if failed { Err(Failure::failed(text)) } else { Ok(text) }
}

/// Sends requests.
#[tool(open_world)]
pub fn send(args: Requests) -> Result<String, Failure> {
    all(args)
}

/// Sends requests, and calls itself read-only.
#[tool(open_world, read_only)]
pub fn send_reading(args: Requests) -> Result<String, Failure> {
    all(args)
}

/// Sends requests, and does not say so.
#[tool]
pub fn send_closed(args: Requests) -> Result<String, Failure> {
    all(args)
}

/// Sends requests, calls itself read-only and does not say that it sends any.
#[tool(read_only)]
pub fn send_reading_closed(args: Requests) -> Result<String, Failure> {
    all(args)
}

/// Makes fields of headers, and says what became of them.
#[tool(open_world)]
pub fn set_header(args: Header) -> Result<String, Failure> {
    fields(&[args]).map(|_| "taken".to_owned()).map_err(Failure::failed)
}

/// Makes fields without end.
#[tool(open_world)]
pub fn fill_fields() -> String {
    let fields = Fields::new();
    loop {
        let _ = fields.append("x", &[b'x'; 1_000]);
    }
}

/// Starts requests without reading any answer, and never comes back.
#[tool(open_world)]
pub fn hold_open(args: Requests) -> Result<String, Failure> {
    let started: Vec<_> = args.requests.iter().map(start).collect();
    for future in started.iter().flatten() {
        future.subscribe().block();
    }
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1_000));
    }
}

/// Puts a response wherever a plugin can put words: output, log, standard streams, progress.
#[tool(open_world)]
pub fn emit_response(args: Request) -> Result<String, Failure> {
    let response = start(&args).and_then(|future| wait(&future)).map_err(Failure::failed)?;
    let mut shown = String::new();
    let answer = read(response, |piece| {
        let text = String::from_utf8_lossy(piece);
        host::emit(&text);
        host::log(host::Level::Info, &text);
        host::progress(1, None, &text);
        shown.push_str(&text);
    })
    .map_err(Failure::failed)?;
    let text = serde_json::to_string(&answer)?;
    println!("{text}");
    eprintln!("{text}");
    Err(Failure::failed(format!("{text}{shown}")))
}
