//! Looking at a file that may be a plugin, without compiling or running anything of it.

use crate::{
    bindings,
    catalog::BundledPlugin,
    describe,
    load_error::LoadError,
    manifest::Declared,
    plugin_file::{Contents, PluginFile, digest},
};
use belljar_capability::DeclaredTool;
use cap_std::{ambient_authority, fs::Dir};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a file is, as far as its bytes tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// The file's stem.
    pub name: String,
    /// Empty where it was not read from a file.
    pub path: PathBuf,
    /// Of the component, and of the manifest beside it where there is one.
    pub digest: String,
    /// Bytes of the component.
    pub size: u64,
    /// The manifest's file, where that is not in the component itself.
    pub beside: Option<String>,
    pub declared: Declared,
    /// The tools, where the manifest tells them; else the component has to be asked.
    pub tools: Option<Vec<DeclaredTool>>,
}

/// Looks at a plugin's file and the manifest beside it.
///
/// # Errors
///
/// The file cannot be read, or it is no plugin for this host.
pub fn inspect(path: &Path) -> Result<Inspected, LoadError> {
    let (name, contents) = read(path)?;
    let path = std::path::absolute(path).map_err(LoadError::Read)?;
    Ok(Inspected { path, ..look(&name, &contents)? })
}

/// Looks at a plugin's bytes, and at those of the manifest beside it.
///
/// # Errors
///
/// They are no plugin for this host.
pub fn inspect_bytes(
    name: &str,
    component: &[u8],
    beside: Option<&[u8]>,
) -> Result<Inspected, LoadError> {
    let contents = Contents {
        component: component.to_vec().into(),
        beside: beside.map(|bytes| (format!("{name}.toml"), bytes.to_vec())),
        digest: digest(component, beside),
    };
    look(name, &contents)
}

/// Looks at a bundled plugin.
///
/// # Errors
///
/// It was not built for this host.
pub fn inspect_bundled(bundled: &BundledPlugin) -> Result<Inspected, LoadError> {
    inspect_bytes(bundled.name, bundled.bytes, None)
}

/// Reads a plugin's component, and the manifest beside it where there is one.
///
/// # Errors
///
/// One of the files cannot be read, or is too large.
pub fn read_plugin(path: &Path) -> Result<(Vec<u8>, Option<Vec<u8>>), LoadError> {
    let (_, contents) = read(path)?;
    Ok((contents.component.into_owned(), contents.beside.map(|(_, bytes)| bytes)))
}

fn read(path: &Path) -> Result<(String, Contents), LoadError> {
    let no_name = || LoadError::NotAPluginFile("has no name: name a `.wasm` file");
    let file_name = path.file_name().and_then(|name| name.to_str()).ok_or_else(no_name)?;
    let name = file_name.strip_suffix(".wasm").unwrap_or(file_name).to_owned();
    // A person named it, so a link is followed wherever it leads.
    let real = path.canonicalize().map_err(LoadError::Read)?;
    let (Some(parent), Some(file_name)) = (real.parent(), real.file_name()) else {
        return Err(no_name());
    };
    let file_name = file_name.to_str().ok_or_else(no_name)?;
    let folder = Dir::open_ambient_dir(parent, ambient_authority()).map_err(LoadError::Read)?;
    let contents = PluginFile::new(&Arc::new(folder), file_name).read()?;
    Ok((name, contents))
}

fn look(name: &str, contents: &Contents) -> Result<Inspected, LoadError> {
    let declared = Declared::read(&contents.component, contents.beside())?;
    let versions = &declared.interfaces;
    if versions.is_empty() {
        return Err(LoadError::NoTools);
    }
    if !versions.iter().any(|version| version == bindings::INTERFACE_VERSION) {
        return Err(LoadError::OtherVersion { found: versions[0].clone() });
    }
    let tools = declared.manifest.as_ref().and_then(|manifest| manifest.tools.clone());
    let tools = tools.map(describe::check).transpose()?;
    Ok(Inspected {
        name: name.to_owned(),
        path: PathBuf::new(),
        digest: contents.digest.clone(),
        size: contents.component.len() as u64,
        beside: contents.beside.as_ref().map(|(name, _)| name.clone()),
        declared,
        tools,
    })
}
