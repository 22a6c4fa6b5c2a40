//! The loop's own tools: what a model may do to its run without touching anything outside.
//!
//! None of them asks or grants anything. A tool of the toolbox that has the name of one takes its
//! place.

mod answer;
mod delegate;
mod find_tools;
mod person;
mod texts;

use crate::{calls::by_host, chain::share, driver::Driver, estimate, panics, stop::Stop};
use belljar_types::{
    Arguments, Hints, Mode, Origin, ToolCall, ToolDefinition, ToolError, ToolErrorKind, ToolOutput,
    ToolResult, ToolSource,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, sync::Arc};

/// The name under which the loop's own tools appear where a plugin's would.
const SOURCE: &str = "belljar";

/// Edits that make a name another one that was probably meant.
const NEAR: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    AskPerson,
    Delegate,
    FindTools,
    GiveAnswer,
    LoadSkill,
    NotePlan,
}

/// What comes of an action, and where it came from.
type Outcome = (Result<ToolOutput, ToolError>, Origin);

/// What the model may call in a round.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// The toolbox's own list that the rest was made from.
    pub(crate) known: Arc<[ToolDefinition]>,
    /// What the model sees, sorted by name.
    pub(crate) tools: Arc<[ToolDefinition]>,
    /// About how many tokens that takes.
    pub(crate) tokens: u64,
    /// What is found with `find_tools` only.
    pub(crate) deferred: Vec<ToolDefinition>,
    actions: Vec<Action>,
    /// What was found and is offered from then on.
    found: BTreeSet<Arc<str>>,
    /// The window that the list was made for.
    window: Option<u64>,
    is_made: bool,
    /// What people should know about the list.
    pub(crate) notices: Vec<String>,
}

impl Offered {
    pub(crate) fn action(&self, tool: &str) -> Option<Action> {
        self.actions.iter().copied().find(|action| action.name() == tool)
    }

    /// The name of an action that was probably meant.
    pub(crate) fn near(&self, tool: &str) -> Option<&'static str> {
        self.actions
            .iter()
            .map(|action| (strsim::levenshtein(action.name(), tool), action.name()))
            .min()
            .filter(|(distance, _)| *distance <= NEAR)
            .map(|(_, name)| name)
    }

    /// Offers tools from the next round on.
    fn find(&mut self, names: impl IntoIterator<Item = Arc<str>>) {
        self.found.extend(names);
        self.is_made = false;
    }
}

impl Action {
    const ALL: [Self; 6] = [
        Self::AskPerson,
        Self::Delegate,
        Self::FindTools,
        Self::GiveAnswer,
        Self::LoadSkill,
        Self::NotePlan,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AskPerson => "ask_person",
            Self::Delegate => "delegate",
            Self::FindTools => "find_tools",
            Self::GiveAnswer => "give_answer",
            Self::LoadSkill => "load_skill",
            Self::NotePlan => "note_plan",
        }
    }

    pub(crate) fn source(self) -> ToolSource {
        ToolSource { plugin: SOURCE.into(), digest: "".into() }
    }

    /// Whether it can be done again when a session broke off over it.
    pub(crate) fn is_read_only(self) -> bool {
        self != Self::Delegate
    }

    fn description(self) -> &'static str {
        match self {
            Self::AskPerson => {
                "Asks the person a question and returns their answer. Only where you cannot go on \
                 sensibly without it; never to ask whether to begin or to go on."
            }
            Self::Delegate => {
                "Gives a task to a helper that works on its own, with the tools that you have and \
                 a conversation that starts empty, and returns its final answer. It sees nothing \
                 of this conversation: put all that it needs into the task. Good for looking \
                 through much to find little."
            }
            Self::FindTools => {
                "Finds tools that are not listed, by words of their names and descriptions. Those \
                 that are found are listed from the next round on."
            }
            Self::GiveAnswer => {
                "Gives your final answer, and ends your work. Call it once, when all is done: only \
                 what you give here is read as the answer."
            }
            Self::LoadSkill => {
                "Loads a skill from the list in your instructions. Its whole text is part of your \
                 instructions from the next round on."
            }
            Self::NotePlan => {
                "Notes your plan, in the place of the one that you noted before. You read it in \
                 each round, also after older messages were shortened. For work of many steps: \
                 note the steps, and which of them are done."
            }
        }
    }

    /// `form` is the schema of a final answer.
    fn schema(self, form: Option<&Value>) -> Value {
        let text = |description: &str| json!({"type": "string", "description": description});
        let (properties, required) = match self {
            Self::AskPerson => (
                json!({
                    "question": text("One question, understandable by itself."),
                    "options": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Answers to choose from, if there are likely ones.",
                    },
                }),
                json!(["question"]),
            ),
            Self::Delegate => (
                json!({
                    "task": text("What to do, what to look at, and what to answer."),
                    "name": text("A short name for the helper, such as `scout`."),
                }),
                json!(["task"]),
            ),
            Self::FindTools => (json!({"query": text("A few words.")}), json!(["query"])),
            Self::GiveAnswer => return answer::arguments_schema(form),
            Self::LoadSkill => (json!({"name": text("The skill's name.")}), json!(["name"])),
            Self::NotePlan => (json!({"plan": text("The whole plan.")}), json!(["plan"])),
        };
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    fn definition(self, form: Option<&Value>) -> ToolDefinition {
        ToolDefinition {
            name: self.name().into(),
            tool: self.name().into(),
            source: self.source(),
            title: None,
            description: self.description().to_owned(),
            input_schema: Arc::new(self.schema(form)),
            output_schema: None,
            hints: Hints { read_only: self.is_read_only(), ..Hints::default() },
        }
    }
}

impl Driver {
    /// Makes the list of what is offered anew, where something about it changed.
    pub(crate) fn refresh_tools(&mut self) {
        let known = self.agent.toolbox.tools();
        let offered = &self.offered;
        let is_same = Arc::ptr_eq(&known, &offered.known) || known == offered.known;
        if is_same && offered.is_made && offered.window == self.room.window {
            return;
        }
        let may_be_called =
            |tool: &ToolDefinition| self.request.mode != Mode::Plan || tool.hints.read_only;
        let mut listed: Vec<_> = known.iter().filter(|tool| may_be_called(tool)).cloned().collect();
        let deferred = self.defer(&mut listed);
        let mut actions = Vec::new();
        let mut notices = Vec::new();
        for action in Action::ALL {
            if !self.has_action(action, !deferred.is_empty()) {
                continue;
            }
            if known.iter().any(|tool| tool.name.as_ref() == action.name()) {
                let name = action.name();
                notices.push(format!("a plugin's `{name}` takes the place of the loop's own"));
            } else {
                actions.push(action);
                let form = self.request.answer_form.as_ref().map(|form| form.schema());
                listed.push(action.definition(form));
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        let tokens = estimate::tools(&listed);
        self.offered = Offered {
            known,
            tools: listed.into(),
            tokens,
            deferred,
            actions,
            found: std::mem::take(&mut self.offered.found),
            window: self.room.window,
            is_made: true,
            notices,
        };
    }

    fn has_action(&self, action: Action, are_deferred: bool) -> bool {
        let settings = &self.agent.settings.actions;
        match action {
            Action::AskPerson => settings.ask_person,
            Action::Delegate => settings.delegate.is_some_and(|limits| self.depth < limits.depth),
            Action::FindTools => are_deferred || !self.offered.found.is_empty(),
            Action::GiveAnswer => self.request.answer_form.is_some(),
            Action::LoadSkill => self.request.skills.is_some(),
            Action::NotePlan => settings.note_plan,
        }
    }

    /// Takes out what would take too much of the window: the bundled tools stay longest, whose
    /// names are bare.
    fn defer(&self, listed: &mut Vec<ToolDefinition>) -> Vec<ToolDefinition> {
        let past = self.agent.settings.actions.find_tools_past;
        let (Some(past), Some(window)) = (past, self.room.window) else { return Vec::new() };
        let mut left = share(window, past);
        if estimate::tools(listed) <= left {
            return Vec::new();
        }
        let found = &self.offered.found;
        listed.sort_by_key(|tool| tool.name.contains("__"));
        let (stay, deferred) = std::mem::take(listed).into_iter().partition(|tool| {
            // What was asked for costs the others nothing, so that the list is stable.
            if found.contains(&tool.name) {
                return true;
            }
            let price = estimate::tool(tool);
            let fits = price <= left;
            // The first that does not fit defers the rest.
            left = if fits { left - price } else { 0 };
            fits
        });
        *listed = stay;
        deferred
    }

    /// Does the first open call, which is one of the loop's own.
    pub(crate) async fn run_action(&mut self, action: Action) -> Result<(), Stop> {
        self.check_cancel()?;
        let Some(call) = self.open.front().map(|open| open.call.clone()) else { return Ok(()) };
        self.start_call(0, action.is_read_only()).await?;
        let none = Map::new();
        let arguments = match &call.arguments {
            Arguments::Object(map) => map,
            Arguments::Text(_) => &none,
        };
        let done = match self.act(action, &call, arguments).await? {
            Ok((outcome, origin)) => {
                ToolResult { call_id: call.id.clone(), tool: call.tool.clone(), outcome, origin }
            }
            Err(message) => {
                by_host(&call, ToolError::new(ToolErrorKind::InvalidArguments, message))
            }
        };
        self.finish_call(done, None).await
    }

    /// The inner error is what is wrong with the arguments.
    async fn act(
        &mut self,
        action: Action,
        call: &ToolCall,
        arguments: &Map<String, Value>,
    ) -> Result<Result<Outcome, String>, Stop> {
        if action == Action::GiveAnswer {
            return Ok(self.give_answer(arguments));
        }
        let text = |name: &str| match arguments.get(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            _ => Err(format!("`{name}` must be a text that is not blank")),
        };
        let read = || -> Result<(String, Vec<String>), String> {
            Ok(match action {
                Action::AskPerson => (text("question")?, options(arguments)?),
                Action::Delegate => (text("task")?, vec![]),
                Action::FindTools => (text("query")?, vec![]),
                Action::GiveAnswer => (String::new(), vec![]),
                Action::LoadSkill => (text("name")?, vec![]),
                Action::NotePlan => (text("plan")?, vec![]),
            })
        };
        let (said, options) = match read() {
            Ok(read) => read,
            Err(wrong) => return Ok(Err(wrong)),
        };
        Ok(Ok(match action {
            Action::AskPerson => self.ask_a_question(call, said, options).await?,
            Action::Delegate => {
                let name = text("name").ok();
                self.delegate(call, said, name.as_deref()).await?
            }
            Action::FindTools => self.find_tools(&said),
            Action::GiveAnswer => told(""),
            Action::LoadSkill => self.load_skill(&said).await?,
            Action::NotePlan => self.note_plan(said).await?,
        }))
    }

    async fn ask_panic_safe<T>(
        &self,
        asked: impl Future<Output = T>,
    ) -> Result<Result<T, String>, Stop> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Stop::canceled()),
            asked = panics::catch_async(asked) => Ok(asked),
        }
    }
}

fn options(arguments: &Map<String, Value>) -> Result<Vec<String>, String> {
    match arguments.get("options") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(|| "`options` must be texts".to_owned()),
        Some(_) => Err("`options` must be a list of texts".to_owned()),
    }
}

/// A text of the host's.
fn told(text: impl Into<String>) -> Outcome {
    (Ok(ToolOutput::text(text)), Origin::Host)
}

fn failed(kind: ToolErrorKind, message: impl Into<String>) -> Outcome {
    (Err(ToolError::new(kind, message)), Origin::Host)
}
