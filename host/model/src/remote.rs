//! A model behind HTTP: sends one request and reads its answer as it comes. Never retries.

use crate::{
    ApiKey, Protocol, ProviderConfig,
    anthropic::{self, AnthropicDecoder},
    body::{self, Body, BodyFault, Events, MAX_ERROR_BYTES},
    decode::{Decoder, Step, StreamFault},
    failure::Failures,
    ids::CallIds,
    names::ToolNames,
    openai::{self, OpenAiDecoder},
};
use belljar_types::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};
use futures::stream;
use reqwest::{Client, Url};
use serde_json::Value;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::time::timeout;

/// How long a server may take to end an answer whose reason for the end is known: only figures
/// can still come.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct RemoteModel {
    protocol: Protocol,
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    client: Client,
    endpoint: Url,
    idle_timeout: Duration,
    failures: Failures,
}

impl RemoteModel {
    pub(crate) fn new(
        config: &ProviderConfig,
        model: &str,
        key: Option<ApiKey>,
        endpoint: Url,
        client: Client,
    ) -> Self {
        let failures = Failures {
            provider: config.name.clone(),
            model: model.to_owned(),
            base_url: config.base_url.clone(),
            key,
            api_key_env: config.api_key_env.clone(),
        };
        let idle_timeout = config.idle_timeout;
        let server = Arc::new(Server { client, endpoint, idle_timeout, failures });
        Self { protocol: config.protocol, server }
    }

    fn encode(&self, request: &ModelRequest, names: &ToolNames) -> Value {
        let own_model = format!("{}/{}", self.provider(), self.name());
        match self.protocol {
            Protocol::Anthropic => anthropic::body(request, self.name(), &own_model, names),
            Protocol::OpenAi => {
                let host = self.server.endpoint.host_str().unwrap_or_default();
                openai::body(request, self.name(), &own_model, host, names)
            }
        }
    }

    fn decoder(&self, names: ToolNames, ids: CallIds) -> Box<dyn Decoder> {
        match self.protocol {
            Protocol::Anthropic => Box::new(AnthropicDecoder::new(names, ids)),
            Protocol::OpenAi => Box::new(OpenAiDecoder::new(names, ids)),
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
        let names = ToolNames::new(&request.tools, &request.conversation);
        let ids = CallIds::of(&request.conversation);
        let body = self.encode(&request, &names).to_string();
        let answer = Answer {
            server: Arc::clone(&self.server),
            decoder: self.decoder(names, ids),
            ready: VecDeque::new(),
            phase: Phase::Unsent(body),
        };
        Box::pin(stream::unfold(answer, Answer::next))
    }
}

/// An answer on its way.
struct Answer {
    server: Arc<Server>,
    decoder: Box<dyn Decoder>,
    /// What is read and not yet handed out.
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    phase: Phase,
}

enum Phase {
    Unsent(String),
    Reading(Events),
    Ended,
}

impl Answer {
    async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some((item, self));
            }
            match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Ended => return None,
                Phase::Unsent(body) => match self.server.send(body).await {
                    Ok(events) => self.phase = Phase::Reading(events),
                    Err(error) => self.ready.push_back(Err(error)),
                },
                Phase::Reading(mut events) => {
                    let event = events.next().await;
                    self.take(event, events);
                }
            }
        }
    }

    /// Takes the next event of the stream, or its end.
    fn take(&mut self, event: Option<Result<sse_stream::Sse, BodyFault>>, events: Events) {
        let mut out = Vec::new();
        let step = match event {
            Some(Ok(event)) => {
                let data = event.data.unwrap_or_default();
                if data.trim().is_empty() {
                    Ok(Step::More)
                } else {
                    let name = event.event.unwrap_or_default();
                    self.decoder
                        .event(&name, &data, &mut out)
                        .map_err(|fault| self.server.fault(fault))
                }
            }
            // What ends the connection after the answer's own end takes nothing away from it.
            None | Some(Err(_)) if self.decoder.is_answered() => Ok(Step::Finished),
            None if events.were_none() => Err(self.server.failures.no_events("")),
            None => Err(self.server.failures.unfinished()),
            Some(Err(fault)) => Err(self.server.failures.unreadable(&fault)),
        };
        let step = match step {
            Ok(Step::Finished) => match self.decoder.finish(&mut out) {
                Ok(()) => Ok(Step::Finished),
                Err(fault) => Err(self.server.fault(fault)),
            },
            step => step,
        };
        self.ready.extend(out.into_iter().map(Ok));
        match step {
            Ok(Step::Finished) => {}
            Ok(Step::More) => {
                if self.decoder.is_answered() {
                    events.wait_at_most(LAST_WORDS);
                }
                self.phase = Phase::Reading(events);
            }
            Err(error) => self.ready.push_back(Err(error)),
        }
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
        match body::open(bytes, self.idle_timeout).await {
            Ok(Body::Events(events)) => Ok(events),
            Ok(Body::Other(body)) => Err(self.failures.no_stream(&body)),
            Err(fault) => Err(self.failures.unreadable(&fault)),
        }
    }

    fn fault(&self, fault: StreamFault) -> ModelError {
        match fault {
            StreamFault::Reported(error) => self.failures.reported(&error),
            StreamFault::Protocol(problem) => self.failures.protocol(&problem),
        }
    }
}
