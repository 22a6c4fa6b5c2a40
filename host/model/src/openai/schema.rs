//! A tool's schema in the subset that Gemini takes; any other keyword makes it refuse the whole
//! request. What is left out only loosens the schema: the host checks the arguments against the
//! real one, and the model reads what was wrong with them.

use serde_json::{Map, Value, json};

/// References that nest deeper are cut: a schema may refer to itself.
const MAX_DEPTH: usize = 12;

/// Keywords that are taken as they are.
const TAKEN: [&str; 14] = [
    "title",
    "description",
    "nullable",
    "default",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minProperties",
    "maxProperties",
    "minimum",
    "maximum",
    "propertyOrdering",
];

/// The parameters of a function, or nothing where it takes none: an empty object is refused.
pub(super) fn parameters(schema: &Value) -> Option<Value> {
    let reader = Reader { root: schema };
    let mut schema = reader.read(schema, 0);
    let has_properties = schema["properties"].as_object().is_some_and(|map| !map.is_empty());
    if !has_properties {
        return None;
    }
    schema["type"] = "object".into();
    Some(schema)
}

struct Reader<'a> {
    root: &'a Value,
}

impl Reader<'_> {
    fn read(&self, schema: &Value, depth: usize) -> Value {
        let Some(schema) = schema.as_object().filter(|_| depth < MAX_DEPTH) else {
            return json!({ "type": "object" });
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let mut value = self.read(self.target(target), depth + 1);
            if let Some(description) = schema.get("description") {
                value["description"] = description.clone();
            }
            return value;
        }
        if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            let mut merged = schema.clone();
            merged.remove("allOf");
            for (key, value) in only.as_object().into_iter().flatten() {
                merged.entry(key).or_insert_with(|| value.clone());
            }
            return self.read(&Value::Object(merged), depth + 1);
        }
        let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
        match alternatives {
            Some(list) => self.one_of(schema, list, depth),
            None => self.plain(schema, depth),
        }
    }

    fn target(&self, reference: &str) -> &Value {
        let pointer = reference.strip_prefix('#').unwrap_or_default();
        self.root.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Alternatives stand alone: nothing may be beside them. Null is no alternative but a flag.
    fn one_of(&self, schema: &Map<String, Value>, list: &[Value], depth: usize) -> Value {
        let is_null = |value: &&Value| value["type"] == "null";
        let nullable = list.iter().any(|value| is_null(&value));
        let mut values: Vec<_> = list
            .iter()
            .filter(|value| !is_null(value))
            .map(|value| self.read(value, depth + 1))
            .collect();
        for value in &mut values {
            if nullable {
                value["nullable"] = true.into();
            }
            if let (None, Some(description)) = (value.get("description"), schema.get("description"))
            {
                value["description"] = description.clone();
            }
        }
        match values.len() {
            0 => self.plain(schema, depth),
            1 => values.remove(0),
            _ => json!({ "anyOf": values }),
        }
    }

    fn plain(&self, schema: &Map<String, Value>, depth: usize) -> Value {
        let mut out = Map::new();
        let (kind, nullable) = kind(schema);
        out.insert("type".to_owned(), kind.into());
        for key in TAKEN {
            if let Some(value) = schema.get(key) {
                out.insert(key.to_owned(), value.clone());
            }
        }
        if nullable {
            out.insert("nullable".to_owned(), true.into());
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str)
            && is_known_format(kind, format)
        {
            out.insert("format".to_owned(), format.into());
        }
        match kind {
            "string" => out.extend(choices(schema).map(|list| ("enum".to_owned(), list))),
            "array" => {
                let items = ["items", "prefixItems"].iter().find_map(|key| schema.get(*key));
                let items = match items {
                    Some(Value::Array(list)) => list.first(),
                    items => items,
                };
                let items = match items.filter(|items| items.is_object()) {
                    Some(items) => self.read(items, depth + 1),
                    None => json!({ "type": "string" }),
                };
                out.insert("items".to_owned(), items);
            }
            "object" => self.properties(schema, &mut out, depth),
            _ => {}
        }
        Value::Object(out)
    }

    fn properties(&self, schema: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        let Some(Value::Object(properties)) = schema.get("properties") else { return };
        if properties.is_empty() {
            return;
        }
        let read = properties.iter().map(|(name, value)| (name, self.read(value, depth + 1)));
        out.insert("properties".to_owned(), read.map(|(n, v)| (n.clone(), v)).collect());
        let required: Vec<_> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter(|name| name.as_str().is_some_and(|name| properties.contains_key(name)))
            .cloned()
            .collect();
        if !required.is_empty() {
            out.insert("required".to_owned(), required.into());
        }
    }
}

/// The one type of a schema, and whether null is another.
fn kind(schema: &Map<String, Value>) -> (&str, bool) {
    match schema.get("type") {
        Some(Value::String(kind)) if kind != "null" => (kind, false),
        Some(Value::Array(kinds)) => {
            let mut names = kinds.iter().filter_map(Value::as_str);
            let nullable = names.clone().any(|kind| kind == "null");
            (names.find(|kind| *kind != "null").unwrap_or("string"), nullable)
        }
        _ if schema.contains_key("properties") => ("object", false),
        _ if schema.contains_key("items") => ("array", false),
        _ => match schema.get("const").or_else(|| schema.get("enum")?.get(0)) {
            Some(Value::Number(_)) => ("number", false),
            Some(Value::Bool(_)) => ("boolean", false),
            _ => ("string", false),
        },
    }
}

fn is_known_format(kind: &str, format: &str) -> bool {
    match kind {
        "string" => matches!(format, "enum" | "date-time"),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// The texts to choose from; an empty one is refused.
fn choices(schema: &Map<String, Value>) -> Option<Value> {
    let list = match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => vec![value.clone()],
        (None, Some(Value::Array(list))) => list.clone(),
        _ => return None,
    };
    let texts: Vec<_> = list
        .into_iter()
        .filter(|value| value.as_str().is_some_and(|text| !text.is_empty()))
        .collect();
    (!texts.is_empty()).then(|| texts.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_taken_is_left() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "required": ["path", "missing"],
            "properties": {
                "path": {"type": "string", "format": "uri", "minLength": 1},
                "when": {"type": "string", "format": "date-time"},
                "mode": {"const": "fast"},
                "level": {"enum": ["", "a", "b"], "description": "How."},
                "number": {"type": "integer", "enum": [1, 2], "exclusiveMinimum": 0, "minimum": 1},
                "maybe": {"type": ["string", "null"], "examples": ["x"]},
                "other": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "Or none."},
                "either": {"oneOf": [{"type": "integer"}, {"type": "string"}], "title": "T"},
                "list": {"type": "array"},
                "pair": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
                "map": {"type": "object", "additionalProperties": {"type": "string"}, "properties": {}},
                "node": {"$ref": "#/$defs/leaf", "description": "A leaf."},
                "wrapped": {"allOf": [{"$ref": "#/$defs/leaf"}], "description": "W."},
                "gone": {"$ref": "#/$defs/none"},
                "any": true
            },
            "$defs": {"leaf": {"type": "object", "properties": {"a": {"type": "boolean"}}}}
        });
        let leaf = |description: &str| {
            json!({"type": "object", "description": description,
                "properties": {"a": {"type": "boolean"}}})
        };
        let mut node = leaf("A leaf.");
        // It is set after the rest.
        node.as_object_mut().unwrap().shift_remove("description");
        node["description"] = "A leaf.".into();
        let mut wrapped = node.clone();
        wrapped["description"] = "W.".into();
        assert_eq!(
            parameters(&schema),
            Some(json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1},
                    "when": {"type": "string", "format": "date-time"},
                    "mode": {"type": "string", "enum": ["fast"]},
                    "level": {"type": "string", "description": "How.", "enum": ["a", "b"]},
                    "number": {"type": "integer", "minimum": 1},
                    "maybe": {"type": "string", "nullable": true},
                    "other": {"type": "integer", "nullable": true, "description": "Or none."},
                    "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "pair": {"type": "array", "items": {"type": "number"}},
                    "map": {"type": "object"},
                    "node": node,
                    "wrapped": wrapped,
                    "gone": {"type": "object"},
                    "any": {"type": "object"},
                },
                "required": ["path"],
            }))
        );
    }

    #[test]
    fn a_schema_that_holds_itself_ends() {
        let schema = json!({
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/tree"}},
            "$defs": {"tree": {"type": "object", "properties": {
                "left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"},
            }}},
        });
        let text = parameters(&schema).unwrap().to_string();
        assert!(text.len() < 20_000, "{}", text.len());
        assert!(!text.contains('$'));
        assert_eq!(parameters(&json!({"$ref": "#"})), None);
    }

    #[test]
    fn a_tool_without_arguments_has_no_parameters() {
        for schema in
            [json!({"type": "object"}), json!({"type": "object", "properties": {}}), json!({})]
        {
            assert_eq!(parameters(&schema), None, "{schema}");
        }
    }
}
