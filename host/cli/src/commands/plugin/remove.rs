//! `belljar plugin remove`: a plugin out of the user's own folder. It never touches another folder.

use crate::{arguments::RemoveArguments, exit, screen::SharedScreen, visible};
use anyhow::Context as _;
use belljar_workspace::Places;
use std::io;

pub(super) fn remove(arguments: &RemoveArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let name = &arguments.name;
    super::check_name(name)?;
    let places = Places::from_env()?;
    let folder = super::own_folder(&places)?;
    let shown = places.plugins().join(format!("{name}.wasm"));
    match folder.remove_file(format!("{name}.wasm")) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => anyhow::bail!(
            "`{}` is not there, so there is nothing to remove: see `belljar plugin list`",
            shown.display()
        ),
        Err(error) => {
            return Err(error).with_context(|| format!("`{}` cannot be removed", shown.display()));
        }
    }
    // Without its component it would be a file that is no plugin.
    match folder.remove_file(format!("{name}.toml")) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("its manifest cannot be removed"),
    }
    let name = visible::line(name);
    screen.lock().note(&format!(
        "removed `{}`; what was granted to it stays in your configuration until \
         `belljar plugin revoke {name}`",
        visible::line(&shown.display().to_string())
    ));
    Ok(exit::COMPLETED)
}
