//! Tool calls put together from the pieces that servers send, each in its own manner: with and
//! without an index, with ids that are missing or repeated, whole or in fragments.

use super::kept::{Kept, extra_content};
use crate::{decode::number, decode::text, ids::CallIds, names::ToolNames};
use belljar_types::{Arguments, ModelEvent, ToolCall};
use serde_json::{Map, Value};

/// More calls than any model makes in one answer.
const MAX_CALLS: usize = 512;

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Vec<OpenCall>,
}

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// What goes back with the call.
    extra: Option<Value>,
}

/// One piece as it came.
struct Piece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    arguments: PieceArguments<'a>,
    extra: Option<&'a Value>,
}

enum PieceArguments<'a> {
    Fragment(&'a str),
    /// An object where the protocol has a text: the whole of them, at once.
    Whole(String),
}

impl PieceArguments<'_> {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Fragment(""))
    }
}

impl Calls {
    /// Takes one element of `tool_calls`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn take(&mut self, value: &Value) -> Result<(), String> {
        if !value.is_object() {
            return Ok(());
        }
        let function = &value["function"];
        let piece = Piece {
            index: number(value, "index"),
            // The name of nothing, written out by a server that has no id yet.
            id: Some(text(value, "id")).filter(|id| *id != "null").unwrap_or_default(),
            name: text(function, "name"),
            arguments: match &function["arguments"] {
                Value::String(fragment) => PieceArguments::Fragment(fragment),
                Value::Null => PieceArguments::Fragment(""),
                whole => PieceArguments::Whole(whole.to_string()),
            },
            extra: extra_content(value).or_else(|| extra_content(function)),
        };
        let place = match self.find(&piece).filter(|place| !self.calls[*place].is_other(&piece)) {
            Some(place) => place,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(format!("more than {MAX_CALLS} tool calls in one answer"));
            }
            None => {
                self.calls.push(OpenCall { index: piece.index, ..OpenCall::default() });
                self.calls.len() - 1
            }
        };
        self.calls[place].add(piece);
        Ok(())
    }

    /// The calls, whole, each after what goes back with it. `cut`: the length limit ended the answer, so the last one is suspect.
    ///
    /// # Errors
    ///
    /// What is wrong with them.
    pub(crate) fn finish(
        self,
        cut: bool,
        names: &ToolNames,
        ids: &mut CallIds,
    ) -> Result<Vec<ModelEvent>, String> {
        let last = self.calls.len().saturating_sub(1);
        let mut calls = Vec::new();
        for (place, call) in self.calls.into_iter().enumerate() {
            let suspect = cut && place == last;
            if call.name.is_empty() {
                if call.arguments.trim().is_empty() || suspect {
                    continue;
                }
                return Err("a tool call without a name".to_owned());
            }
            let tool = names.original(&call.name).to_owned();
            let arguments = if suspect && call.arguments.trim().is_empty() {
                Arguments::Text(call.arguments)
            } else {
                Arguments::parse(&call.arguments)
            };
            if let (false, Some(extra)) = (suspect, call.extra) {
                let fields = Map::from_iter([("extra_content".to_owned(), extra)]);
                calls.push(ModelEvent::Reasoning(Kept::Call(fields).into_reasoning()));
            }
            let id = ids.for_call(&call.id, &call.name);
            calls.push(ModelEvent::ToolCall(ToolCall { id, tool, arguments }));
        }
        Ok(calls)
    }

    /// The call that a piece belongs to, at first sight: the one of its index, else of its id,
    /// else the current one.
    fn find(&self, piece: &Piece<'_>) -> Option<usize> {
        if piece.index.is_some()
            && let Some(place) = self.calls.iter().rposition(|call| call.index == piece.index)
        {
            return Some(place);
        }
        if piece.id.is_empty() {
            return self.calls.len().checked_sub(1).filter(|_| piece.index.is_none());
        }
        let known = self.calls.iter().rposition(|call| {
            call.id == piece.id && (piece.index.is_none() || call.index.is_none())
        });
        // A call whose id had not come yet gets it now, unless both it and the piece are named.
        known.or_else(|| {
            let place = self.calls.len().checked_sub(1)?;
            let last = &self.calls[place];
            let unclaimed = last.id.is_empty() && last.index.is_none() && piece.index.is_none();
            (unclaimed && (last.name.is_empty() || piece.name.is_empty())).then_some(place)
        })
    }
}

impl OpenCall {
    /// Whether a piece that points at this call begins another one all the same: servers that
    /// leave out the index, or send 0 in each, send one whole call at a time.
    fn is_other(&self, piece: &Piece<'_>) -> bool {
        if piece.name.is_empty() || self.name.is_empty() {
            return false;
        }
        let same_id = piece.id == self.id && !piece.id.is_empty();
        if same_id && piece.index.is_some() {
            return false;
        }
        let new_id = !piece.id.is_empty() && !self.id.is_empty() && piece.id != self.id;
        if new_id || (!same_id && piece.name != self.name) {
            return true;
        }
        !piece.arguments.is_empty() && self.is_whole() && !self.is_repeated_by(piece)
    }

    fn is_whole(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && matches!(Arguments::parse(&self.arguments), Arguments::Object(_))
    }

    fn is_repeated_by(&self, piece: &Piece<'_>) -> bool {
        piece.name == self.name
            && match &piece.arguments {
                PieceArguments::Fragment(text) => *text == self.arguments,
                PieceArguments::Whole(json) => *json == self.arguments,
            }
    }

    /// Id and name are set once: servers that repeat them repeat them whole.
    fn add(&mut self, piece: Piece<'_>) {
        let repeated = !piece.name.is_empty() && self.is_whole() && self.is_repeated_by(&piece);
        if self.id.is_empty() {
            self.id = piece.id.to_owned();
        }
        if self.name.is_empty() {
            self.name = piece.name.to_owned();
        }
        if let Some(extra) = piece.extra {
            self.extra = Some(extra.clone());
        }
        match piece.arguments {
            PieceArguments::Fragment(_) if repeated => {}
            PieceArguments::Fragment(text) => self.arguments.push_str(text),
            PieceArguments::Whole(json) => self.arguments = json,
        }
    }
}
