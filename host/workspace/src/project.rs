//! What a workspace brings of its own: a `belljar.toml` and the folders `.belljar/plugins` and
//! `.belljar/skills`.
//!
//! Looked for from the workspace up to the repository's root and no further; the nearest folder
//! that has one of them is the one that counts. Nothing of another user, nothing that others can write
//! and nothing through a link is taken. Finding it is no trust: that is a person's, bound to the
//! digest of the file.

use crate::{owner::Ownership, repository::Workspace, text_file};
use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};
use sha2::{Digest, Sha256};
use std::{
    io,
    path::{Path, PathBuf},
};

const FILE: &str = "belljar.toml";
const BELLJAR: &str = ".belljar";
const PLUGINS: &str = "plugins";
const SKILLS: &str = "skills";

/// The longest file, in bytes.
const MAX_FILE: usize = 256 << 10;

/// A folder that brings something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    folder: PathBuf,
    text: Option<String>,
    has_plugins: bool,
    has_skills: bool,
}

/// Why what is there is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not read: {reason}", path.display())]
pub struct ProjectError {
    pub path: PathBuf,
    pub reason: String,
}

impl Project {
    /// Finds what a workspace brings; nothing where it brings nothing.
    ///
    /// # Errors
    ///
    /// Something is there and cannot be taken.
    pub fn find(workspace: &Workspace) -> Result<Option<Self>, ProjectError> {
        let folders = workspace.folders_down();
        let Some(top) = folders.first() else { return Ok(None) };
        let refused = |path: &Path, reason: String| ProjectError { path: path.to_owned(), reason };
        let mut dir = Dir::open_ambient_dir(top, ambient_authority())
            .map_err(|error| refused(top, error.to_string()))?;
        let mut nearest = None;
        for folder in &folders {
            if let (true, Some(name)) = (folder != top, folder.file_name()) {
                dir = dir
                    .open_dir_nofollow(name)
                    .map_err(|error| refused(folder, error.to_string()))?;
            }
            let found = |name: &str| dir.symlink_metadata(name).ok();
            // A link is refused below, whatever lies behind it.
            let brings_folders = found(BELLJAR).is_some_and(|belljar| belljar.is_symlink())
                || [PLUGINS, SKILLS]
                    .iter()
                    .any(|kind| found(&format!("{BELLJAR}/{kind}")).is_some());
            if found(FILE).is_some() || brings_folders {
                nearest = Some((*folder, dir.try_clone()));
            }
        }
        let Some((folder, dir)) = nearest else { return Ok(None) };
        let dir = dir.map_err(|error| refused(folder, error.to_string()))?;
        let text = read_file(&dir).map_err(|reason| refused(&folder.join(FILE), reason))?;
        let has = |kind: &str| {
            has_folder(&dir, kind)
                .map_err(|reason| refused(&folder.join(BELLJAR).join(kind), reason))
        };
        let (has_plugins, has_skills) = (has(PLUGINS)?, has(SKILLS)?);
        Ok(Some(Self { folder: folder.to_owned(), text, has_plugins, has_skills }))
    }

    /// The folder that trust is about.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its `belljar.toml`, there or not.
    pub fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// What stands in it; nothing where there is none.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The folder of its plugins, where it has one.
    pub fn plugins(&self) -> Option<PathBuf> {
        self.has_plugins.then(|| self.folder.join(BELLJAR).join(PLUGINS))
    }

    /// The folder of its skills, where it has one.
    pub fn skills(&self) -> Option<PathBuf> {
        self.has_skills.then(|| self.folder.join(BELLJAR).join(SKILLS))
    }

    /// What trust is bound to: the digest of the file, or of an empty text where there is none.
    pub fn digest(&self) -> String {
        let hash = Sha256::digest(self.text.as_deref().unwrap_or_default());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256:{hex}")
    }

    /// What it brings, in words.
    pub fn what(&self) -> String {
        let file = self.text.is_some().then(|| format!("`{}`", self.file().display()));
        let folder = |what: &str, path: Option<PathBuf>| {
            path.map(|path| format!("the {what} in `{}`", path.display()))
        };
        let folders = [folder(PLUGINS, self.plugins()), folder(SKILLS, self.skills())];
        let all: Vec<_> = file.into_iter().chain(folders.into_iter().flatten()).collect();
        all.join(" and ")
    }
}

fn read_file(dir: &Dir) -> Result<Option<String>, String> {
    match text_file::open(dir, FILE, Ownership::guarded)? {
        Some(file) => text_file::read_whole(file, MAX_FILE).map(Some),
        None => Ok(None),
    }
}

/// Whether `.belljar` holds a folder of that name.
fn has_folder(dir: &Dir, name: &str) -> Result<bool, String> {
    let open = |dir: &Dir, name: &str| match dir.open_dir_nofollow(name) {
        Ok(dir) => {
            let metadata = dir.dir_metadata().map_err(|error| error.to_string())?;
            Ownership::from(&metadata).guarded().map_err(|fault| format!("it {fault}"))?;
            Ok(Some(dir))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => Err("it, or the folder that it lies in, is a link or no folder".to_owned()),
    };
    match open(dir, BELLJAR)? {
        Some(dir) => Ok(open(&dir, name)?.is_some()),
        None => Ok(false),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt};

    /// A repository with folders `a/b`, inside a folder that is not its own.
    fn repository() -> (tempfile::TempDir, PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("repository");
        for folder in [".git/objects", ".git/refs", "a/b"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        (guard, root)
    }

    fn find(folder: &Path) -> Result<Option<Project>, String> {
        Project::find(&Workspace::open(folder).unwrap()).map_err(|error| error.to_string())
    }

    fn project(folder: &Path, text: Option<&str>, has_plugins: bool) -> Project {
        let text = text.map(str::to_owned);
        Project { folder: folder.to_owned(), text, has_plugins, has_skills: false }
    }

    #[test]
    fn the_nearest_folder_that_brings_something_counts_and_none_above_the_root() {
        let (_guard, root) = repository();
        let inner = root.join("a/b");
        fs::write(root.join("../belljar.toml"), "").unwrap();
        assert_eq!(find(&inner), Ok(None));
        fs::write(root.join("belljar.toml"), "x").unwrap();
        assert_eq!(find(&inner), Ok(Some(project(&root, Some("x"), false))));
        fs::create_dir_all(root.join("a/.belljar/plugins")).unwrap();
        let nearer = project(&root.join("a"), None, true);
        assert_eq!(find(&inner), Ok(Some(nearer.clone())));
        assert_eq!(
            nearer.what(),
            format!("the plugins in `{}/a/.belljar/plugins`", root.display())
        );
        assert_eq!(
            nearer.digest(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        fs::create_dir(root.join("a/.belljar/skills")).unwrap();
        let with_skills = Project { has_skills: true, ..nearer };
        assert_eq!(find(&inner), Ok(Some(with_skills.clone())));
        assert_eq!(
            with_skills.what(),
            format!(
                "the plugins in `{root}/a/.belljar/plugins` and the skills in \
                 `{root}/a/.belljar/skills`",
                root = root.display()
            )
        );
        fs::remove_dir(root.join("a/.belljar/skills")).unwrap();
        fs::write(inner.join("belljar.toml"), "y").unwrap();
        assert_eq!(find(&inner), Ok(Some(project(&inner, Some("y"), false))));
        // Without a repository only the workspace itself counts.
        fs::remove_dir_all(root.join(".git")).unwrap();
        assert_eq!(find(&root.join("a")), Ok(Some(project(&root.join("a"), None, true))));
        fs::create_dir(inner.join("c")).unwrap();
        assert_eq!(find(&inner.join("c")), Ok(None));
    }

    #[test]
    fn what_is_not_the_users_own_plain_file_is_refused() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let (_guard, root) = repository();
        let file = root.join("belljar.toml");
        let refused = |reason: &str| Err(format!("`{}` is not read: {reason}", file.display()));
        std::os::unix::fs::symlink("other.toml", &file).unwrap();
        let link = "it is a link, and links are not followed: put the text into the file itself";
        assert_eq!(find(&root), refused(link));
        fs::write(root.join("other.toml"), "").unwrap();
        assert_eq!(find(&root), refused(link));
        fs::remove_file(&file).unwrap();
        mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(find(&root), refused("it is not a regular file"));
        fs::remove_file(&file).unwrap();
        fs::write(&file, "").unwrap();
        for mode in [0o666, 0o664, 0o646] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                find(&root),
                refused(&format!("it can be written by others (mode {mode:04o})"))
            );
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&file, "#".repeat(256 << 10)).unwrap();
        assert!(find(&root).unwrap().is_some());
        fs::write(&file, "#".repeat((256 << 10) + 1)).unwrap();
        assert_eq!(find(&root), refused("it is longer than 262144 bytes"));
        fs::write(&file, "").unwrap();
        // Only the administrator can make a file that is somebody else's.
        if std::os::unix::fs::chown(&file, Some(4321), None).is_ok() {
            let user = rustix::process::geteuid().as_raw();
            assert_eq!(
                find(&root),
                refused(&format!("it belongs to user 4321, and you are user {user}"))
            );
        }
    }

    #[test]
    fn a_folder_of_plugins_behind_a_link_is_refused() {
        let (_guard, root) = repository();
        fs::create_dir_all(root.join("../elsewhere/plugins")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", root.join(".belljar")).unwrap();
        let message = format!(
            "`{}/.belljar/plugins` is not read: it, or the folder that it lies in, is a link or no \
             folder",
            root.display()
        );
        assert_eq!(find(&root), Err(message.clone()));
        fs::remove_file(root.join(".belljar")).unwrap();
        fs::create_dir(root.join(".belljar")).unwrap();
        std::os::unix::fs::symlink("../../elsewhere/plugins", root.join(".belljar/plugins"))
            .unwrap();
        assert_eq!(find(&root), Err(message));
    }
}
