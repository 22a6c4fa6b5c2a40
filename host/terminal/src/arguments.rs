//! A call's arguments for people: every byte of them for an approval, one short line elsewhere.

use crate::{style, visible};
use belljar_types::{Arguments, ToolCall};
use ratatui_core::{style::Style, text::Line};
use serde_json::Value;

/// Characters of one value in the short form, and of all of them.
const SHORT_VALUE: usize = 60;
const SHORT: usize = 160;

/// The arguments in one line, shortened.
pub(crate) fn short(arguments: &Arguments) -> String {
    let text = match arguments {
        Arguments::Text(text) => visible::short(text, SHORT_VALUE),
        Arguments::Object(map) => {
            let pairs = map.iter().map(|(key, value)| {
                let key = visible::short(key, SHORT_VALUE);
                format!("{key}={}", visible::short(&value.to_string(), SHORT_VALUE))
            });
            pairs.collect::<Vec<_>>().join(" ")
        }
    };
    visible::short(&text, SHORT)
}

/// What an edit takes out and puts in, for a call that has such arguments.
pub(crate) fn edit(arguments: &Arguments) -> Option<(&str, &str)> {
    let Arguments::Object(map) = arguments else { return None };
    let text = |key: &str| map.get(key).and_then(Value::as_str);
    match (text("old_text"), text("new_text"), text("path"), text("content")) {
        (Some(old), Some(new), ..) => Some((old, new)),
        (None, None, Some(_), Some(content)) => Some(("", content)),
        _ => None,
    }
}

/// All of the arguments, line by line. A text of several lines is a block of its own lines, each
/// behind a bar; anything else is JSON.
pub(crate) fn whole(call: &ToolCall) -> Vec<Line<'static>> {
    let map = match &call.arguments {
        Arguments::Object(map) => map,
        Arguments::Text(text) => return block(text, "│", style::PLAIN),
    };
    if map.is_empty() {
        return vec![Line::raw("no arguments")];
    }
    map.iter()
        .flat_map(|(key, value)| match (call.tool.as_str(), key.as_str()) {
            ("edit_file", "old_text") => entry(key, value, "-", style::BAD),
            ("edit_file", "new_text") => entry(key, value, "+", style::GOOD),
            _ => entry(key, value, "│", style::PLAIN),
        })
        .collect()
}

fn entry(key: &str, value: &Value, bar: &str, style: Style) -> Vec<Line<'static>> {
    let key = visible::line(key);
    let shown = match value {
        Value::String(text) if text.contains('\n') || style != style::PLAIN => {
            let mut lines = vec![Line::raw(format!("{key}:"))];
            lines.extend(block(text, bar, style));
            return lines;
        }
        value => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
    };
    let mut lines = shown.split('\n');
    let first = format!("{key}: {}", visible::line(lines.next().unwrap_or_default()));
    [first].into_iter().chain(lines.map(visible::line)).map(Line::raw).collect()
}

/// Each line behind a bar, so that a text that ends in a newline ends in an empty one.
fn block(text: &str, bar: &str, style: Style) -> Vec<Line<'static>> {
    let lines = text.split('\n');
    lines.map(|line| Line::styled(format!("  {bar} {}", visible::line(line)), style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(tool: &str, arguments: Value) -> ToolCall {
        let Value::Object(map) = arguments else { panic!("no object") };
        ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments: Arguments::Object(map) }
    }

    fn text(call: &ToolCall) -> Vec<String> {
        whole(call).iter().map(Line::to_string).collect()
    }

    #[test]
    fn every_byte_of_the_arguments_is_shown() {
        let call = call(
            "write_file",
            json!({
                "path": "a\u{1b}[2J.txt",
                "content": "one\r\n\ttwo\u{202e}\n\n",
                "options": {"deep": [1, "x\ny"]},
            }),
        );
        assert_eq!(
            text(&call),
            [
                r#"path: "a\u001b[2J.txt""#,
                "content:",
                r"  │ one\r",
                r"  │ \ttwo\u{202e}",
                "  │ ",
                "  │ ",
                "options: {",
                "  \"deep\": [",
                "    1,",
                r#"    "x\ny""#,
                "  ]",
                "}",
            ]
        );
    }

    #[test]
    fn an_edit_is_shown_as_a_change() {
        let call = call("edit_file", json!({"path": "p", "old_text": "a", "new_text": "b\n"}));
        assert_eq!(
            text(&call),
            ["path: \"p\"", "old_text:", "  - a", "new_text:", "  + b", "  + "]
        );
        assert_eq!(edit(&call.arguments), Some(("a", "b\n")));
    }

    #[test]
    fn the_short_form_is_one_line() {
        let call =
            call("t", json!({"path": "a.txt", "n": 3, "text": format!("x\n{}", "y".repeat(90))}));
        assert_eq!(
            short(&call.arguments),
            format!("path=\"a.txt\" n=3 text=\"x\\n{}…", "y".repeat(55))
        );
        assert_eq!(short(&Arguments::Text("{\"a\": \u{1b}".to_owned())), r#"{"a": \u{1b}"#);
    }
}
