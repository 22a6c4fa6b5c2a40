//! The keys of a workspace's own `belljar.toml`.
//!
//! It may choose a model among the configured providers, narrow the permission mode, add `ask` and
//! `deny` rules, and ask for grants. It can add no provider, allow nothing, and set nothing else.

use super::{
    Config, ConfigError, Setting,
    document::{Document, Section},
    file::{checked, rule_list},
    list, parse_model, parse_permission_mode,
    plugins::{self, Role, refuse},
};
use belljar_capability::{PluginGrant, Rules};
use belljar_types::PermissionMode;
use std::{collections::BTreeMap, path::Path};

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct OwnSettings {
    model: Option<Setting<String>>,
    permission_mode: Option<Setting<PermissionMode>>,
    /// `ask` and `deny` only.
    rules: Rules,
    requests: BTreeMap<String, PluginGrant>,
}

/// Reads the text of the file.
pub(super) fn parse(file: &Path, text: &str) -> Result<OwnSettings, ConfigError> {
    const YOURS: &str = "set it in your own configuration, if you want it";
    let document = Document { file, text };
    let table = document.parse()?;
    let root = Section { document, name: String::new(), table: &table };
    for key in [
        "max_turns",
        "max_output_tokens",
        "context_window",
        "memory",
        "providers",
        "workspaces",
        "hooks",
        "secrets",
    ] {
        refuse(&root, key, YOURS)?;
    }
    root.only(&["model", "permission_mode", "rules", "plugins"])?;
    let mut settings = OwnSettings {
        model: checked(root.string("model")?, parse_model)?,
        permission_mode: checked(root.string("permission_mode")?, parse_permission_mode)?,
        ..OwnSettings::default()
    };
    if let Some(rules) = root.section("rules")? {
        refuse(&rules, "allow", "it can only `ask` and `deny`")?;
        rules.only(&["ask", "deny"])?;
        settings.rules.ask = rule_list(&rules, "ask")?;
        settings.rules.deny = rule_list(&rules, "deny")?;
    }
    if let Some(section) = root.section("plugins")? {
        settings.requests = plugins::read(&section, Role::Requested)?;
    }
    Ok(settings)
}

/// Holds the settings against the user's own, and makes them a layer over these.
///
/// # Errors
///
/// A provider that is not configured, or a mode that is wider than the user's.
pub(super) fn admit(
    settings: OwnSettings,
    user: &Config,
    built_in: &[&str],
) -> Result<Config, ConfigError> {
    let OwnSettings { model, permission_mode, rules, requests } = settings;
    if let Some(model) = &model {
        let provider = model.value.split('/').next().unwrap_or_default();
        if !built_in.contains(&provider) && !user.providers.contains_key(provider) {
            let known = built_in.iter().copied().chain(user.providers.keys().map(String::as_str));
            return Err(ConfigError::Value {
                at: model.source.clone(),
                problem: format!(
                    "`model` names the provider `{provider}`, which you have not configured, and \
                     a workspace cannot add one: choose one of {}",
                    list(known)
                ),
            });
        }
    }
    if let Some(mode) = &permission_mode {
        let widest =
            user.permission_mode.as_ref().map_or(PermissionMode::Default, |mode| mode.value);
        if narrower(mode.value, widest) != mode.value {
            return Err(ConfigError::Value {
                at: mode.source.clone(),
                problem: format!(
                    "`permission_mode` is `{}`, which is wider than your own `{widest}`, and a \
                     workspace can only narrow it",
                    mode.value
                ),
            });
        }
    }
    Ok(Config { model, mode_at_most: permission_mode, rules, requests, ..Config::default() })
}

/// The narrower of two modes. Where nobody is asked, what would be asked is denied: `dont-ask` is
/// narrower than `default`.
pub fn narrower(a: PermissionMode, b: PermissionMode) -> PermissionMode {
    let width = |mode| match mode {
        PermissionMode::Plan => 0,
        PermissionMode::DontAsk => 1,
        PermissionMode::Default => 2,
        PermissionMode::AcceptEdits => 3,
        PermissionMode::Bypass => 4,
    };
    if width(b) < width(a) { b } else { a }
}
