//! A yes for good: what it writes into the user's configuration, and where.

use belljar_capability::PluginGrant;
use belljar_types::{Always, ApprovalQuestion};
use belljar_workspace::{Change, Expected, GrantStore};
use std::path::{Path, PathBuf};

/// Where such a yes is written, and for which workspace.
#[derive(Debug)]
pub(crate) struct Lasting {
    store: GrantStore,
    workspace: PathBuf,
}

/// One that can be given.
#[derive(Debug)]
pub(crate) struct ForGood<'a> {
    store: &'a GrantStore,
    line: String,
    change: Change,
}

impl Lasting {
    pub(crate) fn new(store: GrantStore, workspace: &Path) -> Self {
        Self { store, workspace: workspace.to_owned() }
    }

    /// The yes for good that answers a question, where there is one.
    pub(crate) fn to(&self, question: &ApprovalQuestion) -> Option<ForGood<'_>> {
        let always = question.question.always.as_ref()?;
        let (line, change) = match always {
            Always::Rule { rule } => (
                format!("workspaces.{:?}.{always}", self.workspace.display().to_string()),
                Change::Allow { workspace: self.workspace.clone(), rule: rule.parse().ok()? },
            ),
            Always::Host { plugin, host } => (
                always.to_string(),
                Change::Grant {
                    plugin: plugin.to_string(),
                    grant: PluginGrant { net: vec![host.parse().ok()?], ..PluginGrant::default() },
                    // Not to other bytes that somebody else said yes to meanwhile.
                    expected: Expected::Digest(question.source.digest.to_string()),
                },
            ),
        };
        Some(ForGood { store: &self.store, line, change })
    }
}

impl ForGood<'_> {
    /// The line that is written.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// The file that it is written to.
    pub(crate) fn file(&self) -> &Path {
        self.store.file()
    }

    /// Writes it, or says why not.
    pub(crate) fn write(&self) -> Result<(), String> {
        self.store.apply(&self.change).map_err(|error| error.to_string())
    }
}
