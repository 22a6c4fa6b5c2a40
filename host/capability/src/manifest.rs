//! What a plugin asks for: its manifest, read without running it.
//!
//! The same document is JSON in the custom section `belljar:manifest` of a component and TOML in
//! `NAME.toml` beside `NAME.wasm`. Asking grants nothing: [`crate::Granted`] is the part of a
//! grant that was asked for.

use crate::{GuestPath, Limit, LimitSettings, NetGrant};
use belljar_types::Hints;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// The custom section of a component that holds its manifest.
pub const MANIFEST_SECTION: &str = "belljar:manifest";

/// The largest manifest, in bytes.
pub const MANIFEST_SIZE: usize = 1 << 20;

/// The version of the document; raised when an older host would misread it.
const FORMAT: u32 = 1;
const TEXT: usize = 300;
const ENTRIES: usize = 100;

/// What a plugin says of itself and what it asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this document.
    pub manifest: u32,
    /// The plugin's own version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One line for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its tools, where the manifest tells them; else the component is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<DeclaredTool>>,
    #[serde(default)]
    pub wants: Wants,
}

/// A tool as its plugin describes it, in a manifest or in its answer to `list-tools`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeclaredTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: String,
    /// JSON Schema of the arguments; its type is `object`.
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub hints: Hints,
}

/// What is asked for, per capability, each with a reason for people. What is absent is not asked
/// for, so it is not given either.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wants {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WantedFiles>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub net: Vec<WantedHost>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<WantedName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<WantedSecret>,
    /// By the limit's name, as it is written in configuration.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, WantedLimit>,
}

/// A folder, by where the plugin wants to see it; the root is the workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedFiles {
    pub path: String,
    #[serde(default)]
    pub write: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedHost {
    pub host: NetGrant,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedName {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedSecret {
    pub name: String,
    pub host: String,
    pub header: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedLimit {
    pub value: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// A manifest that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("its manifest is {0} bytes long; one has at most {MANIFEST_SIZE}")]
    TooLong(usize),
    #[error("its manifest cannot be read: {0}")]
    Syntax(String),
    #[error("its manifest has the format {0}, and this host reads {FORMAT}: use a newer host")]
    Format(u32),
    #[error("its manifest is wrong: {0}")]
    Wrong(String),
}

impl Manifest {
    /// Reads the content of the custom section.
    ///
    /// # Errors
    ///
    /// It is too long, no manifest, or asks for what there is not.
    pub fn from_section(bytes: &[u8]) -> Result<Self, ManifestError> {
        check_size(bytes.len())?;
        let manifest: Self = serde_json::from_slice(bytes)
            .map_err(|error| ManifestError::Syntax(error.to_string()))?;
        manifest.checked()
    }

    /// Reads the file beside a component.
    ///
    /// # Errors
    ///
    /// As [`Manifest::from_section`].
    pub fn from_toml(text: &str) -> Result<Self, ManifestError> {
        check_size(text.len())?;
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                1 + text.as_bytes()[..span.start.min(text.len())]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
            });
            let message = error.message().trim_end().replace('\n', ", ");
            ManifestError::Syntax(format!("line {line}: {message}"))
        })?;
        manifest.checked()
    }

    /// The content of the custom section.
    pub fn to_section(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether it says no more than what every plugin says: tools and texts, no wants.
    pub fn wants_nothing(&self) -> bool {
        self.wants == Wants::default()
    }

    fn checked(self) -> Result<Self, ManifestError> {
        let wrong = |problem: String| Err(ManifestError::Wrong(problem));
        if self.manifest != FORMAT {
            return Err(ManifestError::Format(self.manifest));
        }
        if self.version.len() > 64 {
            return wrong("`version` is longer than 64 bytes".to_owned());
        }
        if self.description.len() > TEXT || self.description.contains(['\n', '\r']) {
            return wrong(format!("`description` is not one line of at most {TEXT} bytes"));
        }
        let Wants { files, net, env, secrets, limits } = &self.wants;
        let counts = [files.len(), net.len(), env.len(), secrets.len(), limits.len()];
        if counts.into_iter().any(|count| count > ENTRIES) {
            return wrong(format!("it asks for more than {ENTRIES} things of a kind"));
        }
        let reasons = (files.iter().map(|want| &want.why))
            .chain(net.iter().map(|want| &want.why))
            .chain(env.iter().map(|want| &want.why))
            .chain(secrets.iter().map(|want| &want.why))
            .chain(limits.values().map(|want| &want.why));
        if reasons.into_iter().any(|why| why.len() > TEXT) {
            return wrong(format!("a `why` is longer than {TEXT} bytes"));
        }
        let mut paths = HashSet::new();
        for want in files {
            match want.path.parse::<GuestPath>() {
                Ok(path) if paths.insert(path.clone()) => {}
                Ok(path) => return wrong(format!("it asks for `{path}` twice")),
                Err(error) => return wrong(error.to_string()),
            }
        }
        for name in env.iter().map(|want| &want.name).chain(secrets.iter().map(|want| &want.name)) {
            if !is_variable(name) {
                return wrong(format!("`{}` is no variable's name", name.escape_debug()));
            }
        }
        if let Err(problem) = self.limits() {
            return wrong(problem);
        }
        Ok(self)
    }

    /// The limits that it asks for.
    ///
    /// # Errors
    ///
    /// A name or a value that there is not.
    pub fn limits(&self) -> Result<LimitSettings, String> {
        let read = |(name, want): (&String, &WantedLimit)| {
            let limit: Limit =
                name.parse().map_err(|error: crate::UnknownLimit| error.to_string())?;
            let value = limit.parse(&want.value).map_err(|error| error.to_string())?;
            Ok((limit, value))
        };
        self.wants.limits.iter().map(read).collect()
    }
}

fn check_size(size: usize) -> Result<(), ManifestError> {
    if size > MANIFEST_SIZE { Err(ManifestError::TooLong(size)) } else { Ok(()) }
}

/// Whether a text can name an environment variable.
pub fn is_variable(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && name.len() <= 128
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
