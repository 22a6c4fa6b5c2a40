//! The request that a call of the bundled `web` tools will make, known before it runs.

use super::NetRequest;
use serde_json::{Map, Value};

/// The request that `url`, and `method` where there is one, ask for. Nothing where the arguments
/// name none that may be made; the call then fails by itself.
pub fn request_in_arguments(arguments: &Map<String, Value>) -> Option<NetRequest> {
    let url = arguments.get("url")?.as_str()?;
    let method = arguments.get("method").and_then(Value::as_str).unwrap_or("GET");
    NetRequest::for_url(&method.to_ascii_uppercase(), url).ok()
}
