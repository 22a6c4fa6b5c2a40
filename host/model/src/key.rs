//! The key of a provider. It goes into one request header and nowhere else: not into `Debug`
//! output, not into an error, not even where a server echoes it.

use std::{fmt, sync::Arc};

/// What stands in a provider's own words where the key was.
const REDACTED: &str = "[key]";

/// Shorter keys are placeholders for servers that want any key at all; taking such a text out of
/// messages would only garble them.
const SHORTEST_SECRET: usize = 4;

/// A provider's key.
#[derive(Clone)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// The key without the white space around it, which is what a file or a shell left there.
    /// `None` for a blank text: that is no key.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key in it.
    pub(crate) fn redact(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_SECRET {
            return text.to_owned();
        }
        text.replace(&*self.0, REDACTED)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_key() {
        let key = ApiKey::new("  sk-secret\n").unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey(hidden)");
        assert_eq!(key.expose(), "sk-secret");
    }

    #[test]
    fn a_blank_text_is_no_key() {
        assert!(ApiKey::new(" \n").is_none());
    }

    #[test]
    fn an_echoed_key_is_redacted() {
        let key = ApiKey::new("sk-secret").unwrap();
        assert_eq!(key.redact("bad key sk-secret, sk-secret!"), "bad key [key], [key]!");
    }
}
