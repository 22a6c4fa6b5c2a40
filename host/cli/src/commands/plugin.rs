//! `belljar plugin`: the plugins that there are, one file a command.

mod add;
mod grant;
mod inspect;
mod list;
mod look;
mod pack;
mod remove;
mod revoke;
mod words;

pub(super) use list::text as list_text;

use crate::{arguments::PluginCommand, screen::SharedScreen};
use anyhow::Context as _;
use belljar_workspace::{Places, private_dir};
use cap_std::fs::Dir;

pub(crate) async fn plugin(command: PluginCommand, screen: SharedScreen) -> anyhow::Result<u8> {
    match command {
        PluginCommand::List(arguments) => list::list(arguments, screen).await,
        PluginCommand::Inspect(arguments) => inspect::inspect(arguments, &screen),
        PluginCommand::Add(arguments) => add::add(arguments, &screen).await,
        PluginCommand::Remove(arguments) => remove::remove(&arguments, &screen),
        PluginCommand::Grant(arguments) => grant::grant(arguments, &screen).await,
        PluginCommand::Revoke(arguments) => revoke::revoke(&arguments, &screen),
        PluginCommand::Pack(arguments) => pack::pack(&arguments, &screen),
    }
}

/// The user's own folder of plugins, which is made if need be.
fn own_folder(places: &Places) -> anyhow::Result<Dir> {
    private_dir(&places.data)?;
    private_dir(&places.plugins()).context("the plugins folder cannot be used")
}

/// Whether a plugin comes with the program: then nobody has to say yes to its bytes.
fn is_bundled(name: &str) -> bool {
    belljar_plugins::bundled().iter().any(|plugin| plugin.name == name)
}

/// Whether a plugin may be called so: a file's stem that every system takes, and no path.
fn check_name(name: &str) -> anyhow::Result<()> {
    let odd = |c: char| c.is_control() || matches!(c, '/' | '\\' | ':');
    let bundled = belljar_plugins::bundled().iter().find(|bundled| {
        belljar_sandbox::look_alike(bundled.name) == belljar_sandbox::look_alike(name)
    });
    if let Some(bundled) = bundled {
        return Err(crate::exit::Usage(format!(
            "`{name}` reads like the bundled plugin `{}`: choose another with `--name`",
            bundled.name
        ))
        .into());
    }
    if name.is_empty() || name.starts_with('.') || name.len() > 100 || name.contains(odd) {
        return Err(crate::exit::Usage(format!(
            "`{}` cannot be a plugin's name: give a plain one with `--name`",
            name.escape_debug()
        ))
        .into());
    }
    Ok(())
}
