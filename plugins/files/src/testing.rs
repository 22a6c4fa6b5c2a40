//! A folder to work in, and arguments as a model writes them. Never part of the plugin.

use belljar_sdk::{Output, serde::de::DeserializeOwned, serde_json::Value};
use belljar_workspace_path::Workspace;
use std::{fs, path::PathBuf};

pub(crate) use belljar_sdk::serde_json::json;

/// A workspace that goes with the test.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    pub(crate) workspace: Workspace,
}

impl Folder {
    pub(crate) fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { workspace: Workspace::at(folder.path()), folder };
        for (file, bytes) in files {
            let place = this.place(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, bytes).unwrap();
        }
        this
    }

    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.place(path)).unwrap()).unwrap()
    }

    /// Every path in the workspace, sorted; folders end in `/`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.place(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = format!("{folder}{}", entry.file_name().to_str().unwrap());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(format!("{path}/"));
                    paths.push(format!("{path}/"));
                } else {
                    paths.push(path);
                }
            }
        }
        paths.sort();
        paths
    }
}

/// The arguments of a tool, from the JSON that a model writes.
pub(crate) fn arguments<T: DeserializeOwned>(json: Value) -> T {
    belljar_sdk::serde_json::from_value(json).unwrap()
}

/// An output of these texts.
pub(crate) fn texts(texts: &[&str]) -> Output {
    texts.iter().fold(Output::new(), |output, text| output.with_text(*text))
}
