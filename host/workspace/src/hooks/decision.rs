//! What a hook may say on standard output.
//!
//! Strict: a word that is not known, or that means nothing at its point, makes the hook broken. A
//! refusal that was misspelt must not pass for a yes.

use belljar_types::HookPoint;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    pub(super) arguments: Option<Map<String, Value>>,
    pub(super) context: Option<String>,
    pub(super) notice: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Verdict {
    #[default]
    GoOn,
    Block(String),
    End(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    decision: Option<Word>,
    reason: Option<String>,
    arguments: Option<Map<String, Value>>,
    context: Option<String>,
    notice: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Continue,
    Block,
    End,
}

/// Reads it; nothing but blanks is no objection.
pub(super) fn read(point: HookPoint, output: &str) -> Result<Answer, String> {
    if output.trim().is_empty() {
        return Ok(Answer::default());
    }
    let written: Written = serde_json::from_str(output).map_err(|error| error.to_string())?;
    let Written { decision, reason, arguments, context, notice } = written;
    let means_nothing = |key: &str| Err(format!("`{key}` means nothing at `{point}`"));
    if arguments.is_some() && point != HookPoint::PreTool {
        return means_nothing("arguments");
    }
    if context.is_some() && !point.takes_context() {
        return means_nothing("context");
    }
    let why = |reason: Option<String>, otherwise: &str| {
        reason.filter(|reason| !reason.trim().is_empty()).unwrap_or_else(|| otherwise.to_owned())
    };
    let verdict = match decision {
        None | Some(Word::Continue) => Verdict::GoOn,
        Some(Word::Block) => Verdict::Block(why(reason, "a hook refused it without saying why")),
        Some(Word::End) if !point.can_end() => return means_nothing("end"),
        Some(Word::End) => Verdict::End(why(reason, "a hook asked for the end")),
    };
    let context = context.filter(|context| !context.trim().is_empty());
    Ok(Answer { verdict, arguments, context, notice })
}
