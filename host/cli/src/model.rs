//! Which model a run has: the one that was named, or the first that is there.
//!
//! Reads the environment for keys and asks servers on this machine what they have; sends nothing
//! else anywhere.

use anyhow::{Context as _, bail};
use belljar_model::{
    ApiKey, Protocol, ProviderConfig, Script, built_in_providers, connect, models_at,
};
use belljar_types::Model;
use belljar_workspace::{Config, ProviderSettings};
use std::{collections::BTreeMap, sync::Arc};

/// What a key in the environment stands for where no model is named.
const DEFAULTS: [(&str, &str, &str); 2] =
    [("ANTHROPIC_API_KEY", "anthropic", "claude-sonnet-5"), ("OPENAI_API_KEY", "openai", "gpt-5")];

/// Servers on this machine that are looked for where there is no key either.
pub(crate) const LOCAL: [(&str, &str); 2] =
    [("ollama", "http://127.0.0.1:11434/v1"), ("llama.cpp", "http://127.0.0.1:8080/v1")];

/// Said where nothing sets a model: exactly three lines.
pub(crate) const NONE_SET: &str = "\
no model is set, and none was found; `belljar demo` needs none. To set one:
  set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama or llama.cpp's server on this machine;
  or name it: `--model PROVIDER/NAME`, BELLJAR_MODEL, or `model = \"PROVIDER/NAME\"` in config.toml";

/// The variables that a key may stand in, of the providers that are built in.
pub(crate) fn key_variables() -> Vec<String> {
    let mut names: Vec<_> =
        built_in_providers().into_iter().filter_map(|provider| provider.api_key_env).collect();
    // Two protocols of one provider share its key.
    names.dedup();
    names
}

/// A model, and what a person should know about how it was chosen.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) notice: Option<String>,
}

/// The model of a run.
///
/// # Errors
///
/// The one that was named cannot be used, or none is set and none is there.
pub(crate) async fn choose(config: &Config) -> anyhow::Result<Chosen> {
    if let Some(setting) = &config.model {
        let model = named(&setting.value, &config.providers)
            .with_context(|| format!("the model `{}` cannot be used", setting.value))?;
        return Ok(Chosen { model, notice: None });
    }
    for (variable, provider, name) in DEFAULTS {
        if key(variable).is_some() {
            let model = named(&format!("{provider}/{name}"), &config.providers)?;
            let notice = format!(
                "the model is `{provider}/{name}`, since {variable} is set; name another with \
                 `--model`"
            );
            return Ok(Chosen { model, notice: Some(notice) });
        }
    }
    let [ollama, llama] = LOCAL.map(|(_, url)| models_at(url));
    let (ollama, llama) = tokio::join!(ollama, llama);
    for ((provider, url), models) in LOCAL.into_iter().zip([ollama, llama]) {
        let Some(name) = models.and_then(|models| models.into_iter().next()) else { continue };
        let server = ProviderConfig::new(provider, Protocol::OpenAi, url, None);
        let model = connect(&server, &name, None)?;
        let notice = format!(
            "the model is `{provider}/{name}`, the first that the server at {url} lists; name \
             another with `--model`"
        );
        return Ok(Chosen { model, notice: Some(notice) });
    }
    bail!(NONE_SET)
}

/// The model `PROVIDER/NAME`.
fn named(
    full_name: &str,
    providers: &BTreeMap<String, ProviderSettings>,
) -> anyhow::Result<Arc<dyn Model>> {
    let (provider, name) = full_name.split_once('/').context("write it as `PROVIDER/NAME`")?;
    if provider == "script" && !providers.contains_key(provider) {
        return Ok(Arc::new(Script::load(name)?.into_model(name)));
    }
    let config = provider_config(provider, providers)?;
    let key = config.api_key_env.as_deref().and_then(key);
    Ok(connect(&config, name, key)?)
}

/// The names of providers that need no configuration.
pub(crate) fn built_in_names() -> Vec<String> {
    let found = LOCAL.iter().map(|(name, _)| (*name).to_owned());
    let mut names: Vec<_> =
        built_in_providers().into_iter().map(|provider| provider.name).chain(found).collect();
    names.sort();
    names.dedup();
    names
}

/// A provider of the configuration over a built-in one, or either alone.
fn provider_config(
    name: &str,
    providers: &BTreeMap<String, ProviderSettings>,
) -> anyhow::Result<ProviderConfig> {
    // The server that is found without configuration can be named without it too.
    let found = ProviderConfig::new(LOCAL[1].0, Protocol::OpenAi, LOCAL[1].1, None);
    let built_in = built_in_providers().into_iter().chain([found]);
    let built_in: Vec<_> = built_in.collect();
    let base = built_in.iter().find(|provider| provider.name == name).cloned();
    match (base, providers.get(name)) {
        (Some(base), None) => Ok(base),
        (base, Some(settings)) => merged(name, base, settings),
        (None, None) => {
            let known: Vec<&str> = built_in
                .iter()
                .map(|provider| provider.name.as_str())
                .chain(providers.keys().map(String::as_str))
                .chain(["script"])
                .collect();
            let near = known.iter().min_by_key(|known| strsim::osa_distance(name, known));
            let near = near.filter(|near| strsim::osa_distance(name, near) <= 2);
            match near {
                Some(near) => bail!("there is no provider `{name}`: did you mean `{near}`?"),
                None => bail!(
                    "there is no provider `{name}`: add `[providers.{name}]` with `protocol` and \
                     `base_url` to the configuration, or choose one of {}",
                    known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                ),
            }
        }
    }
}

fn merged(
    name: &str,
    base: Option<ProviderConfig>,
    settings: &ProviderSettings,
) -> anyhow::Result<ProviderConfig> {
    let missing =
        |key: &str| format!("{}: the provider `{name}` needs `{key}`: add it", settings.source);
    let protocol = settings
        .protocol
        .map(protocol)
        .or(base.as_ref().map(|base| base.protocol))
        .with_context(|| missing("protocol"))?;
    let base_url = settings
        .base_url
        .clone()
        .or(base.as_ref().map(|base| base.base_url.clone()))
        .with_context(|| missing("base_url"))?;
    let api_key_env = settings.api_key_env.clone().or(base.and_then(|base| base.api_key_env));
    Ok(ProviderConfig::new(name, protocol, base_url, api_key_env.as_deref()))
}

fn protocol(named: belljar_workspace::Protocol) -> Protocol {
    match named {
        belljar_workspace::Protocol::Anthropic => Protocol::Anthropic,
        belljar_workspace::Protocol::OpenAi => Protocol::OpenAi,
        belljar_workspace::Protocol::OpenAiResponses => Protocol::OpenAiResponses,
    }
}

fn key(variable: &str) -> Option<ApiKey> {
    std::env::var(variable).ok().as_deref().and_then(ApiKey::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_workspace::Source;

    fn settings(base_url: Option<&str>) -> ProviderSettings {
        ProviderSettings {
            protocol: None,
            base_url: base_url.map(str::to_owned),
            api_key_env: None,
            source: Source::Flag("--config"),
        }
    }

    #[test]
    fn a_configured_provider_lies_over_the_built_in_one() {
        let providers = BTreeMap::from([
            ("openai".to_owned(), settings(Some("http://127.0.0.1:9/v1"))),
            ("own".to_owned(), settings(Some("http://127.0.0.1:9/v1"))),
        ]);
        assert_eq!(
            provider_config("openai", &providers).unwrap(),
            ProviderConfig::new(
                "openai",
                Protocol::OpenAi,
                "http://127.0.0.1:9/v1",
                Some("OPENAI_API_KEY")
            )
        );
        assert_eq!(
            provider_config("own", &providers).unwrap_err().to_string(),
            "`--config`: the provider `own` needs `protocol`: add it"
        );
    }

    #[test]
    fn an_unknown_provider_is_an_error_that_names_the_nearest() {
        let error = |name| provider_config(name, &BTreeMap::new()).unwrap_err().to_string();
        assert_eq!(error("antropic"), "there is no provider `antropic`: did you mean `anthropic`?");
        assert_eq!(
            error("mine"),
            "there is no provider `mine`: add `[providers.mine]` with `protocol` and `base_url` \
             to the configuration, or choose one of `anthropic`, `openai`, `openai-responses`, \
             `openrouter`, `gemini`, `mistral`, `ollama`, `llama.cpp`, `script`"
        );
    }

    #[test]
    fn every_default_is_a_built_in_provider_with_that_key() {
        for (variable, provider, _) in DEFAULTS {
            let config = provider_config(provider, &BTreeMap::new()).unwrap();
            assert_eq!(config.api_key_env.as_deref(), Some(variable));
        }
        assert_eq!(NONE_SET.lines().count(), 3);
    }
}
