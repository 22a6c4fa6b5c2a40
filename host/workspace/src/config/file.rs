//! The keys of the user's file.

use super::{
    Config, ConfigError, Protocol, ProviderSettings, Setting, at_least_one,
    document::{Document, Located, Section},
    hooks, list, parse_model, parse_permission_mode,
    plugins::{self, Role},
    workspaces,
};
use belljar_capability::{Rule, Rules};
use std::path::Path;

/// Reads the text of a configuration file.
pub(super) fn parse(file: &Path, text: &str) -> Result<Config, ConfigError> {
    let document = Document { file, text };
    let table = document.parse()?;
    let root = Section { document, name: String::new(), table: &table };
    root.only(&[
        "model",
        "permission_mode",
        "max_turns",
        "max_output_tokens",
        "context_window",
        "memory",
        "providers",
        "rules",
        "hooks",
        "plugins",
        "workspaces",
    ])?;
    Ok(Config {
        model: checked(root.string("model")?, parse_model)?,
        permission_mode: checked(root.string("permission_mode")?, parse_permission_mode)?,
        max_turns: checked(root.number("max_turns")?, at_least_one)?,
        max_output_tokens: checked(root.number("max_output_tokens")?, at_least_one)?,
        context_window: checked(root.number("context_window")?, at_least_one)?,
        memory: checked(root.boolean("memory")?, Ok)?,
        providers: match root.section("providers")? {
            Some(section) => providers(&section)?,
            None => Default::default(),
        },
        rules: match root.section("rules")? {
            Some(section) => rules(&section)?,
            None => Rules::default(),
        },
        hooks: match root.section("hooks")? {
            Some(section) => hooks::read(&section, std::env::home_dir().as_deref())?,
            None => Default::default(),
        },
        plugins: match root.section("plugins")? {
            Some(section) => plugins::read(&section, Role::Granted)?,
            None => Default::default(),
        },
        workspaces: match root.section("workspaces")? {
            Some(section) => workspaces::read(&section)?,
            None => Default::default(),
        },
        ..Config::default()
    })
}

fn providers(
    section: &Section<'_>,
) -> Result<std::collections::BTreeMap<String, ProviderSettings>, ConfigError> {
    let read = |name: Located<&str>| {
        let Located { value: name, at } = name;
        if let Err(problem) = provider_name(name) {
            return Err(ConfigError::Value { at, problem });
        }
        let Some(provider) = section.section(name)? else {
            return Ok(None);
        };
        provider.only(&["protocol", "base_url", "api_key_env"])?;
        let value = |setting: Setting<String>| setting.value;
        let settings = ProviderSettings {
            protocol: checked(provider.string("protocol")?, protocol)?.map(|setting| setting.value),
            base_url: checked(provider.string("base_url")?, base_url)?.map(value),
            api_key_env: checked(provider.string("api_key_env")?, variable)?.map(value),
            source: at,
        };
        Ok(Some((name.to_owned(), settings)))
    };
    section.names().map(read).filter_map(Result::transpose).collect()
}

fn rules(section: &Section<'_>) -> Result<Rules, ConfigError> {
    section.only(&["allow", "ask", "deny"])?;
    let read = |key| rule_list(section, key);
    Ok(Rules { allow: read("allow")?, ask: read("ask")?, deny: read("deny")?, ..Rules::default() })
}

/// An array of rules.
pub(super) fn rule_list(section: &Section<'_>, key: &str) -> Result<Vec<Rule>, ConfigError> {
    let parse = |rule: Located<&str>| {
        rule.value
            .parse::<Rule>()
            .map_err(|error| ConfigError::Value { at: rule.at, problem: error.to_string() })
    };
    section.strings(key)?.into_iter().map(parse).collect()
}

pub(super) fn checked<A, B>(
    value: Option<Located<A>>,
    check: impl FnOnce(A) -> Result<B, String>,
) -> Result<Option<Setting<B>>, ConfigError> {
    let Some(Located { value, at }) = value else { return Ok(None) };
    match check(value) {
        Ok(value) => Ok(Some(Setting { value, source: at })),
        Err(problem) => Err(ConfigError::Value { at, problem }),
    }
}

/// A model is written `PROVIDER/NAME`, so a provider's name has no `/`; `script` plays files.
fn provider_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name == "script" {
        return Err("`script` plays files and cannot be a provider: choose another name".to_owned());
    }
    if name.is_empty() || !name.chars().all(allowed) {
        return Err(format!(
            "`{name}` cannot be a provider's name: use letters, digits, `_`, `-` and `.`"
        ));
    }
    Ok(())
}

fn protocol(name: &str) -> Result<Protocol, String> {
    match name {
        "anthropic" => Ok(Protocol::Anthropic),
        "openai" => Ok(Protocol::OpenAi),
        "openai-responses" => Ok(Protocol::OpenAiResponses),
        _ => Err(format!(
            "`{name}` is not a protocol: choose one of {}",
            list(["anthropic", "openai", "openai-responses"])
        )),
    }
}

/// The messages do not repeat the value: a URL may hold a password, and where a variable's name is
/// wanted people paste a key.
fn base_url(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        None | Some("") => {
            Err("`base_url` must be a URL, such as `http://127.0.0.1:8080/v1`".to_owned())
        }
        Some(authority) if authority.contains('@') => Err("`base_url` must not hold a user name \
             or password: name the variable that holds the key in `api_key_env`"
            .to_owned()),
        Some(_) if url.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            Err("`base_url` must not hold spaces".to_owned())
        }
        Some(_) => Ok(url.to_owned()),
    }
}

fn variable(name: &str) -> Result<String, String> {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if first && characters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(name.to_owned());
    }
    Err("`api_key_env` must be the name of an environment variable, never a key: write a name, \
         such as `LOCAL_API_KEY`, and set that variable to the key"
        .to_owned())
}
