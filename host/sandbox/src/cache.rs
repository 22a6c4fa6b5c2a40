//! The cache on disk: compiled components, what is known about plugins and what is wrong with
//! others, all by the plugin's digest, and the digests of files that have not changed.
//!
//! What is loaded from here runs as native code, so the folder belongs to its user alone, and an
//! entry that is not exactly what was written is ignored and made anew. An entry is a small
//! record, named by the digest and by what the engine depends on, that names the compiled file by
//! its own SHA-256; the first line of a record is the SHA-256 of the rest.

use crate::plugin_file::Identity;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, MetadataExt as _, OpenOptions};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    fs,
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::SystemTime,
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
const FORMAT: u32 = 2;

/// What names a compiled file.
#[derive(Serialize, Deserialize)]
struct CompiledRecord {
    format: u32,
    digest: String,
    /// The SHA-256 of the compiled file, which is its name.
    compiled: String,
}

/// What is known about a plugin, as it was checked when it was taken.
#[derive(Serialize, Deserialize)]
struct AboutRecord<T> {
    format: u32,
    digest: String,
    about: T,
}

/// Why a plugin was not taken.
#[derive(Serialize, Deserialize)]
struct FailureRecord {
    format: u32,
    digest: String,
    /// What the failure depends on besides the bytes.
    circumstances: String,
    message: String,
    /// Seconds since 1970.
    found: i64,
}

/// How long a failure is remembered: some depend on how busy the machine was.
const FAILURE_HOLDS: i64 = 24 * 60 * 60;

/// The digests of files that look as they did when they were hashed, by where they lie.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Digests {
    format: u32,
    files: HashMap<String, (Identity, String)>,
}

/// Files whose digests are kept.
const FILES: usize = 2_000;
const DIGESTS: &str = "digests.json";

impl Digests {
    pub(crate) fn get(&self, identity: &Identity) -> Option<&str> {
        let (known, digest) = self.files.get(&place(identity))?;
        (known == identity).then_some(digest)
    }

    /// Whether it was new.
    pub(crate) fn keep(&mut self, identity: Identity, digest: &str) -> bool {
        if self.files.len() >= FILES {
            self.files.clear();
        }
        let entry = (identity, digest.to_owned());
        self.files.insert(place(&identity), entry.clone()) != Some(entry)
    }
}

fn place(identity: &Identity) -> String {
    let (device, inode) = identity.place();
    format!("{device}:{inode}")
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0)
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

    /// Keeps a compiled component, serialized. A failure costs time later and nothing else.
    pub(crate) fn keep_component(&self, digest: &str, bytes: &[u8]) {
        let Some(record_name) = self.compiled_name(digest) else { return };
        let compiled = hex(&Sha256::digest(bytes));
        let record = CompiledRecord {
            format: FORMAT,
            digest: digest.to_owned(),
            compiled: compiled.clone(),
        };
        if self.write(&format!("{compiled}.cwasm"), bytes).is_ok() {
            self.keep_record(&record_name, &record);
        }
    }

    /// What is known about a plugin, as it was given to `keep_about`.
    pub(crate) fn about<T: DeserializeOwned>(&self, digest: &str) -> Option<T> {
        let record: AboutRecord<T> = self.record(&about_name(digest)?)?;
        (record.format == FORMAT && record.digest == digest).then_some(record.about)
    }

    pub(crate) fn keep_about<T: Serialize>(&self, digest: &str, about: &T) {
        let Some(name) = about_name(digest) else { return };
        self.keep_record(&name, &AboutRecord { format: FORMAT, digest: digest.to_owned(), about });
    }

    /// Why the plugin was not taken before, in the same circumstances and not long ago.
    pub(crate) fn failure(&self, digest: &str, circumstances: &str) -> Option<String> {
        let record: FailureRecord = self.record(&self.failure_name(digest)?)?;
        let holds = record.format == FORMAT
            && record.digest == digest
            && record.circumstances == circumstances
            && (0..FAILURE_HOLDS).contains(&now().saturating_sub(record.found));
        holds.then_some(record.message)
    }

    pub(crate) fn keep_failure(&self, digest: &str, circumstances: &str, message: &str) {
        let Some(name) = self.failure_name(digest) else { return };
        let record = FailureRecord {
            format: FORMAT,
            digest: digest.to_owned(),
            circumstances: circumstances.to_owned(),
            message: message.to_owned(),
            found: now(),
        };
        self.keep_record(&name, &record);
    }

    pub(crate) fn digests(&self) -> Digests {
        let kept = self.record::<Digests>(DIGESTS).filter(|kept| kept.format == FORMAT);
        kept.unwrap_or_else(|| Digests { format: FORMAT, files: HashMap::new() })
    }

    pub(crate) fn keep_digests(&self, digests: &Digests) {
        self.keep_record(DIGESTS, digests);
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

    fn failure_name(&self, digest: &str) -> Option<String> {
        Some(format!("{}.{}.failed.json", bare(digest)?, self.engine_key))
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

fn about_name(digest: &str) -> Option<String> {
    Some(format!("{}.about.json", bare(digest)?))
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
