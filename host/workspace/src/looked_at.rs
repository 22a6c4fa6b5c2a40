//! What a plugin was when a person said yes to it, kept so that a later look can show what is
//! different now.
//!
//! Only ever shown: a record that is lost or false changes no grant.

use crate::places::{Places, PlacesError, private_dir};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, OpenOptions};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

/// No record is longer.
const MAX_RECORD: u64 = 16 << 20;

/// A plugin as it was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookedAt {
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Of its file, in bytes.
    pub size: u64,
    /// What says all about a tool, by its own name.
    pub tools: BTreeMap<String, String>,
    /// What its manifest asks for, one line each.
    pub wants: Vec<String>,
}

/// What is different between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    pub tools_added: Vec<String>,
    pub tools_removed: Vec<String>,
    pub tools_changed: Vec<String>,
    pub wants_added: Vec<String>,
    pub wants_removed: Vec<String>,
}

impl LookedAt {
    /// What is different now.
    pub fn differences(&self, now: &Self) -> Differences {
        let only = |a: &Self, b: &Self| -> Vec<String> {
            a.tools.keys().filter(|name| !b.tools.contains_key(*name)).cloned().collect()
        };
        let wants = |a: &Self, b: &Self| -> Vec<String> {
            a.wants.iter().filter(|want| !b.wants.contains(want)).cloned().collect()
        };
        let changed = self
            .tools
            .iter()
            .filter(|(name, before)| now.tools.get(*name).is_some_and(|after| after != *before));
        Differences {
            tools_added: only(now, self),
            tools_removed: only(self, now),
            tools_changed: changed.map(|(name, _)| name.clone()).collect(),
            wants_added: wants(now, self),
            wants_removed: wants(self, now),
        }
    }

    /// What is known of these bytes; nothing where no record of them can be read.
    pub fn read(places: &Places, digest: &str) -> Option<Self> {
        let folder = folder(places).ok()?;
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = folder.open_with(name(digest)?, &options).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut text = Vec::new();
        file.take(MAX_RECORD).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok().filter(|record: &Self| record.digest == digest)
    }

    /// Keeps it.
    ///
    /// # Errors
    ///
    /// It cannot be written; a later look then shows no difference.
    pub fn keep(&self, places: &Places) -> io::Result<()> {
        let folder = folder(places).map_err(io::Error::other)?;
        let name = name(&self.digest).ok_or(io::ErrorKind::InvalidInput)?;
        let temporary = format!(".{name}.{}", std::process::id());
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).follow(FollowSymlinks::No);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = folder.open_with(&temporary, &options)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        folder.rename(&temporary, &folder, name)
    }
}

fn folder(places: &Places) -> Result<Dir, PlacesError> {
    private_dir(&places.state)?;
    private_dir(&places.state.join("looked-at"))
}

/// A name for bytes: nothing that could be a path.
fn name(digest: &str) -> Option<String> {
    let hex = digest.strip_prefix("sha256:")?;
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| format!("{hex}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(digit: char, tools: &[(&str, &str)], wants: &[&str]) -> LookedAt {
        LookedAt {
            digest: format!("sha256:{}", digit.to_string().repeat(64)),
            size: 7,
            tools: tools.iter().map(|(name, all)| ((*name).into(), (*all).into())).collect(),
            wants: wants.iter().map(|want| (*want).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_different_is_told_both_ways() {
        let before =
            look('a', &[("gone", "x"), ("same", "x"), ("other", "x")], &["net a", "net b"]);
        let now = look('b', &[("new", "x"), ("same", "x"), ("other", "y")], &["net b", "net c"]);
        let list = |text: &str| vec![text.to_owned()];
        let expected = Differences {
            tools_added: list("new"),
            tools_removed: list("gone"),
            tools_changed: list("other"),
            wants_added: list("net c"),
            wants_removed: list("net a"),
        };
        assert_eq!(before.differences(&now), expected);
        assert_eq!(now.differences(&now), Differences::default());
    }

    #[test]
    fn a_record_is_read_back_by_its_digest_and_no_other() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::below(root.path());
        let look = look('1', &[("t", "x")], &[]);
        look.keep(&places).unwrap();
        look.keep(&places).unwrap();
        assert_eq!(LookedAt::read(&places, &look.digest), Some(look.clone()));
        let other = look.digest.replace("11", "77");
        let file = |digest: &str| places.state.join("looked-at").join(name(digest).unwrap());
        std::fs::rename(file(&look.digest), file(&other)).unwrap();
        assert_eq!(LookedAt::read(&places, &other), None);
        assert_eq!(LookedAt::read(&places, "sha256:../../x"), None);
        assert!(LookedAt { digest: "../x".to_owned(), ..look }.keep(&places).is_err());
    }
}
