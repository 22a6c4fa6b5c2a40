//! Paths of URLs, compared by what they mean.

use percent_encoding::percent_decode_str;

/// A path for comparing: its segments with their escapes decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathKey(Vec<String>);

impl PathKey {
    /// Reads a path as it is sent, from its first `/`. `None` where servers do not agree on what
    /// it means: an escaped separator or dot, an escape of an escape, `..;`, bytes that are not
    /// text.
    pub(super) fn new(path: &str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        path.split('/').map(segment).collect::<Option<_>>().map(Self)
    }

    /// Whether another path is this one or below it. One that ends in `/` covers only what is
    /// below.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let Self(own) = self;
        match own.split_last() {
            Some((last, parents)) if last.is_empty() => {
                other.0.len() > parents.len() && other.0.starts_with(parents)
            }
            _ => other.0.starts_with(own),
        }
    }
}

fn segment(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut escapes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    let is_plain = |(at, _): (usize, &u8)| {
        let digits = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        byte.is_some_and(|byte| !b"/\\.%;".contains(&byte) && !byte.is_ascii_control())
    };
    if !escapes.all(is_plain) {
        return None;
    }
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    let odd = |c: char| c == '\\' || c.is_control();
    // `..;x` climbs in servers that take what follows `;` for a parameter.
    let name = decoded.split(';').next().unwrap_or_default();
    if decoded.contains(odd) || name == "." || name == ".." {
        return None;
    }
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(prefix: &str, path: &str) -> Option<bool> {
        Some(PathKey::new(prefix).unwrap().covers(&PathKey::new(path)?))
    }

    #[test]
    fn a_prefix_ends_between_segments() {
        for (prefix, path, expected) in [
            ("/v1", "/v1", true),
            ("/v1", "/v1/", true),
            ("/v1", "/v1/x", true),
            ("/v1", "/v12", false),
            ("/v1", "/", false),
            ("/v1", "//v1", false),
            ("/v1", "/V1", false),
            ("/v1/", "/v1", false),
            ("/v1/", "/v1/", true),
            ("/v1/", "/v1/x/y", true),
            ("/v1/x", "/v1", false),
            ("/", "/", true),
            ("/", "/x", true),
            ("/v1", "/%76%31/x", true),
            ("/a b", "/a%20b/c", true),
            ("/ü", "/%C3%BC", true),
        ] {
            assert_eq!(covers(prefix, path), Some(expected), "{prefix} {path}");
        }
    }

    #[test]
    fn what_servers_read_differently_is_no_path() {
        for path in [
            "",
            "v1",
            "/v1/%2e%2e/admin",
            "/v1/.%2E/admin",
            "/v1%2fadmin",
            "/v1%5cadmin",
            "/v1\\admin",
            "/v1/%00",
            "/v1/%0a",
            "/v1/%252e",
            "/v1/%25",
            "/v1/..;/admin",
            "/v1/.;x",
            "/v1/..%3b/admin",
            "/v1/%",
            "/v1/%4",
            "/v1/%zz",
            "/v1/%+1",
            "/v1/%ff",
            "/v1/..",
            "/.",
            "/v1/\u{0}",
        ] {
            assert_eq!(PathKey::new(path), None, "{path}");
        }
    }
}
