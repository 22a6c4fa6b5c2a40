//! Every vector becomes the same events, however its bytes arrive.

use crate::{
    fixtures::{KEY, model, request, vectors},
    server::Server,
    vector::{self, Pace},
};
use belljar_model::Protocol;
use futures::StreamExt;
use std::{
    fs,
    path::{Path, PathBuf},
};

#[tokio::test]
async fn anthropic_answers() {
    replay(Protocol::Anthropic).await;
}

#[tokio::test]
async fn openai_answers() {
    replay(Protocol::OpenAi).await;
}

async fn replay(protocol: Protocol) {
    let mut problems = Vec::new();
    for path in answers_of(protocol) {
        let marked = events(protocol, &path, Pace::AsMarked).await;
        for pace in [Pace::AtOnce, Pace::ByteByByte] {
            let got = events(protocol, &path, pace).await;
            assert_eq!(got, marked, "{} {pace:?}", path.display());
        }
        problems.extend(vector::check(&path.with_extension("events"), &marked).err());
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

async fn events(protocol: Protocol, path: &Path, pace: Pace) -> String {
    let server = Server::start(vector::read(path, pace)).await;
    let events: Vec<_> = model(protocol, &server.address).stream(request()).collect().await;
    let events = vector::describe(&events, &server.address);
    assert!(!events.contains(KEY), "{}: the key is shown", path.display());
    events
}

fn answers_of(protocol: Protocol) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(vectors().join(protocol.name()))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "http"))
        .collect();
    paths.sort();
    assert!(paths.len() > 30, "too few vectors: {}", paths.len());
    paths
}
