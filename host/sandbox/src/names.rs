//! The names that the model uses for tools.
//!
//! A bundled tool has a bare name, every other one is `plugin__tool`, always, so that dropping a
//! file into a folder never renames another tool. Model servers take letters, digits, `_` and `-`,
//! 64 at most; whatever else a file's name holds is replaced, with a piece of a hash so that two
//! different names stay different.

use crate::cache::hex;
use sha2::{Digest, Sha256};

/// The longest name that every model server takes.
const LONGEST: usize = 64;
/// Hexadecimal digits of the hash that a changed name carries.
const HASH_DIGITS: usize = 8;

/// The name for a tool of a plugin that is not bundled.
pub(crate) fn qualified(plugin: &str, tool: &str) -> String {
    let full = format!("{plugin}__{tool}");
    let clean: String = full
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    if clean == full && full.len() <= LONGEST && full.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return full;
    }
    let mut hash = hex(&Sha256::digest(full.as_bytes()));
    hash.truncate(HASH_DIGITS);
    let kept: String = clean.chars().take(LONGEST - HASH_DIGITS - "p__".len()).collect();
    let lead = if kept.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "p_" };
    format!("{lead}{kept}_{hash}")
}

/// What two names that a person or a model could take for each other have in common.
pub fn look_alike(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Whether a plugin may call a tool so: a letter, then letters, digits or `_`, 64 at most.
pub(crate) fn is_tool_name(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_fit_every_server_and_stay_different() {
        assert_eq!(qualified("weather", "forecast"), "weather__forecast");
        assert_eq!(qualified("my-tool", "run"), "my-tool__run");
        let odd = ["a b", "a.b", "a/b", "ä", "9lives", "", &"x".repeat(80), &"x".repeat(81)];
        let names: Vec<String> = odd.iter().map(|plugin| qualified(plugin, "run")).collect();
        for name in &names {
            assert!(name.len() <= 64, "{name}");
            assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}");
            assert!(
                name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
                "{name}"
            );
        }
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), odd.len(), "{names:?}");
    }

    #[test]
    fn tool_names_are_checked() {
        for good in ["a", "read_file", "T1", &"a".repeat(64)] {
            assert!(is_tool_name(good), "{good}");
        }
        for bad in ["", "_a", "1a", "a-b", "a b", "a.b", "ä", &"a".repeat(65)] {
            assert!(!is_tool_name(bad), "{bad}");
        }
    }

    #[test]
    fn look_alikes_meet() {
        assert_eq!(look_alike("Read-File"), look_alike("read_file"));
        assert_ne!(look_alike("readfile"), look_alike("read_file"));
    }
}
