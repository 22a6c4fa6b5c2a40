//! What one request to the model has yielded so far, made anew for each attempt.
//!
//! It only gathers: nothing in it has been announced as part of the conversation, and no call in
//! it runs before the stream is over.

use belljar_types::{AssistantMessage, AssistantPart, Reasoning, ToolCall, Usage};

#[derive(Debug, Default)]
pub(crate) struct Collector {
    parts: Vec<AssistantPart>,
    usage: Usage,
}

impl Collector {
    pub(crate) fn text(&mut self, delta: &str) {
        if let Some(AssistantPart::Text { text }) = self.parts.last_mut() {
            text.push_str(delta);
        } else {
            self.parts.push(AssistantPart::Text { text: delta.to_owned() });
        }
    }

    pub(crate) fn reasoning(&mut self, reasoning: Reasoning) {
        self.parts.push(AssistantPart::Reasoning(reasoning));
    }

    pub(crate) fn call(&mut self, call: ToolCall) {
        self.parts.push(AssistantPart::ToolCall(call));
    }

    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, AssistantPart::ToolCall(call) if call.id == id))
    }

    /// Takes later figures of the same stream.
    pub(crate) fn update_usage(&mut self, later: Usage) {
        self.usage.update(later);
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Everything as one message, without blank texts; nothing if nothing is left.
    pub(crate) fn whole(self, model: String, cut: bool) -> Option<AssistantMessage> {
        let parts: Vec<_> = self
            .parts
            .into_iter()
            .filter(|part| !matches!(part, AssistantPart::Text { text } if text.trim().is_empty()))
            .collect();
        (!parts.is_empty()).then_some(AssistantMessage { parts, model, cut })
    }

    /// As [`whole`](Self::whole), but nothing where there is only reasoning: a message that says
    /// and asks nothing is refused by providers.
    pub(crate) fn answer(self, model: String, cut: bool) -> Option<AssistantMessage> {
        self.whole(model, cut).filter(|message| {
            message.parts.iter().any(|part| !matches!(part, AssistantPart::Reasoning(_)))
        })
    }

    /// The text alone: what stays of an answer whose calls must not run.
    pub(crate) fn text_only(mut self, model: String, cut: bool) -> Option<AssistantMessage> {
        self.parts.retain(|part| matches!(part, AssistantPart::Text { .. }));
        self.whole(model, cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_types::Arguments;

    fn gathered() -> Collector {
        let mut collector = Collector::default();
        collector.text("  ");
        collector.reasoning(reasoning());
        collector.text("Look");
        collector.text("ing");
        collector.call(call());
        collector.text("\n");
        collector
    }

    fn reasoning() -> Reasoning {
        Reasoning { text: "hm".to_owned(), signature: Some("s".to_owned()), data: None }
    }

    fn call() -> ToolCall {
        ToolCall { id: "c1".to_owned(), tool: "read".to_owned(), arguments: Arguments::parse("{}") }
    }

    fn text() -> AssistantPart {
        AssistantPart::Text { text: "Looking".to_owned() }
    }

    fn message(parts: Vec<AssistantPart>, cut: bool) -> Option<AssistantMessage> {
        Some(AssistantMessage { parts, model: "p/m".to_owned(), cut })
    }

    #[test]
    fn an_answer_is_one_message_in_the_order_in_which_it_came() {
        let parts =
            vec![AssistantPart::Reasoning(reasoning()), text(), AssistantPart::ToolCall(call())];
        assert_eq!(gathered().answer("p/m".to_owned(), false), message(parts, false));
    }

    #[test]
    fn of_a_cut_answer_the_text_stays() {
        assert_eq!(gathered().text_only("p/m".to_owned(), true), message(vec![text()], true));
    }

    #[test]
    fn reasoning_and_blanks_are_no_answer() {
        let mut collector = Collector::default();
        collector.reasoning(reasoning());
        collector.text(" \n");
        assert_eq!(collector.answer("p/m".to_owned(), false), None);
    }
}
