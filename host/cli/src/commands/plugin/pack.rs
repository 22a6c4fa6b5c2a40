//! `belljar plugin pack`: a manifest into a component, of whatever toolchain.

use crate::{arguments::PackArguments, exit, screen::SharedScreen, setup, visible};
use anyhow::Context as _;
use belljar_capability::{MANIFEST_SIZE, Manifest};
use belljar_sandbox::{Declared, LoadError};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
};

/// The largest component.
const COMPONENT_SIZE: u64 = 128 << 20;

pub(super) fn pack(arguments: &PackArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let PackArguments { file, manifest, output, replace } = arguments;
    let component = read(file, COMPONENT_SIZE)?;
    let text = String::from_utf8(read(manifest, MANIFEST_SIZE as u64)?)
        .with_context(|| format!("`{}` is not UTF-8", manifest.display()))?;
    let manifest = Manifest::from_toml(&text)
        .map_err(|error| anyhow::anyhow!("`{}`: {error}", manifest.display()))?;
    let of_file =
        |error: LoadError| anyhow::anyhow!("`{}` {}", file.display(), setup::error_chain(&error));
    let has_one = match Declared::read(&component, None) {
        Ok(declared) => declared.manifest.is_some(),
        // Those it has are replaced as well as any other.
        Err(LoadError::TwoSections | LoadError::Manifest(_)) => true,
        Err(error) => return Err(of_file(error)),
    };
    anyhow::ensure!(
        *replace || !has_one,
        "`{}` has a manifest: replace it with `--replace`",
        file.display()
    );
    let packed = belljar_sandbox::pack(&component, &manifest).map_err(of_file)?;
    // What was written is what will be read.
    let written = Declared::read(&packed, None).map_err(of_file)?;
    anyhow::ensure!(written.manifest.as_ref() == Some(&manifest), "the manifest did not survive");
    let output = output.as_deref().unwrap_or(file);
    write(output, &packed).with_context(|| format!("`{}` cannot be written", output.display()))?;
    screen.lock().note(&format!(
        "packed `{}`, {}",
        visible::line(&output.display().to_string()),
        belljar_sandbox::digest(&packed, None)
    ));
    Ok(exit::COMPLETED)
}

fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let context = || format!("`{}` cannot be read", path.display());
    let file = File::open(path).with_context(context)?;
    anyhow::ensure!(
        file.metadata().with_context(context)?.is_file(),
        "`{}` is not a regular file",
        path.display()
    );
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).with_context(context)?;
    anyhow::ensure!(
        bytes.len() as u64 <= most,
        "`{}` is longer than the {most} bytes that it may have",
        path.display()
    );
    Ok(bytes)
}

/// Whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    // As any file that a program makes, and not for its owner alone.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
