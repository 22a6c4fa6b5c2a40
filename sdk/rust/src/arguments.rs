//! Reads a call's arguments, and tells the model what to correct where they do not fit: where in
//! the JSON, what was expected, what was there.

use crate::{Failure, schema};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A value of the arguments is quoted up to this many characters.
const QUOTED: usize = 80;

/// What a tool's function may take: a struct, of which every field is one argument.
#[diagnostic::on_unimplemented(
    message = "a tool cannot take `{Self}`",
    label = "no arguments of a tool",
    note = "take one struct that has `#[arguments]`, or derives `Deserialize` and `JsonSchema`"
)]
pub trait Arguments: DeserializeOwned + JsonSchema {}

impl<T: DeserializeOwned + JsonSchema> Arguments for T {}

/// The arguments of a tool whose function takes none.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct NoArguments {}

/// Reads the arguments of a call. `json` is a JSON object.
///
/// # Errors
///
/// [`Failure::InvalidArguments`] for all else than an object that fits `T`, unknown names included.
pub(crate) fn parse<T: Arguments>(json: &str) -> Result<T, Failure> {
    let value: Value = serde_json::from_str(json)
        .map_err(|error| invalid(format!("the arguments are not JSON: {error}")))?;
    if !value.is_object() {
        return Err(invalid(format!("expected a JSON object of arguments, was {}", kind(&value))));
    }

    let mut unknown = Vec::new();
    let mut track = serde_path_to_error::Track::new();
    let mut note_unknown = |path: serde_ignored::Path<'_>| unknown.push(segments(&path));
    let reader = serde_ignored::Deserializer::new(&value, &mut note_unknown);
    let result = T::deserialize(serde_path_to_error::Deserializer::new(reader, &mut track));

    // Only a call that fails pays for the schema.
    let mut problems = Vec::new();
    if !unknown.is_empty() {
        let schema = schema::input_schema::<T>();
        problems.extend(unknown.iter().map(|path| unknown_name(path, &schema)));
    }
    match result {
        Ok(arguments) if problems.is_empty() => return Ok(arguments),
        Ok(_) => {}
        Err(error) => {
            let path = track.path();
            let place: Vec<Segment> = path.iter().filter_map(segment).collect();
            problems.push(misfit(&place, &error.to_string(), &schema::input_schema::<T>()));
        }
    }
    Err(invalid(problems.join("\n")))
}

fn invalid(message: String) -> Failure {
    Failure::InvalidArguments(message)
}

/// One step into the JSON.
#[derive(Debug)]
enum Segment {
    Name(String),
    Index(usize),
}

fn segment(segment: &serde_path_to_error::Segment) -> Option<Segment> {
    use serde_path_to_error::Segment as Step;
    match segment {
        Step::Map { key } => Some(Segment::Name(key.clone())),
        Step::Seq { index } => Some(Segment::Index(*index)),
        // Not a step in the JSON's text.
        Step::Enum { .. } | Step::Unknown => None,
    }
}

fn segments(path: &serde_ignored::Path<'_>) -> Vec<Segment> {
    use serde_ignored::Path;
    let mut segments = match path {
        Path::Root => return Vec::new(),
        Path::Seq { parent, .. }
        | Path::Map { parent, .. }
        | Path::Some { parent }
        | Path::NewtypeStruct { parent }
        | Path::NewtypeVariant { parent } => segments(parent),
    };
    match path {
        Path::Seq { index, .. } => segments.push(Segment::Index(*index)),
        Path::Map { key, .. } => segments.push(Segment::Name(key.clone())),
        _ => {}
    }
    segments
}

/// `edits[1].old`
fn place(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Name(name) if text.is_empty() => text.push_str(name),
            Segment::Name(name) => {
                text.push('.');
                text.push_str(name);
            }
            Segment::Index(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

fn unknown_name(path: &[Segment], schema: &Value) -> String {
    let (Some(Segment::Name(name)), parent) = (path.last(), &path[..path.len().saturating_sub(1)])
    else {
        return format!("`{}` is not expected", place(path));
    };
    let known: Vec<&str> = properties(schema, parent)
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    let mut text = match parent {
        [] => format!("unknown argument `{}`", quote(name)),
        _ => format!("unknown name `{}` in `{}`", quote(name), place(parent)),
    };
    if known.is_empty() {
        text.push_str("; none is expected");
        return text;
    }
    let nearest = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, name), known))
        .min()
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3));
    if let Some((_, nearest)) = nearest {
        let _ = write!(text, "; did you mean `{nearest}`?");
    } else {
        text.push(';');
    }
    let _ = write!(text, " expected: {}", list(known.into_iter()));
    text
}

/// What serde found, in words for a model.
fn misfit(path: &[Segment], message: &str, schema: &Value) -> String {
    if let Some(name) = message.strip_prefix("missing field `").and_then(|m| m.strip_suffix('`')) {
        return missing(path, name, schema);
    }
    let (there, expected) = ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix)?.rsplit_once(", expected "))
        .map(|(there, expected)| (was(there), in_words(expected)))
        .or_else(|| {
            let (there, expected) =
                message.strip_prefix("unknown variant `")?.rsplit_once("`, expected ")?;
            Some((format!("the string \"{}\"", quote(there)), expected.to_owned()))
        })
        .unwrap_or_default();
    let problem = if expected.is_empty() {
        message.to_owned()
    } else {
        format!("expected {expected}, was {there}")
    };
    if path.is_empty() { problem } else { format!("`{}`: {problem}", place(path)) }
}

fn missing(path: &[Segment], name: &str, schema: &Value) -> String {
    let mut text = match path {
        [] => format!("missing argument `{name}`"),
        _ => format!("missing `{name}` in `{}`", place(path)),
    };
    let property = properties(schema, path).and_then(|properties| properties.get(name));
    let mut about = Vec::new();
    if let Some(kind) = property.and_then(|property| property.get("type")).and_then(Value::as_str) {
        about.push(kind);
    }
    let description = property.and_then(|property| property.get("description"));
    if let Some(description) = description.and_then(Value::as_str) {
        about.push(description);
    }
    if !about.is_empty() {
        let _ = write!(text, " ({})", about.join(": "));
    }
    text
}

/// The properties that the schema lists for the object at `path`.
fn properties<'a>(schema: &'a Value, path: &[Segment]) -> Option<&'a Map<String, Value>> {
    let mut at = schema;
    for segment in path {
        at = match segment {
            Segment::Name(name) => at.get("properties")?.get(name)?,
            Segment::Index(_) => at.get("items")?,
        };
    }
    // An optional object is a choice of the object and null.
    let object = match at.get("anyOf").and_then(Value::as_array) {
        Some(branches) => branches.iter().find(|branch| branch.get("properties").is_some())?,
        None => at,
    };
    object.get("properties")?.as_object()
}

/// The values in serde's words: `` string "x" ``, `` integer `5` ``, `map`.
fn was(there: &str) -> String {
    let quoted = quote(there);
    let number = ["integer `", "floating point `"]
        .iter()
        .find_map(|prefix| there.strip_prefix(prefix)?.strip_suffix('`'));
    match (there, number) {
        (_, Some(number)) => format!("the number {number}"),
        ("map", _) => "an object".to_owned(),
        ("sequence", _) => "an array".to_owned(),
        ("null" | "unit value", _) => "null".to_owned(),
        _ => match there.strip_prefix("boolean `").and_then(|there| there.strip_suffix('`')) {
            Some(boolean) => boolean.to_owned(),
            None if there.starts_with("string ") => format!("the {quoted}"),
            None => quoted,
        },
    }
}

/// A Rust type's name, or a visitor's, in the words of JSON.
fn in_words(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "an object",
        "unit" => "null",
        _ if expected.starts_with("a nonzero u") => "a whole number, 1 or more",
        _ if expected.starts_with("struct ") => "an object",
        _ if expected.starts_with("tuple ") => "an array",
        _ => expected,
    };
    words.to_owned()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn quote(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
