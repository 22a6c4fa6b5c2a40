//! The toolbox: what the loop sees of the sandbox.

use crate::{
    cache::Cache,
    catalog::{BundledPlugin, Catalog, Grants, PluginFolder, PluginInfo, Skipped},
    code,
    compiler::{CompileObserver, Compiler},
    engine::{self, EngineSettings, SandboxError},
    filesystem::{Scratch, check_grantable},
    http::Outside,
    limits, output,
    plugin::{COMPILING, Loader, Plugin},
    prepared::{self, Prepared},
    snapshot::Snapshot,
    watch::{self as folders, Watch, Watching},
    watchdog::Watchdog,
};
use async_trait::async_trait;
use belljar_capability::{
    Limits, NetRequest, PluginGrant, Rules, Subject, decide, request_in_arguments,
};
use belljar_types::{
    Action, DecidedBy, Decision, PermissionMode, PreparedCall, ToolCall, ToolDefinition, ToolError,
    ToolErrorKind, Toolbox,
};
use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};
use tokio::sync::{Semaphore, watch};

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
    /// Where calls get their temporary folders; without one they get none.
    pub scratch: Option<PathBuf>,
    /// Folders that belong to the program itself: no guest sees them, whatever it is granted.
    pub own_folders: Vec<PathBuf>,
    pub bundled: Vec<BundledPlugin>,
    /// Folders of plugins, the first to have a name wins it.
    pub folders: Vec<PluginFolder>,
    /// Whether what changes in the folders is taken while the sandbox is open.
    pub watch: Watching,
    /// What people granted, by plugin name, bundled plugins included. What is not here gets an
    /// empty world; a bundled plugin gets the workspace besides.
    pub grants: BTreeMap<String, PluginGrant>,
    /// What a person granted for this run alone, to whatever has the name now: it is offered, and
    /// gets this besides what it has been granted for good.
    pub grants_this_run: BTreeMap<String, PluginGrant>,
    /// What `~` in a grant means.
    pub home: Option<PathBuf>,
    pub policy: Policy,
    /// The limits of plugins whose grants set no others.
    pub limits: Limits,
    pub engine: EngineSettings,
    /// What requests and secrets go through.
    pub outside: Outside,
    pub compiler: Compiler,
    /// Told when compiling takes longer than a moment.
    pub observer: CompileObserver,
}

impl SandboxConfig {
    /// A sandbox of nothing: no workspace, no plugins, no grants, nothing kept on disk. What it is
    /// to have is added.
    pub fn new(policy: Policy) -> Self {
        Self {
            workspace: None,
            cache: None,
            scratch: None,
            own_folders: Vec::new(),
            bundled: Vec::new(),
            folders: Vec::new(),
            watch: Watching::No,
            grants: BTreeMap::new(),
            grants_this_run: BTreeMap::new(),
            home: None,
            policy,
            limits: Limits::default(),
            engine: EngineSettings::default(),
            compiler: Compiler::InProcess,
            observer: CompileObserver::default(),
            outside: Outside::default(),
        }
    }
}

/// Plugins, and a fresh world for each of their calls. A clone is the same sandbox.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

/// What every call shares.
pub(crate) struct Inner {
    pub(crate) loader: Loader,
    policy: RwLock<Arc<Policy>>,
    pub(crate) outside: Outside,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) watchdog: Watchdog,
    /// What is offered now.
    published: watch::Sender<Arc<Snapshot>>,
    catalog: tokio::sync::Mutex<Catalog>,
    /// Absent where the folders are not watched.
    watch: Option<Watch>,
    /// What changed since the last round, for people.
    news: Mutex<Vec<String>>,
    notices: Vec<String>,
    /// What a person allowed for this session.
    session_allowed: Mutex<HashSet<SessionKey>>,
}

/// Sentences that wait for the next round.
const NEWS: usize = 100;

/// Digest, tool and, for a tool whose host is known before it runs, the host.
type SessionKey = (Arc<str>, Arc<str>, Option<String>);

fn session_key(tool: &ToolDefinition, host: Option<String>) -> SessionKey {
    (Arc::clone(&tool.source.digest), Arc::clone(&tool.tool), host)
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sandbox").field(&self.0.snapshot().tools.keys()).finish()
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
            scratch,
            own_folders: mut own,
            bundled,
            folders,
            watch: watching,
            grants,
            grants_this_run,
            home,
            policy,
            limits,
            engine: settings,
            compiler,
            observer,
            outside,
        } = config;
        let grants = Grants {
            by_name: grants,
            this_run: grants_this_run,
            workspace: workspace.clone(),
            home,
            limits,
        };
        let mut notices = Vec::new();
        own.extend(cache.iter().chain(&scratch).cloned());
        if let Some(path) = &workspace {
            check_grantable(path, &own).map_err(|source| SandboxError::Workspace {
                path: path.display().to_string(),
                source,
            })?;
        }
        let scratch = scratch.and_then(|path| {
            let failed = |error: std::io::Error| {
                let path = path.display();
                format!("calls get no temporary folder: `{path}` cannot be used: {error}")
            };
            Scratch::open(&path).map_err(|error| notices.push(failed(error))).ok().map(Arc::new)
        });
        let engine = engine::engine(settings, &limits::largest(grants.all_limits()))?;
        let linker = Arc::new(engine::linker(&engine)?);
        let engine_key = engine::compatibility_key(&engine);
        let cache = cache.and_then(|path| {
            Cache::open(&path, engine_key.clone())
                .map_err(|error| notices.push(chain(&error)))
                .ok()
                .map(Arc::new)
        });
        let loader = Loader {
            engine,
            engine_key: engine_key.into(),
            concurrency: settings.concurrency,
            linker,
            cache,
            compiler,
            compiling: Arc::new(Semaphore::new(COMPILING)),
            observer,
            limits,
            own: own.into(),
            scratch,
        };

        let paths = folders.iter().map(|folder| folder.path.clone()).collect();
        let watch = Watch::start(paths, watching).map(|(watch, notice)| {
            notices.extend(notice);
            watch
        });
        let mut catalog = Catalog::new(loader.clone(), grants, bundled, folders);
        let snapshot = Snapshot::new(0, catalog.look().await, &policy);
        for info in snapshot.infos.iter().filter(|info| info.path.is_none()) {
            if let Some(reason) = &info.skipped {
                notices.push(format!("the bundled plugin `{}` {}", info.name, chain(&**reason)));
            }
        }
        notices.extend(snapshot.notices());

        let in_flight = usize::try_from(settings.calls_in_flight).unwrap_or(1).max(1);
        let inner = Arc::new(Inner {
            loader,
            policy: RwLock::new(Arc::new(policy)),
            outside,
            published: watch::Sender::new(Arc::new(snapshot)),
            catalog: tokio::sync::Mutex::new(catalog),
            watch,
            news: Mutex::default(),
            notices,
            session_allowed: Mutex::default(),
            in_flight: Arc::new(Semaphore::new(in_flight)),
            watchdog: Watchdog::default(),
        });
        if let Some(watch) = &inner.watch {
            let mut changes = watch.changes();
            if watch.count() > 0 {
                // Something changed while it was opened.
                changes.mark_changed();
            }
            tokio::spawn(folders::keep(Arc::downgrade(&inner), changes));
        }
        // Without a cache it would have to be compiled anew.
        if inner.loader.cache.is_some() {
            tokio::spawn(code::keep_small(Arc::downgrade(&inner), Inner::give_back));
        }
        Ok(Self(inner))
    }

    /// Every plugin and every file in the folders, and what became of it.
    pub fn plugins(&self) -> Arc<[PluginInfo]> {
        Arc::clone(&self.0.snapshot().infos)
    }

    /// The files that were found and not taken.
    pub fn skipped(&self) -> Vec<Skipped> {
        let infos = self.plugins();
        let skipped = infos.iter().filter_map(|info| {
            let reason = Arc::clone(info.skipped.as_ref()?);
            Some(Skipped { path: info.path.clone()?, reason })
        });
        skipped.collect()
    }

    /// What a person should know about how the sandbox started.
    pub fn notices(&self) -> &[String] {
        &self.0.notices
    }

    /// The tools that the mode or a rule denies, so that they are not offered, by the model's
    /// names for them. Those of plugins that nobody allowed are not among them.
    pub fn withheld(&self) -> Vec<Arc<ToolDefinition>> {
        self.0.snapshot().withheld()
    }

    /// Which state of the folders is offered: one more each time that it changed.
    pub fn generation(&self) -> u64 {
        self.0.snapshot().generation
    }

    /// Waits until a later state is offered than `generation`.
    pub async fn changed_since(&self, generation: u64) {
        let mut published = self.0.published.subscribe();
        // It ends with the sandbox, which is here.
        let _ = published.wait_for(|snapshot| snapshot.generation > generation).await;
    }

    /// Gives back the compiled code of plugins that nobody called for so long, and says how many
    /// they were. The next call gets it from the cache, or compiles where there is none. The sandbox
    /// does this by itself for what rested five minutes.
    pub fn give_back(&self, rested: Duration) -> usize {
        self.0.give_back(rested)
    }

    /// Decides in another mode from the next call on. A call that was decided about keeps the world
    /// that it was given. What is offered follows with [`refresh`](Self::refresh).
    pub fn set_mode(&self, mode: PermissionMode) {
        let mut policy = self.0.policy.write().unwrap_or_else(PoisonError::into_inner);
        if policy.mode != mode {
            *policy = Arc::new(Policy { mode, rules: policy.rules.clone() });
        }
    }

    /// Looks through the folders now, whether they are watched or not.
    pub async fn refresh(&self) {
        self.0.look().await;
    }
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

pub(crate) fn subject<'a>(plugin: &'a Plugin, tool: &'a ToolDefinition) -> Subject<'a> {
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

#[async_trait]
impl Toolbox for Sandbox {
    fn tools(&self) -> Arc<[ToolDefinition]> {
        Arc::clone(&self.0.snapshot().offered)
    }

    async fn news(&self) -> Vec<String> {
        if let Some(watch) = &self.0.watch {
            watch.catch_up().await;
        }
        std::mem::take(&mut *self.0.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError> {
        let snapshot = self.0.snapshot();
        let Some((plugin, definition)) = snapshot.tools.get(call.tool.as_str()) else {
            return Err(unknown(&snapshot.offered, &call.tool));
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
        let policy = self.0.policy();
        let mut verdict = decide(policy.mode, &policy.rules, &subject);
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
            mode: policy.mode,
            decision: verdict.decision,
            request,
            asks_for: verdict.asks_for,
            arguments,
        }))
    }
}

impl Inner {
    pub(crate) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn give_back(&self, rested: Duration) -> usize {
        self.snapshot().tools.values().filter(|(plugin, _)| plugin.give_back(rested)).count()
    }

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

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.borrow())
    }

    /// Looks through the folders and publishes what differs.
    pub(crate) async fn look(&self) {
        let mut catalog = self.catalog.lock().await;
        let changes = self.watch.as_ref().map_or(0, Watch::count);
        let before = self.snapshot();
        let found = catalog.look().await;
        let snapshot = Snapshot::new(before.generation + 1, found, &self.policy());
        let news = snapshot.news_since(&before);
        if !news.is_empty() || !snapshot.offers_the_same(&before) {
            let mut waiting = self.news.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.extend(news);
            let surplus = waiting.len().saturating_sub(NEWS);
            waiting.drain(..surplus);
            self.published.send_replace(Arc::new(snapshot));
        }
        if let Some(watch) = &self.watch {
            watch.has_looked(changes);
        }
    }
}

/// Names what the model may have meant: a close name, or all of them where they are few.
fn unknown(offered: &[ToolDefinition], name: &str) -> ToolError {
    const CLOSE: usize = 3;
    const FEW: usize = 30;
    let mut close: Vec<(usize, &str)> = offered
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
    if offered.len() <= FEW {
        let names: Vec<_> = offered.iter().map(|tool| format!("`{}`", tool.name)).collect();
        message.push_str(&format!(" The tools are {}", names.join(", ")));
    }
    ToolError::new(ToolErrorKind::UnknownTool, message)
}
