//! JSON Schemas of arguments and results: drawn from Rust types, then cut down to what helps a
//! model. Inline, draft 2020-12, closed to unknown names.

use schemars::{
    JsonSchema, Schema,
    generate::{Contract, SchemaSettings},
    transform::RecursiveTransform,
};
use serde_json::{Map, Value, json};

/// The schema of a tool's arguments.
///
/// # Panics
///
/// Where the type is not read from a JSON object: arguments are named.
pub(crate) fn input_schema<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>(SchemaSettings::draft2020_12());
    if let Value::Object(object) = &mut schema {
        // The tool's description is the function's.
        object.shift_remove("description");
        // A choice of objects says so in its branches only.
        if !object.contains_key("type") && has_object_branches(object) {
            object.insert("type".to_owned(), "object".into());
        }
    }
    assert!(
        schema.get("type").and_then(Value::as_str) == Some("object"),
        "the arguments of a tool are a struct with named fields, `{}` is not one",
        T::schema_name(),
    );
    schema
}

/// The schema of a structured result.
pub(crate) fn output_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = Contract::Serialize;
    });
    schema::<T>(settings)
}

fn schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(object) = &mut schema {
        // A Rust type's name says nothing to a model.
        object.shift_remove("title");
    }
    schema
}

fn tidy(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    // `uint32` and its like are no formats of JSON Schema, and some providers refuse them.
    if is_number(object) {
        object.shift_remove("format");
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.shift_remove("default");
    }
    if is_closed(object) {
        // A struct without fields lists no properties at all.
        object.entry("properties").or_insert_with(|| Map::new().into());
        object.insert("additionalProperties".to_owned(), false.into());
    }
}

fn is_number(object: &Map<String, Value>) -> bool {
    let is_number = |name: &Value| matches!(name.as_str(), Some("integer" | "number"));
    match object.get("type") {
        Some(Value::Array(names)) => names.iter().any(is_number),
        Some(name) => is_number(name),
        None => false,
    }
}

/// Whether the properties listed are all that there can be. Those of a flattened enum stand in the
/// branches of a choice.
fn is_closed(object: &Map<String, Value>) -> bool {
    let opens = ["additionalProperties", "unevaluatedProperties", "oneOf", "anyOf", "allOf"];
    object.get("type").is_some_and(|name| name == "object" || name == &json!(["object", "null"]))
        && !opens.iter().any(|keyword| object.contains_key(*keyword))
}

fn has_object_branches(object: &Map<String, Value>) -> bool {
    ["oneOf", "anyOf"].iter().any(|keyword| {
        object.get(*keyword).and_then(Value::as_array).is_some_and(|branches| {
            branches
                .iter()
                .all(|branch| branch.get("type").and_then(Value::as_str) == Some("object"))
        })
    })
}
