//! Names as text, and where the kernel says that an open file lies. It opens nothing.

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
};

/// A path, split where the last name in it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split<'p> {
    /// The folder that holds the name; empty for the folder that the path starts from.
    pub(super) folder: &'p str,
    pub(super) name: &'p str,
    /// The name with what follows it: `/` and `/.` mean something to the system.
    pub(super) last: &'p str,
}

impl Split<'_> {
    pub(super) fn is_bare(&self) -> bool {
        self.name.len() == self.last.len()
    }
}

/// Nothing where a path ends in no name of its own: an empty one, `/`, `a/.` after `..`, `..`.
pub(super) fn split(path: &str) -> Option<Split<'_>> {
    let mut kept = path;
    while let Some(shorter) = kept.strip_suffix('/').or_else(|| kept.strip_suffix("/.")) {
        kept = shorter;
    }
    let start = kept.rfind('/').map_or(0, |slash| slash + 1);
    let name = &kept[start..];
    if matches!(name, "" | "." | "..") {
        return None;
    }
    Some(Split { folder: &path[..start], name, last: &path[start..] })
}

/// What a path names if no link lies on it: nothing where it climbs or starts at the root.
pub(super) fn plain(path: &str) -> Option<Cow<'_, str>> {
    if path.starts_with('/') {
        return None;
    }
    let names = || path.split('/').filter(|name| !matches!(*name, "" | "."));
    if names().any(|name| name == "..") {
        return None;
    }
    if path.split('/').all(|name| !matches!(name, "" | ".")) {
        return Some(Cow::Borrowed(path));
    }
    Some(Cow::Owned(names().collect::<Vec<_>>().join("/")))
}

/// A path below a folder; either may be empty.
pub(super) fn join(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", path) => path.to_owned(),
        (folder, "") => folder.to_owned(),
        (folder, path) => format!("{folder}/{path}"),
    }
}

/// The rest of a path below a folder, by whole names: empty for the folder itself.
pub(super) fn rest<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    if folder.is_empty() {
        return Some(path);
    }
    let rest = path.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// Where one path lies below another, as text.
pub(super) fn below(path: &Path, folder: &Path) -> Option<String> {
    Some(path.strip_prefix(folder).ok()?.to_string_lossy().into_owned())
}

/// Where an open file lies, as the kernel knows it at this moment.
///
/// # Errors
///
/// It lies nowhere any more, or the system does not say.
#[cfg(target_os = "linux")]
pub(super) fn real_path(file: &fs::File) -> io::Result<PathBuf> {
    use std::os::unix::{ffi::OsStringExt, fs::MetadataExt};
    const GONE: &[u8] = b" (deleted)";
    let number = rustix::path::DecInt::from_fd(file);
    let text = rustix::fs::readlinkat(rustix_linux_procfs::proc_self_fd()?, number, Vec::new())?;
    let text = text.into_bytes();
    let ends_as_gone = text.ends_with(GONE);
    let path = PathBuf::from(std::ffi::OsString::from_vec(text));
    if ends_as_gone {
        // So the kernel marks what has lost its name. A name may end like this, too.
        let (here, there) = (file.metadata()?, fs::symlink_metadata(&path)?);
        if (here.dev(), here.ino()) != (there.dev(), there.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
    }
    Ok(path)
}

#[cfg(target_vendor = "apple")]
pub(super) fn real_path(file: &fs::File) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = rustix::fs::getpath(file)?;
    Ok(std::ffi::OsString::from_vec(path.into_bytes()).into())
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
pub(super) fn real_path(_: &fs::File) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A file's own number, which no other name or place changes.
pub(super) type Identity = (u64, u64);

#[cfg(unix)]
pub(super) fn identity(metadata: &fs::Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(super) fn identity(_: &fs::Metadata) -> Identity {
    (0, 0)
}

/// Whether an open file or folder has no name any more.
#[cfg(unix)]
pub(super) fn is_nameless(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.nlink() == 0
}

#[cfg(not(unix))]
pub(super) fn is_nameless(_: &fs::Metadata) -> bool {
    false
}

/// Whether a file lies where the kernel shows itself: `/proc/self/mem` is a regular file too.
#[cfg(target_os = "linux")]
pub(super) fn is_system_state(file: &fs::File) -> io::Result<bool> {
    const PROC: u32 = 0x9fa0;
    const SYSFS: u32 = 0x6265_6572;
    const DEVPTS: u32 = 0x1cd1;
    const CGROUP: u32 = 0x0027_e0eb;
    const CGROUP2: u32 = 0x6367_7270;
    const DEBUGFS: u32 = 0x6462_6720;
    const TRACEFS: u32 = 0x7472_6163;
    const SECURITYFS: u32 = 0x7363_6673;
    const CONFIGFS: u32 = 0x6265_6570;
    const PSTORE: u32 = 0x6165_676c;
    const MQUEUE: u32 = 0x1980_0202;
    const BINFMT: u32 = 0x4249_4e4d;
    const FUSECTL: u32 = 0x6573_5543;
    const BPF: u32 = 0xcafe_4a11;
    const EFIVARFS: u32 = 0xde5e_81e4;
    let kind = rustix::fs::fstatfs(file)?.f_type;
    // The magic numbers have 32 bits on every architecture, whatever the field's type.
    let kind = u32::try_from(kind & 0xffff_ffff).unwrap_or_default();
    let state = [
        PROC, SYSFS, DEVPTS, CGROUP, CGROUP2, DEBUGFS, TRACEFS, SECURITYFS, CONFIGFS, PSTORE,
        MQUEUE, BINFMT, FUSECTL, BPF, EFIVARFS,
    ];
    Ok(state.contains(&kind))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_system_state(_: &fs::File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_where_its_last_name_begins() {
        let case = |path: &'static str| {
            split(path).map(|Split { folder, name, last }| (folder, name, last))
        };
        assert_eq!(case("a"), Some(("", "a", "a")));
        assert_eq!(case("a/"), Some(("", "a", "a/")));
        assert_eq!(case("a/b//"), Some(("a/", "b", "b//")));
        assert_eq!(case("a/./."), Some(("", "a", "a/./.")));
        assert_eq!(case("/a"), Some(("/", "a", "a")));
        assert_eq!(case("../a/.b"), Some(("../a/", ".b", ".b")));
        assert_eq!(case("..."), Some(("", "...", "...")));
        assert_eq!(case("a."), Some(("", "a.", "a.")));
        for path in ["", ".", "..", "/", "//", "./.", "a/..", "a/../.", "/."] {
            assert_eq!(split(path), None, "{path}");
        }
    }

    #[test]
    fn a_plain_path_is_where_it_says() {
        assert_eq!(plain("a/b").as_deref(), Some("a/b"));
        assert_eq!(plain("./a//b/./").as_deref(), Some("a/b"));
        assert_eq!(plain(".").as_deref(), Some(""));
        assert_eq!(plain("").as_deref(), Some(""));
        assert_eq!(plain("a/../b"), None);
        assert_eq!(plain("/a"), None);
    }

    #[test]
    fn a_path_is_below_another_by_whole_names() {
        assert_eq!(rest("data/a", "data"), Some("a"));
        assert_eq!(rest("data", "data"), Some(""));
        assert_eq!(rest("database", "data"), None);
        assert_eq!(rest("a", ""), Some("a"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_knows_where_a_file_lies_and_when_it_lies_nowhere() {
        let folder = tempfile::TempDir::new().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let open = |name: &str| fs::File::create(root.join(name)).unwrap();
        let file = open("a");
        assert_eq!(real_path(&file).unwrap(), root.join("a"));
        fs::rename(root.join("a"), root.join("b")).unwrap();
        assert_eq!(real_path(&file).unwrap(), root.join("b"));
        fs::remove_file(root.join("b")).unwrap();
        assert_eq!(real_path(&file).unwrap_err().kind(), io::ErrorKind::NotFound);
        let odd = open("c (deleted)");
        assert_eq!(real_path(&odd).unwrap(), root.join("c (deleted)"));
        fs::remove_file(root.join("c (deleted)")).unwrap();
        assert_eq!(real_path(&odd).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
