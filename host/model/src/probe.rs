//! Whether a model server is there at all, asked before anything is configured.

use crate::{body, client, config::parse_base_url};
use reqwest::{Client, Url, header::HeaderMap};
use serde_json::Value;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
/// A local server that lists its models takes far less.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_LIST_BYTES: usize = 1024 * 1024;

/// Whether a model server answers at `base_url`: one that lists its models, so that any other
/// program on the same port does not count.
pub async fn is_answering(base_url: &str) -> bool {
    models_at(base_url).await.is_some()
}

/// The names of the models that the OpenAI-compatible server at `base_url` lists
/// (`GET {base_url}/models`), in its order. `None` if there is no such server.
pub async fn models_at(base_url: &str) -> Option<Vec<String>> {
    let mut url = parse_base_url(base_url).ok()?;
    let path = format!("{}/models", url.path().trim_end_matches('/'));
    url.set_path(&path);
    tokio::time::timeout(ANSWER_TIMEOUT, list(url)).await.ok().flatten()
}

async fn list(url: Url) -> Option<Vec<String>> {
    let response = probe_client(&url)?.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = body::read_up_to(response.bytes_stream(), MAX_LIST_BYTES, ANSWER_TIMEOUT).await;
    let list: Value = serde_json::from_slice(&body).ok()?;
    let models = list.get("data")?.as_array()?;
    Some(models.iter().filter_map(|model| Some(model.get("id")?.as_str()?.to_owned())).collect())
}

fn probe_client(url: &Url) -> Option<Client> {
    client::builder(url, HeaderMap::new()).connect_timeout(CONNECT_TIMEOUT).build().ok()
}
