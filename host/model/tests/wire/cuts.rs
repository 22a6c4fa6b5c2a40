//! Every vector, cut at every byte: what was shown so far stays as it was, the end is an error of
//! a known kind or an answer that was complete before the cut, and no call comes of it that was
//! not in the whole answer.

use crate::{
    fixtures::{ANTHROPIC, GEMINI, KEY, MISTRAL, MODEL, OPENAI, RESPONSES, Wire, model, request},
    server::{Server, Then},
    vector::{self, Pace},
};
use belljar_model::decode;
use belljar_types::{ModelError, ModelErrorKind, ModelEvent};
use futures::{FutureExt, StreamExt, stream};
use std::{io, path::Path};

type Items = Vec<Result<ModelEvent, ModelError>>;

/// How the body ends where it is cut.
#[derive(Clone, Copy, Debug)]
enum End {
    Clean,
    Broken,
}

#[test]
fn anthropic_cut_at_every_byte() {
    cut(ANTHROPIC);
}

#[test]
fn openai_cut_at_every_byte() {
    cut(OPENAI);
}

#[test]
fn responses_cut_at_every_byte() {
    cut(RESPONSES);
}

#[test]
fn gemini_cut_at_every_byte() {
    cut(GEMINI);
}

#[test]
fn mistral_cut_at_every_byte() {
    cut(MISTRAL);
}

fn cut(wire: Wire) {
    // Only for its clock.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _guard = runtime.enter();
    let mut cuts = 0;
    for path in wire.answers() {
        let answer = vector::read(&path, Pace::AtOnce);
        if !answer.head[0].contains(" 200 ") {
            continue;
        }
        let body = answer.pieces.concat();
        let end = if answer.then == Then::Break { End::Broken } else { End::Clean };
        let whole = decoded(wire, &body, end);
        check_whole(&whole, &path);
        for length in 0..body.len() {
            for end in [End::Clean, End::Broken] {
                let got = decoded(wire, &body[..length], end);
                let at = || format!("{} cut after {length} bytes, {end:?}", path.display());
                check_cut(&got, &whole, &body[..length], at);
                cuts += 1;
            }
        }
    }
    assert!(cuts > 5_000, "only {cuts} cuts");
}

/// Everything is at hand at once, so there is nothing to wait for.
fn decoded(wire: Wire, body: &[u8], end: End) -> Items {
    let mut chunks = vec![Ok(body.to_vec())];
    if let End::Broken = end {
        chunks.push(Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset")));
    }
    let config = wire.config("http://server");
    let events = decode(&config, MODEL, &request(), stream::iter(chunks));
    events.collect().now_or_never().expect("an answer that is there is read without waiting")
}

fn check_whole(whole: &Items, path: &Path) {
    let ends = whole.iter().filter(|item| is_end(item)).count();
    assert_eq!(ends, 1, "{}: {whole:?}", path.display());
    assert!(whole.last().is_some_and(is_end), "{}: {whole:?}", path.display());
}

fn is_end(item: &Result<ModelEvent, ModelError>) -> bool {
    matches!(item, Ok(ModelEvent::Done(_)) | Err(_))
}

fn check_cut(got: &Items, whole: &Items, body: &[u8], at: impl Fn() -> String) {
    let (last, before) = got.split_last().expect("an end");
    assert!(!before.iter().any(is_end), "{}: {got:?}", at());
    match last {
        Err(error) => {
            assert!(whole.starts_with(before), "{}: {got:?} of {whole:?}", at());
            let is_stream = begins_a_stream(body);
            let of_whole = matches!(whole.last(), Some(Err(whole)) if whole.kind == error.kind);
            let is_known = match error.kind {
                ModelErrorKind::Cut => true,
                ModelErrorKind::Protocol => !is_stream || of_whole,
                _ => of_whole,
            };
            assert!(is_known, "{}: {error:?}", at());
            assert!(!error.message.is_empty(), "{}", at());
        }
        // The reason for the end had come. What may be missing is figures, or an error after it.
        Ok(ModelEvent::Done(_)) => {
            let without_figures = |items: &Items| -> Items {
                let is_figures = |item: &_| matches!(item, Ok(ModelEvent::Usage(_)));
                items.iter().filter(|item| !is_figures(item)).cloned().collect()
            };
            let (got, whole) = (without_figures(got), without_figures(whole));
            assert_eq!(got, whole, "{}", at());
        }
        other => panic!("{}: no end: {other:?}", at()),
    }
}

/// Whether the first field is one of the format's own, as far as it is there.
fn begins_a_stream(body: &[u8]) -> bool {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body).trim_ascii_start();
    [":", "data", "event", "id", "retry"]
        .iter()
        .any(|name| body.starts_with(name.as_bytes()) || name.as_bytes().starts_with(body))
}

/// Answers that are errors by their status, over HTTP.
#[tokio::test]
async fn refusals_cut_at_every_byte() {
    let mut cuts = 0;
    for wire in [ANTHROPIC, OPENAI, RESPONSES, GEMINI, MISTRAL] {
        for path in wire.answers() {
            let answer = vector::read(&path, Pace::AtOnce);
            if answer.head[0].contains(" 200 ") {
                continue;
            }
            let body = answer.pieces.concat();
            let kind = async |length: usize, then| {
                let mut cut = answer.clone();
                cut.pieces = vec![body[..length].to_vec()];
                cut.then = then;
                let server = Server::start(cut).await;
                let events: Vec<_> = model(wire, &server.address).stream(request()).collect().await;
                let [Err(error)] = events.as_slice() else {
                    panic!("{} cut after {length} bytes: {events:?}", path.display());
                };
                assert!(!error.message.contains(KEY), "{error}");
                error.kind
            };
            let known =
                [kind(body.len(), Then::Close).await, kind(/* nothing */ 0, Then::Close).await];
            for length in 0..body.len() {
                for then in [Then::Close, Then::Break] {
                    let kind = kind(length, then).await;
                    assert!(known.contains(&kind), "{} at {length}: {kind:?}", path.display());
                    cuts += 1;
                }
            }
        }
    }
    assert!(cuts > 5_000, "only {cuts} cuts");
}
