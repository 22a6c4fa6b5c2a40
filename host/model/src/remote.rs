//! A model behind HTTP: sends one request and reads its answer as it comes. Never retries.

use crate::{
    ApiKey, Protocol, ProviderConfig, answer,
    anthropic::{self, AnthropicDecoder},
    body::{self, BodyFault, Events, MAX_ERROR_BYTES},
    decode::Decoder,
    dialect::Dialect,
    failure::Failures,
    ids::CallIds,
    names::ToolNames,
    openai::{self, OpenAiDecoder},
    responses::{self, ResponsesDecoder},
};
use belljar_types::{Model, ModelError, ModelRequest, ModelStream};
use bytes::Bytes;
use futures::{FutureExt, Stream, StreamExt};
use reqwest::{Client, Url};
use serde_json::Value;
use std::{io, sync::Arc, time::Duration};
use tokio::time::timeout;

/// What a model of this provider makes of `body`, the body of a successful answer to `request`:
/// the same events as over HTTP, with no server there. For bodies that were kept.
pub fn decode(
    config: &ProviderConfig,
    model: &str,
    request: &ModelRequest,
    body: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
) -> ModelStream {
    let speech = Speech::of(config, model);
    let failures = Arc::new(failures(config, model, None));
    let idle = config.idle_timeout;
    let opening = {
        let failures = Arc::clone(&failures);
        let bytes = body.map(|chunk| chunk.map(Bytes::from));
        async move { answer::open(bytes, idle, &failures).await }.boxed()
    };
    answer::read(failures, speech.decoder(speech.names(request), request), opening)
}

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct RemoteModel {
    speech: Speech,
    server: Arc<Server>,
}

/// How a provider is spoken to.
#[derive(Clone, Debug)]
struct Speech {
    protocol: Protocol,
    dialect: Dialect,
    model: String,
    /// `provider/name`, as conversations have it.
    full_name: String,
}

#[derive(Debug)]
struct Server {
    client: Client,
    endpoint: Url,
    idle_timeout: Duration,
    failures: Arc<Failures>,
}

impl RemoteModel {
    pub(crate) fn new(
        config: &ProviderConfig,
        model: &str,
        key: Option<ApiKey>,
        endpoint: Url,
        client: Client,
    ) -> Self {
        let failures = Arc::new(failures(config, model, key));
        let idle_timeout = config.idle_timeout;
        let server = Arc::new(Server { client, endpoint, idle_timeout, failures });
        Self { speech: Speech::of(config, model), server }
    }
}

fn failures(config: &ProviderConfig, model: &str, key: Option<ApiKey>) -> Failures {
    Failures {
        provider: config.name.clone(),
        model: model.to_owned(),
        base_url: config.base_url.clone(),
        key,
        api_key_env: config.api_key_env.clone(),
    }
}

impl Speech {
    fn of(config: &ProviderConfig, model: &str) -> Self {
        Self {
            protocol: config.protocol,
            dialect: Dialect::of(config),
            model: model.to_owned(),
            full_name: format!("{}/{model}", config.name),
        }
    }

    fn names(&self, request: &ModelRequest) -> ToolNames {
        ToolNames::new(&request.tools, &request.conversation)
    }

    fn encode(&self, request: &ModelRequest, names: &ToolNames) -> Value {
        let Self { model, full_name, .. } = self;
        match self.protocol {
            Protocol::Anthropic => anthropic::body(request, model, full_name, names),
            Protocol::OpenAi => openai::body(request, model, full_name, self.dialect, names),
            Protocol::OpenAiResponses => responses::body(request, model, full_name, names),
        }
    }

    fn decoder(&self, names: ToolNames, request: &ModelRequest) -> Box<dyn Decoder> {
        let ids = CallIds::of(&request.conversation);
        match self.protocol {
            Protocol::Anthropic => Box::new(AnthropicDecoder::new(names, ids)),
            Protocol::OpenAi => Box::new(OpenAiDecoder::new(names, ids, self.dialect)),
            Protocol::OpenAiResponses => Box::new(ResponsesDecoder::new(names, ids)),
        }
    }
}

impl Model for RemoteModel {
    fn name(&self) -> &str {
        &self.server.failures.model
    }

    fn provider(&self) -> &str {
        &self.server.failures.provider
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let names = self.speech.names(&request);
        let body = self.speech.encode(&request, &names).to_string();
        let decoder = self.speech.decoder(names, &request);
        let server = Arc::clone(&self.server);
        let opening = async move { server.send(body).await }.boxed();
        answer::read(Arc::clone(&self.server.failures), decoder, opening)
    }
}

impl Server {
    /// Sends the request and waits for the beginning of its answer.
    async fn send(&self, body: String) -> Result<Events, ModelError> {
        let request = self.client.post(self.endpoint.clone()).body(body).send();
        let response = match timeout(self.idle_timeout, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.failures.unreachable(error)),
            Err(_) => {
                return Err(self.failures.unreadable(&BodyFault::Idle(self.idle_timeout)));
            }
        };
        let status = response.status();
        let headers = response.headers().clone();
        let bytes = response.bytes_stream();
        if !status.is_success() {
            let body = body::read_up_to(bytes, MAX_ERROR_BYTES, self.idle_timeout).await;
            return Err(self.failures.refused(status.as_u16(), &headers, &body));
        }
        answer::open(bytes, self.idle_timeout, &self.failures).await
    }
}
