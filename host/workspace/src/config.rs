//! Configuration: the user's file, the environment and the flags, resolved into one value.
//!
//! Strict: what is not known is an error that names the nearest known thing, and what this version
//! does not enforce is never accepted. A workspace's own `belljar.toml` is never read: reading it
//! takes the user's trust, which this version has no way to give.

mod document;
mod environment;
mod error;
mod file;

pub use error::{ConfigError, Source};

use crate::{owner::Ownership, places::Places, repository::Workspace};
use belljar_capability::Rules;
use belljar_types::PermissionMode;
use std::{collections::BTreeMap, ffi::OsString, fs::File, io::Read, path::Path};

/// A value and where it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub source: Source,
}

/// The settings of one source, or of all of them once resolved. What is absent was set nowhere:
/// its default belongs to whoever uses it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// `provider/name`.
    pub model: Option<Setting<String>>,
    pub permission_mode: Option<Setting<PermissionMode>>,
    /// At least 1.
    pub max_turns: Option<Setting<u32>>,
    /// At least 1.
    pub max_output_tokens: Option<Setting<u32>>,
    /// By name. A built-in provider's name changes that provider.
    pub providers: BTreeMap<String, ProviderSettings>,
    pub rules: Rules,
}

/// A model server, as the user's file describes it. What is absent is the built-in provider's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderSettings {
    pub protocol: Option<Protocol>,
    /// An http or https URL without credentials.
    pub base_url: Option<String>,
    /// The name of an environment variable, never a key.
    pub api_key_env: Option<String>,
    pub source: Source,
}

/// What a model server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Anthropic,
    OpenAi,
}

/// What the command line sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    pub model: Option<String>,
    pub permission_mode: Option<PermissionMode>,
    pub max_turns: Option<u32>,
    pub max_output_tokens: Option<u32>,
    /// `--allow` and `--deny`.
    pub rules: Rules,
}

/// Where settings come from.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    pub places: &'a Places,
    /// `--config FILE`: read in place of the user's file, and it must be there.
    pub file: Option<&'a Path>,
    pub workspace: Option<&'a Workspace>,
    /// The process's environment; only names that begin with `BELLJAR_` are looked at.
    pub environment: Vec<(OsString, OsString)>,
    pub flags: Flags,
}

/// The resolved settings, and what a person should know about how they came to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    pub config: Config,
    pub notices: Vec<String>,
}

/// Reads and resolves all settings: flags beat the environment, which beats the user's file.
/// Rules of all sources hold together.
///
/// # Errors
///
/// The first thing that is wrong, as one message that says where it stands and what to do.
pub fn load(sources: Sources<'_>) -> Result<Loaded, ConfigError> {
    let user_file = sources.places.config_file();
    let text = match sources.file {
        Some(path) => Some((path, read_named(path)?)),
        None => read_own(&user_file)?.map(|text| (user_file.as_path(), text)),
    };
    let mut layers = Vec::new();
    if let Some((path, text)) = &text {
        layers.push(file::parse(path, text)?);
    }
    let (environment, mut notices) = environment::parse(sources.environment)?;
    layers.push(environment);
    layers.push(from_flags(sources.flags)?);
    let instead = sources.file.unwrap_or(&user_file);
    notices.extend(sources.workspace.and_then(|workspace| unread_file(workspace, instead)));
    Ok(Loaded { config: resolve(layers), notices })
}

/// Lays each layer over those before it.
fn resolve(layers: impl IntoIterator<Item = Config>) -> Config {
    layers.into_iter().fold(Config::default(), |below, above| {
        let mut rules = below.rules;
        rules.extend(above.rules);
        let mut providers = below.providers;
        providers.extend(above.providers);
        Config {
            model: above.model.or(below.model),
            permission_mode: above.permission_mode.or(below.permission_mode),
            max_turns: above.max_turns.or(below.max_turns),
            max_output_tokens: above.max_output_tokens.or(below.max_output_tokens),
            providers,
            rules,
        }
    })
}

/// Reads a permission mode by its name.
///
/// # Errors
///
/// A sentence that lists the names.
pub fn parse_permission_mode(name: &str) -> Result<PermissionMode, String> {
    let all = [
        PermissionMode::Plan,
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::DontAsk,
        PermissionMode::Bypass,
    ];
    all.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
        format!("`{name}` is not a permission mode: choose one of {}", list(all.map(|m| m.name())))
    })
}

fn parse_model(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => Ok(text.to_owned()),
        _ => Err(format!(
            "`{text}` is not a model: write `PROVIDER/NAME`, such as `anthropic/claude-sonnet-5`"
        )),
    }
}

fn at_least_one(number: u32) -> Result<u32, String> {
    if number == 0 {
        Err("0 is too small: write a whole number from 1".to_owned())
    } else {
        Ok(number)
    }
}

fn list<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> String {
    let quoted: Vec<_> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(", ")
}

/// The known name that is so near to `name` that it was probably meant.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    if name.len() > 2
        && let Some(longer) = known.iter().find(|candidate| candidate.starts_with(name))
    {
        return Some(longer);
    }
    let distance = |candidate: &&str| strsim::osa_distance(name, candidate);
    let best = known.iter().copied().min_by_key(distance)?;
    (distance(&best) <= (best.len() / 3).max(2)).then_some(best)
}

fn from_flags(flags: Flags) -> Result<Config, ConfigError> {
    fn setting<T>(
        option: &'static str,
        value: Option<T>,
        check: impl FnOnce(T) -> Result<T, String>,
    ) -> Result<Option<Setting<T>>, ConfigError> {
        let source = Source::Flag(option);
        match value.map(check) {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(Setting { value, source })),
            Some(Err(problem)) => Err(ConfigError::Value { at: source, problem }),
        }
    }
    Ok(Config {
        model: setting("--model", flags.model, |text| parse_model(&text))?,
        permission_mode: setting("--permission-mode", flags.permission_mode, Ok)?,
        max_turns: setting("--max-turns", flags.max_turns, at_least_one)?,
        max_output_tokens: setting("--max-output-tokens", flags.max_output_tokens, at_least_one)?,
        providers: BTreeMap::new(),
        rules: flags.rules,
    })
}

/// No configuration is longer; what is, is something else.
const MAX_FILE: u64 = 1 << 20;

/// The file named on the command line. Whose it is and what it is (a pipe, say) is the affair of
/// the person who named it.
fn read_named(path: &Path) -> Result<String, ConfigError> {
    let io_error = |error| ConfigError::Unreadable { file: path.to_owned(), error };
    read_text(path, File::open(path).map_err(io_error)?)
}

/// The user's own file, if there is one. It may be a link, as people who keep their settings
/// elsewhere make them.
fn read_own(path: &Path) -> Result<Option<String>, ConfigError> {
    let io_error = |error| ConfigError::Unreadable { file: path.to_owned(), error };
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(io_error)?,
    };
    let metadata = file.metadata().map_err(io_error)?;
    Ownership::from(&metadata)
        .guarded_or_administrators()
        .map_err(|fault| ConfigError::Refused { file: path.to_owned(), fault })?;
    read_text(path, file).map(Some)
}

fn read_text(path: &Path, file: File) -> Result<String, ConfigError> {
    let io_error = |error| ConfigError::Unreadable { file: path.to_owned(), error };
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(io_error)?;
    if text.len() as u64 > MAX_FILE {
        return Err(ConfigError::TooLong { file: path.to_owned() });
    }
    Ok(text)
}

/// Looks whether the workspace brings a `belljar.toml`, from the workspace up to the repository's
/// root and no further, and says that it is not read.
fn unread_file(workspace: &Workspace, instead: &Path) -> Option<String> {
    let folders = workspace.folders_down();
    let found = folders
        .into_iter()
        .rev()
        .map(|folder| folder.join("belljar.toml"))
        .find(|path| path.symlink_metadata().is_ok())?;
    Some(format!(
        "`{}` is not read: this version has no way to trust a workspace's own settings; put them \
         in `{}`",
        found.display(),
        instead.display()
    ))
}

#[cfg(test)]
mod tests;
