//! The `[workspaces."/absolute/path"]` tables: what a person said about one folder.
//!
//! ```toml
//! [workspaces."/home/me/project"]
//! allow = ["files/write_file"]    # allow rules that hold in this workspace alone: "always" adds them
//! trusted = "sha256:…"            # the digest of the `belljar.toml` that may be read there
//! ```

use super::{
    ConfigError,
    document::{Located, Section},
    file::rule_list,
    plugins::is_digest,
};
use belljar_capability::Rule;
use std::{
    collections::BTreeMap,
    path::{Component, PathBuf},
};

/// What a person said about one folder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceSettings {
    /// Allow rules that hold where this very folder is the workspace.
    pub allow: Vec<Rule>,
    /// The digest of what the folder may set: of its `belljar.toml`, or of an empty text where it
    /// has none.
    pub trusted: Option<String>,
}

pub(super) fn read(
    section: &Section<'_>,
) -> Result<BTreeMap<PathBuf, WorkspaceSettings>, ConfigError> {
    let mut workspaces = BTreeMap::new();
    for Located { value: name, at } in section.names() {
        let wrong = |problem: String| ConfigError::Value { at: at.clone(), problem };
        let path = PathBuf::from(name);
        if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
            return Err(wrong(format!("`{name}` is not the absolute path of a folder")));
        }
        let Some(table) = section.section(name)? else { continue };
        table.only(&["allow", "trusted"])?;
        let trusted = match table.string("trusted")? {
            Some(digest) if is_digest(digest.value) => Some(digest.value.to_owned()),
            None => None,
            Some(digest) => {
                return Err(ConfigError::Value {
                    at: digest.at,
                    problem: format!(
                        "`{}` is `sha256:` and 64 hexadecimal digits, as `belljar trust` writes it",
                        table.dotted("trusted")
                    ),
                });
            }
        };
        let settings = WorkspaceSettings { allow: rule_list(&table, "allow")?, trusted };
        // Collected again, a path loses its trailing `/`.
        let path: PathBuf = path.components().collect();
        if workspaces.insert(path, settings).is_some() {
            return Err(wrong(format!("`{name}` is named twice: keep one table for it")));
        }
    }
    Ok(workspaces)
}
