//! The catalog: which plugins there are, and for every file that is none, why.

use crate::{
    cache, names,
    plugin::{LoadError, Loader, Plugin, PluginBytes},
};
use belljar_capability::{Access, World};
use cap_std::{ambient_authority, fs::Dir};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A plugin that comes with the program.
#[derive(Clone, Copy, Debug)]
pub struct BundledPlugin {
    pub name: &'static str,
    /// `sha256:` and 64 hexadecimal digits, of `bytes`.
    pub digest: &'static str,
    pub bytes: &'static [u8],
}

/// A file that was found and not taken.
#[derive(Debug)]
pub struct Skipped {
    pub path: PathBuf,
    pub reason: LoadError,
}

/// The plugins, and what was skipped.
#[derive(Default)]
pub(crate) struct Catalog {
    pub(crate) plugins: Vec<Arc<Plugin>>,
    pub(crate) skipped: Vec<Skipped>,
    /// Where each plugin's name came from.
    names: HashMap<String, String>,
    /// Those of them that are bundled plugins'.
    reserved: HashSet<String>,
    /// The model's names, by what they look like.
    tool_names: HashMap<String, Arc<str>>,
}

impl Catalog {
    /// Adds a bundled plugin, which gets the workspace.
    pub(crate) async fn add_bundled(
        &mut self,
        loader: &Loader,
        bundled: &BundledPlugin,
    ) -> Result<(), LoadError> {
        let granted = World { workspace: Some(Access::ReadWrite) };
        let bytes = PluginBytes::Embedded(bundled.bytes);
        // Reserved even where it does not load: a rule that names it means no other.
        let known_as = names::look_alike(bundled.name);
        self.reserved.insert(known_as.clone());
        self.names.insert(known_as, bundled.name.to_owned());
        self.take(Plugin::load(loader, bundled.name, bundled.digest, bytes, granted).await?)
    }

    /// Scans a folder of plugins, in the order of the files' names. A folder that is not there
    /// holds none.
    pub(crate) async fn add_folder(
        &mut self,
        loader: &Loader,
        path: &Path,
        grants: &BTreeMap<String, World>,
    ) -> io::Result<()> {
        let folder = match Dir::open_ambient_dir(path, ambient_authority()) {
            Ok(folder) => Arc::new(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut entries: Vec<_> = folder.entries()?.collect::<Result<_, _>>()?;
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            let file_name = entry.file_name();
            if file_name.to_string_lossy().starts_with('.') {
                continue;
            }
            let taken = match file_name.to_str() {
                Some(name) => self.add_file(loader, path, &folder, name, grants).await,
                None => Err(LoadError::NotAPluginFile("has a name that is not UTF-8")),
            };
            if let Err(reason) = taken {
                self.skipped.push(Skipped { path: path.join(&file_name), reason });
            }
        }
        Ok(())
    }

    async fn add_file(
        &mut self,
        loader: &Loader,
        path: &Path,
        folder: &Arc<Dir>,
        file_name: &str,
        grants: &BTreeMap<String, World>,
    ) -> Result<(), LoadError> {
        let Some(name) = file_name.strip_suffix(".wasm").filter(|name| !name.is_empty()) else {
            return Err(LoadError::NotAPluginFile("is not a plugin: only `.wasm` files are taken"));
        };
        let known_as = names::look_alike(name);
        if let Some(by) = self.names.get(&known_as) {
            return Err(if self.reserved.contains(&known_as) {
                LoadError::Reserved(by.clone())
            } else {
                LoadError::Shadowed { by: by.clone() }
            });
        }
        let digest = cache::digest(&PluginBytes::read_file(folder, file_name)?);
        let granted = grants.get(name).copied().unwrap_or_default();
        let bytes = PluginBytes::File { folder: Arc::clone(folder), name: file_name.to_owned() };
        let plugin = Plugin::load(loader, name, &digest, bytes, granted).await?;
        self.take(plugin)?;
        self.names.insert(known_as, path.join(file_name).display().to_string());
        Ok(())
    }

    /// Takes a plugin whose tools' names are like no other's.
    fn take(&mut self, plugin: Plugin) -> Result<(), LoadError> {
        for tool in &plugin.tools {
            if let Some(other) = self.tool_names.get(&names::look_alike(&tool.name)) {
                return Err(LoadError::LookAlike {
                    name: tool.name.to_string(),
                    other: other.to_string(),
                });
            }
        }
        for tool in &plugin.tools {
            self.tool_names.insert(names::look_alike(&tool.name), Arc::clone(&tool.name));
        }
        self.plugins.push(Arc::new(plugin));
        Ok(())
    }
}
