//! Guest paths, and the two kinds of names that are held apart from all others: those that a person
//! denied, and those that the host or a person's other tools will later obey.
//!
//! All of it is about text. Which file a path finally leads to is found out where it is opened.

use globset::{GlobBuilder, GlobMatcher};
use std::{borrow::Cow, fmt, str::FromStr};

/// A folder or file as a guest sees it, from its root: no leading, trailing or double `/`, no `.`
/// and no `..`. The root itself is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GuestPath(String);

/// A text that is no guest path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuestPathError {
    #[error("`{path}` climbs out of its folder: write it without `..`")]
    Climbs { path: String },
    #[error("`{path}` holds a control character or a backslash: write a plain path with `/`")]
    Character { path: String },
}

impl FromStr for GuestPath {
    type Err = GuestPathError;

    /// Takes `data`, `/data` and `./data/` alike.
    fn from_str(text: &str) -> Result<Self, GuestPathError> {
        if text.contains(|c: char| c.is_control() || c == '\\') {
            return Err(GuestPathError::Character { path: text.escape_debug().to_string() });
        }
        let parts: Vec<_> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.contains(&"..") {
            return Err(GuestPathError::Climbs { path: text.to_owned() });
        }
        Ok(Self(parts.join("/")))
    }
}

impl GuestPath {
    /// The root.
    pub const ROOT: Self = Self(String::new());

    /// What a text names if it is a path: `..` goes up, and a text that goes above the root, holds
    /// control characters or is too long to be a path names nothing.
    pub fn named_by(text: &str) -> Option<Self> {
        const LONGEST: usize = 4_096;
        if text.len() > LONGEST || text.contains(char::is_control) {
            return None;
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()?),
                part => parts.push(part),
            }
        }
        Some(Self(parts.join("/")))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The rest of a path below this one; empty for this one itself.
    pub fn rest_of<'a>(&self, path: &'a GuestPath) -> Option<&'a str> {
        if self.is_root() {
            return Some(&path.0);
        }
        let rest = path.0.strip_prefix(&self.0)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// Something below this path, by a relative guest path.
    pub fn join(&self, relative: &GuestPath) -> Self {
        match (self.is_root(), relative.is_root()) {
            (true, _) => relative.clone(),
            (_, true) => self.clone(),
            _ => Self(format!("{}/{}", self.0, relative.0)),
        }
    }
}

impl fmt::Display for GuestPath {
    /// With the leading `/` that guests and people write.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

/// Names inside granted folders that stay closed.
///
/// A glob is matched against a path from the folder's root, case aside, and closes all that is
/// below what it matches; `*` stays within a name, `**` does not. A glob without `/` means that
/// name at any depth.
#[derive(Clone, Debug, Default)]
pub struct DenyGlobs {
    globs: Vec<DenyGlob>,
}

#[derive(Clone, Debug)]
struct DenyGlob {
    text: String,
    whole: GlobMatcher,
    /// What comes before each `/` of the glob: folders whose renaming would open what it closes.
    beginnings: Vec<GlobMatcher>,
}

/// A deny glob that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deny glob `{glob}` cannot be read: {reason}; write one such as `**/.env`")]
pub struct DenyGlobError {
    pub glob: String,
    pub reason: String,
}

impl DenyGlobs {
    /// # Errors
    ///
    /// The first glob that cannot be read.
    pub fn new<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, DenyGlobError> {
        let read = |glob: S| DenyGlob::new(glob.as_ref());
        Ok(Self { globs: globs.into_iter().map(read).collect::<Result<_, _>>()? })
    }

    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// The globs as they were written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.globs.iter().map(|glob| glob.text.as_str())
    }

    /// The glob that closes a path, or something above it. The path is relative to the folder.
    pub fn closes(&self, path: &str) -> Option<&str> {
        let closed = |glob: &&DenyGlob| ancestors(path).any(|path| glob.whole.is_match(path));
        self.globs.iter().find(closed).map(|glob| glob.text.as_str())
    }

    /// The glob that a folder's name is part of: were it renamed or moved, names below it would no
    /// longer be closed.
    pub fn begins_at(&self, folder: &str) -> Option<&str> {
        let begins =
            |glob: &&DenyGlob| glob.beginnings.iter().any(|beginning| beginning.is_match(folder));
        self.globs.iter().find(begins).map(|glob| glob.text.as_str())
    }
}

impl DenyGlob {
    fn new(text: &str) -> Result<Self, DenyGlobError> {
        let error = |reason: &str| DenyGlobError { glob: text.to_owned(), reason: reason.into() };
        let trimmed = text.trim_matches('/');
        let trimmed = trimmed.strip_prefix("./").unwrap_or(trimmed);
        if trimmed.is_empty() {
            return Err(error("it is empty"));
        }
        if trimmed.split('/').any(|part| matches!(part, "." | ".." | "")) {
            return Err(error("it holds `.`, `..` or an empty name"));
        }
        let anywhere = !text.trim_end_matches('/').contains('/');
        let glob = if anywhere { Cow::Owned(format!("**/{trimmed}")) } else { trimmed.into() };
        let matcher = |glob: &str| {
            GlobBuilder::new(glob)
                .literal_separator(true)
                .case_insensitive(true)
                .backslash_escape(false)
                .build()
                .map(|glob| glob.compile_matcher())
                .map_err(|problem| error(&problem.kind().to_string()))
        };
        // The `/` in `{a/b,c}` would make halves of it that are no globs.
        if glob.contains(['{', '}']) {
            return Err(error("braces are not taken; write one glob for each alternative"));
        }
        let beginnings = glob
            .match_indices('/')
            .map(|(place, _)| &glob[..place])
            .filter(|beginning| *beginning != "**")
            .map(matcher)
            .collect::<Result<_, _>>()?;
        Ok(Self { text: text.to_owned(), whole: matcher(&glob)?, beginnings })
    }
}

/// A path and all that is above it, without the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rfind('/').map(|end| &path[..end]))
        .filter(|path| !path.is_empty())
}

/// Folders whose whole content is protected.
const PROTECTED_FOLDERS: [&str; 16] = [
    ".agents",
    ".belljar",
    ".claude",
    ".codex",
    ".cursor",
    ".devcontainer",
    ".gemini",
    ".git",
    ".husky",
    ".idea",
    ".ssh",
    ".vscode",
    // The same folder by the short name that FAT and NTFS give it.
    "git~1",
    ".circleci",
    ".githooks",
    ".zed",
];

/// Files that are protected in any folder.
const PROTECTED_FILES: [&str; 26] = [
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".clinerules",
    ".cursorrules",
    ".envrc",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".mcp.json",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".profile",
    ".windsurfrules",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    "agents.md",
    "agents.override.md",
    "belljar.toml",
    "claude.local.md",
    "claude.md",
    "gemini.md",
    "skill.md",
];

/// Pairs of folder and name that are protected together with all that is below.
const PROTECTED_PAIRS: [(&str, &str); 4] = [
    (".github", "copilot-instructions.md"),
    (".github", "workflows"),
    (".github", "actions"),
    (".config", "git"),
];

/// Whether a path, from the root of a folder, is one that the host or a person's other tools will
/// later execute or obey: hooks of git, instructions to agents, editors' tasks, shells' start
/// files, our own configuration. At any depth, case aside; what is below a skill's folder counts
/// where the folder is one of the usual ones.
pub fn is_protected(path: &str) -> bool {
    let mut before = String::new();
    path.split('/').any(|part| {
        let name = folded(part);
        let found = PROTECTED_FOLDERS.contains(&name.as_str())
            || PROTECTED_FILES.contains(&name.as_str())
            || PROTECTED_PAIRS.contains(&(before.as_str(), name.as_str()));
        before = name;
        found
    })
}

/// Whether protected paths may lie below a folder because of its name: renaming a folder to it, or
/// away from it, is writing them.
pub fn begins_protected(folder: &str) -> bool {
    let last = folded(folder.rsplit('/').next().unwrap_or_default());
    PROTECTED_PAIRS.iter().any(|(name, _)| *name == last)
}

/// A name as the most forgiving disk compares it: case aside, without characters that HFS+ skips
/// and without the dots and spaces at its end that Windows skips.
fn folded(name: &str) -> String {
    let skipped = |c: &char| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let kept: String = name.chars().filter(skipped).flat_map(char::to_lowercase).collect();
    let stream = kept.split(':').next().unwrap_or_default();
    stream.trim_end_matches(['.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_paths_are_canonical() {
        let parse = |text: &str| text.parse::<GuestPath>().map(|path| path.0);
        for text in ["data/a", "/data/a", "./data//a/", "data/./a"] {
            assert_eq!(parse(text).as_deref(), Ok("data/a"), "{text}");
        }
        for text in ["", "/", ".", "./"] {
            assert_eq!(parse(text).as_deref(), Ok(""), "{text}");
        }
        assert_eq!(parse("a/../b"), Err(GuestPathError::Climbs { path: "a/../b".into() }));
        for text in ["a\0b", "a\nb", "a\\b"] {
            assert!(matches!(parse(text), Err(GuestPathError::Character { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_text_names_a_path_or_none() {
        let named = |text: &str| GuestPath::named_by(text).map(|path| path.0);
        assert_eq!(named("a/../b/./c/").as_deref(), Some("b/c"));
        assert_eq!(named("/.git/hooks/../config").as_deref(), Some(".git/config"));
        assert_eq!(named("a/..").as_deref(), Some(""));
        assert_eq!(named("../a"), None);
        assert_eq!(named("a/../../b"), None);
        assert_eq!(named("a\nb"), None);
    }

    #[test]
    fn a_path_is_below_another_by_whole_names() {
        let path = |text: &str| text.parse::<GuestPath>().unwrap();
        assert_eq!(path("data").rest_of(&path("data/a/b")), Some("a/b"));
        assert_eq!(path("data").rest_of(&path("data")), Some(""));
        assert_eq!(path("data").rest_of(&path("database")), None);
        assert_eq!(path("").rest_of(&path("data")), Some("data"));
        assert_eq!(path("data/a").rest_of(&path("data")), None);
        assert_eq!(path("data").join(&path("a/b")), path("data/a/b"));
        assert_eq!(GuestPath::ROOT.join(&path("a")), path("a"));
    }

    #[test]
    fn deny_globs_close_what_they_match_and_all_below() {
        let globs = DenyGlobs::new([".env", "**/keys/**", "secrets/*.pem", "*.key"]).unwrap();
        let cases = [
            (".env", Some(".env")),
            ("a/b/.env", Some(".env")),
            ("a/.ENV", Some(".env")),
            (".env/inside", Some(".env")),
            (".environment", None),
            ("a/keys", None),
            ("a/keys/one", Some("**/keys/**")),
            ("a/keys/one/two", Some("**/keys/**")),
            ("secrets/a.pem", Some("secrets/*.pem")),
            ("secrets/deep/a.pem", None),
            ("other/secrets/a.pem", None),
            ("a.key", Some("*.key")),
            ("deep/a.key", Some("*.key")),
            ("", None),
        ];
        for (path, expected) in cases {
            assert_eq!(globs.closes(path), expected, "{path}");
        }
    }

    #[test]
    fn a_folder_that_a_glob_begins_with_is_known() {
        let globs = DenyGlobs::new(["**/.git/**", "a/*/key", "b/**/key", ".env"]).unwrap();
        for folder in [".git", "x/.git", "a", "a/x", "b", "b/x", "b/x/y"] {
            assert!(globs.begins_at(folder).is_some(), "{folder}");
        }
        for folder in ["x", "a/x/y", "c/b", ".env", "x/y"] {
            assert_eq!(globs.begins_at(folder), None, "{folder}");
        }
    }

    #[test]
    fn a_deny_glob_that_means_nothing_is_refused() {
        for glob in ["", "/", "a/../b", "./..", "a//b", "[", "{a,b}", "a/{b/c,d}"] {
            assert!(DenyGlobs::new([glob]).is_err(), "{glob}");
        }
    }

    #[test]
    fn what_others_obey_is_protected() {
        let protected = [
            ".git",
            ".git/hooks/pre-commit",
            "sub/.git/config",
            ".GIT/hooks/x",
            ".git./config",
            ".g\u{200c}it/config",
            "git~1/config",
            ".git::$INDEX_ALLOCATION/config",
            "AGENTS.md",
            "deep/er/agents.MD",
            "CLAUDE.md",
            "belljar.toml",
            ".belljar/plugins/x.wasm",
            ".envrc",
            ".vscode/tasks.json",
            ".github/workflows/ci.yml",
            "sub/.GitHub/Workflows/ci.yml",
            ".claude/skills/x/SKILL.md",
            "skills/x/SKILL.md",
            ".bashrc",
            ".ssh/authorized_keys",
        ];
        for path in protected {
            assert!(is_protected(path), "{path}");
        }
        let open = [
            "",
            "README.md",
            "git/config",
            ".gitignore",
            ".github/ISSUE_TEMPLATE.md",
            "workflows/ci.yml",
            "my.git/config",
            "agents.md.txt",
            ".env",
        ];
        for path in open {
            assert!(!is_protected(path), "{path}");
        }
        assert!(begins_protected(".github") && begins_protected("a/.GITHUB"));
        assert!(!begins_protected("github") && !begins_protected(".github/workflows"));
    }
}
