//! The catalog: which plugins there are, and for every file that is none, why.

use crate::{
    cache, names,
    plugin::{LoadError, Loader, Plugin, PluginBytes},
};
use belljar_capability::{
    FolderGrant, Granted, Limits, PluginGrant, Standing, Surroundings, standing,
};
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

/// A folder that is looked into for plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFolder {
    pub path: PathBuf,
    /// A person named it for this run: what lies in it is offered unseen, though with no grants.
    pub named: bool,
}

/// A file that was found and not taken.
#[derive(Debug)]
pub struct Skipped {
    pub path: PathBuf,
    pub reason: LoadError,
}

/// What people granted, and what that is resolved against.
#[derive(Debug)]
pub(crate) struct Grants {
    /// By plugin name, bundled plugins included.
    pub(crate) by_name: BTreeMap<String, PluginGrant>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    /// Where a grant sets no others.
    pub(crate) limits: Limits,
}

impl Grants {
    fn standing(&self, name: &str, digest: &str, path: &Path, named: bool) -> Standing {
        standing(digest, path, self.by_name.get(name), named)
    }

    /// What a plugin gets: what was granted to it where its grants hold, and a bundled one the
    /// workspace besides.
    fn resolve(&self, name: &str, standing: &Standing) -> Result<Granted, LoadError> {
        let mut grant = PluginGrant::default();
        if *standing == Standing::Bundled && self.workspace.is_some() {
            grant.write.push(FolderGrant { host: ".".to_owned(), guest: None });
        }
        if standing.has_grants()
            && let Some(given) = self.by_name.get(name)
        {
            grant.extend(given.clone());
        }
        let around = Surroundings {
            workspace: self.workspace.as_deref(),
            home: self.home.as_deref(),
            variable: |name| std::env::var(name).ok(),
        };
        Ok(grant.resolve(None, around, self.limits)?)
    }
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
        grants: &Grants,
    ) -> Result<(), LoadError> {
        let bytes = PluginBytes::Embedded(bundled.bytes);
        // Reserved even where it does not load: a rule that names it means no other.
        let known_as = names::look_alike(bundled.name);
        self.reserved.insert(known_as.clone());
        self.names.insert(known_as, bundled.name.to_owned());
        let standing = Standing::Bundled;
        let granted = grants.resolve(bundled.name, &standing)?;
        let plugin =
            Plugin::load(loader, bundled.name, bundled.digest, bytes, standing, granted).await?;
        self.take(plugin)
    }

    /// Scans a folder of plugins, in the order of the files' names. A folder that is not there
    /// holds none.
    pub(crate) async fn add_folder(
        &mut self,
        loader: &Loader,
        folder: &PluginFolder,
        grants: &Grants,
    ) -> io::Result<()> {
        let PluginFolder { path, named } = folder;
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
                Some(name) => self.add_file(loader, path, &folder, name, *named, grants).await,
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
        named: bool,
        grants: &Grants,
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
        let standing = grants.standing(name, &digest, &path.join(file_name), named);
        let granted = grants.resolve(name, &standing)?;
        let bytes = PluginBytes::File { folder: Arc::clone(folder), name: file_name.to_owned() };
        let plugin = Plugin::load(loader, name, &digest, bytes, standing, granted).await?;
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
