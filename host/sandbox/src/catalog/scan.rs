//! Looking through the folders: which files there are, and the digests of those that changed.
//!
//! All of it is file work, done on one thread that may block. Nothing is compiled here.

use super::{PluginFolder, Seen};
use crate::{
    cache::{self, Cache, Digests},
    load_error::LoadError,
    names,
    plugin::{Loaded, PluginBytes},
    plugin_file::PluginFile,
};
use cap_std::{ambient_authority, fs::Dir};
use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A file in a folder of plugins.
pub(super) struct File {
    /// The stem; the whole name where it is no plugin's.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// The path with the folder's links resolved.
    pub(super) real: PathBuf,
    pub(super) named: bool,
    pub(super) place: PluginFile,
    /// Why it cannot be a plugin, whatever is in it.
    pub(super) problem: Option<Arc<LoadError>>,
    /// Absent where it could not be looked at.
    pub(super) seen: Option<Seen>,
    bytes: PluginBytes,
}

impl File {
    /// What its name looks like, where it may be a plugin.
    pub(super) fn known_as(&self) -> Option<String> {
        self.problem.is_none().then(|| names::look_alike(&self.name))
    }

    /// Its digest, where it has not been loaded yet.
    pub(super) fn to_load(&self) -> Option<(&str, &PluginBytes)> {
        let seen = self.seen.as_ref().filter(|seen| seen.loaded.is_none())?;
        Some((seen.digest.as_deref().ok()?, &self.bytes))
    }

    pub(super) fn is_sound(&self) -> bool {
        let loaded = self.seen.as_ref().and_then(|seen| seen.loaded.as_ref());
        loaded.is_some_and(Result::is_ok)
    }

    pub(super) fn set_loaded(&mut self, loaded: Result<Loaded, Arc<LoadError>>) {
        if let Some(seen) = &mut self.seen {
            seen.loaded = Some(loaded);
        }
    }
}

/// What the folders hold, in the order of the folders and then of the files' names.
#[derive(Default)]
pub(super) struct Scan {
    pub(super) files: Vec<File>,
    /// Folders that cannot be read.
    pub(super) problems: Vec<String>,
}

pub(super) async fn scan(
    folders: &[PluginFolder],
    seen: &HashMap<PathBuf, Seen>,
    cache: Option<Arc<Cache>>,
) -> Scan {
    let (folders, seen) = (folders.to_vec(), seen.clone());
    let scanned = tokio::task::spawn_blocking(move || {
        let mut scan = Scan::default();
        let mut digests = cache.as_ref().map(|cache| cache.digests()).unwrap_or_default();
        let mut is_new = false;
        for folder in &folders {
            if let Err(error) = scan.add_folder(folder, &seen, &mut digests, &mut is_new) {
                let folder = folder.path.display();
                scan.problems
                    .push(format!("the plugins folder `{folder}` cannot be read: {error}"));
            }
        }
        if let Some(cache) = cache.filter(|_| is_new) {
            cache.keep_digests(&digests);
        }
        scan
    });
    scanned.await.unwrap_or_default()
}

impl Scan {
    /// A folder that is not there holds none.
    fn add_folder(
        &mut self,
        folder: &PluginFolder,
        seen: &HashMap<PathBuf, Seen>,
        digests: &mut Digests,
        is_new: &mut bool,
    ) -> io::Result<()> {
        let PluginFolder { path, named } = folder;
        let dir = match Dir::open_ambient_dir(path, ambient_authority()) {
            Ok(dir) => Arc::new(dir),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let path = std::path::absolute(path)?;
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let mut file_names: Vec<OsString> = dir
            .entries()?
            .map(|entry| Ok(entry?.file_name()))
            .filter(|name: &io::Result<OsString>| {
                name.as_ref().map_or(true, |name| !name.to_string_lossy().starts_with('.'))
            })
            .collect::<io::Result<_>>()?;
        file_names.sort();
        let plugins: HashSet<String> =
            file_names.iter().filter_map(|name| Some(stem(name.to_str()?)?.to_owned())).collect();
        for file_name in file_names {
            if is_manifest_of(&file_name, &plugins) {
                continue;
            }
            let shown = file_name.to_string_lossy();
            let place = PluginFile::new(&dir, &shown);
            let problem = match file_name.to_str().map(|name| (stem(name), name)) {
                None => Some("has a name that is not UTF-8"),
                Some((Some(_), _)) => None,
                Some((None, name)) if name.ends_with(".toml") => Some(
                    "is a manifest without its plugin: put the `.wasm` of the same name beside it",
                ),
                Some((None, _)) => Some("is not a plugin: only `.wasm` files are taken"),
            };
            let mut file = File {
                name: stem(&shown).unwrap_or(&shown).to_owned(),
                path: path.join(&file_name),
                real: real.join(&file_name),
                named: *named,
                bytes: PluginBytes::File(place.clone()),
                place,
                problem: problem.map(|problem| Arc::new(LoadError::NotAPluginFile(problem))),
                seen: None,
            };
            if file.problem.is_none() {
                file.look(seen.get(&file.path), digests, is_new);
            }
            self.files.push(file);
        }
        Ok(())
    }
}

impl File {
    /// Finds out the digest, without reading what has not changed.
    fn look(&mut self, seen: Option<&Seen>, digests: &mut Digests, is_new: &mut bool) {
        let identity = match self.place.identity() {
            Ok(identity) => identity,
            Err(problem) => {
                self.problem = Some(Arc::new(problem));
                return;
            }
        };
        if let Some(seen) = seen.filter(|seen| seen.identity == identity) {
            self.seen = Some(seen.clone());
            return;
        }
        let known = digests.get(&identity).map(str::to_owned);
        let digest = match known {
            Some(digest) => Ok(digest),
            // Taken once it has stopped changing: no digest of a half is kept.
            None => match self.place.read() {
                Err(LoadError::StillChanging) => return,
                read => read.map(|contents| contents.digest).map_err(Arc::new),
            },
        };
        // What was read is what was looked at, or it is read again next time.
        if self.place.identity().ok() != Some(identity) {
            return;
        }
        if let Ok(digest) = &digest
            && identity.is_settled(cache::now())
        {
            *is_new |= digests.keep(identity, digest);
        }
        self.seen = Some(Seen { identity, digest, loaded: None });
    }
}

/// The name of the plugin whose component a file may be.
fn stem(file_name: &str) -> Option<&str> {
    file_name.strip_suffix(".wasm").filter(|stem| !stem.is_empty())
}

fn is_manifest_of(file_name: &OsString, plugins: &HashSet<String>) -> bool {
    let name = Path::new(file_name).to_str().and_then(|name| name.strip_suffix(".toml"));
    name.is_some_and(|name| plugins.contains(name))
}
