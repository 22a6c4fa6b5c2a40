use super::*;
use crate::{ToolError, ToolErrorKind, ToolOutput};

fn user(text: &str) -> Message {
    Message::User(UserMessage { parts: vec![Part::text(text, Origin::Person)] })
}

fn assistant(parts: Vec<AssistantPart>) -> Message {
    Message::Assistant(AssistantMessage { parts, model: "p/m".to_owned(), cut: false })
}

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| {
        AssistantPart::ToolCall(ToolCall {
            id: (*id).to_owned(),
            tool: "read".to_owned(),
            arguments: Arguments::parse(""),
        })
    };
    assistant(ids.iter().map(call).collect())
}

fn result(id: &str) -> Message {
    let outcome = match id {
        "bad" => Err(ToolError::new(ToolErrorKind::Failed, "no")),
        _ => Ok(ToolOutput::text("yes")),
    };
    let (call_id, tool) = (id.to_owned(), "read".to_owned());
    Message::Tool(ToolMessage {
        result: ToolResult { call_id, tool, outcome, origin: Origin::Host },
    })
}

fn checked(messages: Vec<Message>) -> Result<(), String> {
    messages.into_iter().map(Arc::new).collect::<Conversation>().check()
}

#[test]
fn what_every_provider_takes_is_valid() {
    let text = AssistantPart::Text { text: "Hi.".to_owned() };
    assert_eq!(checked(vec![]), Ok(()));
    assert_eq!(
        checked(vec![
            user("go"),
            calls(&["a", "bad"]),
            result("a"),
            result("bad"),
            user("and"),
            user("more"),
            assistant(vec![text]),
        ]),
        Ok(())
    );
}

#[test]
fn each_violation_is_named_with_its_message() {
    let blank = AssistantPart::Text { text: "\n".to_owned() };
    for (messages, violation) in [
        (vec![user(" ")], "message 0: an empty text"),
        (
            vec![Message::User(UserMessage { parts: vec![] })],
            "message 0: a user message without content",
        ),
        (vec![assistant(vec![])], "message 0: an assistant message without content"),
        (vec![user("go"), assistant(vec![blank])], "message 1: an empty text"),
        (vec![result("a")], "message 0: a result for `a` without its call"),
        (vec![calls(&["a", "a"])], "message 0: call id `a` twice"),
        (vec![calls(&["a"]), result("a"), calls(&["a"])], "message 2: call id `a` twice"),
        (vec![calls(&["a", "b"]), result("b")], "message 1: a result for `b`, want `a`"),
        (
            vec![calls(&["a"]), result("a"), result("a")],
            "message 2: a result for `a` without its call",
        ),
        (vec![calls(&["a"]), user("go")], "message 1: calls without results: [\"a\"]"),
        (vec![calls(&["a", "b"]), result("a")], "calls without results: [\"b\"]"),
    ] {
        assert_eq!(checked(messages), Err(violation.to_owned()));
    }
}

#[test]
fn only_the_last_calls_may_be_open() {
    let open = |messages: Vec<Message>| {
        let conversation: Conversation = messages.into_iter().map(Arc::new).collect();
        conversation
            .open_calls()
            .map(|calls| calls.into_iter().map(|call| call.id.clone()).collect::<Vec<_>>())
    };
    assert_eq!(open(vec![calls(&["a", "b"]), result("a")]), Ok(vec!["b".to_owned()]));
    assert_eq!(
        open(vec![calls(&["a"]), user("go")]),
        Err("message 1: calls without results: [\"a\"]".to_owned())
    );
}

#[test]
fn a_snapshot_stays_as_it_was() {
    let mut conversation = Conversation::default();
    conversation.push(user("one"));
    let snapshot = conversation.clone();
    assert!(snapshot.is_shared_with(&conversation));
    conversation.push(user("two"));
    assert_eq!((snapshot.messages().len(), conversation.messages().len()), (1, 2));
    assert!(!snapshot.is_shared_with(&conversation));
}
