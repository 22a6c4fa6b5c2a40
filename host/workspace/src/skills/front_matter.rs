//! The front matter of a `SKILL.md`: YAML between two lines of `---`.
//!
//! Takes what the agentskills format names and passes over the rest. Never gives anything in it a
//! meaning beyond its text.

use serde::Deserialize;

/// No front matter is longer, in bytes.
const MAX_FRONT_MATTER: usize = 16 << 10;
/// Characters, as the format has them.
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1024;
const MAX_COMPATIBILITY: usize = 500;
/// Ours: nothing longer is worth showing.
const MAX_LICENSE: usize = 500;
const MAX_TOOLS: usize = 100;
const MAX_TOOL: usize = 200;

/// What is taken of it, checked: each text is one line without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) allowed_tools: Vec<String>,
    pub(super) license: Option<String>,
    pub(super) compatibility: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    name: String,
    description: String,
    #[serde(default, rename = "allowed-tools")]
    allowed_tools: Option<Tools>,
    #[serde(default)]
    license: Option<String>,
    #[serde(default)]
    compatibility: Option<String>,
}

/// The format has words in one text; many write a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tools {
    Words(String),
    List(Vec<String>),
}

/// Takes a file apart: what its front matter says, and the text behind it.
pub(super) fn split(file: &str) -> Result<(FrontMatter, &str), String> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let mut lines = file.split_inclusive('\n');
    if lines.next().map(str::trim_end) != Some("---") {
        return Err("its first line is not `---`, which begins the front matter".to_owned());
    }
    let start = file.find('\n').map_or(file.len(), |newline| newline + 1);
    let mut end = start;
    let closed = lines.find_map(|line| {
        let at = end;
        end += line.len();
        (line.trim_end() == "---").then_some(at)
    });
    let Some(closing) = closed else {
        return Err("no second line of `---` ends its front matter".to_owned());
    };
    let yaml = &file[start..closing];
    if yaml.len() > MAX_FRONT_MATTER {
        return Err(format!("its front matter is longer than {MAX_FRONT_MATTER} bytes"));
    }
    let written: Written = serde_saphyr::from_str(yaml).map_err(|error| {
        format!("its front matter cannot be understood: {}", first_line(&error.to_string()))
    })?;
    Ok((check(written)?, file[end..].trim_start_matches(['\r', '\n'])))
}

fn check(written: Written) -> Result<FrontMatter, String> {
    let Written { name, description, allowed_tools, license, compatibility } = written;
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let hyphens = name.starts_with('-') || name.ends_with('-') || name.contains("--");
    if name.is_empty() || name.len() > MAX_NAME || hyphens || !name.chars().all(allowed) {
        return Err(format!(
            "its `name` is not 1 to {MAX_NAME} lower-case letters, digits and single hyphens"
        ));
    }
    let allowed_tools: Vec<_> = match allowed_tools {
        None => Vec::new(),
        Some(Tools::Words(words)) => words.split_whitespace().map(str::to_owned).collect(),
        Some(Tools::List(tools)) => tools,
    };
    if allowed_tools.len() > MAX_TOOLS {
        return Err(format!("its `allowed-tools` names more than {MAX_TOOLS}"));
    }
    let tool = |tool: String| text("allowed-tools", tool, MAX_TOOL);
    let optional =
        |key, value: Option<String>, most| value.map(|value| text(key, value, most)).transpose();
    Ok(FrontMatter {
        name,
        description: text("description", description, MAX_DESCRIPTION)?,
        allowed_tools: allowed_tools.into_iter().map(tool).collect::<Result<_, _>>()?,
        license: optional("license", license, MAX_LICENSE)?,
        compatibility: optional("compatibility", compatibility, MAX_COMPATIBILITY)?,
    })
}

/// One line of at most so many characters.
fn text(key: &str, value: String, most: usize) -> Result<String, String> {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() {
        return Err(format!("its `{key}` is empty"));
    }
    if line.chars().count() > most {
        return Err(format!("its `{key}` is longer than {most} characters"));
    }
    if line.chars().any(char::is_control) {
        return Err(format!("its `{key}` holds control characters"));
    }
    Ok(line)
}

/// What the parser says, without the lines that it quotes.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Something like a front matter, and nothing like one.
    fn file() -> impl Strategy<Value = String> {
        let value = prop_oneof![
            "[a-z-]{0,70}",
            "[ -~]{0,30}",
            any::<String>(),
            Just("[a, b]".to_owned()),
            Just("|\n  a\n  b".to_owned()),
        ];
        let key = prop_oneof![
            Just("name"),
            Just("description"),
            Just("allowed-tools"),
            Just("license"),
            Just("x"),
        ];
        let lines = proptest::collection::vec((key, value), 0..6);
        let whole = (lines, any::<String>()).prop_map(|(lines, text)| {
            let lines: String =
                lines.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
            format!("---\nname: a\ndescription: b\n{lines}---\n{text}")
        });
        prop_oneof![whole, any::<String>(), any::<String>().prop_map(|text| format!("---\n{text}"))]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn whatever_is_taken_is_bounded_and_of_one_line(file in file()) {
            let Ok((front_matter, rest)) = split(&file) else { return Ok(()) };
            prop_assert!(file.ends_with(rest));
            let FrontMatter { name, description, allowed_tools, license, compatibility } =
                front_matter;
            prop_assert!((1..=MAX_NAME).contains(&name.len()), "{name}");
            let plain = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
            prop_assert!(name.chars().all(plain), "{name}");
            let texts = [Some(description), license, compatibility].into_iter().flatten();
            for text in texts.chain(allowed_tools) {
                prop_assert!((1..=MAX_DESCRIPTION).contains(&text.chars().count()), "{text}");
                prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            }
        }
    }
}
