//! What the commands are wired from: places, configuration, workspace, policy, sandbox. Only what
//! a command needs is made.

use crate::{
    arguments::{COMPILE, PluginArguments, PolicyArguments},
    screen::{SharedScreen, Tone},
};
use anyhow::Context as _;
use belljar_capability::{Limits, PluginGrant, Rules};
use belljar_sandbox::{
    BundledPlugin, CompileObserver, Compiler, EngineSettings, Outside, PluginFolder, Policy,
    Sandbox, SandboxConfig, Watching,
};
use belljar_types::PermissionMode;
use belljar_workspace::{Flags, Loaded, Places, Sources, Workspace, private_dir};
use std::{collections::BTreeMap, path::Path};

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
    plugins: &PluginArguments,
    workspace: Option<&Workspace>,
    flags: Flags,
) -> anyhow::Result<Loaded> {
    let file = plugins.config.as_deref();
    let environment = std::env::vars_os().collect();
    Ok(belljar_workspace::load(Sources { places, file, workspace, environment, flags })?)
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

/// The folders of plugins: those that were named, which must be there, and the user's own.
pub(crate) fn plugin_folders(
    places: &Places,
    plugins: &PluginArguments,
) -> anyhow::Result<Vec<PluginFolder>> {
    for folder in &plugins.folders {
        let shown = folder.display();
        let metadata = std::fs::metadata(folder)
            .with_context(|| format!("the plugins folder `{shown}` cannot be opened"))?;
        anyhow::ensure!(
            metadata.is_dir(),
            "`{shown}` is not a folder: name one that holds plugins with `--plugins`"
        );
    }
    let named = plugins.folders.iter().map(|path| PluginFolder { path: path.clone(), named: true });
    let own = PluginFolder { path: places.plugins(), named: false };
    Ok(named.chain([own]).collect())
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
    pub(crate) workspace: Option<&'a Workspace>,
    pub(crate) folders: Vec<PluginFolder>,
    pub(crate) mode: PermissionMode,
    pub(crate) rules: Rules,
    pub(crate) watch: Watching,
    /// Where people are told that compiling takes its time.
    pub(crate) screen: &'a SharedScreen,
}

/// Opens the sandbox.
pub(crate) async fn sandbox(opening: Opening<'_>) -> anyhow::Result<Opened> {
    let Opening { places, workspace, folders, mode, rules, watch, screen } = opening;
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
        workspace: workspace.map(|workspace| workspace.folder().to_owned()),
        scratch: cache.as_ref().map(|_| places.cache.join("calls")),
        cache,
        own_folders: places.folders().to_vec(),
        bundled: bundled.collect(),
        folders,
        watch,
        grants: grants(),
        home: std::env::home_dir(),
        policy: Policy { mode, rules },
        limits: Limits::default(),
        engine: EngineSettings::default(),
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
    Ok(Opened { sandbox, notices })
}

/// What the user's configuration grants, by plugin.
pub(crate) fn grants() -> BTreeMap<String, PluginGrant> {
    BTreeMap::new()
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
