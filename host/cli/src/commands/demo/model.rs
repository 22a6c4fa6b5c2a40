//! The demo's model: a script whose last turn depends on whether the edit was made, so that its
//! answer is true either way.

use belljar_model::{Script, ScriptError, ScriptModel};
use belljar_types::{Conversation, Message, Model, ModelRequest, ModelStream};

const NAME: &str = "demo";
const TURNS: &str = include_str!("../../../demo/script.jsonl");
const EDITED: &str = include_str!("../../../demo/edited.jsonl");
const UNEDITED: &str = include_str!("../../../demo/unedited.jsonl");

#[derive(Debug)]
pub(super) struct DemoModel {
    turns: ScriptModel,
    /// How many turns come before the last.
    count: usize,
    edited: ScriptModel,
    unedited: ScriptModel,
}

impl DemoModel {
    pub(super) fn new() -> Result<Self, ScriptError> {
        let model = |text| Ok::<_, ScriptError>(Script::parse(text)?.into_model(NAME));
        Ok(Self {
            turns: model(TURNS)?,
            count: TURNS.lines().count(),
            edited: model(EDITED)?,
            unedited: model(UNEDITED)?,
        })
    }
}

impl Model for DemoModel {
    fn name(&self) -> &str {
        NAME
    }

    fn provider(&self) -> &str {
        self.turns.provider()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let conversation = &request.conversation;
        let model = if turns_played(conversation) < self.count {
            &self.turns
        } else if was_edited(conversation) {
            &self.edited
        } else {
            &self.unedited
        };
        model.stream(request)
    }
}

fn turns_played(conversation: &Conversation) -> usize {
    let messages = conversation.messages().iter();
    messages.filter(|message| matches!(message.as_ref(), Message::Assistant(_))).count()
}

fn was_edited(conversation: &Conversation) -> bool {
    conversation.messages().iter().any(|message| match message.as_ref() {
        Message::Tool(tool) => tool.result.tool == "edit_file" && tool.result.outcome.is_ok(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_types::{
        AssistantMessage, AssistantPart, ModelEvent, Origin, ToolError, ToolErrorKind, ToolMessage,
        ToolOutput, ToolResult,
    };
    use futures::StreamExt as _;

    /// The model's last answer after an edit that ended so.
    async fn answer(outcome: Result<ToolOutput, ToolError>) -> String {
        let model = DemoModel::new().unwrap();
        let mut request = ModelRequest::default();
        let said = AssistantPart::Text { text: "x".to_owned() };
        for _ in 0..model.count {
            request.conversation.push(Message::Assistant(AssistantMessage {
                parts: vec![said.clone()],
                model: "script/demo".to_owned(),
                cut: false,
            }));
        }
        request.conversation.push(Message::Tool(ToolMessage {
            result: ToolResult {
                call_id: "1".to_owned(),
                tool: "edit_file".to_owned(),
                outcome,
                origin: Origin::Host,
            },
        }));
        let events: Vec<_> = model.stream(request).collect().await;
        let text = |event| match event {
            Ok(ModelEvent::Text(text)) => Some(text),
            _ => None,
        };
        events.into_iter().filter_map(text).collect()
    }

    #[tokio::test]
    async fn the_answer_is_true_whatever_became_of_the_edit() {
        let edited = answer(Ok(ToolOutput::text("done"))).await;
        assert!(edited.contains("I corrected that line"), "{edited}");
        let refused = ToolError::new(ToolErrorKind::Denied, "denied");
        let unedited = answer(Err(refused)).await;
        assert!(unedited.contains("the list still says 4.20"), "{unedited}");
    }
}
