//! A plugin of every shape that the SDK takes, called natively: what the model is told about the
//! tools, and what it reads when its arguments do not fit.

use belljar_sdk::{
    Hints, Tool,
    host::Level,
    prelude::*,
    testing::{self, HostCall, json},
};
use std::{collections::BTreeMap, time::Duration};

/// Arguments of every kind.
#[derive(Deserialize, JsonSchema)]
struct Everything {
    /// Path of the file, relative to the workspace.
    path: String,
    /// How many lines.
    limit: Option<u32>,
    #[serde(default)]
    deep: bool,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    edits: Vec<Edit>,
    #[serde(default)]
    labels: BTreeMap<String, u8>,
    ratio: Option<f64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Fast,
    Careful,
}

#[derive(Deserialize, JsonSchema)]
struct Edit {
    /// The text to replace.
    old: String,
    new: String,
}

/// Takes everything.
///
/// Returns what it got.
#[tool(title = "Take it all", destructive, idempotent, open_world)]
fn take(args: Everything) -> Result<Output, Failure> {
    let Everything { path, limit, deep, mode, edits, labels, ratio } = args;
    let edits: Vec<_> = edits.iter().map(|edit| format!("{}>{}", edit.old, edit.new)).collect();
    Ok(Output::text(format!("{path} {limit:?} {deep} {mode:?} {edits:?} {labels:?} {ratio:?}")))
}

/// Takes nothing.
#[tool(read_only, name = "nothing")]
fn take_nothing() -> &'static str {
    "ok"
}

#[arguments]
struct Halve {
    number: i64,
}

#[structured]
struct Half {
    /// Half of the number.
    half: i64,
    remainder: Option<i64>,
}

/// Halves a number.
#[tool(read_only)]
fn halve(args: Halve) -> Result<Json<Half>, Failure> {
    if args.number == 0 {
        return Err(Failure::unavailable_for("not now", Duration::from_secs(1)));
    }
    let remainder = (args.number % 2 != 0).then_some(args.number % 2);
    Ok(Json(Half { half: args.number / 2, remainder }))
}

/// A choice of two.
#[arguments]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64 },
}

/// Measures a shape.
#[tool(read_only)]
fn measure(args: Shape) -> String {
    match args {
        Shape::Circle { radius } => format!("circle {radius}"),
        Shape::Square { side } => format!("square {side}"),
    }
}

mod nested {
    use super::*;

    #[arguments]
    struct Talk {}

    /// Talks to the host, and fails.
    #[tool]
    fn talk(_: Talk) -> Result<String, Failure> {
        host::log(Level::Warn, "careful");
        host::progress(1, Some(2), "half");
        host::emit("output");
        assert_eq!(host::remaining(), Duration::MAX);
        let number: u8 = "many".parse().context("cannot read the number")?;
        Ok(number.to_string())
    }
}

belljar_sdk::plugin!(take, take_nothing, halve, measure, nested::talk);

fn tool(name: &str) -> Tool {
    let mut tools = plugin().tools().into_iter();
    tools.find(|tool| tool.name == name).unwrap_or_else(|| panic!("no tool is named `{name}`"))
}

fn invalid(name: &str, arguments: &str) -> String {
    match plugin().call(name, arguments) {
        Err(Failure::InvalidArguments(message)) => message,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn tools_are_listed_in_declared_order() {
    let names: Vec<_> = plugin().tools().iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["take", "nothing", "halve", "measure", "talk"]);
    assert_eq!(plugin().tools(), plugin().tools());
}

#[test]
fn a_tool_is_described_by_its_function() {
    let expected = Tool {
        name: "take",
        title: Some("Take it all"),
        description: "Takes everything.\n\nReturns what it got.",
        input_schema: json!({
            "type": "object",
            "properties": {
                "path": {
                    "description": "Path of the file, relative to the workspace.",
                    "type": "string",
                },
                "limit": {
                    "description": "How many lines.",
                    "type": ["integer", "null"],
                    "minimum": 0,
                },
                "deep": { "type": "boolean", "default": false },
                "mode": { "type": "string", "enum": ["fast", "careful"] },
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "old": { "description": "The text to replace.", "type": "string" },
                            "new": { "type": "string" },
                        },
                        "required": ["old", "new"],
                        "additionalProperties": false,
                    },
                },
                "labels": {
                    "type": "object",
                    "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 255 },
                    "default": {},
                },
                "ratio": { "type": ["number", "null"] },
            },
            "required": ["path"],
            "additionalProperties": false,
        }),
        output_schema: None,
        hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: true },
    };
    assert_eq!(tool("take"), expected);
}

#[test]
fn a_tool_without_arguments_takes_an_empty_object() {
    let expected = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    assert_eq!(tool("nothing").input_schema, expected);
    assert_eq!(plugin().call("nothing", "{}"), Ok(Output::text("ok")));
    assert_eq!(invalid("nothing", r#"{"path": "a"}"#), "unknown argument `path`; none is expected");
}

#[test]
fn a_structured_result_has_its_schema() {
    assert_eq!(
        tool("halve").output_schema,
        Some(json!({
            "type": "object",
            "properties": {
                "half": { "description": "Half of the number.", "type": "integer" },
                "remainder": { "type": ["integer", "null"] },
            },
            "required": ["half", "remainder"],
            "additionalProperties": false,
        }))
    );
    let value = json!({ "half": 3, "remainder": 1 });
    assert_eq!(
        testing::call(plugin(), "halve", json!({ "number": 7 })),
        Ok(Output { structured: Some(value), ..Output::text(r#"{"half":3,"remainder":1}"#) })
    );
}

#[test]
fn a_choice_of_objects_is_an_object() {
    assert_eq!(tool("measure").input_schema["type"], "object");
    assert_eq!(
        testing::call(plugin(), "measure", json!({ "kind": "circle", "radius": 1.5 })),
        Ok(Output::text("circle 1.5"))
    );
}

#[test]
fn arguments_that_fit_arrive() {
    let arguments = json!({
        "path": "a",
        "limit": null,
        "deep": true,
        "mode": "careful",
        "edits": [{ "old": "x", "new": "y" }],
        "labels": { "any": 1 },
    });
    assert_eq!(
        testing::call(plugin(), "take", arguments),
        Ok(Output::text(r#"a None true Careful ["x>y"] {"any": 1} None"#))
    );
}

#[test]
fn an_unknown_tool_is_said_to_be_one() {
    assert_eq!(plugin().call("give", "{}"), Err(Failure::UnknownTool));
}

#[test]
fn a_failure_is_the_tools_own() {
    assert_eq!(
        testing::call(plugin(), "halve", json!({ "number": 0 })),
        Err(Failure::Unavailable {
            message: "not now".to_owned(),
            retry_after: Some(Duration::from_secs(1)),
        })
    );
}

#[test]
fn what_goes_to_the_host_is_recorded() {
    let (result, calls) = testing::record(|| plugin().call("talk", "{}"));
    assert_eq!(
        result,
        Err(Failure::failed("cannot read the number: invalid digit found in string"))
    );
    let expected = [
        HostCall::Log { level: Level::Warn, message: "careful".to_owned() },
        HostCall::Progress { done: 1, total: Some(2), message: "half".to_owned() },
        HostCall::Emit { text: "output".to_owned() },
    ];
    assert_eq!(calls, expected);
}

#[test]
fn arguments_that_do_not_fit_say_what_to_correct() {
    let cases = [
        ("", "the arguments are not JSON: EOF while parsing a value at line 1 column 0"),
        (
            r#"{"path": "a""#,
            "the arguments are not JSON: EOF while parsing an object at line 1 column 12",
        ),
        ("[]", "expected a JSON object of arguments, was an array"),
        ("{}", "missing argument `path` (string: Path of the file, relative to the workspace.)"),
        (r#"{"path": 5}"#, "`path`: expected a string, was the number 5"),
        (r#"{"path": null}"#, "`path`: expected a string, was null"),
        (r#"{"path": ["a"]}"#, "`path`: expected a string, was an array"),
        (r#"{"path": {"a": 1}}"#, "`path`: expected a string, was an object"),
        (
            r#"{"path": "a", "limit": "ten"}"#,
            "`limit`: expected a whole number from 0 to 4294967295, was the string \"ten\"",
        ),
        (
            r#"{"path": "a", "limit": -1}"#,
            "`limit`: expected a whole number from 0 to 4294967295, was the number -1",
        ),
        (
            r#"{"path": "a", "limit": 1.5}"#,
            "`limit`: expected a whole number from 0 to 4294967295, was the number 1.5",
        ),
        (
            r#"{"path": "a", "deep": "yes"}"#,
            "`deep`: expected true or false, was the string \"yes\"",
        ),
        (r#"{"path": "a", "ratio": true}"#, "`ratio`: expected a number, was true"),
        (
            r#"{"path": "a", "mode": "slow"}"#,
            "`mode`: expected `fast` or `careful`, was the string \"slow\"",
        ),
        (r#"{"path": "a", "edits": "all"}"#, "`edits`: expected an array, was the string \"all\""),
        (
            r#"{"path": "a", "edits": [{"old": "x", "new": "y"}, {"new": "y"}]}"#,
            "missing `old` in `edits[1]` (string: The text to replace.)",
        ),
        (
            r#"{"path": "a", "edits": [{"old": "x", "new": 1}]}"#,
            "`edits[0].new`: expected a string, was the number 1",
        ),
        (
            r#"{"path": "a", "labels": {"any": 300}}"#,
            "`labels.any`: expected a whole number from 0 to 255, was the number 300",
        ),
        (
            r#"{"path": "a", "limits": 1}"#,
            "unknown argument `limits`; did you mean `limit`? expected: `path`, `limit`, `deep`, \
             `mode`, `edits`, `labels`, `ratio`",
        ),
        (
            r#"{"path": "a", "edits": [{"old": "x", "new": "y", "all": true}]}"#,
            "unknown name `all` in `edits[0]`; expected: `old`, `new`",
        ),
        (
            r#"{"file": "a"}"#,
            "unknown argument `file`; expected: `path`, `limit`, `deep`, `mode`, `edits`, \
             `labels`, `ratio`\n\
             missing argument `path` (string: Path of the file, relative to the workspace.)",
        ),
    ];
    for (arguments, message) in cases {
        assert_eq!(invalid("take", arguments), message, "{arguments}");
    }
}

#[test]
fn a_long_value_is_quoted_in_part() {
    let arguments = format!(r#"{{"path": "a", "limit": "{}"}}"#, "x".repeat(1000));
    let message = invalid("take", &arguments);
    let quoted = "x".repeat(72);
    assert_eq!(
        message,
        format!(
            "`limit`: expected a whole number from 0 to 4294967295, was the string \"{quoted}…"
        )
    );
}
