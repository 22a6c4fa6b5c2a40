//! Guest paths, deny globs, protected paths and the values of limits.

use super::{Target, Verdict, lines};
use crate::generate;
use belljar_capability::{DenyGlobs, GuestPath, Limit, is_protected};

/// A deny glob, the value of a limit, and a path, one a line.
pub(super) const TARGET: Target =
    Target { name: "paths", check, generate: |rng| generate::text(rng, &SAMPLES, &WORDS) };

const SAMPLES: [&str; 6] = [
    "**/keys/**\n10s\na/keys/one/two",
    ".env\n64 MiB\n./a//.ENV/",
    "secrets/*.pem\n1_000\nsecrets/deep/a.pem",
    "[!a-z]?*\n1h 2m\n.git::$INDEX_ALLOCATION/config",
    "a/**/b\n0x10\nsub/.GitHub/Workflows/ci.yml",
    "*.key\n-3s\n../../etc/passwd",
];

const WORDS: [&str; 22] = [
    "*",
    "**",
    "**/",
    "/**",
    "?",
    "[",
    "]",
    "[!",
    "\\",
    "/",
    "//",
    "..",
    "./",
    ".git",
    "AGENTS.md",
    ".github/",
    "KiB",
    "ms",
    "99999999999999999999",
    "~1",
    "::$DATA",
    "\n",
];

fn check(input: &[u8]) -> Verdict {
    let Some([glob, limit, text]) = lines(input) else { return Verdict::Refused };
    for kind in Limit::ALL {
        if let Ok(value) = kind.parse(limit) {
            assert_eq!(kind.checked(value), Ok(value), "{kind}: a value that was read is allowed");
            assert!(!kind.show(value).is_empty());
        }
    }
    let path = match text.parse::<GuestPath>() {
        Ok(path) => path,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Verdict::Refused;
        }
    };
    assert_eq!(path.to_string().parse().as_ref(), Ok(&path), "a path is what was written");
    if let Some(named) = GuestPath::named_by(text) {
        assert_eq!(named, path, "both readings of a path agree");
    }
    let path = path.as_str();
    let below = |path: &str| format!("{path}/below");
    let upper = path.to_ascii_uppercase();
    if is_protected(path) {
        assert!(is_protected(&below(path)) && is_protected(&upper));
        assert!(is_protected(&format!("above/{path}")), "at any depth");
    }
    let Ok(globs) = DenyGlobs::new([glob]) else { return Verdict::Refused };
    let closed = globs.closes(path).is_some();
    assert_eq!(globs.closes(&upper).is_some(), closed, "case aside");
    if closed {
        assert!(globs.closes(&below(path)).is_some(), "all below is closed");
    }
    let _ = globs.begins_at(path);
    if closed { Verdict::Taken } else { Verdict::Refused }
}
