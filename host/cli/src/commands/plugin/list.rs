//! `belljar plugin list`: every plugin and file found, and what became of it.

use super::words;
use crate::{
    arguments::ListArguments,
    exit,
    screen::SharedScreen,
    setup::{self, Grants, Opening},
    visible,
};
use belljar_capability::Standing;
use belljar_sandbox::{LoadError, PluginInfo, Watching};
use belljar_types::PermissionMode;
use belljar_workspace::{Flags, Places};
use serde::Serialize;

/// One plugin or file, for scripts.
#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    path: Option<String>,
    digest: Option<&'a str>,
    size: Option<u64>,
    /// `loaded`, `refused`, `shadowed`, `not_allowed` or `changed`.
    state: &'static str,
    standing: Option<&'static str>,
    offered: bool,
    tools: Vec<&'a str>,
    wants: Option<&'a belljar_capability::Wants>,
    imports: &'a [String],
    /// Why it was not taken.
    reason: Option<String>,
    /// What of its grant cannot be given, and why.
    grant_problem: Option<String>,
    /// What the file was before still serves.
    serves_earlier: bool,
}

pub(super) async fn list(arguments: ListArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let ListArguments { json, world } = arguments;
    let places = Places::from_env()?;
    let workspace = setup::workspace(world.workspace.as_deref())?;
    let file = world.plugins.config.as_deref();
    let loaded = setup::configuration(&places, file, &workspace, Flags::default())?;
    let own_plugins = loaded.workspace_plugins.as_deref();
    let folders = setup::plugin_folders(&places, &world.plugins, own_plugins)?;
    let opened = setup::sandbox(Opening {
        places: &places,
        workspace: &workspace,
        folders,
        mode: PermissionMode::Default,
        grants: Grants::new(&loaded.config, &[], &workspace)?,
        rules: loaded.config.rules,
        watch: Watching::No,
        screen: &screen,
    })
    .await?;
    let plugins = opened.sandbox.plugins();
    let shown = if json {
        let listed: Vec<_> = plugins.iter().map(listed).collect();
        screen.lock().json(&listed)
    } else {
        let text: String = plugins.iter().map(text).collect();
        screen.lock().product(&text)
    };
    setup::show_notices(&screen, &loaded.notices);
    shown.map_or_else(exit::of_write_error, |()| Ok(exit::COMPLETED))
}

fn state(info: &PluginInfo) -> &'static str {
    match (info.skipped.as_deref(), &info.standing) {
        (Some(LoadError::Shadowed { .. }), _) => "shadowed",
        (Some(_), _) => "refused",
        (None, Some(Standing::Unseen)) => "not_allowed",
        (None, Some(Standing::Changed { .. })) => "changed",
        (None, _) => "loaded",
    }
}

fn listed(info: &PluginInfo) -> Listed<'_> {
    let declared = info.declared.as_ref();
    Listed {
        name: &info.name,
        path: info.path.as_ref().map(|path| path.display().to_string()),
        digest: info.digest.as_deref(),
        size: info.size,
        state: state(info),
        standing: info.standing.as_ref().map(words::standing_name),
        offered: info.is_offered(),
        tools: info.tools.iter().map(|tool| &*tool.name).collect(),
        wants: declared
            .and_then(|declared| declared.manifest.as_ref())
            .map(|manifest| &manifest.wants),
        imports: declared.map_or(&[], |declared| &declared.imports),
        reason: info.skipped.as_ref().map(|reason| setup::error_chain(&**reason)),
        grant_problem: info.grant_problem.clone(),
        serves_earlier: info.serves_earlier,
    }
}

/// A plugin or file and what became of it, for people.
pub(in crate::commands) fn text(info: &PluginInfo) -> String {
    let name = visible::line(&info.name);
    let became = match (&info.skipped, &info.standing) {
        (Some(reason), _) => {
            let reason = visible::line(&setup::error_chain(&**reason));
            let kind = if state(info) == "shadowed" { "shadowed" } else { "refused" };
            let earlier =
                if info.serves_earlier { "; what it was before still serves" } else { "" };
            format!("{kind}: {reason}{earlier}")
        }
        (None, Some(standing)) => words::standing(standing).to_owned(),
        (None, None) => "loaded".to_owned(),
    };
    let mut text = format!("{name}: {became}\n");
    let mut line = |label: &str, value: &str| {
        text.push_str(&format!("  {label:9}{value}\n"));
    };
    if let Some(path) = &info.path {
        let size = info.size.map(|size| format!(", {}", words::size(size))).unwrap_or_default();
        line("file", &format!("{}{size}", visible::line(&path.display().to_string())));
    }
    if let Some(digest) = &info.digest {
        line("digest", digest);
    }
    if !info.tools.is_empty() {
        let tools: Vec<_> = info.tools.iter().map(|tool| visible::line(&tool.name)).collect();
        line("tools", &tools.join(", "));
    }
    if let Some(problem) = &info.grant_problem {
        line("grant", &format!("not given: {}", visible::line(problem)));
    }
    let waits = info.skipped.is_none() && matches!(state(info), "not_allowed" | "changed");
    if waits {
        line("next", &format!("belljar plugin inspect {name}, belljar plugin grant {name}"));
    }
    text
}
