//! Rules: which tools are allowed, asked about or denied by name.

use globset::{GlobBuilder, GlobMatcher};
use std::{fmt, str::FromStr};

/// One rule: `tool` or `plugin/tool`, where `*` stands for any run of characters.
///
/// A bare `tool` that denies or asks matches a tool's own name in any plugin, and the name that the
/// model uses for it; one that allows matches the model's name only, so that allowing a bundled
/// tool allows no other plugin's tool of that name.
#[derive(Clone)]
pub struct Rule {
    text: String,
    plugin: Option<GlobMatcher>,
    tool: GlobMatcher,
}

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("the rule `{rule}` is empty on one side: write `tool` or `plugin/tool`")]
    Empty { rule: String },
    #[error(
        "the rule `{rule}` has an argument pattern, which this version cannot hold calls to: \
         write `tool` or `plugin/tool`"
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
        if text.contains(['(', ')']) {
            return Err(RuleError::ArgumentPattern { rule: text });
        }
        let (plugin, tool) = match text.split_once('/') {
            Some((plugin, tool)) => (Some(plugin), tool),
            None => (None, text.as_str()),
        };
        if tool.is_empty() || plugin == Some("") {
            return Err(RuleError::Empty { rule: text });
        }
        let plugin = plugin.map(|name| name_pattern(name, &text)).transpose()?;
        let tool = name_pattern(tool, &text)?;
        Ok(Self { text, plugin, tool })
    }
}

/// `*` is the only pattern character, so that a rule means to its reader what it means here.
fn name_pattern(name: &str, rule: &str) -> Result<GlobMatcher, RuleError> {
    let error = || RuleError::NotAName { rule: rule.to_owned() };
    let other = |c: char| c.is_control() || "?[]{}!\\/".contains(c);
    if name.contains(other) {
        return Err(error());
    }
    Ok(GlobBuilder::new(name).build().map_err(|_| error())?.compile_matcher())
}

impl Rule {
    /// Whether the rule, as one that denies or asks, is about this tool.
    pub fn matches(&self, plugin: &str, tool: &str, model_name: &str) -> bool {
        self.allows(plugin, tool, model_name) || self.plugin.is_none() && self.tool.is_match(tool)
    }

    /// Whether the rule, as one that allows, is about this tool.
    pub fn allows(&self, plugin: &str, tool: &str, model_name: &str) -> bool {
        match &self.plugin {
            Some(pattern) => pattern.is_match(plugin) && self.tool.is_match(tool),
            None => self.tool.is_match(model_name),
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
    pub allow: Vec<Rule>,
    pub ask: Vec<Rule>,
    pub deny: Vec<Rule>,
}

impl Rules {
    /// Adds the rules of another source. Order carries no meaning.
    pub fn extend(&mut self, other: Rules) {
        self.allow.extend(other.allow);
        self.ask.extend(other.ask);
        self.deny.extend(other.deny);
    }
}
