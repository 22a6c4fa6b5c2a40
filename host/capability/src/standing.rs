//! Whether a plugin's bytes are ones that a person said yes to.

use crate::{Binding, PluginGrant};
use std::path::Path;

/// What a person has said about a plugin's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It comes with the program.
    Bundled,
    /// A person said yes to these bytes: its grants hold.
    Granted,
    /// A person works on it: whatever lies at its path has its grants.
    Dev,
    /// It was named for this run, or the folder that it lies in was: it is offered, with no grants
    /// but those of this run.
    Named,
    /// Nobody has said anything: it is listed and not offered.
    Unseen,
    /// A person said yes to other bytes of this name: its grants are suspended until somebody
    /// looks at the difference.
    Changed {
        /// The digest that the grant is bound to.
        from: String,
        /// It was named for this run, or the folder that it lies in was, so it is offered all the
        /// same.
        named: bool,
    },
}

impl Standing {
    /// Whether the plugin gets what its grant says.
    pub fn has_grants(&self) -> bool {
        matches!(self, Self::Bundled | Self::Granted | Self::Dev)
    }

    /// Whether its tools are offered to the model.
    pub fn is_offered(&self) -> bool {
        match self {
            Self::Bundled | Self::Granted | Self::Dev | Self::Named => true,
            Self::Changed { named, .. } => *named,
            Self::Unseen => false,
        }
    }

    /// Whether allow rules of the configuration hold for it: a rule binds name and digest.
    pub fn is_known(&self) -> bool {
        self.has_grants()
    }
}

/// Judges a plugin that is not bundled. `named` says that its folder was named for this run.
pub fn standing(digest: &str, path: &Path, grant: Option<&PluginGrant>, named: bool) -> Standing {
    match grant.and_then(|grant| grant.binding.as_ref()) {
        Some(Binding::Dev(dev)) if dev == path => Standing::Dev,
        Some(Binding::Digest(granted)) if granted == digest => Standing::Granted,
        Some(Binding::Digest(granted)) => Standing::Changed { from: granted.clone(), named },
        // A grant that is bound to another path, or to nothing, says nothing of these bytes.
        Some(Binding::Dev(_)) | None if named => Standing::Named,
        Some(Binding::Dev(_)) | None => Standing::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_hold_for_the_bytes_or_the_path_that_they_were_given_to() {
        let path = Path::new("/plugins/weather.wasm");
        let bound = |binding| PluginGrant { binding: Some(binding), ..PluginGrant::default() };
        let digest = bound(Binding::Digest("sha256:a".into()));
        let dev = bound(Binding::Dev(path.to_owned()));
        let elsewhere = bound(Binding::Dev("/other/weather.wasm".into()));
        let unbound = PluginGrant::default();
        let changed = |named| Standing::Changed { from: "sha256:a".into(), named };
        let cases = [
            ("sha256:a", Some(&digest), false, Standing::Granted),
            ("sha256:b", Some(&digest), false, changed(false)),
            ("sha256:b", Some(&digest), true, changed(true)),
            ("sha256:b", Some(&dev), false, Standing::Dev),
            ("sha256:a", Some(&elsewhere), false, Standing::Unseen),
            ("sha256:a", Some(&unbound), false, Standing::Unseen),
            ("sha256:a", Some(&unbound), true, Standing::Named),
            ("sha256:a", None, false, Standing::Unseen),
            ("sha256:a", None, true, Standing::Named),
        ];
        for (bytes, grant, named, expected) in cases {
            assert_eq!(standing(bytes, path, grant, named), expected, "{bytes} {grant:?} {named}");
        }
        let rights = |standing: Standing| (standing.is_offered(), standing.has_grants());
        assert_eq!(rights(Standing::Named), (true, false));
        assert_eq!(rights(changed(true)), (true, false));
        assert_eq!(rights(changed(false)), (false, false));
        assert_eq!(rights(Standing::Unseen), (false, false));
    }
}
