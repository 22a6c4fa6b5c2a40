//! The scripted model: plays turns that were written down. No network; what it says is what the
//! file says, so that a demo or a test is the same each time. The format is in this crate's
//! `README.md`.

mod format;
mod write;

pub(crate) use write::line;

use crate::ids::CallIds;
use belljar_types::{
    Model, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream, ToolCall,
};
use format::Turn;
use futures::stream;
use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Turns, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    turns: Arc<[Turn]>,
}

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    #[error("cannot read the script `{}`", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("line {line} of the script is no turn: {problem}")]
    Turn { line: usize, problem: String },
    #[error("the script holds no turn: write one JSON object a line")]
    Empty,
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read as UTF-8 text, or is no script.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScriptError::Read { path: path.to_owned(), source })?;
        Self::parse(&text)
    }

    /// Reads a script from its text.
    ///
    /// # Errors
    ///
    /// The first line that is no turn, by its number; or that there is no turn at all.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let turns = format::parse(text)?;
        if turns.is_empty() {
            return Err(ScriptError::Empty);
        }
        Ok(Self { turns: turns.into() })
    }

    /// A model that plays these turns from the first one. `name` is what stands after `script/`.
    pub fn into_model(self, name: impl Into<String>) -> ScriptModel {
        ScriptModel { name: name.into(), script: self, next: AtomicUsize::new(0) }
    }
}

/// A model that plays one turn of its script for each request, whatever the request says.
#[derive(Debug)]
pub struct ScriptModel {
    name: String,
    script: Script,
    /// The turn that the next request gets.
    next: AtomicUsize,
}

impl Model for ScriptModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &str {
        "script"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let items = match self.script.turns.get(number) {
            Some(turn) => play(turn, CallIds::of(&request.conversation)),
            None => vec![Err(self.ran_out())],
        };
        Box::pin(stream::iter(items))
    }
}

impl ScriptModel {
    fn ran_out(&self) -> ModelError {
        let turns = match self.script.turns.len() {
            1 => "its one turn was".to_owned(),
            count => format!("its {count} turns were"),
        };
        ModelError::new(
            ModelErrorKind::Request,
            format!(
                "the script `{}` has run out: {turns} played and the run asked for another; end \
                 the script with a turn without calls",
                self.name
            ),
        )
    }
}

/// What a turn streams.
fn play(turn: &Turn, mut ids: CallIds) -> Vec<Result<ModelEvent, ModelError>> {
    let mut items = Vec::new();
    let deltas = pieces(&turn.reasoning).map(ModelEvent::ReasoningDelta);
    items.extend(deltas.chain(pieces(&turn.text).map(ModelEvent::Text)).map(Ok));
    for call in &turn.calls {
        items.push(Ok(ModelEvent::ToolCall(ToolCall {
            id: ids.for_call(&call.id, &call.tool),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        })));
    }
    items.extend(turn.usage.map(|usage| Ok(ModelEvent::Usage(usage))));
    items.extend(turn.stream.iter().cloned().map(|event| match event {
        ModelEvent::ToolCall(ToolCall { id, tool, arguments }) => {
            let id = ids.for_call(&id, &tool);
            Ok(ModelEvent::ToolCall(ToolCall { id, tool, arguments }))
        }
        event => Ok(event),
    }));
    items.push(match &turn.error {
        Some(error) => Err(ModelError {
            kind: error.kind,
            message: error.message.clone(),
            retry_after: error.retry_after_ms.map(Duration::from_millis),
        }),
        None => Ok(ModelEvent::Done(turn.finish)),
    });
    items
}

/// A text word by word, each with the white space after it.
fn pieces(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

#[cfg(test)]
mod tests;
