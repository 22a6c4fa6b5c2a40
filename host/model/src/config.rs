//! Which servers there are and how to reach them, as values. What is wrong with a setting is
//! found here, before any request; nothing here reads the environment or a file.

use crate::{ApiKey, client, remote::RemoteModel};
use belljar_types::Model;
use reqwest::Url;
use std::{sync::Arc, time::Duration};

/// How long a stream may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic Messages: `POST {base_url}/v1/messages`.
    Anthropic,
    /// OpenAI-compatible chat completions: `POST {base_url}/chat/completions`.
    OpenAi,
    /// The OpenAI Responses API: `POST {base_url}/responses`.
    OpenAiResponses,
}

impl Protocol {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::OpenAiResponses];

    /// The protocol by its name in the configuration: `anthropic`, `openai` or
    /// `openai-responses`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// The name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
        }
    }
}

/// A provider as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The name before the slash of `provider/name`.
    pub name: String,
    pub protocol: Protocol,
    /// `http` or `https`, with or without a path; a trailing slash makes no difference.
    pub base_url: String,
    /// The environment variable that holds the key; `None` for a server that wants no key.
    pub api_key_env: Option<String>,
    /// How long the server may send nothing, not even a keep-alive, before the stream counts as
    /// cut. 5 minutes unless set.
    pub idle_timeout: Duration,
}

impl ProviderConfig {
    pub fn new(
        name: impl Into<String>,
        protocol: Protocol,
        base_url: impl Into<String>,
        api_key_env: Option<&str>,
    ) -> Self {
        Self {
            name: name.into(),
            protocol,
            base_url: base_url.into(),
            api_key_env: api_key_env.map(str::to_owned),
            idle_timeout: IDLE_TIMEOUT,
        }
    }
}

/// The providers that need no configuration. `openai-responses` is `openai` by its other protocol,
/// with the same key.
pub fn built_in_providers() -> [ProviderConfig; 7] {
    use Protocol::{Anthropic, OpenAi, OpenAiResponses};
    let provider = ProviderConfig::new;
    [
        provider("anthropic", Anthropic, "https://api.anthropic.com", Some("ANTHROPIC_API_KEY")),
        provider("openai", OpenAi, OPENAI, Some("OPENAI_API_KEY")),
        provider("openai-responses", OpenAiResponses, OPENAI, Some("OPENAI_API_KEY")),
        provider("openrouter", OpenAi, "https://openrouter.ai/api/v1", Some("OPENROUTER_API_KEY")),
        provider("gemini", OpenAi, GEMINI, Some("GEMINI_API_KEY")),
        provider("mistral", OpenAi, "https://api.mistral.ai/v1", Some("MISTRAL_API_KEY")),
        provider("ollama", OpenAi, "http://127.0.0.1:11434/v1", None),
    ]
}

const OPENAI: &str = "https://api.openai.com/v1";
const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta/openai";

/// Why a provider's settings cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    #[error("`base_url` of provider `{provider}` {problem}")]
    BaseUrl { provider: String, problem: String },
    #[error("provider `{provider}` needs a key: set the environment variable `{variable}`")]
    MissingKey { provider: String, variable: String },
    #[error(
        "the key for provider `{provider}` holds a character that no HTTP header can carry: \
         check {setting}"
    )]
    UnusableKey { provider: String, setting: String },
    #[error("no model is named: write `{provider}/NAME`")]
    MissingModel { provider: String },
    #[error("cannot set up HTTP for provider `{provider}`: {problem}")]
    Http { provider: String, problem: String },
}

/// A model of this provider. No request is made yet.
///
/// # Errors
///
/// A setting that cannot work: the address, a key that is missing or unusable, an empty name, or
/// no certificates to trust on this machine.
pub fn connect(
    config: &ProviderConfig,
    model: &str,
    key: Option<ApiKey>,
) -> Result<Arc<dyn Model>, ConfigError> {
    let provider = config.name.clone();
    if model.trim().is_empty() {
        return Err(ConfigError::MissingModel { provider });
    }
    let endpoint = endpoint(config)?;
    if let (None, Some(variable)) = (&key, &config.api_key_env) {
        return Err(ConfigError::MissingKey { provider, variable: variable.clone() });
    }
    let headers = client::headers(config.protocol, key.as_ref()).ok_or_else(|| {
        let setting = match &config.api_key_env {
            Some(variable) => format!("`{variable}`"),
            None => "the key".to_owned(),
        };
        ConfigError::UnusableKey { provider: provider.clone(), setting }
    })?;
    let client = client::build(&endpoint, headers)
        .map_err(|problem| ConfigError::Http { provider, problem })?;
    Ok(Arc::new(RemoteModel::new(config, model, key, endpoint, client)))
}

/// Where requests go.
fn endpoint(config: &ProviderConfig) -> Result<Url, ConfigError> {
    let fail = |problem: String| ConfigError::BaseUrl { provider: config.name.clone(), problem };
    let mut url = parse_base_url(&config.base_url).map_err(fail)?;
    let base = url.path().trim_end_matches('/');
    let path = match config.protocol {
        // Both `https://host` and `https://host/v1` are in use as base addresses.
        Protocol::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Protocol::Anthropic => format!("{base}/v1/messages"),
        Protocol::OpenAi => format!("{base}/chat/completions"),
        Protocol::OpenAiResponses => format!("{base}/responses"),
    };
    url.set_path(&path);
    Ok(url)
}

/// Reads a base address, or says what is wrong with it, without ever repeating a password.
pub(crate) fn parse_base_url(text: &str) -> Result<Url, String> {
    let text = text.trim();
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) if text.contains('@') => return Err(format!("is no address: {error}")),
        Err(error) => {
            return Err(format!(
                "is `{text}`, which is no address: {error}; write it as `https://host/path`"
            ));
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or a password: leave them out and name the variable that \
                    holds the key in `api_key_env`"
            .to_owned());
    }
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("is `{text}`: it must begin with `https://` or `http://`"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("is `{text}`: leave out what follows `?` or `#`"));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint_of(protocol: Protocol, base_url: &str) -> Result<String, String> {
        endpoint(&ProviderConfig::new("p", protocol, base_url, None))
            .map(|url| url.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn endpoints_are_made_of_any_base_address() {
        for (protocol, base, want) in [
            (Protocol::Anthropic, "https://a.test", "https://a.test/v1/messages"),
            (Protocol::Anthropic, "https://a.test/", "https://a.test/v1/messages"),
            (Protocol::Anthropic, "https://a.test/v1/", "https://a.test/v1/messages"),
            (Protocol::Anthropic, "http://a.test:8/x", "http://a.test:8/x/v1/messages"),
            (Protocol::OpenAi, "https://a.test/v1", "https://a.test/v1/chat/completions"),
            (Protocol::OpenAi, " https://a.test/v1// ", "https://a.test/v1/chat/completions"),
            (Protocol::OpenAi, "http://[::1]:8080", "http://[::1]:8080/chat/completions"),
            (Protocol::OpenAiResponses, "https://a.test/v1/", "https://a.test/v1/responses"),
        ] {
            assert_eq!(endpoint_of(protocol, base), Ok(want.to_owned()), "{base}");
        }
    }

    #[test]
    fn a_protocol_is_found_by_its_own_name() {
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::from_name(protocol.name()), Some(protocol));
        }
        assert_eq!(Protocol::from_name("grpc"), None);
    }

    #[test]
    fn every_built_in_provider_can_be_reached_as_it_is() {
        let endpoints = built_in_providers()
            .map(|config| (config.name.clone(), endpoint(&config).unwrap().to_string()));
        let want = [
            ("anthropic", "https://api.anthropic.com/v1/messages"),
            ("openai", "https://api.openai.com/v1/chat/completions"),
            ("openai-responses", "https://api.openai.com/v1/responses"),
            ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
            ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
            ("mistral", "https://api.mistral.ai/v1/chat/completions"),
            ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
        ];
        assert_eq!(endpoints, want.map(|(name, url)| (name.to_owned(), url.to_owned())));
    }

    #[test]
    fn bad_addresses_are_refused_with_what_to_do() {
        for (base, want) in [
            (
                "localhost",
                "`base_url` of provider `p` is `localhost`, which is no address: relative URL \
                 without a base; write it as `https://host/path`",
            ),
            (
                "localhost:8080",
                "`base_url` of provider `p` is `localhost:8080`: it must begin with `https://` \
                 or `http://`",
            ),
            (
                "https://me:hunter2@a.test",
                "`base_url` of provider `p` holds a user name or a password: leave them out and \
                 name the variable that holds the key in `api_key_env`",
            ),
            (
                "https://me:hunter2@a.test:port",
                "`base_url` of provider `p` is no address: invalid port number",
            ),
            (
                "https://a.test/v1?key=1",
                "`base_url` of provider `p` is `https://a.test/v1?key=1`: leave out what follows \
                 `?` or `#`",
            ),
        ] {
            assert_eq!(endpoint_of(Protocol::OpenAi, base), Err(want.to_owned()), "{base}");
        }
    }

    #[test]
    fn a_named_key_must_be_there_and_usable() {
        let config = &built_in_providers()[0];
        let message = |model: &str, key| connect(config, model, key).unwrap_err().to_string();
        assert_eq!(
            message("m", None),
            "provider `anthropic` needs a key: set the environment variable `ANTHROPIC_API_KEY`"
        );
        assert_eq!(
            message("m", ApiKey::new("sk-a\nb")),
            "the key for provider `anthropic` holds a character that no HTTP header can carry: \
             check `ANTHROPIC_API_KEY`"
        );
        assert_eq!(message(" ", ApiKey::new("sk-a")), "no model is named: write `anthropic/NAME`");
    }
}
