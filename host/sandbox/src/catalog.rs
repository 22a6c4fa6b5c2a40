//! The catalog: which plugins there are, what each gets, and for every file that is none, why.
//!
//! It is looked through again whenever the folders may have changed; what has not changed is not
//! read again. Nothing here runs a call: what is found is published as one snapshot.

mod scan;

use crate::{
    filesystem::Mounts,
    load_error::LoadError,
    manifest::Declared,
    names,
    plugin::{Loaded, Loader, Plugin, PluginBytes},
    plugin_file::Identity,
    toolbox::chain,
};
use belljar_capability::{
    FolderGrant, GrantError, Granted, LimitSettings, Limits, Manifest, PluginGrant, Standing,
    Surroundings, standing,
};
use belljar_types::ToolDefinition;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
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
#[derive(Clone, Debug)]
pub struct Skipped {
    pub path: PathBuf,
    pub reason: Arc<LoadError>,
}

/// What became of a plugin, or of a file that is none.
#[derive(Clone, Debug)]
pub struct PluginInfo {
    /// The file's stem; the file's whole name where it is no plugin's.
    pub name: String,
    /// Nothing for a bundled plugin.
    pub path: Option<PathBuf>,
    /// `sha256:` and 64 hexadecimal digits; absent where the file was not read.
    pub digest: Option<String>,
    /// Bytes of the component.
    pub size: Option<u64>,
    /// What people said about these bytes.
    pub standing: Option<Standing>,
    /// Empty where it was not taken.
    pub tools: Vec<Arc<ToolDefinition>>,
    /// Absent where it was not taken.
    pub declared: Option<Declared>,
    /// What it gets.
    pub granted: Option<Arc<Granted>>,
    /// What of its grant cannot be given, and why.
    pub grant_problem: Option<String>,
    /// Why the file was not taken.
    pub skipped: Option<Arc<LoadError>>,
    /// The file was not taken, and what it was before still serves.
    pub serves_earlier: bool,
}

impl PluginInfo {
    pub(crate) fn file(name: &str, path: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            path: Some(path),
            digest: None,
            size: None,
            standing: None,
            tools: Vec::new(),
            declared: None,
            granted: None,
            grant_problem: None,
            skipped: None,
            serves_earlier: false,
        }
    }

    /// Whether its tools are offered, as far as its standing goes.
    pub fn is_offered(&self) -> bool {
        self.skipped.is_none() && self.standing.as_ref().is_some_and(Standing::is_offered)
    }
}

/// What people granted, and what that is resolved against.
#[derive(Debug)]
pub(crate) struct Grants {
    /// By plugin name, bundled plugins included.
    pub(crate) by_name: BTreeMap<String, PluginGrant>,
    /// For whatever has the name in this run.
    pub(crate) this_run: BTreeMap<String, PluginGrant>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    /// Where a grant sets no others.
    pub(crate) limits: Limits,
}

impl Grants {
    /// The limits of every plugin.
    pub(crate) fn all_limits(&self) -> impl Iterator<Item = Limits> {
        let of = |grant: &PluginGrant| self.limits.with(&grant.limits);
        let granted = self.by_name.values().map(of);
        granted.chain(self.this_run.values().map(of)).chain([self.limits])
    }

    fn standing(&self, name: &str, digest: &str, path: &Path, named: bool) -> Standing {
        // Naming a plugin for this run is as good as naming its folder.
        let named = named || self.this_run.contains_key(name);
        standing(digest, path, self.by_name.get(name), named)
    }

    /// The limits that a person set, where the grant holds.
    fn settings(&self, name: &str, standing: &Standing) -> LimitSettings {
        let grant = self.by_name.get(name).filter(|_| standing.has_grants());
        let mut limits = grant.map(|grant| grant.limits.clone()).unwrap_or_default();
        limits.extend(self.this_run.get(name).into_iter().flat_map(|grant| &grant.limits));
        limits
    }

    /// What a plugin gets: of what was granted to it, where its grants hold, the part that its
    /// manifest asks for. A bundled one gets the workspace besides. Where the grant cannot be given
    /// it gets nothing, and that is said.
    fn resolve(
        &self,
        name: &str,
        standing: &Standing,
        manifest: Option<&Manifest>,
    ) -> (Granted, Option<GrantError>) {
        let mut grant = PluginGrant::default();
        if *standing == Standing::Bundled && self.workspace.is_some() {
            grant.write.push(FolderGrant { host: ".".to_owned(), guest: None });
        }
        if standing.has_grants()
            && let Some(given) = self.by_name.get(name)
        {
            grant.extend(given.clone());
        }
        // Not what other bytes of this name were granted: that stays suspended.
        if let Some(given) = self.this_run.get(name) {
            grant.extend(given.clone());
        }
        let around = Surroundings {
            workspace: self.workspace.as_deref(),
            home: self.home.as_deref(),
            variable: |name| std::env::var(name).ok(),
        };
        match grant.resolve(manifest, around, self.limits) {
            Ok(granted) => (granted, None),
            Err(problem) => (Granted { limits: self.limits, ..Granted::default() }, Some(problem)),
        }
    }
}

/// The bytes of a file as they were last seen, and what they are.
#[derive(Clone)]
struct Seen {
    identity: Identity,
    /// The digest, or why the file could not be read.
    digest: Result<String, Arc<LoadError>>,
    loaded: Option<Result<Loaded, Arc<LoadError>>>,
}

/// What serves a file's plugin.
#[derive(Clone)]
struct Serving {
    plugin: Arc<Plugin>,
    info: PluginInfo,
}

/// The plugins, and what is remembered of their files.
pub(crate) struct Catalog {
    loader: Loader,
    grants: Grants,
    bundled: Vec<BundledPlugin>,
    folders: Vec<PluginFolder>,
    /// What each bundled plugin came to.
    loaded: HashMap<&'static str, Result<Loaded, Arc<LoadError>>>,
    seen: HashMap<PathBuf, Seen>,
    serving: HashMap<PathBuf, Serving>,
}

/// Everything that was found at one time.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) plugins: Vec<Arc<Plugin>>,
    /// Bundled ones first, then by folder and file name.
    pub(crate) infos: Vec<PluginInfo>,
    /// Folders that cannot be read.
    pub(crate) problems: Vec<String>,
}

impl Catalog {
    pub(crate) fn new(
        loader: Loader,
        grants: Grants,
        bundled: Vec<BundledPlugin>,
        folders: Vec<PluginFolder>,
    ) -> Self {
        Self {
            loader,
            grants,
            bundled,
            folders,
            loaded: HashMap::new(),
            seen: HashMap::new(),
            serving: HashMap::new(),
        }
    }

    /// Looks through the folders and takes what there is.
    pub(crate) async fn look(&mut self) -> Found {
        let mut found = Found::default();
        let mut taken = Names::default();
        self.load_bundled().await;
        for bundled in &self.bundled {
            self.take_bundled(bundled, &mut taken, &mut found);
        }
        let scan = scan::scan(&self.folders, &self.seen, self.loader.cache.clone()).await;
        found.problems = scan.problems;
        let candidates = self.load_files(scan.files, &taken).await;
        let paths: HashSet<PathBuf> = candidates.iter().map(|file| file.path.clone()).collect();
        self.seen.retain(|path, _| paths.contains(path));
        self.serving.retain(|path, _| paths.contains(path));
        for file in candidates {
            self.take_file(file, &mut taken, &mut found);
        }
        found
    }

    async fn load_bundled(&mut self) {
        for bundled in &self.bundled {
            if self.loaded.contains_key(bundled.name) {
                continue;
            }
            let settings = self.grants.settings(bundled.name, &Standing::Bundled);
            let bytes = PluginBytes::Embedded(bundled.bytes);
            let loaded = match self.loader.known(bundled.digest, &settings) {
                Some(known) => known,
                None => self.loader.load(bundled.name, bundled.digest, &bytes, &settings).await,
            };
            self.loaded.insert(bundled.name, loaded.map_err(Arc::new));
        }
    }

    /// Takes a bundled plugin, which gets the workspace. Its name is reserved even where it does
    /// not load: a rule that names it means no other.
    fn take_bundled(&self, bundled: &BundledPlugin, taken: &mut Names, found: &mut Found) {
        taken.reserve(bundled.name);
        let mut info = PluginInfo {
            path: None,
            digest: Some(bundled.digest.to_owned()),
            size: Some(bundled.bytes.len() as u64),
            standing: Some(Standing::Bundled),
            ..PluginInfo::file(bundled.name, PathBuf::new())
        };
        let plugin = match &self.loaded[bundled.name] {
            Ok(loaded) => {
                let bytes = PluginBytes::Embedded(bundled.bytes);
                let plugin = self.plugin(bundled.digest, bytes, loaded, &mut info);
                taken.take(&plugin).map(|()| plugin).map_err(Arc::new)
            }
            Err(reason) => Err(Arc::clone(reason)),
        };
        found.add(plugin, info);
    }

    /// A plugin with what it gets.
    fn plugin(
        &self,
        digest: &str,
        bytes: PluginBytes,
        loaded: &Loaded,
        info: &mut PluginInfo,
    ) -> Arc<Plugin> {
        let standing = info.standing.clone().unwrap_or(Standing::Unseen);
        let manifest = loaded.about.declared.manifest.as_ref();
        let (granted, problem) = self.grants.resolve(&info.name, &standing, manifest);
        let (mounts, closed) = Mounts::open(&granted, &self.loader.own);
        let granted = Arc::new(granted);
        info.granted = Some(Arc::clone(&granted));
        let problems: Vec<_> = problem
            .iter()
            .map(|problem| chain(problem))
            .chain(closed.iter().map(|problem| chain(problem)))
            .collect();
        info.grant_problem = (!problems.is_empty()).then(|| problems.join("; "));
        info.declared = Some(loaded.about.declared.clone());
        let plugin =
            Arc::new(Plugin::new(&info.name, digest, bytes, standing, granted, mounts, loaded));
        info.tools = plugin.tools.clone();
        plugin
    }

    /// Loads what has to be loaded: in each name the first file that can be, and of these as many
    /// at a time as may be.
    async fn load_files(&mut self, mut files: Vec<scan::File>, taken: &Names) -> Vec<scan::File> {
        let mut decided: HashSet<String> = HashSet::new();
        loop {
            let mut waiting = HashSet::new();
            let mut begun = Vec::new();
            let mut loads = tokio::task::JoinSet::new();
            for (index, file) in files.iter().enumerate() {
                let Some(known_as) = file.known_as() else { continue };
                if taken.is_reserved(&known_as)
                    || decided.contains(&known_as)
                    || !waiting.insert(known_as.clone())
                {
                    continue;
                }
                let Some((seen, bytes)) = file.to_load() else {
                    // Already known: whether the name is free for the next is known as well.
                    if file.is_sound() {
                        decided.insert(known_as);
                    } else {
                        waiting.remove(&known_as);
                    }
                    continue;
                };
                let standing = self.grants.standing(&file.name, seen, &file.real, file.named);
                let settings = self.grants.settings(&file.name, &standing);
                let (loader, digest) = (self.loader.clone(), seen.to_owned());
                let (name, bytes) = (file.name.clone(), bytes.clone());
                begun.push(index);
                loads.spawn(async move {
                    let loaded = match loader.known(&digest, &settings) {
                        Some(known) => known,
                        None => loader.load(&name, &digest, &bytes, &settings).await,
                    };
                    (index, loaded)
                });
            }
            if loads.is_empty() {
                return files;
            }
            while let Some(loaded) = loads.join_next().await {
                if let Ok((index, loaded)) = loaded {
                    files[index].set_loaded(loaded.map_err(Arc::new));
                }
            }
            // A load that panicked must not be tried for ever.
            for index in begun {
                if files[index].to_load().is_some() {
                    let reason = LoadError::CompilerDied("the host failed".to_owned());
                    files[index].set_loaded(Err(Arc::new(reason)));
                }
            }
        }
    }

    fn take_file(&mut self, file: scan::File, taken: &mut Names, found: &mut Found) {
        let mut info = PluginInfo::file(&file.name, file.path.clone());
        let outcome = self.judge(&file, taken, &mut info);
        if let Some(seen) = file.seen {
            self.seen.insert(file.path.clone(), seen);
        }
        match outcome {
            Ok(plugin) => {
                let info = info.clone();
                let serving = Serving { plugin: Arc::clone(&plugin), info };
                self.serving.insert(file.path, serving);
                found.plugins.push(plugin);
            }
            Err(reason) => {
                // Until what lies there now can be taken, what lay there before serves.
                let names_it = matches!(
                    *reason,
                    LoadError::Reserved(_)
                        | LoadError::Shadowed { .. }
                        | LoadError::LookAlike { .. }
                );
                if let Some(earlier) = self.serving.get(&file.path).filter(|_| !names_it)
                    && taken.name(&info.name, &file.path).is_ok()
                    && taken.take(&earlier.plugin).is_ok()
                {
                    found.plugins.push(Arc::clone(&earlier.plugin));
                    info = PluginInfo { serves_earlier: true, ..earlier.info.clone() };
                } else {
                    self.serving.remove(&file.path);
                }
                info.skipped = Some(reason);
            }
        }
        found.infos.push(info);
    }

    /// Whether a file's plugin is taken.
    fn judge(
        &self,
        file: &scan::File,
        taken: &mut Names,
        info: &mut PluginInfo,
    ) -> Result<Arc<Plugin>, Arc<LoadError>> {
        if let Some(problem) = &file.problem {
            return Err(Arc::clone(problem));
        }
        taken.check(&file.name)?;
        let Some(seen) = &file.seen else {
            return Err(Arc::new(LoadError::StillChanging));
        };
        info.size = Some(seen.identity.size());
        let digest = seen.digest.as_ref().map_err(Arc::clone)?;
        info.digest = Some(digest.clone());
        let standing = self.grants.standing(&file.name, digest, &file.real, file.named);
        info.standing = Some(standing.clone());
        let loaded = match &seen.loaded {
            Some(loaded) => loaded.as_ref().map_err(Arc::clone)?,
            None => return Err(Arc::new(LoadError::StillChanging)),
        };
        // What has not changed stays the very plugin that it was, with its compiled code and its
        // places in the queue.
        let unchanged = self.serving.get(&file.path).filter(|serving| {
            *serving.plugin.source.digest == **digest && serving.plugin.standing == standing
        });
        let plugin = match unchanged {
            Some(serving) => {
                *info = serving.info.clone();
                Arc::clone(&serving.plugin)
            }
            None => {
                let bytes = PluginBytes::File(file.place.clone());
                self.plugin(digest, bytes, loaded, info)
            }
        };
        taken.take(&plugin)?;
        taken.name(&file.name, &file.path)?;
        Ok(plugin)
    }
}

impl Found {
    fn add(&mut self, plugin: Result<Arc<Plugin>, Arc<LoadError>>, mut info: PluginInfo) {
        match plugin {
            Ok(plugin) => self.plugins.push(plugin),
            Err(reason) => info.skipped = Some(reason),
        }
        self.infos.push(info);
    }
}

/// The names that are taken.
#[derive(Default)]
struct Names {
    /// Where each plugin's name came from.
    plugins: HashMap<String, String>,
    /// Those of them that are bundled plugins'.
    reserved: HashSet<String>,
    /// The model's names, by what they look like.
    tools: HashMap<String, Arc<str>>,
}

impl Names {
    fn reserve(&mut self, name: &str) {
        let known_as = names::look_alike(name);
        self.reserved.insert(known_as.clone());
        self.plugins.insert(known_as, name.to_owned());
    }

    fn is_reserved(&self, known_as: &str) -> bool {
        self.reserved.contains(known_as)
    }

    /// Whether a plugin may have this name.
    fn check(&self, name: &str) -> Result<(), LoadError> {
        let known_as = names::look_alike(name);
        match self.plugins.get(&known_as) {
            None => Ok(()),
            Some(by) if self.is_reserved(&known_as) => Err(LoadError::Reserved(by.clone())),
            Some(by) => Err(LoadError::Shadowed { by: by.clone() }),
        }
    }

    fn name(&mut self, name: &str, path: &Path) -> Result<(), LoadError> {
        self.check(name)?;
        self.plugins.insert(names::look_alike(name), path.display().to_string());
        Ok(())
    }

    /// Takes the names of a plugin's tools, if they are like no other's.
    fn take(&mut self, plugin: &Plugin) -> Result<(), LoadError> {
        for tool in &plugin.tools {
            if let Some(other) = self.tools.get(&names::look_alike(&tool.name)) {
                return Err(LoadError::LookAlike {
                    name: tool.name.to_string(),
                    other: other.to_string(),
                });
            }
        }
        for tool in &plugin.tools {
            self.tools.insert(names::look_alike(&tool.name), Arc::clone(&tool.name));
        }
        Ok(())
    }
}
