//! HTTP itself: servers that are not there, that fall silent, and those that are probed for.

use crate::{
    fixtures::{ANTHROPIC, KEY, OPENAI, model, request},
    server::{Answer, Server, Then},
};
use belljar_model::{ApiKey, Protocol, ProviderConfig, connect, is_answering, models_at};
use belljar_types::{ModelError, ModelErrorKind, ModelEvent};
use futures::StreamExt;
use std::time::Duration;
use tokio::net::TcpListener;

/// An address at which nothing listens: a port that was free a moment ago may be anybody's now.
const NOWHERE: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let address = NOWHERE;
    let events: Vec<_> = model(OPENAI, address).stream(request()).collect().await;
    assert_eq!(
        events,
        [Err(ModelError::new(
            ModelErrorKind::Connection,
            format!(
                "`test` cannot be reached: connection refused; is the server at `{address}` \
                 running?"
            )
        ))]
    );
}

#[tokio::test]
async fn a_connection_that_ends_before_the_answer_is_retryable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { drop(listener.accept().await.unwrap()) });
    let events: Vec<_> = model(OPENAI, &address).stream(request()).collect().await;
    server.await.unwrap();
    let [Err(error)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(
        error.message.starts_with("`test` broke the connection before it answered: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_server_that_falls_silent_is_left() {
    let mut answer = Answer::new(
        &["HTTP/1.1 200 OK", "content-type: text/event-stream"],
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    );
    answer.then = Then::Hold;
    let server = Server::start(answer).await;
    let mut config = ProviderConfig::new("test", Protocol::OpenAi, &server.address, None);
    config.idle_timeout = Duration::from_millis(250);
    let model = connect(&config, "m", None).unwrap();
    let events: Vec<_> = model.stream(request()).collect().await;
    assert_eq!(
        events,
        [
            Ok(ModelEvent::Text("a".to_owned())),
            Err(ModelError::new(
                ModelErrorKind::Cut,
                "`test` fell silent in the middle of its answer: nothing came for 0.25 s"
            )),
        ]
    );
    assert_eq!(server.received().await.headers.get("authorization"), None);
}

#[tokio::test]
async fn dropping_the_stream_ends_the_request() {
    let mut answer = Answer::new(
        &["HTTP/1.1 200 OK", "content-type: text/event-stream"],
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    );
    answer.then = Then::Hold;
    let server = Server::start(answer).await;
    let mut stream = model(OPENAI, &server.address).stream(request());
    assert_eq!(stream.next().await, Some(Ok(ModelEvent::Text("a".to_owned()))));
    drop(stream);
    // The server holds the connection until the client ends it.
    server.received().await;
}

#[tokio::test]
async fn without_a_key_the_setting_is_named() {
    let body = r#"{"error":{"message":"Missing bearer token"}}"#;
    let server = Server::start(Answer::new(&["HTTP/1.1 401 Unauthorized"], body)).await;
    let config = ProviderConfig::new("test", Protocol::OpenAi, &server.address, None);
    let events: Vec<_> = connect(&config, "m", None).unwrap().stream(request()).collect().await;
    assert_eq!(
        events,
        [Err(ModelError::new(
            ModelErrorKind::Authentication,
            "`test` refused access: Missing bearer token (401); the server wants a key: name the \
             variable that holds it as `api_key_env` of provider `test`"
        ))]
    );
}

#[tokio::test]
async fn the_key_shows_in_no_description() {
    let model = model(ANTHROPIC, "http://127.0.0.1:1");
    assert!(!format!("{model:?}").contains(KEY));
    assert!(!format!("{:?}", ApiKey::new(KEY)).contains(KEY));
}

#[tokio::test]
async fn a_local_server_is_found_by_its_models() {
    let list = r#"{"object":"list","data":[{"id":"llama"},{"id":"qwen"}]}"#;
    let server = Server::start(Answer::new(&["HTTP/1.1 200 OK"], list)).await;
    let base_url = format!("{}/v1/", server.address);
    assert_eq!(models_at(&base_url).await, Some(vec!["llama".to_owned(), "qwen".to_owned()]));
    assert_eq!(server.received().await.target, "GET /v1/models");
}

#[tokio::test]
async fn another_program_on_the_port_is_no_model_server() {
    let page = Answer::new(&["HTTP/1.1 200 OK"], "<html></html>");
    let server = Server::start(page).await;
    assert!(!is_answering(&server.address).await);
    let missing = Server::start(Answer::new(&["HTTP/1.1 404 Not Found"], "{\"data\":[]}")).await;
    assert!(!is_answering(&missing.address).await);
    assert!(!is_answering(NOWHERE).await);
    assert!(!is_answering("no address").await);
    let empty = Server::start(Answer::new(&["HTTP/1.1 200 OK"], "{\"data\":[]}")).await;
    assert!(is_answering(&empty.address).await);
}
