//! Final answers in a form that was asked for.

use crate::support::{Played, Stage, Turn, call, done, lines, text};
use belljar_agent::AnswerForm;
use belljar_types::StopReason;
use serde_json::{Value, json};
use std::sync::Arc;

/// Takes what its schema's `title` says: `even numbers` or `named objects`.
#[derive(Debug)]
struct Form(Value);

impl AnswerForm for Form {
    fn schema(&self) -> &Value {
        &self.0
    }

    fn check(&self, answer: &Value) -> Result<(), String> {
        let fits = match self.0["title"].as_str() {
            Some("even numbers") => answer.as_u64().is_some_and(|number| number % 2 == 0),
            _ => answer["name"].is_string(),
        };
        if fits { Ok(()) } else { Err(format!("`{answer}` does not fit")) }
    }
}

fn stage(form: Value, turns: Vec<Turn>) -> Stage {
    Stage::new(turns).request(move |request| request.answer_form = Some(Arc::new(Form(form))))
}

fn named() -> Value {
    json!({"title": "named objects", "type": "object", "properties": {"name": {"type": "string"}}})
}

fn even() -> Value {
    json!({"title": "even numbers", "type": "integer", "$defs": {"x": {}}})
}

fn give(id: &str, arguments: &Value) -> Turn {
    vec![call(id, "give_answer", &arguments.to_string()), done()]
}

fn ended(played: &Played) -> (StopReason, &str) {
    (played.finished.reason, &played.finished.result)
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_corrected_until_it_fits_and_ends_the_run() {
    let turns = vec![
        vec![text("I look."), call("c1", "read", "{}"), done()],
        give("c2", &json!({"name": 5})),
        give("c3", &json!({"name": "x"})),
    ];
    let stage = stage(named(), turns);
    let played = stage.play().await;
    assert_eq!(ended(&played), (StopReason::Completed, r#"{"name":"x"}"#));
    let all = lines(&played.events).join("\n");
    assert!(all.contains("does not fit"), "{all}");
    let offered =
        stage.model.requests()[0].tools.iter().find(|tool| &*tool.name == "give_answer").cloned();
    assert_eq!(*offered.unwrap().input_schema, named());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_object_is_an_argument() {
    let turns = vec![
        give("c1", &json!({})),
        give("c2", &json!({"answer": 3})),
        give("c3", &json!({"answer": 4})),
    ];
    let stage = stage(even(), turns);
    let played = stage.play().await;
    assert_eq!(ended(&played), (StopReason::Completed, "4"));
    let requests = stage.model.requests();
    let offered = requests[0].tools.iter().find(|tool| &*tool.name == "give_answer").unwrap();
    assert_eq!(
        *offered.input_schema,
        json!({
            "type": "object",
            "required": ["answer"],
            "additionalProperties": false,
            "$defs": {"x": {}},
            "properties": {"answer": {"title": "even numbers", "type": "integer"}},
        })
    );
}

#[tokio::test(start_paused = true)]
async fn text_that_fits_is_taken_and_other_text_is_reminded_of_the_form() {
    let said = |words: &str| vec![text(words), done()];
    let played = stage(even(), vec![said(" 8\n")]).play().await;
    assert_eq!(ended(&played), (StopReason::Completed, "8"));

    let turned = stage(even(), vec![said("It is eight."), give("c1", &json!({"answer": 8}))]);
    assert_eq!(ended(&turned.play().await), (StopReason::Completed, "8"));
    let reminded = format!("{:?}", turned.model.requests()[1]);
    assert!(reminded.contains("with the tool `give_answer`"), "{reminded}");

    let never = stage(even(), (0..3).map(|_| said("eight")).collect()).play().await;
    assert_eq!(never.finished.reason, StopReason::StreamError);
    assert!(
        never.finished.message.contains("no answer that fits the schema"),
        "{}",
        never.finished.message
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_form_there_is_no_such_tool() {
    let stage = Stage::new(vec![vec![text("8"), done()]]);
    stage.play().await;
    assert!(stage.model.requests()[0].tools.iter().all(|tool| &*tool.name != "give_answer"));
}
