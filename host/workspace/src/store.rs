//! The grant store: the user's configuration as something that is written to.
//!
//! Grants, allow rules and trust live in the file that a person also edits by hand, so a change
//! keeps its comments and its order. Two processes never change it at once, a change is there whole
//! or not at all, and one that would not read back as exactly what was meant is not written.
//! Deciding to change it is never done here: only a person does.

mod edit;
mod replace;

use crate::{
    config::{Config, ConfigError, Setting, Source, parse_user},
    owner::Fault,
    places::{Places, PlacesError, private_dir},
};
use belljar_capability::{Binding, PluginGrant, Rule, Withdrawal};
use std::{
    io,
    path::{Path, PathBuf},
};

/// The file that a person's grants are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantStore {
    file: PathBuf,
    /// The folder to make where it is missing: only that of the user's own file.
    folder: Option<PathBuf>,
}

/// One change that a person made.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Adds to what a plugin is granted; a binding takes the place of the one before.
    Grant { plugin: String, grant: PluginGrant, expected: Expected },
    /// Takes back parts of what a plugin is granted, or all of it and the yes to its bytes.
    Revoke { plugin: String, what: Revoked },
    /// Adds an allow rule that holds in one workspace.
    Allow { workspace: PathBuf, rule: Rule },
    /// Trusts what a folder brings of its own, as long as it has this digest.
    Trust { folder: PathBuf, digest: String },
    /// Takes that back.
    Distrust { folder: PathBuf },
}

/// What must stand in the file for a change to be made: what the person was shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// The plugin's grants are these.
    Grant(PluginGrant),
    /// The plugin's grants are not bound to other bytes than these.
    Digest(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Revoked {
    All,
    Parts(Vec<Withdrawal>),
}

/// A change that was not made. What stood in the file before stands there still.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Places(#[from] PlacesError),
    #[error("the configuration `{}` cannot be {action}: {error}", path.display())]
    Io { action: &'static str, path: PathBuf, error: io::Error },
    #[error(
        "`{}` {fault}, so nothing is written there: make it yours alone to write (`chmod go-w`)",
        path.display()
    )]
    Refused { path: PathBuf, fault: Fault },
    #[error("the configuration `{}` {what}, so it cannot be changed: make it a file", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error(
        "another belljar has been changing `{}` for a while: try again, or end that one",
        path.display()
    )]
    Locked { path: PathBuf },
    #[error(
        "what is granted to `{plugin}` has changed since it was shown: look at it again and repeat"
    )]
    ChangedMeanwhile { plugin: String },
    #[error("nothing of `{what}` is granted to `{plugin}`, so there is nothing to take back")]
    NothingToRevoke { plugin: String, what: String },
    #[error("nothing is known of `{}`: it was not trusted", folder.display())]
    NotTrusted { folder: PathBuf },
    #[error("the path `{}` is not UTF-8, so it cannot be written into the configuration", path.display())]
    NotUtf8 { path: PathBuf },
    #[error(
        "the change would not read back as it was meant, so `{}` was left alone: make it by hand; \
         this is a bug in belljar", path.display()
    )]
    NotTheSame { path: PathBuf },
}

impl GrantStore {
    /// The store of the user's own file, or of the one that was named in its place.
    pub fn new(places: &Places, named: Option<&Path>) -> Self {
        match named {
            Some(file) => Self { file: file.to_owned(), folder: None },
            None => Self { file: places.config_file(), folder: Some(places.config.clone()) },
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Makes a change, on the disk when this returns.
    ///
    /// # Errors
    ///
    /// The file is broken, not the user's alone or cannot be written; or it says something else
    /// than the person was shown.
    pub fn apply(&self, change: &Change) -> Result<(), StoreError> {
        if let Some(folder) = &self.folder {
            private_dir(folder)?;
        }
        let target = replace::Target::find(&self.file)?;
        let _lock = target.lock()?;
        let text = target.read()?;
        let before = parse_user(&self.file, &text)?;
        let after = changed(before.clone(), change)?;
        if without_lines(after.clone()) == without_lines(before.clone()) {
            return Ok(());
        }
        let not_the_same = || StoreError::NotTheSame { path: self.file.clone() };
        let written = edit::edit(&text, &before, &after).ok_or_else(not_the_same)?;
        let read = parse_user(&self.file, &written).map_err(|_| not_the_same())?;
        if without_lines(read) != without_lines(after) {
            return Err(not_the_same());
        }
        target.replace(&written)
    }
}

/// What the configuration is to say after a change.
fn changed(mut config: Config, change: &Change) -> Result<Config, StoreError> {
    match change {
        Change::Grant { plugin, grant, expected } => {
            let granted = config.plugins.entry(plugin.clone()).or_default();
            let as_shown = match expected {
                Expected::Grant(shown) => granted == shown,
                Expected::Digest(digest) => match &granted.binding {
                    Some(Binding::Digest(bound)) => bound == digest,
                    Some(Binding::Dev(_)) | None => true,
                },
            };
            if !as_shown {
                return Err(StoreError::ChangedMeanwhile { plugin: plugin.clone() });
            }
            granted.extend(grant.clone());
        }
        Change::Revoke { plugin, what } => {
            let nothing =
                |what: String| StoreError::NothingToRevoke { plugin: plugin.clone(), what };
            let Some(granted) = config.plugins.get_mut(plugin) else {
                return Err(nothing(plugin.clone()));
            };
            match what {
                Revoked::All => drop(config.plugins.remove(plugin)),
                Revoked::Parts(parts) => {
                    for part in parts {
                        if !granted.withdraw(part) {
                            return Err(nothing(part.to_string()));
                        }
                    }
                }
            }
        }
        Change::Allow { workspace, rule } => {
            let settings = config.workspaces.entry(utf8(workspace)?).or_default();
            if !settings.allow.contains(rule) {
                settings.allow.push(rule.clone());
            }
        }
        Change::Trust { folder, digest } => {
            config.workspaces.entry(utf8(folder)?).or_default().trusted = Some(digest.clone());
        }
        Change::Distrust { folder } => {
            let settings = config.workspaces.get_mut(folder);
            if settings.and_then(|settings| settings.trusted.take()).is_none() {
                return Err(StoreError::NotTrusted { folder: folder.clone() });
            }
        }
    }
    Ok(config)
}

fn utf8(path: &Path) -> Result<PathBuf, StoreError> {
    match path.to_str() {
        Some(_) => Ok(path.to_owned()),
        None => Err(StoreError::NotUtf8 { path: path.to_owned() }),
    }
}

/// The configuration with all of its settings at one place, for comparing what is set.
fn without_lines(config: Config) -> Config {
    fn here() -> Source {
        Source::File { path: PathBuf::new(), line: 0 }
    }
    fn placeless<T>(setting: Option<Setting<T>>) -> Option<Setting<T>> {
        setting.map(|setting| Setting { value: setting.value, source: here() })
    }
    let Config {
        model,
        permission_mode,
        max_turns,
        max_output_tokens,
        context_window,
        memory,
        mut providers,
        mut hooks,
        ..
    } = config;
    providers.values_mut().for_each(|provider| provider.source = here());
    hooks.values_mut().flatten().for_each(|hook| hook.source = here());
    Config {
        model: placeless(model),
        permission_mode: placeless(permission_mode),
        max_turns: placeless(max_turns),
        max_output_tokens: placeless(max_output_tokens),
        context_window: placeless(context_window),
        memory: placeless(memory),
        providers,
        mode_at_most: placeless(config.mode_at_most),
        rules: config.rules,
        hooks,
        plugins: config.plugins,
        workspaces: config.workspaces,
        requests: config.requests,
    }
}

#[cfg(test)]
mod tests;
