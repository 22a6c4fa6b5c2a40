//! Looking at a plugin before a person says yes: what it is now, and what is different since the
//! last yes.

use super::words;
use crate::{
    commands::tools::hints,
    screen::SharedScreen,
    setup::{self, Grants, Opening},
    show::receipt::size,
    visible,
};
use anyhow::{Context as _, bail};
use belljar_capability::{Manifest, Rules};
use belljar_sandbox::{PluginFolder, PluginInfo, Watching};
use belljar_types::{PermissionMode, ToolDefinition};
use belljar_workspace::{Differences, LookedAt, Places, Workspace};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Characters of a tool's description.
const DESCRIPTION: usize = 100;

/// A plugin as it lies in its folder.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) path: PathBuf,
    pub(super) record: LookedAt,
    info: PluginInfo,
}

impl Look {
    /// Finds the plugin that would be loaded under a name and asks it, in an empty world, what it
    /// is.
    ///
    /// # Errors
    ///
    /// There is none, or it is no plugin.
    pub(super) async fn at(
        name: &str,
        places: &Places,
        workspace: &Workspace,
        folders: Vec<PluginFolder>,
        screen: &SharedScreen,
    ) -> anyhow::Result<Self> {
        let file_name = format!("{name}.wasm");
        let paths = folders.iter().map(|folder| folder.path.join(&file_name));
        let Some(path) = paths.into_iter().find(|path| path.symlink_metadata().is_ok()) else {
            let folders: Vec<_> =
                folders.iter().map(|folder| format!("`{}`", folder.path.display())).collect();
            bail!(
                "there is no plugin `{name}`: no `{file_name}` lies in {}; put it there, or name \
                 its folder with `--plugins`",
                folders.join(" or ")
            );
        };
        // With no grants: what it was granted may not fit this workspace.
        let opening = Opening {
            places,
            workspace,
            folders,
            mode: PermissionMode::Default,
            rules: Rules::default(),
            grants: Grants::default(),
            watch: Watching::No,
            screen,
        };
        let opened = setup::sandbox(opening).await?;
        let plugins = opened.sandbox.plugins();
        let info = plugins.iter().find(|info| info.path.as_ref() == Some(&path)).cloned();
        let info = info.with_context(|| format!("`{}` was not looked at", path.display()))?;
        if let Some(why) = &info.skipped {
            bail!("`{}` {}", path.display(), setup::error_chain(&**why));
        }
        let Some(digest) = info.digest.clone() else {
            bail!("`{}` was not read", path.display());
        };
        let tools = info.tools.iter().map(|tool| (tool.tool.to_string(), all_of(tool)));
        let record = LookedAt {
            digest,
            size: info.size.unwrap_or_default(),
            tools: tools.collect(),
            wants: manifest_of(&info).map(words::wants).unwrap_or_default(),
        };
        Ok(Self { path, record, info })
    }

    /// What it says it wants; nothing where it says nothing about that.
    pub(super) fn manifest(&self) -> Option<&Manifest> {
        manifest_of(&self.info)
    }

    /// What it is, line by line.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("  file    {}", visible::line(&self.path.display().to_string())),
            format!("  digest  {}", self.record.digest),
            format!("  size    {}", size(self.record.size)),
        ];
        lines.extend(self.info.tools.iter().map(|tool| {
            let first = tool.description.trim_start().lines().next().unwrap_or_default();
            format!(
                "  tool    {} ({}): {}",
                visible::line(&tool.tool),
                hints(tool.hints).trim_end(),
                visible::short(first, DESCRIPTION)
            )
        }));
        lines.extend(self.record.wants.iter().map(|want| format!("  wants   {want}")));
        let reach = self.info.declared.iter().flat_map(|declared| declared.reach());
        lines.extend(reach.map(|word| format!("  imports {}", visible::line(&word))));
        lines
    }

    /// What is different since a person said yes to other bytes.
    pub(super) fn differences(&self, places: &Places, before: &str) -> Vec<String> {
        let mut lines = vec![
            "it has changed since you said yes:".to_owned(),
            format!("  digest  {before} before"),
        ];
        match LookedAt::read(places, before) {
            None => lines.push("  what it was before is not known any more".to_owned()),
            Some(known) => {
                lines.push(format!("  size    {} before", size(known.size)));
                lines.extend(told(&known.differences(&self.record)));
            }
        }
        lines
    }
}

fn manifest_of(info: &PluginInfo) -> Option<&Manifest> {
    info.declared.as_ref()?.manifest.as_ref()
}

fn told(differences: &Differences) -> Vec<String> {
    let Differences { tools_added, tools_removed, tools_changed, wants_added, wants_removed } =
        differences;
    let all = [
        ("tools added", tools_added),
        ("tools removed", tools_removed),
        ("tools changed", tools_changed),
        ("asks now for", wants_added),
        ("asks no longer for", wants_removed),
    ];
    let told: Vec<_> = all
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| {
            let names: Vec<_> = names.iter().map(|name| visible::line(name)).collect();
            format!("  {what}: {}", names.join(", "))
        })
        .collect();
    if told.is_empty() {
        vec!["  its tools and what it asks for are the same".to_owned()]
    } else {
        told
    }
}

/// Whatever a tool says of itself, in one text.
fn all_of(tool: &ToolDefinition) -> String {
    json!({
        "title": tool.title,
        "description": tool.description,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "hints": tool.hints,
    })
    .to_string()
}

/// A folder of plugins that holds this file.
pub(super) fn folder_of(path: &Path) -> Option<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_by_kind_with_hostile_names_made_visible() {
        let none = Differences::default();
        assert_eq!(told(&none), ["  its tools and what it asks for are the same"]);
        let list = |text: &str| vec![text.to_owned(), "b\u{1b}[2J".to_owned()];
        let some = Differences {
            tools_added: list("a"),
            tools_changed: vec!["c".to_owned()],
            wants_removed: vec!["net https://a.example".to_owned()],
            ..none
        };
        assert_eq!(
            told(&some),
            [
                r"  tools added: a, b\u{1b}[2J",
                "  tools changed: c",
                "  asks no longer for: net https://a.example"
            ]
        );
    }
}
