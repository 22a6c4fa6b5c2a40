//! Tools whose names say what they do.
//!
//! | tool | decision | what it does |
//! | --- | --- | --- |
//! | `read` | allow, read-only | answers with its arguments; those with a `bad` key do not fit |
//! | `write` | ask | answers with its arguments |
//! | `locked` | deny | is refused by a rule |
//! | `hidden` | | exists, but is not offered |
//! | `failing` | allow | fails |
//! | `slow` | allow | takes a second, and ends when it is cancelled |
//! | `slow_read` | allow, read-only | as `slow` |
//! | `stuck` | allow | takes an hour, whatever is asked of it |
//! | `queued` | allow | waits an hour for a place to run in and gets none |
//! | `late` | allow | takes a second, then succeeds even if cancelled within it: 50 ms after |
//! | `chatty` | allow | shows progress and output before it answers |
//! | `flood` | allow | shows 1000 updates at once |
//! | `broken` | allow | panics when it runs |
//! | `cracked` | allow | panics when it is prepared |
//!
//! Others are there where a test asks for them:
//!
//! | tool | decision | what it does |
//! | --- | --- | --- |
//! | `flaky` | allow | is unavailable `times` times (2), asking for `after` ms, then as `read` |
//! | `flaky_idempotent` | allow, idempotent | as `flaky` |
//! | `flaky_read` | allow, read-only | as `flaky` |
//! | `big__…` | allow, read-only | as `read`, with 400 characters of description |
//! | any other | allow, read-only | as `read` |

use async_trait::async_trait;
use belljar_types::{
    Action, ApprovalAnswer, Arguments, CallObserver, CallReport, CallTimes, CallUpdate, DecidedBy,
    Decision, Hints, Origin, PermissionMode, PreparedCall, Question, Receipt, ToolCall,
    ToolDefinition, ToolError, ToolErrorKind, ToolOutput, ToolSource, Toolbox,
};
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

const NAMES: [&str; 13] = [
    "broken",
    "chatty",
    "cracked",
    "failing",
    "flood",
    "late",
    "locked",
    "queued",
    "read",
    "slow",
    "slow_read",
    "stuck",
    "write",
];

#[derive(Debug, Default)]
pub(crate) struct ScriptedToolbox {
    ran: Arc<Mutex<Vec<(String, String)>>>,
    news: Mutex<VecDeque<Vec<String>>>,
    extra: Vec<String>,
    attempts: Arc<Mutex<HashMap<String, u64>>>,
}

impl ScriptedToolbox {
    /// Tells each list in a round of its own; one that says `panic` panics.
    pub(crate) fn with_news(news: &[&[&str]]) -> Self {
        let lists = news.iter().map(|list| list.iter().map(|text| (*text).to_owned()).collect());
        Self { news: Mutex::new(lists.collect()), ..Self::default() }
    }

    /// Has other tools too.
    pub(crate) fn with_tools(names: &[&str]) -> Self {
        let extra = names.iter().map(|name| (*name).to_owned()).collect();
        Self { extra, ..Self::default() }
    }

    fn names(&self) -> BTreeSet<&str> {
        NAMES.into_iter().chain(self.extra.iter().map(String::as_str)).collect()
    }

    /// The ids of the calls that got past their decision, in order.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran_with_tools().into_iter().map(|(id, _)| id).collect()
    }

    /// The same, with the names of their tools.
    pub(crate) fn ran_with_tools(&self) -> Vec<(String, String)> {
        self.ran.lock().unwrap().clone()
    }
}

#[async_trait]
impl Toolbox for ScriptedToolbox {
    async fn news(&self) -> Vec<String> {
        let news = self.news.lock().unwrap().pop_front().unwrap_or_default();
        assert!(!news.iter().any(|text| text == "panic"), "the folder is broken");
        news
    }

    fn tools(&self) -> Arc<[ToolDefinition]> {
        self.names().into_iter().map(definition).collect()
    }

    fn prepare(&self, call: &ToolCall) -> Result<Box<dyn PreparedCall>, ToolError> {
        let name = call.tool.as_str();
        if name == "hidden" {
            return Err(ToolError::new(ToolErrorKind::Denied, "`hidden` is denied by a rule"));
        }
        if name == "cracked" {
            panic!("the catalog is broken");
        }
        if !self.names().contains(name) {
            let message = format!("there is no tool `{name}`");
            return Err(ToolError::new(ToolErrorKind::UnknownTool, message));
        }
        if let Arguments::Object(map) = &call.arguments
            && map.contains_key("bad")
        {
            let message = "`bad` is not of the schema";
            return Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
        }
        let mode = PermissionMode::Default;
        let decision = match name {
            "write" => Decision { action: Action::Ask, by: DecidedBy::Mode { mode } },
            "locked" => Decision {
                action: Action::Deny,
                by: DecidedBy::Rule { rule: "box/locked".to_owned() },
            },
            _ => Decision { action: Action::Allow, by: DecidedBy::Mode { mode } },
        };
        Ok(Box::new(ScriptedCall {
            definition: definition(name),
            decision,
            call: call.clone(),
            ran: self.ran.clone(),
            attempts: self.attempts.clone(),
        }))
    }
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.into(),
        tool: name.into(),
        source: ToolSource { plugin: "box".into(), digest: "sha256:0".into() },
        title: None,
        description: if name.starts_with("big__") { "words ".repeat(70) } else { String::new() },
        input_schema: Arc::new(serde_json::json!({"type": "object"})),
        output_schema: None,
        hints: Hints {
            read_only: name.ends_with("read")
                || !(NAMES.contains(&name) || name.starts_with("flaky")),
            idempotent: name.ends_with("idempotent"),
            ..Hints::default()
        },
    }
}

struct ScriptedCall {
    definition: ToolDefinition,
    decision: Decision,
    call: ToolCall,
    ran: Arc<Mutex<Vec<(String, String)>>>,
    attempts: Arc<Mutex<HashMap<String, u64>>>,
}

#[async_trait]
impl PreparedCall for ScriptedCall {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn decision(&self) -> &Decision {
        &self.decision
    }

    fn question(&self) -> Question {
        Question {
            text: format!("may `{}` change files?", self.call.tool),
            session: true,
            always: None,
        }
    }

    async fn run(
        self: Box<Self>,
        answer: Option<ApprovalAnswer>,
        observer: CallObserver,
        cancel: CancellationToken,
    ) -> CallReport {
        let allowed = match self.decision.action {
            Action::Allow => true,
            Action::Ask => answer.as_ref().is_some_and(ApprovalAnswer::is_yes),
            Action::Deny => false,
        };
        if !allowed {
            let message = match answer {
                Some(ApprovalAnswer::NoBecause(why)) => format!("denied by the user: {why}"),
                Some(_) => "denied by the user".to_owned(),
                None => format!("denied by the {}", self.decision.by.kind()),
            };
            return CallReport {
                outcome: Err(ToolError::new(ToolErrorKind::Denied, message)),
                origin: Origin::Host,
                receipt: None,
            };
        }
        if self.call.tool == "queued" {
            let _ = tokio::time::timeout(Duration::from_secs(3600), cancel.cancelled()).await;
            return CallReport {
                outcome: Err(ToolError::new(ToolErrorKind::Canceled, "cancelled in the queue")),
                origin: Origin::Host,
                receipt: None,
            };
        }
        self.ran.lock().unwrap().push((self.call.id.clone(), self.call.tool.clone()));
        let outcome = self.act(&observer, &cancel).await;
        CallReport {
            origin: Origin::Plugin { plugin: "box".into(), digest: "sha256:0".into() },
            receipt: Some(self.receipt(outcome.as_ref().err().map(|error| error.kind))),
            outcome,
        }
    }
}

impl ScriptedCall {
    async fn act(
        &self,
        observer: &CallObserver,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let canceled = || Err(ToolError::new(ToolErrorKind::Canceled, "cancelled in the box"));
        let second = Duration::from_secs(1);
        match self.call.tool.as_str() {
            "flaky" | "flaky_idempotent" | "flaky_read" => self.fail_at_first()?,
            "failing" => return Err(ToolError::new(ToolErrorKind::Failed, "it cannot be done")),
            "broken" => panic!("the box is broken"),
            "slow" | "slow_read" => tokio::select! {
                () = cancel.cancelled() => return canceled(),
                () = tokio::time::sleep(second) => {}
            },
            "late" => tokio::select! {
                () = cancel.cancelled() => tokio::time::sleep(Duration::from_millis(50)).await,
                () = tokio::time::sleep(second) => {}
            },
            "stuck" => tokio::time::sleep(3600 * second).await,
            "chatty" => {
                observer(CallUpdate::Progress {
                    done: 1,
                    total: Some(2),
                    message: "half".to_owned(),
                });
                tokio::time::sleep(second).await;
                observer(CallUpdate::Output { text: "nearly".to_owned() });
            }
            "flood" => {
                for done in 0..1000 {
                    observer(CallUpdate::Progress { done, total: None, message: String::new() });
                }
            }
            _ => {}
        }
        let arguments = match &self.call.arguments {
            Arguments::Object(map) => serde_json::to_string(map).unwrap(),
            Arguments::Text(text) => panic!("`{text}` must never run"),
        };
        Ok(ToolOutput::text(arguments))
    }

    fn fail_at_first(&self) -> Result<(), ToolError> {
        let argument = |name: &str| match &self.call.arguments {
            Arguments::Object(map) => map.get(name).and_then(serde_json::Value::as_u64),
            Arguments::Text(_) => None,
        };
        let mut attempts = self.attempts.lock().unwrap();
        let count = attempts.entry(self.call.id.clone()).or_default();
        *count += 1;
        if *count > argument("times").unwrap_or(2) {
            return Ok(());
        }
        Err(ToolError {
            retry_after_ms: argument("after"),
            ..ToolError::new(ToolErrorKind::Unavailable, format!("not now ({count})"))
        })
    }

    fn receipt(&self, error: Option<ToolErrorKind>) -> Receipt {
        Receipt {
            source: self.definition.source.clone(),
            tool: self.call.tool.clone(),
            decision: self.decision.clone(),
            read_only: self.definition.hints.read_only,
            fuel_used: 1,
            fuel_limit: 2,
            peak_memory_bytes: 3,
            times: CallTimes::default(),
            bytes_in: 0,
            bytes_out: 0,
            files_read: vec![],
            files_written: vec![],
            hosts: vec![],
            denied: vec![],
            error,
            log: String::new(),
        }
    }
}
