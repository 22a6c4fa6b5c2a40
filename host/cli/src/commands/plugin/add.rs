//! `belljar plugin add`: a plugin into the user's own folder, whole or not at all. It allows
//! nothing, and never replaces a plugin unasked.

mod fetch;

use crate::{
    arguments::AddArguments,
    exit::{self, Usage},
    screen::SharedScreen,
    setup, visible,
};
use anyhow::Context as _;
use belljar_sandbox::Inspected;
use belljar_workspace::Places;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use std::{
    io::{self, Write as _},
    path::Path,
};

/// A plugin's bytes, and the manifest that comes along.
struct Source {
    name: String,
    component: Vec<u8>,
    beside: Option<Vec<u8>>,
}

pub(super) async fn add(arguments: AddArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let AddArguments { source, digest, name, replace } = arguments;
    let is_url = source.contains("://");
    if is_url && digest.is_none() {
        let message = "a plugin from a URL needs `--digest sha256:…`, so that it is the one that \
                       you mean";
        return Err(Usage(message.to_owned()).into());
    }
    let mut taken = if is_url { fetch::fetch(&source).await? } else { read(Path::new(&source))? };
    if let Some(name) = name {
        taken.name = name;
    }
    super::check_name(&taken.name)?;
    let found = belljar_sandbox::digest(&taken.component, None);
    if let Some(digest) = digest.filter(|digest| *digest != found) {
        anyhow::bail!(
            "`{source}` is not the plugin that was meant: its digest is `{found}`, not `{digest}`"
        );
    }
    let inspected: Inspected =
        belljar_sandbox::inspect_bytes(&taken.name, &taken.component, taken.beside.as_deref())
            .map_err(|error| anyhow::anyhow!("`{source}` {}", setup::error_chain(&error)))?;

    let places = Places::from_env()?;
    let folder = super::own_folder(&places)?;
    place(&folder, &taken, replace)?;
    let path = places.plugins().join(format!("{}.wasm", taken.name));
    let name = visible::line(&taken.name);
    let mut screen = screen.lock();
    let shown = screen.line(&visible::line(&path.display().to_string()));
    screen.note(&format!(
        "added `{name}`, {}; look at it with `belljar plugin inspect {name}`, then allow it with \
         `belljar plugin grant {name}`",
        inspected.digest
    ));
    shown.map_or_else(exit::of_write_error, |()| Ok(exit::COMPLETED))
}

fn read(path: &Path) -> anyhow::Result<Source> {
    let read = belljar_sandbox::read_plugin(path)
        .map_err(|error| anyhow::anyhow!("`{}` {}", path.display(), setup::error_chain(&error)))?;
    let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    let (component, beside) = read;
    Ok(Source { name, component, beside })
}

/// Puts the files in their places: each is written beside its name first, so that nobody sees a
/// half.
fn place(folder: &Dir, source: &Source, replace: bool) -> anyhow::Result<()> {
    let (component, manifest) = (format!("{}.wasm", source.name), format!("{}.toml", source.name));
    let exists = |name: &str| folder.symlink_metadata(name).is_ok();
    if !replace && exists(&component) {
        anyhow::bail!("there is a plugin `{}` already: replace it with `--replace`", source.name);
    }
    let context = || format!("the plugin `{}` cannot be written", source.name);
    match &source.beside {
        Some(bytes) => {
            let over = if replace { Over::Replace } else { Over::Keep };
            write(folder, &manifest, bytes, over).with_context(context)?;
        }
        // One that was left behind would be taken for the new plugin's.
        None if exists(&manifest) => folder.remove_file(&manifest).with_context(context)?,
        None => {}
    }
    let over = if replace { Over::Replace } else { Over::Keep };
    match write(folder, &component, &source.component, over) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            anyhow::bail!(
                "there is a plugin `{}` already: replace it with `--replace`",
                source.name
            )
        }
        written => written.with_context(context),
    }
}

/// What happens to a file that has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Keep,
    Replace,
}

fn write(folder: &Dir, name: &str, bytes: &[u8], over: Over) -> io::Result<()> {
    let temporary = format!(".{name}.{}", std::process::id());
    let written = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = folder.open_with(&temporary, &options)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match over {
            Over::Replace => folder.rename(&temporary, folder, name),
            // Unlike renaming, linking fails where the name is taken.
            Over::Keep => folder.hard_link(&temporary, folder, name),
        }
    })();
    // Gone already where it was renamed.
    let _ = folder.remove_file(&temporary);
    written
}
