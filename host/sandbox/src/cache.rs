//! The compile cache: compiled components and tool lists on disk, by the plugin's digest.
//!
//! What is loaded from here runs as native code, so the folder belongs to its user alone, and an
//! entry that is not exactly what was written is ignored and made anew. An entry is a small
//! record, named by the digest and by what the engine depends on, that names the compiled file by
//! its own SHA-256; the first line of a record is the SHA-256 of the rest.

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::{
    fs,
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};
use wasmtime::{Engine, component::Component};

/// The cache cannot be used; everything works without it, only slower.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("the compile cache `{path}` cannot be opened")]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "the compile cache `{path}` is not used: {reason}; remove it, or set `XDG_CACHE_HOME` to \
         a folder of your own"
    )]
    NotOurs { path: PathBuf, reason: &'static str },
}

/// Raised whenever records mean something else than before.
const FORMAT: u32 = 1;

/// What names a compiled file.
#[derive(Serialize, Deserialize)]
struct CompiledRecord {
    format: u32,
    digest: String,
    /// The SHA-256 of the compiled file, which is its name.
    compiled: String,
}

/// A tool list as it was checked when it was taken.
#[derive(Serialize, Deserialize)]
struct ToolsRecord<T> {
    format: u32,
    digest: String,
    tools: T,
}

#[derive(Debug)]
pub(crate) struct Cache {
    folder: Dir,
    path: PathBuf,
    /// What compiled code depends on besides the component.
    engine_key: String,
}

impl Cache {
    /// Opens the folder, which is made if need be.
    pub(crate) fn open(path: &Path, engine_key: String) -> Result<Self, CacheError> {
        let failed = |source| CacheError::Open { path: path.to_owned(), source };
        let not_ours = |reason| CacheError::NotOurs { path: path.to_owned(), reason };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| {
            if matches!(error, rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) {
                not_ours("it is not a folder of its own")
            } else {
                failed(error.into())
            }
        })?;
        let folder = Dir::from_std_file(folder.into());
        let metadata = folder.dir_metadata().map_err(failed)?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(not_ours("it belongs to another user"));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(not_ours("others may read or write it"));
        }
        Ok(Self { folder, path: path.to_owned(), engine_key })
    }

    /// The compiled component, if it is here, unharmed and ours.
    pub(crate) fn component(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let record: CompiledRecord = self.record(&self.compiled_name(digest)?)?;
        if record.format != FORMAT || record.digest != digest || !is_hex(&record.compiled) {
            return None;
        }
        let name = format!("{}.cwasm", record.compiled);
        let mut file = self.open_file(&name)?;
        let mut hasher = Sha256::new();
        io::copy(&mut file, &mut HashWriter(&mut hasher)).ok()?;
        if hex(&hasher.finalize()) != record.compiled {
            return None;
        }
        // SAFETY: the bytes are what this program wrote: they have the digest that was recorded
        // beside them, in a folder that only this user can write, which is the trust that running
        // this program needs anyway.
        #[expect(unsafe_code, reason = "loading compiled code cannot be checked by the compiler")]
        unsafe { Component::deserialize_file(engine, self.path_of(&file, &name)) }.ok()
    }

    /// Keeps a compiled component. A failure costs time later and nothing else.
    pub(crate) fn keep_component(&self, digest: &str, component: &Component) {
        let Some(record_name) = self.compiled_name(digest) else { return };
        let Ok(bytes) = component.serialize() else { return };
        let compiled = hex(&Sha256::digest(&bytes));
        let record = CompiledRecord {
            format: FORMAT,
            digest: digest.to_owned(),
            compiled: compiled.clone(),
        };
        if self.write(&format!("{compiled}.cwasm"), &bytes).is_ok() {
            self.keep_record(&record_name, &record);
        }
    }

    /// The tool list, as it was given to `keep_tools`.
    pub(crate) fn tools<T: DeserializeOwned>(&self, digest: &str) -> Option<T> {
        let record: ToolsRecord<T> = self.record(&tools_name(digest)?)?;
        (record.format == FORMAT && record.digest == digest).then_some(record.tools)
    }

    pub(crate) fn keep_tools<T: Serialize>(&self, digest: &str, tools: &T) {
        let Some(name) = tools_name(digest) else { return };
        self.keep_record(&name, &ToolsRecord { format: FORMAT, digest: digest.to_owned(), tools });
    }

    /// A path to the very file that was checked, where the system has one.
    fn path_of(&self, file: &fs::File, name: &str) -> PathBuf {
        if cfg!(target_os = "linux") {
            format!("/proc/self/fd/{}", file.as_raw_fd()).into()
        } else {
            self.path.join(name)
        }
    }

    fn compiled_name(&self, digest: &str) -> Option<String> {
        Some(format!("{}.{}.json", bare(digest)?, self.engine_key))
    }

    fn record<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let mut text = String::new();
        self.open_file(name)?.read_to_string(&mut text).ok()?;
        let (sum, record) = text.split_once('\n')?;
        if sum != hex(&Sha256::digest(record)) {
            return None;
        }
        serde_json::from_str(record).ok()
    }

    fn keep_record<T: Serialize>(&self, name: &str, record: &T) {
        if let Ok(record) = serde_json::to_string(record) {
            let text = format!("{}\n{record}", hex(&Sha256::digest(&record)));
            // What cannot be kept is made again next time.
            let _ = self.write(name, text.as_bytes());
        }
    }

    /// A regular file of this user that nobody else can write, never through a link.
    fn open_file(&self, name: &str) -> Option<fs::File> {
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No);
        let file = self.folder.open_with(name, &options).ok()?.into_std();
        let metadata = file.metadata().ok()?;
        let ours = metadata.is_file()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o022 == 0;
        ours.then_some(file)
    }

    /// Whole or not at all: written beside its name, then renamed.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        // Other threads and other processes may be writing the same entry.
        static WRITES: AtomicU64 = AtomicU64::new(0);
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".{name}.{}.{number}", std::process::id());
        let written = (|| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).follow(FollowSymlinks::No);
            cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = self.folder.open_with(&temporary, &options)?;
            file.write_all(bytes)?;
            self.folder.rename(&temporary, &self.folder, name)
        })();
        if written.is_err() {
            let _ = self.folder.remove_file(&temporary);
        }
        written
    }
}

fn tools_name(digest: &str) -> Option<String> {
    Some(format!("{}.tools.json", bare(digest)?))
}

/// The hexadecimal part of a digest, which is safe in a file name.
fn bare(digest: &str) -> Option<&str> {
    digest.strip_prefix("sha256:").filter(|hex| is_hex(hex))
}

fn is_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a plugin's bytes, as it is written everywhere.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
