//! What the commands are wired from: places, configuration, workspace, policy, sandbox. Only what
//! a command needs is made.

use crate::{
    arguments::{COMPILE, PluginArguments, PolicyArguments},
    exit::Usage,
    model,
    screen::{SharedScreen, Tone},
};
use anyhow::Context as _;
use belljar_capability::{GrantSpec, Limits, PluginGrant, Rules, Surroundings};
use belljar_sandbox::{
    BundledPlugin, CompileObserver, Compiler, EngineSettings, Outside, PluginFolder, Policy,
    Sandbox, SandboxConfig, Watching,
};
use belljar_types::PermissionMode;
use belljar_workspace::{Config, Flags, Loaded, Places, Sources, Workspace, narrower, private_dir};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// The folder to work in: the one that was named, or the current one.
pub(crate) fn workspace(named: Option<&Path>) -> anyhow::Result<Workspace> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_dir().context(
            "the current folder cannot be used: change to another, or name one with `--workspace`",
        )?,
    };
    Ok(Workspace::open(&path)?)
}

/// The settings of all sources.
pub(crate) fn configuration(
    places: &Places,
    file: Option<&Path>,
    workspace: &Workspace,
    flags: Flags,
) -> anyhow::Result<Loaded> {
    let environment = std::env::vars_os().collect();
    let built_in = model::built_in_names();
    let built_in: Vec<_> = built_in.iter().map(String::as_str).collect();
    Ok(belljar_workspace::load(Sources {
        places,
        file,
        workspace: Some(workspace),
        built_in: &built_in,
        environment,
        flags,
    })?)
}

/// The mode that is set, or the default of a command, narrowed as far as the workspace says.
pub(crate) fn permission_mode(config: &Config, default: PermissionMode) -> PermissionMode {
    match (&config.permission_mode, &config.mode_at_most) {
        (Some(mode), _) => mode.value,
        (None, Some(most)) => narrower(most.value, default),
        (None, None) => default,
    }
}

/// What people granted: in the configuration, and by options of this run.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    pub(crate) configured: BTreeMap<String, PluginGrant>,
    pub(crate) this_run: BTreeMap<String, PluginGrant>,
}

impl Grants {
    /// # Errors
    ///
    /// An option grants what means nothing here.
    pub(crate) fn new(
        config: &Config,
        specs: &[GrantSpec],
        workspace: &Workspace,
    ) -> anyhow::Result<Self> {
        let mut this_run: BTreeMap<String, PluginGrant> = BTreeMap::new();
        for spec in specs {
            let grant = spec.part.clone().into_grant();
            this_run.entry(spec.plugin.clone()).or_default().extend(grant);
        }
        for (plugin, grant) in &this_run {
            let home = std::env::home_dir();
            grant
                .resolve(None, surroundings(workspace, home.as_deref()), Limits::default())
                .map_err(|error| Usage(format!("`--grant` for the plugin `{plugin}`: {error}")))?;
        }
        Ok(Self { configured: config.plugins.clone(), this_run })
    }
}

/// What grants are resolved against.
pub(crate) fn surroundings<'a>(
    workspace: &'a Workspace,
    home: Option<&'a Path>,
) -> Surroundings<'a> {
    Surroundings {
        workspace: Some(workspace.folder()),
        home,
        variable: |name| std::env::var(name).ok(),
    }
}

/// The policy's part of the flags.
pub(crate) fn flags(policy: &PolicyArguments) -> Flags {
    Flags {
        permission_mode: policy.permission_mode,
        rules: Rules {
            allow_this_run: policy.allow.clone(),
            deny: policy.deny.clone(),
            ..Rules::default()
        },
        ..Flags::default()
    }
}

/// The folders of plugins: those that were named, which must be there, the user's own, and the one
/// of a workspace that the user trusted.
pub(crate) fn plugin_folders(
    places: &Places,
    plugins: &PluginArguments,
    workspace_plugins: Option<&Path>,
) -> anyhow::Result<Vec<PluginFolder>> {
    let mut folders = Vec::new();
    for folder in &plugins.folders {
        let shown = folder.display();
        let metadata = std::fs::metadata(folder)
            .with_context(|| format!("the plugins folder `{shown}` cannot be opened"))?;
        anyhow::ensure!(
            metadata.is_dir(),
            "`{shown}` is not a folder: name one that holds plugins with `--plugins`"
        );
        folders.push(PluginFolder { path: real(folder), named: true });
    }
    let rest = [Some(places.plugins()), workspace_plugins.map(Path::to_owned)];
    let rest = rest.into_iter().flatten();
    folders.extend(rest.map(|path| PluginFolder { path: real(&path), named: false }));
    Ok(folders)
}

/// The one path that a folder has, whatever it was called: grants to somebody who works on a
/// plugin are bound to it.
fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// An open sandbox, and what a person should know about how it started.
pub(crate) struct Opened {
    pub(crate) sandbox: Sandbox,
    pub(crate) notices: Vec<String>,
}

/// What a sandbox is opened with.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) places: &'a Places,
    pub(crate) workspace: &'a Workspace,
    pub(crate) folders: Vec<PluginFolder>,
    pub(crate) mode: PermissionMode,
    pub(crate) rules: Rules,
    pub(crate) grants: Grants,
    pub(crate) watch: Watching,
    /// Where people are told that compiling takes its time.
    pub(crate) screen: &'a SharedScreen,
}

/// Opens the sandbox.
pub(crate) async fn sandbox(opening: Opening<'_>) -> anyhow::Result<Opened> {
    let Opening { places, workspace, folders, mode, rules, grants, watch, screen } = opening;
    let named_by_grants: BTreeSet<String> = grants.this_run.keys().cloned().collect();
    let mut notices = Vec::new();
    let cache = match private_dir(&places.cache) {
        Ok(_) => Some(places.cache.join("components")),
        Err(error) => {
            notices.push(format!("nothing compiled is kept: {error}"));
            None
        }
    };
    let bundled = belljar_plugins::bundled().iter().map(|plugin| BundledPlugin {
        name: plugin.name,
        digest: plugin.digest,
        bytes: plugin.bytes,
    });
    let told = screen.clone();
    let sandbox = Sandbox::open(SandboxConfig {
        workspace: Some(workspace.folder().to_owned()),
        scratch: cache.as_ref().map(|_| places.cache.join("calls")),
        cache,
        own_folders: places.folders().to_vec(),
        bundled: bundled.collect(),
        folders,
        watch,
        grants: grants.configured,
        grants_this_run: grants.this_run,
        home: std::env::home_dir(),
        policy: Policy { mode, rules },
        limits: Limits::default(),
        engine: EngineSettings::for_this_process(&Limits::default()),
        outside: Outside::default(),
        compiler: Compiler::this_program(&[COMPILE]),
        observer: CompileObserver::new(move |text| told.lock().toned(Tone::Faint, text)),
    })
    .await?;
    notices.extend(sandbox.notices().iter().cloned());
    notices.extend(sandbox.skipped().iter().map(|skipped| {
        let reason = error_chain(&*skipped.reason);
        format!("no plugin: `{}` {reason}", skipped.path.display())
    }));
    let plugins = sandbox.plugins();
    let there: BTreeSet<_> = plugins
        .iter()
        .filter(|plugin| plugin.declared.is_some())
        .map(|plugin| plugin.name.clone())
        .collect();
    notices.extend(named_by_grants.difference(&there).map(|name| {
        format!("`--grant` gives nothing to `{name}`: no plugin of that name was loaded")
    }));
    Ok(Opened { sandbox, notices })
}

/// The tools that the mode keeps from the model, and the line that offers them.
pub(crate) fn withheld_notice(sandbox: &Sandbox, mode: PermissionMode) -> Option<String> {
    let withheld = sandbox.withheld();
    if withheld.is_empty() {
        return None;
    }
    let names: Vec<_> = withheld.iter().map(|tool| format!("`{}`", tool.name)).collect();
    let mut plugins: Vec<_> = withheld.iter().map(|tool| &tool.source.plugin).collect();
    plugins.dedup();
    plugins.sort();
    plugins.dedup();
    let rules: Vec<_> = plugins.iter().map(|plugin| format!("--allow '{plugin}/*'")).collect();
    let advice = match mode {
        PermissionMode::DontAsk => {
            format!("nobody is asked here, so a rule has to allow them: `{}`", rules.join(" "))
        }
        PermissionMode::Plan => "the permission mode `plan` lets nothing change".to_owned(),
        _ => "a rule denies them".to_owned(),
    };
    Some(format!("not offered to the model: {}; {advice}", names.join(", ")))
}

/// Shows notices where no event carries them.
pub(crate) fn show_notices(screen: &SharedScreen, notices: &[String]) {
    let mut screen = screen.lock();
    for notice in notices {
        screen.note(&format!("note: {notice}"));
    }
}

/// An error and its causes in one line.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(&format!(": {cause}"));
        next = cause.source();
    }
    text
}
