//! Configuration: the user's file, the environment and the flags, resolved into one value.
//!
//! Strict: what is not known is an error that names the nearest known thing, and what this version
//! does not enforce is never accepted. What may stand in the user's file is in `file`, `hooks`,
//! `plugins` and `workspaces`. A workspace's own `belljar.toml` is read only where the user's file trusts its
//! very bytes, and then for the little that `own` takes.

mod document;
mod environment;
mod error;
mod file;
mod hooks;
mod own;
mod plugins;
mod workspaces;

pub use error::{ConfigError, Source};
pub use own::narrower;
pub use workspaces::WorkspaceSettings;

use crate::{
    hooks::HookCommands, owner::Ownership, places::Places, project::Project, repository::Workspace,
};
use belljar_capability::{GrantSpec, PluginGrant, Rules};
use belljar_types::PermissionMode;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

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
    /// The model's window in tokens, at least 1: what older messages are summed up for in time.
    pub context_window: Option<Setting<u32>>,
    /// Whether the model may keep texts for later sessions after a run, which is one more request.
    /// The user's file only.
    pub memory: Option<Setting<bool>>,
    /// By name. A built-in provider's name changes that provider.
    pub providers: BTreeMap<String, ProviderSettings>,
    pub rules: Rules,
    /// The user's file only.
    pub hooks: HookCommands,
    /// What the user granted, by plugin name.
    pub plugins: BTreeMap<String, PluginGrant>,
    /// What the user said about folders, by their absolute paths.
    pub workspaces: BTreeMap<PathBuf, WorkspaceSettings>,
    /// The widest mode that the workspace lets, where nobody set one: the default is narrowed to
    /// it.
    pub mode_at_most: Option<Setting<PermissionMode>>,
    /// What the workspace asks for, by plugin name. Asking grants nothing.
    pub requests: BTreeMap<String, PluginGrant>,
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
    OpenAiResponses,
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
    /// The names of providers that need no configuration.
    pub built_in: &'a [&'a str],
    /// The process's environment; only names that begin with `BELLJAR_` are looked at.
    pub environment: Vec<(OsString, OsString)>,
    pub flags: Flags,
}

/// The resolved settings, and what a person should know about how they came to be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    pub config: Config,
    /// The folder of plugins that the workspace brings, where the user trusted that. Each plugin
    /// in it still needs a yes of its own.
    pub workspace_plugins: Option<PathBuf>,
    /// The folder of skills that the workspace brings, where the user trusted that.
    pub workspace_skills: Option<PathBuf>,
    pub notices: Vec<String>,
}

/// Reads and resolves all settings: flags beat the environment, which beats what a trusted
/// workspace says, which beats the user's file. Rules of all sources hold together, and a workspace
/// only ever narrows.
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
    let mut user = match &text {
        Some((path, text)) => file::parse(path, text)?,
        None => Config::default(),
    };
    let (environment, mut notices) = environment::parse(sources.environment)?;
    let mut workspace_plugins = None;
    let mut workspace_skills = None;
    let mut own = Config::default();
    if let Some(workspace) = sources.workspace {
        if let Some(settings) = user.workspaces.get(workspace.folder()) {
            user.rules.allow.extend(settings.allow.iter().cloned());
        }
        match Project::find(workspace) {
            Ok(None) => {}
            Ok(Some(project)) => match distrust(&project, &user) {
                Some(notice) => notices.push(notice),
                None => {
                    own = own_layer(&project, &user, sources.built_in)?;
                    notices.extend(unmet(&own.requests, &user.plugins, &project));
                    workspace_plugins = project.plugins();
                    workspace_skills = project.skills();
                }
            },
            Err(error) => notices.push(error.to_string()),
        }
    }
    let config = resolve([user, own, environment, from_flags(sources.flags)?]);
    Ok(Loaded { config, workspace_plugins, workspace_skills, notices })
}

/// Reads the user's configuration alone, from the file in force.
///
/// # Errors
///
/// As for [`load`].
pub(crate) fn parse_user(file: &Path, text: &str) -> Result<Config, ConfigError> {
    file::parse(file, text)
}

/// What a workspace's own file sets, over the user's configuration.
///
/// # Errors
///
/// It says what it may not.
pub fn own_layer(
    project: &Project,
    user: &Config,
    built_in: &[&str],
) -> Result<Config, ConfigError> {
    match project.text() {
        Some(text) => own::admit(own::parse(&project.file(), text)?, user, built_in),
        None => Ok(Config::default()),
    }
}

/// Why what a workspace brings does not count; nothing where the user trusted it as it is.
fn distrust(project: &Project, user: &Config) -> Option<String> {
    let trusted = user.workspaces.get(project.folder()).and_then(|known| known.trusted.as_ref());
    let why = match trusted {
        Some(digest) if *digest == project.digest() => return None,
        Some(_) => "it has changed since you trusted it",
        None => "you have not trusted that folder",
    };
    let line = format!("belljar trust {}", quoted(project.folder()));
    Some(format!(
        "not read: {}, since {why}; look at it and trust it with `{line}`",
        project.what()
    ))
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What a workspace asks for and nobody granted, with the lines that grant it.
fn unmet(
    requests: &BTreeMap<String, PluginGrant>,
    granted: &BTreeMap<String, PluginGrant>,
    project: &Project,
) -> Vec<String> {
    let none = PluginGrant::default();
    let unmet = |(plugin, asked): (&String, &PluginGrant)| {
        let given = granted.get(plugin).unwrap_or(&none).parts();
        let missing: Vec<_> = (asked.parts().into_iter())
            .filter(|part| !given.contains(part))
            .map(|part| GrantSpec { plugin: plugin.clone(), part }.to_string())
            .map(|spec| format!("'{}'", spec.replace('\'', "'\\''")))
            .collect();
        (!missing.is_empty()).then(|| {
            format!(
                "`{}` asks for more than you granted to the plugin `{plugin}`: if you want that, \
                 `belljar plugin grant {plugin} {}`",
                project.file().display(),
                missing.join(" ")
            )
        })
    };
    requests.iter().filter_map(unmet).collect()
}

/// Lays each layer over those before it.
fn resolve(layers: impl IntoIterator<Item = Config>) -> Config {
    let mut config = layers.into_iter().fold(Config::default(), |below, above| {
        let mut rules = below.rules;
        rules.extend(above.rules);
        let Config { mut providers, mut hooks, mut plugins, mut workspaces, mut requests, .. } =
            below;
        hooks.extend(above.hooks);
        providers.extend(above.providers);
        plugins.extend(above.plugins);
        workspaces.extend(above.workspaces);
        requests.extend(above.requests);
        Config {
            model: above.model.or(below.model),
            permission_mode: above.permission_mode.or(below.permission_mode),
            max_turns: above.max_turns.or(below.max_turns),
            max_output_tokens: above.max_output_tokens.or(below.max_output_tokens),
            context_window: above.context_window.or(below.context_window),
            memory: above.memory.or(below.memory),
            providers,
            rules,
            hooks,
            plugins,
            workspaces,
            mode_at_most: above.mode_at_most.or(below.mode_at_most),
            requests,
        }
    });
    match &config.permission_mode {
        None => {}
        // For this run a person chose.
        Some(Setting { source: Source::Environment(_) | Source::Flag(_), .. }) => {
            config.mode_at_most = None;
        }
        Some(Setting { value, source: Source::File { .. } }) => {
            let value = *value;
            let narrowing = config.mode_at_most.take();
            if let Some(most) = narrowing.filter(|most| narrower(most.value, value) != value) {
                config.permission_mode = Some(most);
            }
        }
    }
    config
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
        rules: flags.rules,
        ..Config::default()
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

#[cfg(test)]
mod tests;
