//! Where Belljar's own things lie, and the making of its folders.
//!
//! Never reads or writes what lies in them.

use crate::owner::{Fault, Ownership};
use cap_std::{ambient_authority, fs::Dir};
use etcetera::BaseStrategy;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The folders of one user. All of them may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// `config.toml`.
    pub config: PathBuf,
    /// Plugins, skills, memory.
    pub data: PathBuf,
    /// Sessions, with the results that are too large for a conversation.
    pub state: PathBuf,
    /// What can be made again: compiled components, metadata.
    pub cache: PathBuf,
}

impl Places {
    /// The places of the user who runs this process: below `XDG_CONFIG_HOME`, `XDG_DATA_HOME`,
    /// `XDG_STATE_HOME` and `XDG_CACHE_HOME` where these are absolute paths, else below the
    /// platform's usual folders in the home folder.
    ///
    /// # Errors
    ///
    /// Nothing says where the home folder is.
    pub fn from_env() -> Result<Self, PlacesError> {
        let base = etcetera::choose_base_strategy().map_err(|_| PlacesError::NoHome)?;
        let data = base.data_dir().join("belljar");
        // Windows has no folder for state: it lies beside the data there.
        let state = base.state_dir().map_or_else(|| data.join("state"), |dir| dir.join("belljar"));
        Ok(Self {
            config: base.config_dir().join("belljar"),
            data,
            state,
            cache: base.cache_dir().join("belljar"),
        })
    }

    /// Places below one folder, for tests and programs that keep Belljar's things to themselves.
    pub fn below(folder: &Path) -> Self {
        Self {
            config: folder.join("config"),
            data: folder.join("data"),
            state: folder.join("state"),
            cache: folder.join("cache"),
        }
    }

    /// All of them.
    pub fn folders(&self) -> [PathBuf; 4] {
        [&self.config, &self.data, &self.state, &self.cache].map(PathBuf::clone)
    }

    /// The user's configuration.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The folder that is scanned for plugins.
    pub fn plugins(&self) -> PathBuf {
        self.data.join("plugins")
    }

    /// The folder of the user's skills.
    pub fn skills(&self) -> PathBuf {
        self.data.join("skills")
    }

    /// The folder of memories, one folder a workspace in it.
    pub fn memory(&self) -> PathBuf {
        self.data.join("memory")
    }

    /// The folder of session files.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }
}

/// A folder of our own that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlacesError {
    #[error("your home folder is not known: set `HOME`")]
    NoHome,
    #[error(
        "the folder `{}` cannot be used: {error}: make it usable, or set `XDG_CONFIG_HOME`, \
         `XDG_DATA_HOME`, `XDG_STATE_HOME` and `XDG_CACHE_HOME` to folders that are", path.display()
    )]
    Io { path: PathBuf, error: io::Error },
    #[error("the folder `{}` {fault}, so nothing in it is used: {}", path.display(), remedy(path, fault))]
    Refused { path: PathBuf, fault: Fault },
}

fn remedy(path: &Path, fault: &Fault) -> String {
    match fault {
        Fault::ForeignOwner { .. } => {
            "set `HOME` or the `XDG_…_HOME` variables to folders of your own".to_owned()
        }
        Fault::WritableByOthers { .. } | Fault::NotPrivate { .. } => {
            format!("run `chmod go-w '{}'`", path.display())
        }
    }
}

/// Opens a folder of our own, and makes it first, for its owner only, where it is missing.
///
/// # Errors
///
/// It cannot be made or opened, belongs to another user, or others can write to it.
pub fn private_dir(path: &Path) -> Result<Dir, PlacesError> {
    let io_error = |error| PlacesError::Io { path: path.to_owned(), error };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path).map_err(io_error)?;
    let dir = Dir::open_ambient_dir(path, ambient_authority()).map_err(io_error)?;
    let metadata = dir.dir_metadata().map_err(io_error)?;
    Ownership::from(&metadata)
        .guarded()
        .map_err(|fault| PlacesError::Refused { path: path.to_owned(), fault })?;
    Ok(dir)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn missing_folders_are_made_for_their_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/c");
        private_dir(&path).unwrap();
        assert_eq!((mode(&root.path().join("a")), mode(&path)), (0o700, 0o700));
        private_dir(&path).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused_with_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("open");
        std::fs::create_dir(&path).unwrap();
        for bits in [0o770, 0o707, 0o1777] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits)).unwrap();
            assert_eq!(
                private_dir(&path).unwrap_err().to_string(),
                format!(
                    "the folder `{path}` can be written by others (mode {bits:04o}), so nothing \
                     in it is used: run `chmod go-w '{path}'`",
                    path = path.display()
                )
            );
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        private_dir(&path).unwrap();
    }

    #[test]
    fn a_file_in_the_place_of_a_folder_is_an_error_that_names_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        std::fs::write(&path, "").unwrap();
        let message = private_dir(&path).unwrap_err().to_string();
        assert!(message.starts_with(&format!("the folder `{}` cannot be used: ", path.display())));
    }

    #[test]
    fn places_follow_the_environment() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let own = |name: &str| root.join(name).join("belljar");
        let named = Places { config: own("c"), data: own("d"), state: own("s"), cache: own("k") };
        let usual = Places {
            config: root.join(".config/belljar"),
            data: root.join(".local/share/belljar"),
            state: root.join(".local/state/belljar"),
            cache: root.join(".cache/belljar"),
        };
        let variables = ["CONFIG", "DATA", "STATE", "CACHE"].map(|kind| format!("XDG_{kind}_HOME"));
        let absolute = ["c", "d", "s", "k"].map(|name| root.join(name));
        // A relative path in these variables counts as none, as the convention has it.
        let relative = ["c", "d", "s", "k"].map(PathBuf::from);
        for (values, expected) in [(absolute, named), (relative, usual)] {
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "places::tests::show_places", "--ignored", "--nocapture"])
                .env("HOME", root)
                .envs(variables.iter().zip(values))
                .output()
                .unwrap();
            let shown = String::from_utf8(output.stdout).unwrap();
            assert!(shown.contains(&format!("{expected:?}\n")), "{shown}");
        }
    }

    #[test]
    #[ignore = "run in a process of its own by the test above"]
    fn show_places() {
        use std::io::Write;
        let places = Places::from_env().unwrap();
        writeln!(std::io::stdout(), "{places:?}").unwrap();
    }
}
