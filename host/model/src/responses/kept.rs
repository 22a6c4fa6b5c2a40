//! Reasoning items that go back: whole, as they came. In a conversation such an item is a piece of
//! reasoning whose data is the item as JSON.

use crate::decode::text;
use belljar_types::Reasoning;
use serde_json::{Map, Value};

const KIND: &str = "reasoning";

/// The fields that a request may hold; others, such as a status, are refused there.
const FIELDS: [&str; 5] = ["id", "type", "summary", "content", "encrypted_content"];

/// The piece of a conversation that an item becomes. Nothing for one that cannot be read without
/// the server's memory of it, which was never asked for.
pub(super) fn reasoning(item: &Value) -> Option<Reasoning> {
    let is_readable = !text(item, "encrypted_content").is_empty()
        || item["content"].as_array().is_some_and(|parts| !parts.is_empty());
    if !is_readable || text(item, "type") != KIND {
        return None;
    }
    let kept: Map<_, _> = item
        .as_object()?
        .iter()
        .filter(|(key, value)| FIELDS.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let data = Value::Object(kept).to_string();
    Some(Reasoning { text: shown(item), signature: None, data: Some(data) })
}

/// The item of a piece; nothing for reasoning of another protocol.
pub(super) fn item(reasoning: &Reasoning) -> Option<Value> {
    let data = reasoning.data.as_deref().filter(|data| data.starts_with('{'))?;
    let mut item: Value = serde_json::from_str(data).ok()?;
    if text(&item, "type") != KIND {
        return None;
    }
    // It must be there, if only to be empty.
    if !item["summary"].is_array() {
        item["summary"] = Value::Array(Vec::new());
    }
    Some(item)
}

/// What a person may read of an item: its summary, else the reasoning itself.
pub(super) fn shown(item: &Value) -> String {
    let texts = |key| {
        let parts = item[key].as_array().into_iter().flatten();
        let texts: Vec<_> = parts.map(|part| text(part, "text")).collect();
        texts.join("\n\n")
    };
    let summary = texts("summary");
    if summary.is_empty() { texts("content") } else { summary }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_item_comes_back_as_it_was() {
        let sent = json!({"id": "rs_1", "type": "reasoning", "status": null, "content": null,
            "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}],
            "encrypted_content": "gAAAA+/=", "new_field": 1});
        let kept = reasoning(&sent).unwrap();
        assert_eq!(kept.text, "a\n\nb");
        assert_eq!(
            item(&kept),
            Some(json!({"id": "rs_1", "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "a"},
                    {"type": "summary_text", "text": "b"}],
                "encrypted_content": "gAAAA+/="}))
        );
    }

    #[test]
    fn what_only_the_server_could_read_is_not_kept() {
        for sent in [
            json!({"id": "rs_1", "type": "reasoning", "summary": []}),
            json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": ""}),
            json!({"type": "message", "encrypted_content": "a"}),
            json!("reasoning"),
        ] {
            assert_eq!(reasoning(&sent), None, "{sent}");
        }
    }

    #[test]
    fn reasoning_of_another_protocol_is_no_item() {
        for data in [None, Some("EmwKAhgB"), Some("{}"), Some("{\"type\": \"message\"}"), Some("{")]
        {
            let data = data.map(str::to_owned);
            let reasoning = Reasoning { text: "t".to_owned(), signature: None, data };
            assert_eq!(item(&reasoning), None, "{reasoning:?}");
        }
    }
}
