//! Rules: which calls are allowed, asked about or denied, by the tool's name and by arguments.

use crate::{GuestPath, NetRequest};
use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Map, Value};
use std::{fmt, str::FromStr};

/// One rule: `tool` or `plugin/tool`, where `*` stands for any run of characters, and optionally
/// patterns for arguments: `files/*(path=**/.env)`.
///
/// A bare `tool` that denies or asks matches a tool's own name in any plugin, and the name that the
/// model uses for it; one that allows matches the model's name only, so that allowing a bundled
/// tool allows no other plugin's tool of that name.
///
/// An argument's pattern is a glob over a text (`*` stays within a name, `**` does not) or over
/// each text of a list. Paths and URLs are made canonical first, so that another spelling gains
/// nothing: a rule that denies or asks matches where the text as it was given or its canonical form
/// does, case aside; one that allows only where the canonical form does, for all texts of a list.
#[derive(Clone)]
pub struct Rule {
    text: String,
    plugin: Option<GlobMatcher>,
    tool: GlobMatcher,
    arguments: Vec<ArgumentPattern>,
}

#[derive(Clone)]
struct ArgumentPattern {
    name: String,
    exact: GlobMatcher,
    case_aside: GlobMatcher,
}

/// The tool that a rule is asked about.
#[derive(Clone, Copy, Debug)]
pub struct RuleSubject<'a> {
    pub plugin: &'a str,
    /// Its own name inside the plugin.
    pub tool: &'a str,
    /// The name that the model uses.
    pub model_name: &'a str,
    /// Absent where the question is about the tool and not about a call.
    pub arguments: Option<&'a Map<String, Value>>,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("the rule `{rule}` is empty on one side: write `tool` or `plugin/tool`")]
    Empty { rule: String },
    #[error(
        "the rule `{rule}` has an argument pattern that cannot be read: write \
         `plugin/tool(argument=pattern)`, with `*` and `**`, and a comma between patterns"
    )]
    ArgumentPattern { rule: String },
    #[error(
        "the rule `{rule}` is not a name: write `tool` or `plugin/tool`, with `*` for any part"
    )]
    NotAName { rule: String },
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(rule: &str) -> Result<Self, RuleError> {
        let text = rule.trim().to_owned();
        let (name, patterns) = match text.split_once('(') {
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(patterns) => (name.trim_end(), Some(patterns)),
                None => return Err(RuleError::ArgumentPattern { rule: text }),
            },
            None => (text.as_str(), None),
        };
        let (plugin, tool) = match name.split_once('/') {
            Some((plugin, tool)) => (Some(plugin), tool),
            None => (None, name),
        };
        if tool.is_empty() || plugin == Some("") {
            return Err(RuleError::Empty { rule: text });
        }
        let plugin = plugin.map(|name| name_pattern(name, &text)).transpose()?;
        let tool = name_pattern(tool, &text)?;
        let arguments = match patterns {
            None => Vec::new(),
            Some(patterns) => patterns
                .split(',')
                .map(|pattern| {
                    ArgumentPattern::new(pattern)
                        .ok_or_else(|| RuleError::ArgumentPattern { rule: text.clone() })
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { text, plugin, tool, arguments })
    }
}

/// `*` is the only pattern character, so that a rule means to its reader what it means here.
fn name_pattern(name: &str, rule: &str) -> Result<GlobMatcher, RuleError> {
    let error = || RuleError::NotAName { rule: rule.to_owned() };
    let other = |c: char| c.is_control() || "?[]{}!\\/()".contains(c);
    if name.contains(other) {
        return Err(error());
    }
    Ok(GlobBuilder::new(name).build().map_err(|_| error())?.compile_matcher())
}

impl ArgumentPattern {
    fn new(text: &str) -> Option<Self> {
        let (name, pattern) = text.split_once('=')?;
        let (name, pattern) = (name.trim(), pattern.trim());
        if name.is_empty() || pattern.is_empty() || pattern.contains(char::is_control) {
            return None;
        }
        let glob = |case_aside| {
            GlobBuilder::new(pattern)
                .literal_separator(true)
                .backslash_escape(false)
                .case_insensitive(case_aside)
                .build()
                .map(|glob| glob.compile_matcher())
                .ok()
        };
        Some(Self { name: name.to_owned(), exact: glob(false)?, case_aside: glob(true)? })
    }

    /// Whether some text of the argument matches in some spelling.
    fn stops(&self, arguments: &Map<String, Value>) -> bool {
        let matches = |text: &str| {
            self.case_aside.is_match(text)
                || canonical(text).iter().any(|text| self.case_aside.is_match(text))
        };
        arguments.get(&self.name).is_some_and(|value| any_text(value, &matches))
    }

    /// Whether the argument is a text, or a list of nothing but texts, that all match in their
    /// canonical form.
    fn allows(&self, arguments: &Map<String, Value>) -> bool {
        let matches = |value: &Value| {
            let Some(text) = value.as_str() else { return false };
            let canonical = canonical(text);
            !canonical.is_empty() && canonical.iter().all(|text| self.exact.is_match(text))
        };
        match arguments.get(&self.name) {
            Some(Value::Array(list)) => !list.is_empty() && list.iter().all(matches),
            Some(value) => matches(value),
            None => false,
        }
    }
}

/// Whether some text in a value, at any depth, satisfies `matches`.
fn any_text(value: &Value, matches: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => matches(text),
        Value::Array(list) => list.iter().any(|value| any_text(value, matches)),
        Value::Object(map) => map.values().any(|value| any_text(value, matches)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The forms in which a text is looked at: as a URL where it is one, else as a path. A text that
/// is neither, such as a path that climbs out, has none.
fn canonical(text: &str) -> Vec<String> {
    if let Ok(request) = NetRequest::for_url("GET", text) {
        return vec![request.url()];
    }
    GuestPath::named_by(text).map(|path| path.as_str().to_owned()).into_iter().collect()
}

impl Rule {
    /// Whether the rule, as one that denies or asks, is about this tool or call. One with argument
    /// patterns is about no tool as a whole.
    pub fn stops(&self, subject: &RuleSubject<'_>) -> bool {
        let named =
            self.names(subject) || self.plugin.is_none() && self.tool.is_match(subject.tool);
        named
            && match subject.arguments {
                None => self.arguments.is_empty(),
                Some(given) => self.arguments.iter().all(|pattern| pattern.stops(given)),
            }
    }

    /// Whether the rule, as one that allows, is about this call, or about some call of this tool
    /// where no arguments are given.
    pub fn allows(&self, subject: &RuleSubject<'_>) -> bool {
        let fits = |given| self.arguments.iter().all(|pattern| pattern.allows(given));
        self.names(subject) && subject.arguments.is_none_or(fits)
    }

    fn names(&self, subject: &RuleSubject<'_>) -> bool {
        match &self.plugin {
            Some(pattern) => pattern.is_match(subject.plugin) && self.tool.is_match(subject.tool),
            None => self.tool.is_match(subject.model_name),
        }
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rule({:?})", self.text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The rules in force. Among those that match, deny beats ask beats allow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Of a person's configuration: for a plugin that is not bundled they hold for the digest that
    /// the person said yes to, and for no other.
    pub allow: Vec<Rule>,
    /// Of this run's command line: they hold for whatever has the name.
    pub allow_this_run: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub deny: Vec<Rule>,
}

impl Rules {
    /// Adds the rules of another source. Order carries no meaning.
    pub fn extend(&mut self, other: Rules) {
        self.allow.extend(other.allow);
        self.allow_this_run.extend(other.allow_this_run);
        self.ask.extend(other.ask);
        self.deny.extend(other.deny);
    }
}
