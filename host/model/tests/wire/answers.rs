//! Every vector becomes the same events, however its bytes arrive.

use crate::{
    fixtures::{ANTHROPIC, GEMINI, KEY, MISTRAL, OPENAI, RESPONSES, Wire, model, request},
    server::Server,
    vector::{self, Pace},
};
use futures::StreamExt;
use std::path::Path;

#[tokio::test]
async fn anthropic_answers() {
    replay(ANTHROPIC).await;
}

#[tokio::test]
async fn openai_answers() {
    replay(OPENAI).await;
}

#[tokio::test]
async fn responses_answers() {
    replay(RESPONSES).await;
}

#[tokio::test]
async fn gemini_answers() {
    replay(GEMINI).await;
}

#[tokio::test]
async fn mistral_answers() {
    replay(MISTRAL).await;
}

async fn replay(wire: Wire) {
    let mut problems = Vec::new();
    for path in wire.answers() {
        let marked = events(wire, &path, Pace::AsMarked).await;
        for pace in [Pace::AtOnce, Pace::ByteByByte] {
            let got = events(wire, &path, pace).await;
            assert_eq!(got, marked, "{} {pace:?}", path.display());
        }
        problems.extend(vector::check(&path.with_extension("events"), &marked).err());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

async fn events(wire: Wire, path: &Path, pace: Pace) -> String {
    let server = Server::start(vector::read(path, pace)).await;
    let events: Vec<_> = model(wire, &server.address).stream(request()).collect().await;
    let events = vector::describe(&events, &server.address);
    assert!(!events.contains(KEY), "{}: the key is shown", path.display());
    events
}
