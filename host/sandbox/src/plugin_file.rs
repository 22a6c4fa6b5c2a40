//! The files of a plugin: `NAME.wasm` and, where there is one, `NAME.toml` beside it. Reads them as
//! files that may be anything and may change at any time, and knows when they have not changed.
//!
//! A plugin's digest is the SHA-256 of its component. Where a manifest lies beside it, that belongs
//! to it: the digest then is the SHA-256 of the component, [`SEPARATOR`] and the manifest. The
//! separator starts with a byte that begins no section and no UTF-8 text, so that no other pair of
//! files, and no component alone, has the same digest.

use crate::{cache, load_error::LoadError};
use belljar_capability::MANIFEST_SIZE;
use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::fs::{Dir, Metadata, MetadataExt as _, OpenOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    borrow::Cow,
    io::{self, Read},
    sync::Arc,
};

/// The largest component that is taken.
pub(crate) const COMPONENT_SIZE: u64 = 128 << 20;

/// Between a component and the manifest beside it, in what is hashed.
pub const SEPARATOR: &[u8] = b"\xffbelljar:manifest\xff";

/// A plugin's place in a folder.
#[derive(Clone, Debug)]
pub(crate) struct PluginFile {
    folder: Arc<Dir>,
    /// With its `.wasm`.
    name: String,
}

/// What was read of a plugin, all at one time.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) component: Cow<'static, [u8]>,
    /// The name and the bytes of the manifest beside it.
    pub(crate) beside: Option<(String, Vec<u8>)>,
    pub(crate) digest: String,
}

impl Contents {
    pub(crate) fn beside(&self) -> Option<(&str, &[u8])> {
        self.beside.as_ref().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }
}

/// What tells one state of a plugin's files from another without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    component: FileIdentity,
    beside: Option<FileIdentity>,
}

/// The change time is the kernel's own: no program can set it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// The file is this user's, and nobody else may write it.
    ours: bool,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            ours: metadata.uid() == rustix::process::geteuid().as_raw()
                && metadata.mode() & 0o022 == 0,
        }
    }
}

impl Identity {
    /// Bytes of the component.
    pub(crate) fn size(&self) -> u64 {
        self.component.size
    }

    /// Whether a digest may be remembered for it: only for files that are this user's alone, and
    /// not for one that changed so shortly before that it could change again and look the same.
    pub(crate) fn is_settled(&self, now: i64) -> bool {
        const COARSEST_CLOCK: i64 = 3;
        let settled = |file: &FileIdentity| {
            file.ours && now.saturating_sub(file.changed.0.max(file.modified.0)) >= COARSEST_CLOCK
        };
        settled(&self.component) && self.beside.as_ref().is_none_or(settled)
    }

    pub(crate) fn place(&self) -> (u64, u64) {
        (self.component.device, self.component.inode)
    }
}

impl PluginFile {
    pub(crate) fn new(folder: &Arc<Dir>, name: &str) -> Self {
        Self { folder: Arc::clone(folder), name: name.to_owned() }
    }

    fn manifest_name(&self) -> String {
        format!("{}.toml", self.name.strip_suffix(".wasm").unwrap_or(&self.name))
    }

    /// How the files are now.
    pub(crate) fn identity(&self) -> Result<Identity, LoadError> {
        let component = self.folder.metadata(&self.name).map_err(LoadError::Read)?;
        check_component(&component)?;
        let beside = match self.folder.metadata(self.manifest_name()) {
            Ok(metadata) => Some(FileIdentity::of(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(LoadError::Read(error)),
        };
        Ok(Identity { component: FileIdentity::of(&component), beside })
    }

    /// Reads both files. Bytes that changed while they were read are not taken.
    pub(crate) fn read(&self) -> Result<Contents, LoadError> {
        let before = self.identity()?;
        let component = self.read_one(&self.name, check_component, COMPONENT_SIZE)?;
        let beside = match before.beside {
            None => None,
            Some(_) => {
                let name = self.manifest_name();
                let bytes = self.read_one(&name, check_manifest, MANIFEST_SIZE as u64)?;
                Some((name, bytes))
            }
        };
        if self.identity()? != before {
            return Err(LoadError::StillChanging);
        }
        let digest = digest(&component, beside.as_ref().map(|(_, bytes)| bytes.as_slice()));
        Ok(Contents { component: component.into(), beside, digest })
    }

    fn read_one(
        &self,
        name: &str,
        check: fn(&Metadata) -> Result<(), LoadError>,
        most: u64,
    ) -> Result<Vec<u8>, LoadError> {
        // A FIFO in the place of the file must not hold us.
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true);
        let file = self.folder.open_with(name, &options).map_err(LoadError::Read)?;
        let metadata = file.metadata().map_err(LoadError::Read)?;
        check(&metadata)?;
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
        file.take(most + 1).read_to_end(&mut bytes).map_err(LoadError::Read)?;
        if bytes.len() as u64 > most {
            return Err(LoadError::TooLarge { size: bytes.len() as u64 });
        }
        Ok(bytes)
    }
}

fn check_component(metadata: &Metadata) -> Result<(), LoadError> {
    if !metadata.is_file() {
        return Err(LoadError::NotAPluginFile("is not a regular file"));
    }
    if metadata.len() > COMPONENT_SIZE {
        return Err(LoadError::TooLarge { size: metadata.len() });
    }
    Ok(())
}

fn check_manifest(metadata: &Metadata) -> Result<(), LoadError> {
    if !metadata.is_file() {
        return Err(LoadError::NotAPluginFile(
            "has something beside it that has its manifest's name and is no regular file",
        ));
    }
    match usize::try_from(metadata.len()) {
        Ok(size) if size <= MANIFEST_SIZE => Ok(()),
        size => Err(belljar_capability::ManifestError::TooLong(size.unwrap_or(usize::MAX)).into()),
    }
}

/// The digest of a plugin, as it is written everywhere.
pub fn digest(component: &[u8], beside: Option<&[u8]>) -> String {
    let mut hasher = Sha256::new_with_prefix(component);
    if let Some(manifest) = beside {
        hasher.update(SEPARATOR);
        hasher.update(manifest);
    }
    format!("sha256:{}", cache::hex(&hasher.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_component_alone_is_that_of_its_bytes() {
        let alone = digest(b"abc", None);
        assert_eq!(
            alone,
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn another_split_of_the_same_bytes_is_another_plugin_or_none() {
        let pair = digest(b"ab", Some(b"cd"));
        for (component, beside) in
            [(&b"abcd"[..], None), (b"abc", Some(&b"d"[..])), (b"ab", Some(b"c")), (b"ab", None)]
        {
            assert_ne!(digest(component, beside), pair);
        }
        // The one spelling that hashes alike is no component: its last section has no such number.
        let mut alike = b"\0asm\x0d\0\x01\0".to_vec();
        let pair = digest(&alike, Some(b"cd"));
        alike.extend_from_slice(SEPARATOR);
        alike.extend_from_slice(b"cd");
        assert_eq!(digest(&alike, None), pair);
        let read = crate::manifest::Declared::read(&alike, None);
        assert!(matches!(read, Err(LoadError::Invalid(_))), "{read:?}");
    }
}
