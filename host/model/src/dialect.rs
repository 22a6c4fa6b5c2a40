//! Which server speaks OpenAI's chat protocol in a manner of its own, and in which.

use crate::ProviderConfig;
use reqwest::Url;

/// A manner of speaking chat completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    #[default]
    Plain,
    /// OpenAI itself: `max_completion_tokens`.
    OpenAi,
    /// A subset of JSON Schema; calls carry signatures that must come back.
    Gemini,
    /// Call ids of nine letters and digits, a stricter order of roles, no unknown fields.
    Mistral,
}

impl Dialect {
    /// The dialect of a server, by its host; a provider that goes by the built-in name keeps the
    /// dialect behind a proxy too.
    pub(crate) fn of(config: &ProviderConfig) -> Self {
        let url = Url::parse(config.base_url.trim()).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let is_at = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        match config.name.as_str() {
            _ if host == "api.openai.com" => Self::OpenAi,
            _ if is_at("googleapis.com") => Self::Gemini,
            _ if is_at("mistral.ai") => Self::Mistral,
            "gemini" => Self::Gemini,
            "mistral" => Self::Mistral,
            _ => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    #[test]
    fn a_dialect_is_told_by_host_or_name() {
        for (name, base_url, want) in [
            ("openai", "https://api.openai.com/v1", Dialect::OpenAi),
            ("openai", "http://127.0.0.1:1/v1", Dialect::Plain),
            ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", Dialect::Gemini),
            ("mine", "https://eu-aiplatform.googleapis.com/v1", Dialect::Gemini),
            ("gemini", "http://127.0.0.1:1", Dialect::Gemini),
            ("mine", "https://codestral.mistral.ai/v1", Dialect::Mistral),
            ("mistral", "http://127.0.0.1:1", Dialect::Mistral),
            ("mine", "https://notmistral.ai/v1", Dialect::Plain),
            ("mine", "no address", Dialect::Plain),
        ] {
            let config = ProviderConfig::new(name, Protocol::OpenAi, base_url, None);
            assert_eq!(Dialect::of(&config), want, "{name} {base_url}");
        }
    }
}
