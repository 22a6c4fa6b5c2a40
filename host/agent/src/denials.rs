//! What was denied in a run, for its last event.

use belljar_types::{DeniedCall, ToolErrorKind, ToolResult};

/// Kinds of denials that are kept; further ones are counted.
const KINDS: usize = 100;
/// Characters of a message that are kept.
const MESSAGE: usize = 500;

#[derive(Debug, Default)]
pub(crate) struct Denials {
    count: u32,
    kinds: Vec<DeniedCall>,
}

impl Denials {
    pub(crate) fn note(&mut self, result: &ToolResult) {
        let Err(error) = &result.outcome else { return };
        if error.kind != ToolErrorKind::Denied {
            return;
        }
        self.count += 1;
        let denied = DeniedCall {
            tool: result.tool.clone(),
            message: error.message.chars().take(MESSAGE).collect(),
            remedy: error.remedy.clone(),
        };
        if self.kinds.len() < KINDS && !self.kinds.contains(&denied) {
            self.kinds.push(denied);
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn kinds(&self) -> Vec<DeniedCall> {
        self.kinds.clone()
    }
}
