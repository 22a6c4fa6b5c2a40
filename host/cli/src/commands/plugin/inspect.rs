//! `belljar plugin inspect`: what a plugin says, wants and imports, without running it.

use super::words;
use crate::{
    arguments::InspectArguments, commands::tools, exit, screen::SharedScreen, setup, visible,
};
use anyhow::Context as _;
use belljar_capability::{PluginGrant, Standing, standing};
use belljar_sandbox::{BundledPlugin, Inspected, PluginFolder};
use belljar_workspace::{Flags, Places};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Characters of a tool's description.
const DESCRIPTION: usize = 120;

/// Everything, for scripts.
#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    path: Option<String>,
    digest: &'a str,
    size: u64,
    interfaces: &'a [String],
    standing: &'static str,
    manifest: Option<&'a belljar_capability::Manifest>,
    imports: &'a [String],
    reach: Vec<String>,
    grants: Vec<String>,
}

pub(super) fn inspect(arguments: InspectArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let InspectArguments { plugin, json, plugins } = arguments;
    let places = Places::from_env()?;
    let workspace = setup::workspace(None)?;
    let file = plugins.config.as_deref();
    let loaded = setup::configuration(&places, file, &workspace, Flags::default())?;
    let own_plugins = loaded.workspace_plugins.as_deref();
    let folders = setup::plugin_folders(&places, &plugins, own_plugins)?;
    let (inspected, bundled) = find(&plugin, &folders)?;
    let grant = loaded.config.plugins.get(&inspected.name);
    let standing = if bundled {
        Standing::Bundled
    } else {
        let is_named = |folder: &&PluginFolder| {
            folder.named && inspected.path.parent() == Some(folder.path.as_path())
        };
        let named = folders.iter().find(is_named).is_some();
        standing(&inspected.digest, &inspected.path, grant, named)
    };
    let grant = grant.filter(|_| standing.has_grants());
    let shown = if json {
        let declared = &inspected.declared;
        screen.lock().json(&Shown {
            name: &inspected.name,
            path: (!bundled).then(|| inspected.path.display().to_string()),
            digest: &inspected.digest,
            size: inspected.size,
            interfaces: &declared.interfaces,
            standing: words::standing_name(&standing),
            manifest: declared.manifest.as_ref(),
            imports: &declared.imports,
            reach: declared.reach().into_iter().map(|word| word.into_owned()).collect(),
            grants: grant.map(words::grants).unwrap_or_default(),
        })
    } else {
        screen.lock().product(&text(&inspected, bundled, &standing, grant))
    };
    setup::show_notices(screen, &loaded.notices);
    shown.map_or_else(exit::of_write_error, |()| Ok(exit::COMPLETED))
}

/// The file or the plugin that was named, and whether it is a bundled one.
fn find(plugin: &str, folders: &[PluginFolder]) -> anyhow::Result<(Inspected, bool)> {
    let is_path = plugin.contains(std::path::MAIN_SEPARATOR) || plugin.ends_with(".wasm");
    if !is_path && let Some(bundled) = bundled(plugin) {
        let inspected = belljar_sandbox::inspect_bundled(&bundled)
            .with_context(|| format!("the bundled plugin `{plugin}`"))?;
        return Ok((inspected, true));
    }
    let file_name = format!("{plugin}.wasm");
    let path = if is_path {
        PathBuf::from(plugin)
    } else {
        let in_folders = folders.iter().map(|folder| folder.path.join(&file_name));
        in_folders.into_iter().find(|path| path.exists()).with_context(|| {
            format!("there is no plugin `{plugin}`: see `belljar plugin list`, or name a file")
        })?
    };
    let inspected = belljar_sandbox::inspect(&path)
        .map_err(|error| anyhow::anyhow!("`{}` {}", path.display(), setup::error_chain(&error)))?;
    Ok((inspected, false))
}

fn bundled(name: &str) -> Option<BundledPlugin> {
    let plugin = belljar_plugins::bundled().iter().find(|plugin| plugin.name == name)?;
    Some(BundledPlugin { name: plugin.name, digest: plugin.digest, bytes: plugin.bytes })
}

fn text(
    inspected: &Inspected,
    bundled: bool,
    standing: &Standing,
    grant: Option<&PluginGrant>,
) -> String {
    let declared = &inspected.declared;
    let manifest = declared.manifest.as_ref();
    let mut title = visible::line(&inspected.name);
    if let Some(manifest) = manifest {
        if !manifest.version.is_empty() {
            title.push_str(&format!(" {}", visible::line(&manifest.version)));
        }
        if !manifest.description.is_empty() {
            title.push_str(&format!(": {}", visible::line(&manifest.description)));
        }
    }
    let mut page = Page(format!("{title}\n"));
    let size = words::size(inspected.size);
    let path: &Path = if bundled { Path::new("in the program") } else { &inspected.path };
    page.line("file", &format!("{}, {size}", visible::line(&path.display().to_string())));
    page.line("digest", &inspected.digest);
    page.line(
        "interface",
        &format!("belljar:plugin {}", visible::line(&declared.interfaces.join(", "))),
    );
    let place = match (manifest, &inspected.beside) {
        (None, _) => "none: it gets what is granted to it by name".to_owned(),
        (Some(_), None) => "in the component".to_owned(),
        (Some(_), Some(file)) => {
            format!("in `{}`, which is part of the digest", visible::line(file))
        }
    };
    page.line("manifest", &place);
    page.line("status", words::standing(standing));
    if let Some(manifest) = manifest {
        page.list("wants", words::wants(manifest), "nothing");
    }
    let reach = declared.reach().iter().map(|word| visible::line(word)).collect();
    page.list("imports", reach, "nothing");
    match &inspected.tools {
        None => page.line("tools", "not in the manifest: the component is asked when it is loaded"),
        Some(declared) => {
            let lines = declared.iter().map(|tool| {
                let first = tool.description.trim_start().lines().next().unwrap_or_default();
                let name = visible::line(&tool.name);
                format!(
                    "{name}  {}  {}",
                    tools::hints(tool.hints),
                    visible::short(first, DESCRIPTION)
                )
            });
            page.list("tools", lines.collect(), "none");
        }
    }
    if !bundled {
        page.list("grants", grant.map(words::grants).unwrap_or_default(), "nothing");
    }
    page.0
}

/// Labelled lines.
struct Page(String);

impl Page {
    fn line(&mut self, label: &str, value: &str) {
        self.0.push_str(&format!("  {label:11}{value}\n"));
    }

    /// One a line, the label before the first.
    fn list(&mut self, label: &str, values: Vec<String>, none: &str) {
        if values.is_empty() {
            self.line(label, none);
        }
        for (index, value) in values.iter().enumerate() {
            self.line(if index == 0 { label } else { "" }, value);
        }
    }
}
