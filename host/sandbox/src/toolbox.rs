//! The toolbox: what the loop sees of the sandbox.

use crate::{
    cache::Cache,
    catalog::{BundledPlugin, Catalog, Grants, PluginFolder, Skipped},
    engine::{self, EngineSettings, SandboxError},
    filesystem::Workspace,
    http::Outside,
    output,
    plugin::{Loader, Plugin},
    prepared::{self, Prepared},
    watchdog::Watchdog,
};
use belljar_capability::{
    Limits, NetRequest, PluginGrant, Rules, Subject, decide, is_offered, request_in_arguments,
};
use belljar_types::{
    Action, DecidedBy, Decision, PermissionMode, PreparedCall, ToolCall, ToolDefinition, ToolError,
    ToolErrorKind, Toolbox,
};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Semaphore;
/// What decides about calls.
#[derive(Clone, Debug)]
pub struct Policy {
    pub mode: PermissionMode,
    pub rules: Rules,
}

/// What a sandbox is made of.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// The folder that bundled tools work in; without one they get no files.
    pub workspace: Option<PathBuf>,
    /// Where compiled components are kept; without one each start compiles anew.
    pub cache: Option<PathBuf>,
    pub bundled: Vec<BundledPlugin>,
    /// Folders of plugins, the first to have a name wins it.
    pub folders: Vec<PluginFolder>,
    /// What people granted, by plugin name, bundled plugins included. What is not here gets an
    /// empty world; a bundled plugin gets the workspace besides.
    pub grants: BTreeMap<String, PluginGrant>,
    /// What `~` in a grant means.
    pub home: Option<PathBuf>,
    pub policy: Policy,
    /// The limits of plugins whose grants set no others.
    pub limits: Limits,
    pub engine: EngineSettings,
    /// What requests and secrets go through.
    pub outside: Outside,
}

/// Plugins, and a fresh world for each of their calls. A clone is the same sandbox.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

/// What every call shares.
pub(crate) struct Inner {
    pub(crate) loader: Loader,
    pub(crate) workspace: Option<Workspace>,
    pub(crate) policy: Policy,
    pub(crate) outside: Outside,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) watchdog: Watchdog,
    /// Every tool, offered or not, by the model's name for it.
    tools: HashMap<Arc<str>, (Arc<Plugin>, Arc<ToolDefinition>)>,
    offered: Arc<[ToolDefinition]>,
    skipped: Vec<Skipped>,
    notices: Vec<String>,
    /// What a person allowed for this session.
    session_allowed: Mutex<HashSet<SessionKey>>,
}

/// Digest, tool and, for a tool whose host is known before it runs, the host.
type SessionKey = (Arc<str>, Arc<str>, Option<String>);

fn session_key(tool: &ToolDefinition, host: Option<String>) -> SessionKey {
    (Arc::clone(&tool.source.digest), Arc::clone(&tool.tool), host)
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sandbox").field(&self.0.tools.keys()).finish()
    }
}

impl Sandbox {
    /// Starts the engine and takes the plugins. Files that are no plugins are in `skipped`.
    ///
    /// Must run inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The engine does not start, or the workspace cannot be opened.
    pub async fn open(config: SandboxConfig) -> Result<Self, SandboxError> {
        let SandboxConfig {
            workspace,
            cache,
            bundled,
            folders,
            grants,
            home,
            policy,
            limits,
            engine,
            outside,
        } = config;
        let grants = Grants { by_name: grants, workspace: workspace.clone(), home, limits };
        let mut notices = Vec::new();
        let cache = cache.filter(|cache| {
            let inside = workspace.as_ref().is_some_and(|workspace| is_inside(cache, workspace));
            if inside {
                notices.push(format!(
                    "nothing compiled is kept: the cache `{}` lies in the workspace, where tools \
                     could write it; set `XDG_CACHE_HOME` to a folder elsewhere",
                    cache.display()
                ));
            }
            !inside
        });
        let workspace = workspace
            .map(|path| {
                Workspace::open(&path).map_err(|source| SandboxError::Workspace {
                    path: path.display().to_string(),
                    source,
                })
            })
            .transpose()?;
        let calls_in_flight = engine.calls_in_flight;
        let engine = engine::engine(engine, &limits)?;
        let linker = Arc::new(engine::linker(&engine)?);
        let cache = cache.and_then(|path| {
            Cache::open(&path, engine::compatibility_key(&engine))
                .map_err(|error| notices.push(chain(&error)))
                .ok()
                .map(Arc::new)
        });

        let loader = Loader { engine, linker, cache, limits };
        let mut catalog = Catalog::default();
        for plugin in &bundled {
            if let Err(error) = catalog.add_bundled(&loader, plugin, &grants).await {
                notices.push(format!("the bundled plugin `{}` {}", plugin.name, chain(&error)));
            }
        }
        for folder in &folders {
            if let Err(error) = catalog.add_folder(&loader, folder, &grants).await {
                let folder = folder.path.display();
                notices.push(format!("the plugins folder `{folder}` cannot be read: {error}"));
            }
        }

        let Catalog { plugins, skipped, .. } = catalog;
        let mut tools = HashMap::new();
        for plugin in &plugins {
            for tool in &plugin.tools {
                tools.insert(Arc::clone(&tool.name), (Arc::clone(plugin), Arc::clone(tool)));
            }
        }
        let mut offered: Vec<ToolDefinition> = tools
            .values()
            .filter(|(plugin, tool)| {
                plugin.standing.is_offered()
                    && is_offered(policy.mode, &policy.rules, &subject(plugin, tool))
            })
            .map(|(_, tool)| ToolDefinition::clone(tool))
            .collect();
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        let in_flight = usize::try_from(calls_in_flight).unwrap_or(1).max(1);
        Ok(Self(Arc::new(Inner {
            loader,
            workspace,
            policy,
            outside,
            tools,
            offered: offered.into(),
            skipped,
            notices,
            session_allowed: Mutex::default(),
            in_flight: Arc::new(Semaphore::new(in_flight)),
            watchdog: Watchdog::default(),
        })))
    }

    /// The files that were found and not taken.
    pub fn skipped(&self) -> &[Skipped] {
        &self.0.skipped
    }

    /// What a person should know about how the sandbox started.
    pub fn notices(&self) -> &[String] {
        &self.0.notices
    }

    /// The tools that the mode or a rule denies, so that they are not offered, by the model's
    /// names for them.
    pub fn withheld(&self) -> Vec<Arc<ToolDefinition>> {
        let offered: HashSet<_> = self.0.offered.iter().map(|tool| &tool.name).collect();
        let mut withheld: Vec<_> = self
            .0
            .tools
            .values()
            .filter(|(_, tool)| !offered.contains(&tool.name))
            .map(|(_, tool)| Arc::clone(tool))
            .collect();
        withheld.sort_by(|a, b| a.name.cmp(&b.name));
        withheld
    }
}

/// Whether one folder lies in another, wherever links lead. One that is not there yet lies where
/// its nearest ancestor does.
fn is_inside(folder: &Path, other: &Path) -> bool {
    let real = folder.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    match (real, other.canonicalize()) {
        (Some(folder), Ok(other)) => folder.starts_with(other),
        _ => false,
    }
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

fn subject<'a>(plugin: &'a Plugin, tool: &'a ToolDefinition) -> Subject<'a> {
    Subject {
        plugin: &tool.source.plugin,
        tool: &tool.tool,
        model_name: &tool.name,
        hints: tool.hints,
        arguments: None,
        is_known: plugin.standing.is_known(),
        granted: &plugin.granted,
        request: None,
    }
}

impl Toolbox for Sandbox {
    fn tools(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.0.offered)
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError> {
        let Some((plugin, definition)) = self.0.tools.get(call.tool.as_str()) else {
            return Err(self.0.unknown(&call.tool));
        };
        let invalid = |reason: String| ToolError::new(ToolErrorKind::InvalidArguments, reason);
        let given = call.arguments.object().map_err(invalid)?;
        let arguments = serde_json::to_string(given).map_err(|error| invalid(error.to_string()))?;
        if !plugin.standing.is_offered() {
            return Err(prepared::not_offered(definition, &plugin.standing));
        }
        let request = plugin.names_its_host().then(|| request_in_arguments(given)).flatten();
        let subject = Subject {
            arguments: Some(given),
            request: request.as_ref(),
            ..subject(plugin, definition)
        };
        let mut verdict = decide(self.0.policy.mode, &self.0.policy.rules, &subject);
        if verdict.decision.action == Action::Ask
            && verdict.asks_for.protected.is_empty()
            && self.0.is_session_allowed(definition, request.as_ref())
        {
            verdict.decision = Decision { action: Action::Allow, by: DecidedBy::Person };
        }
        if verdict.decision.action == Action::Deny {
            return Err(prepared::refusal(definition, &verdict.decision));
        }
        Ok(Box::new(Prepared {
            inner: Arc::clone(&self.0),
            plugin: Arc::clone(plugin),
            definition: Arc::clone(definition),
            decision: verdict.decision,
            request,
            asks_for: verdict.asks_for,
            arguments,
        }))
    }
}

impl Inner {
    /// A person allowed this tool of this digest, or one host of it, for the rest of the session.
    pub(crate) fn allow_for_session(&self, tool: &ToolDefinition, host: Option<String>) {
        self.session_allowed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(session_key(tool, host));
    }

    fn is_session_allowed(&self, tool: &ToolDefinition, request: Option<&NetRequest>) -> bool {
        let key = session_key(tool, request.map(NetRequest::origin));
        self.session_allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    /// Names what the model may have meant: a close name, or all of them where they are few.
    fn unknown(&self, name: &str) -> ToolError {
        const CLOSE: usize = 3;
        const FEW: usize = 30;
        let mut close: Vec<(usize, &str)> = self
            .offered
            .iter()
            .map(|tool| (strsim::levenshtein(&tool.name, name), &*tool.name))
            .filter(|(distance, _)| *distance <= CLOSE)
            .collect();
        close.sort_unstable();
        let mut message = format!("there is no tool `{}`", output::shorten(name, 100));
        if !close.is_empty() {
            let names: Vec<_> = close.iter().map(|(_, name)| format!("`{name}`")).collect();
            message.push_str(&format!("; did you mean {}?", names.join(" or ")));
        } else {
            message.push('.');
        }
        if self.offered.len() <= FEW {
            let names: Vec<_> =
                self.offered.iter().map(|tool| format!("`{}`", tool.name)).collect();
            message.push_str(&format!(" The tools are {}", names.join(", ")));
        }
        ToolError::new(ToolErrorKind::UnknownTool, message)
    }
}
