//! A call's arguments for people: every byte of them for an approval, one short line elsewhere.

use crate::{screen::Tone, visible};
use belljar_types::{Arguments, ToolCall};
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

/// All of the arguments, line by line. A text of several lines is a block of its own lines, each
/// behind a bar; anything else is JSON.
pub(crate) fn whole(call: &ToolCall) -> Vec<(Tone, String)> {
    let map = match &call.arguments {
        Arguments::Object(map) => map,
        Arguments::Text(text) => return block(text, "│", Tone::Plain),
    };
    if map.is_empty() {
        return vec![(Tone::Plain, "  no arguments".to_owned())];
    }
    map.iter()
        .flat_map(|(key, value)| {
            let (bar, tone) = match (call.tool.as_str(), key.as_str()) {
                ("edit_file", "old_text") => ("-", Tone::Bad),
                ("edit_file", "new_text") => ("+", Tone::Good),
                _ => ("│", Tone::Plain),
            };
            entry(key, value, bar, tone)
        })
        .collect()
}

fn entry(key: &str, value: &Value, bar: &str, tone: Tone) -> Vec<(Tone, String)> {
    let key = visible::line(key);
    let shown = match value {
        Value::String(text) if text.contains('\n') || tone != Tone::Plain => {
            let mut lines = vec![(Tone::Plain, format!("  {key}:"))];
            lines.extend(block(text, bar, tone));
            return lines;
        }
        value => serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string()),
    };
    let mut lines = shown.split('\n');
    let first = format!("  {key}: {}", visible::line(lines.next().unwrap_or_default()));
    let rest = lines.map(|line| format!("  {}", visible::line(line)));
    [first].into_iter().chain(rest).map(|line| (Tone::Plain, line)).collect()
}

/// Each line behind a bar, so that a text that ends in a newline ends in an empty one.
fn block(text: &str, bar: &str, tone: Tone) -> Vec<(Tone, String)> {
    text.split('\n').map(|line| (tone, format!("    {bar} {}", visible::line(line)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(tool: &str, arguments: Value) -> ToolCall {
        let Value::Object(map) = arguments else { panic!("no object") };
        ToolCall { id: "1".to_owned(), tool: tool.to_owned(), arguments: Arguments::Object(map) }
    }

    fn text(call: &ToolCall) -> String {
        whole(call).into_iter().map(|(_, line)| line + "\n").collect()
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
            "  path: \"a\\u001b[2J.txt\"\n  content:\n    │ one\\r\n    │ \\ttwo\\u{202e}\n    │ \n    \
             │ \n  \
             options: {\n    \"deep\": [\n      1,\n      \"x\\ny\"\n    ]\n  }\n"
        );
    }

    #[test]
    fn an_edit_is_shown_as_a_change() {
        let call = call("edit_file", json!({"path": "p", "old_text": "a", "new_text": "b\nc\n"}));
        assert_eq!(
            text(&call),
            "  path: \"p\"\n  old_text:\n    - a\n  new_text:\n    + b\n    + c\n    \
             + \n"
        );
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
