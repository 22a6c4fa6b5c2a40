//! One text for equal arguments, whatever the order of an object's keys.

use belljar_types::Arguments;
use serde_json::{Map, Value};

/// The text of what a model sent.
pub(crate) fn arguments(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Object(map) => object(map),
        Arguments::Text(text) => Value::from(text.as_str()).to_string(),
    }
}

pub(crate) fn object(map: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_object(map, &mut text);
    text
}

pub(crate) fn value(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => write_object(map, text),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_value(item, text);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

fn write_object(map: &Map<String, Value>, text: &mut String) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    text.push('{');
    for (key, value) in entries {
        // Quoted and escaped, so that no key can be mistaken for a value.
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push(':');
        write_value(value, text);
        text.push(',');
    }
    text.push('}');
}
