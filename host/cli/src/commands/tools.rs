//! `belljar tools`: what the model would be offered, and why files in the plugin folders are not.

use crate::{
    arguments::ToolsArguments,
    exit,
    screen::SharedScreen,
    setup::{self, Grants, Opening},
    visible,
};
use belljar_sandbox::Watching;
use belljar_types::{Hints, PermissionMode, ToolDefinition, Toolbox as _};
use belljar_workspace::Places;

/// Characters of a description's first line.
const DESCRIPTION: usize = 160;

pub(crate) async fn tools(arguments: ToolsArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let ToolsArguments { json, world, policy } = arguments;
    let places = Places::from_env()?;
    let workspace = setup::workspace(world.workspace.as_deref())?;
    let file = world.plugins.config.as_deref();
    let loaded = setup::configuration(&places, file, &workspace, setup::flags(&policy))?;
    let mode = setup::permission_mode(&loaded.config, PermissionMode::Default);
    let own_plugins = loaded.workspace_plugins.as_deref();
    let opened = setup::sandbox(Opening {
        places: &places,
        workspace: &workspace,
        folders: setup::plugin_folders(&places, &world.plugins, own_plugins)?,
        mode,
        grants: Grants::new(&loaded.config, &policy.grants, &workspace)?,
        rules: loaded.config.rules,
        watch: Watching::No,
        screen: &screen,
    })
    .await?;
    let offered = opened.sandbox.tools();
    let listed =
        if json { screen.lock().json(&offered) } else { screen.lock().product(&list(&offered)) };
    setup::show_notices(&screen, &loaded.notices);
    setup::show_notices(&screen, &opened.notices);
    let withheld = setup::withheld_notice(&opened.sandbox, mode);
    setup::show_notices(&screen, withheld.as_slice());
    listed.map_or_else(exit::of_write_error, |()| Ok(exit::COMPLETED))
}

fn list(tools: &[ToolDefinition]) -> String {
    let width = tools.iter().map(|tool| tool.name.chars().count()).max().unwrap_or_default();
    tools
        .iter()
        .map(|tool| {
            let first = tool.description.trim_start().lines().next().unwrap_or_default();
            format!(
                "{name:width$}  {hints}  {plugin}: {first}\n",
                name = visible::line(&tool.name),
                hints = hints(tool.hints),
                plugin = visible::line(&tool.source.plugin),
                first = visible::short(first, DESCRIPTION),
            )
        })
        .collect()
}

/// What the tool says of itself, as wide for each.
pub(super) fn hints(hints: Hints) -> &'static str {
    match (hints.read_only, hints.destructive, hints.open_world) {
        (true, _, false) => "reads     ",
        (true, _, true) => "reads, net",
        (false, _, true) => "net       ",
        (false, true, false) => "overwrites",
        (false, false, false) => "writes    ",
    }
}
