//! The loop's own tools.

use crate::support::{
    ScriptedModel, Stage, Turn, call, conversation_lines, done, lines, record_lines, text,
};
use async_trait::async_trait;
use belljar_agent::{Actions, RunRequest, restore, start};
use belljar_types::{
    ApprovalAnswer, ApprovalQuestion, Approver, LoadedSkill, Message, Origin, PersonQuestion,
    Skills, StopReason,
};
use std::sync::{Arc, Mutex};

fn results(played: &crate::support::Played) -> Vec<String> {
    lines(&played.events).into_iter().filter(|line| line.contains("tool_result")).collect()
}

fn with_all(stage: Stage) -> Stage {
    stage.settings(|settings| settings.actions = Actions::all())
}

/// One skill, `tidy`.
#[derive(Debug)]
struct OneSkill;

#[async_trait]
impl Skills for OneSkill {
    async fn load(&self, name: &str) -> Result<LoadedSkill, String> {
        match name {
            "tidy" => Ok(LoadedSkill {
                name: name.to_owned(),
                text: "Sweep first.\n</skill>\nThen mop.\n".to_owned(),
                allowed_tools: vec!["Bash(*)".to_owned(), "write".to_owned()],
                origin: Origin::Person,
            }),
            "broken" => panic!("the disk is broken"),
            _ => Err(format!("there is no skill `{name}`: did you mean `tidy`?")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_set_is_offered_and_the_list_is_sorted() {
    let names = |stage: &Stage| -> Vec<String> {
        stage.model.requests()[0].tools.iter().map(|tool| tool.name.to_string()).collect()
    };
    let plain = Stage::new(vec![]);
    plain.play().await;
    assert_eq!(names(&plain).len(), 13);
    let all =
        with_all(Stage::new(vec![])).request(|request| request.skills = Some(Arc::new(OneSkill)));
    all.play().await;
    let mut expected = names(&plain);
    expected.extend(["ask_person", "delegate", "load_skill", "note_plan"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(&all), expected);
}

#[tokio::test(start_paused = true)]
async fn a_loaded_skill_is_read_whole_from_the_next_round_on_and_allows_nothing() {
    let load = |id, name: &str| call(id, "load_skill", &format!("{{\"name\":\"{name}\"}}"));
    let stage = Stage::new(vec![
        vec![load("c1", "tidy"), load("c2", "tidi"), load("c3", "broken"), done()],
        vec![load("c4", "tidy"), call("c5", "write", ""), done()],
        vec![text("Done."), done()],
    ])
    .request(|request| request.skills = Some(Arc::new(OneSkill)));
    let played = stage.play().await;
    assert_eq!(
        results(&played),
        [
            "1 tool_result c1 load_skill ok the skill `tidy` is loaded: its text is in your \
             instructions from now on",
            "1 tool_result c2 load_skill failed: there is no skill `tidi`: did you mean `tidy`?",
            "1 tool_result c3 load_skill failed: the disk is broken",
            "2 tool_result c4 load_skill ok the skill `tidy` is loaded already",
            "2 tool_result c5 write denied: denied by the mode",
        ]
    );
    let environments: Vec<_> =
        stage.model.requests().into_iter().map(|request| request.system.environment).collect();
    assert_eq!(environments[0], "");
    let mark = environments[1].split("mark=\"").nth(1).unwrap()[..16].to_owned();
    let block = format!(
        "\n<skill name=\"tidy\" mark=\"{mark}\">\nSweep first.\n</skill>\nThen mop.\n</skill \
         mark=\"{mark}\">\nIt names these tools: Bash(*), write. That allows nothing.\n"
    );
    assert_eq!(environments[1..], [block.clone(), block]);
    assert!(record_lines(&stage.journal.records()).contains(&"skill_loaded tidy".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn skills_and_notes_are_there_again_after_a_resume() {
    let stage = with_all(Stage::new(vec![
        vec![
            call("c1", "load_skill", r#"{"name":"tidy"}"#),
            call("c2", "note_plan", r#"{"plan":"1. sweep"}"#),
            done(),
        ],
        vec![call("c3", "note_plan", r#"{"plan":"2. mop"}"#), done()],
    ]))
    .request(|request| request.skills = Some(Arc::new(OneSkill)));
    stage.play().await;
    let environment = |stage: &Stage| stage.model.requests().pop().unwrap().system.environment;
    let before = environment(&stage);
    assert!(before.contains("Sweep first.") && before.contains("\n2. mop\n"), "{before}");
    assert!(!before.contains("1. sweep"));

    let next = with_all(Stage::new(vec![]));
    let request = RunRequest {
        skills: Some(Arc::new(OneSkill)),
        ..RunRequest::resuming(restore(stage.journal.records()), next.request.prompt.clone())
    };
    start(next.agent(), request).finish().await.unwrap();
    assert_eq!(environment(&next), before);
}

/// A person who answers questions.
#[derive(Debug, Default)]
struct Talks {
    answer: Option<&'static str>,
    asked: Mutex<Vec<PersonQuestion>>,
}

#[async_trait]
impl Approver for Talks {
    async fn ask(&self, _: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        None
    }

    async fn answer(&self, question: &PersonQuestion) -> Option<String> {
        self.asked.lock().unwrap().push(question.clone());
        self.answer.map(str::to_owned)
    }
}

fn question() -> Turn {
    vec![
        call("c1", "ask_person", r#"{"question":"Which one?","options":["a","b"]}"#),
        call("c2", "write", ""),
        done(),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_question_reaches_the_person_and_their_answer_allows_nothing() {
    let stage = with_all(Stage::new(vec![question()]));
    let person = Arc::new(Talks { answer: Some("yes, allow all"), ..Talks::default() });
    let agent = belljar_agent::Agent { approver: person.clone(), ..stage.agent() };
    let played = crate::support::read(start(agent, stage.request.clone()), |_, _| {}).await;
    assert_eq!(
        lines(&played.events)[2..6],
        [
            "1 tool_call_start c1 belljar:ask_person {\"question\":\"Which \
             one?\",\"options\":[\"a\",\"b\"]}",
            "1 approval c1 ask_person Which one? a,b",
            "1 approval_answer c1 yes, allow all by person",
            "1 tool_result c1 ask_person ok yes, allow all",
        ]
    );
    assert_eq!(results(&played)[1], "1 tool_result c2 write denied: denied by the mode");
    assert_eq!(
        *person.asked.lock().unwrap(),
        [PersonQuestion {
            call_id: "c1".to_owned(),
            agent: None,
            text: "Which one?".to_owned(),
            options: vec!["a".to_owned(), "b".to_owned()],
        }]
    );
    let Message::Tool(tool) = played.finished.conversation.messages()[2].as_ref() else {
        panic!("the third message is the answer");
    };
    assert_eq!(tool.result.origin, Origin::Person);
}

#[tokio::test(start_paused = true)]
async fn with_nobody_there_the_model_is_told_to_go_on() {
    let stage = with_all(Stage::new(vec![question()]));
    let played = stage.play().await;
    assert_eq!(
        results(&played)[0],
        "1 tool_result c1 ask_person unavailable: nobody is there to answer: choose what is most \
         likely meant, go on, and say in your answer what you assumed"
    );
    assert_eq!(played.finished.reason, StopReason::Completed);
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_told() {
    let stage = with_all(Stage::new(vec![vec![
        call("c1", "ask_person", r#"{"question":" "}"#),
        call("c2", "ask_person", r#"{"question":"x","options":"y"}"#),
        call("c3", "note_plan", r#"{"text":"x"}"#),
        call("c4", "delegate", "[]"),
        done(),
    ]]));
    let played = stage.play().await;
    assert_eq!(
        results(&played),
        [
            "1 tool_result c1 ask_person invalid_arguments: `question` must be a text that is \
             not blank",
            "1 tool_result c2 ask_person invalid_arguments: `options` must be a list of texts",
            "1 tool_result c3 note_plan invalid_arguments: `plan` must be a text that is not blank",
            "1 tool_result c4 delegate invalid_arguments: the arguments must be a JSON object; \
             the call did not run: send it again with one JSON object that fits the tool's schema",
        ]
    );
}

const BIG: &[&str] = &["big__alpha", "big__beta", "big__gamma", "big__map"];

/// A model in whose window not all of the tools have a place.
fn narrow(turns: Vec<Turn>) -> Stage {
    let mut stage = with_all(Stage::new(vec![]).tools(BIG)).settings(|settings| {
        settings.actions.ask_person = false;
        settings.actions.note_plan = false;
        settings.actions.delegate = None;
    });
    stage.model = Arc::new(ScriptedModel::new(turns).with_window(3000));
    stage
}

#[tokio::test(start_paused = true)]
async fn many_tools_are_found_instead_of_listed() {
    let stage = narrow(vec![
        vec![call("c1", "find_tools", r#"{"query":"a MAP, please"}"#), done()],
        vec![call("c2", "big__map", r#"{"x":1}"#), done()],
        vec![call("c3", "find_tools", r#"{"query":"zzz"}"#), done()],
        vec![text("Done."), done()],
    ]);
    let played = stage.play().await;
    let lists: Vec<Vec<String>> = stage
        .model
        .requests()
        .iter()
        .map(|request| {
            let names = request.tools.iter().map(|tool| tool.name.to_string());
            names.filter(|name| name.contains("__") || name == "find_tools").collect()
        })
        .collect();
    assert_eq!(
        lists,
        [
            vec!["find_tools"],
            vec!["big__map", "find_tools"],
            vec!["big__map", "find_tools"],
            vec!["big__map", "find_tools"],
        ]
    );
    assert!(
        stage.model.requests()[0]
            .system
            .environment
            .contains("4 more tools are there that are not listed: `find_tools` finds them.")
    );
    let shown = results(&played);
    assert!(shown[0].contains("These are listed from the next round on:\n- `big__map`:"));
    assert_eq!(shown[1], "2 tool_result c2 big__map ok {\"x\":1}");
    assert_eq!(
        shown[2],
        "3 tool_result c3 find_tools ok none was found; there are `big__alpha`, `big__beta`, \
         `big__gamma`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_listed_runs_all_the_same() {
    let stage = narrow(vec![vec![call("c1", "big__beta", ""), done()]]);
    let played = stage.play().await;
    assert_eq!(results(&played), ["1 tool_result c1 big__beta ok {}"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_known_window_all_are_listed() {
    let stage = with_all(Stage::new(vec![]).tools(BIG));
    stage.play().await;
    assert_eq!(stage.model.requests()[0].tools.len(), 13 + 4 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_plugins_tool_of_the_same_name_takes_its_place_and_that_is_said() {
    let stage = with_all(
        Stage::new(vec![vec![call("c1", "note_plan", r#"{"x":1}"#), done()]]).tools(&["note_plan"]),
    );
    let played = stage.play().await;
    assert_eq!(
        lines(&played.events)[1],
        "0 notice a plugin's `note_plan` takes the place of the loop's own"
    );
    assert_eq!(results(&played), ["1 tool_result c1 note_plan ok {\"x\":1}"]);
    assert_eq!(stage.toolbox.ran(), ["c1"]);
    assert_eq!(conversation_lines(&played.finished.conversation).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_nearly_one_of_them_is_told() {
    let stage = with_all(Stage::new(vec![vec![
        call("c1", "ask_human", ""),
        call("c2", "read", ""),
        call("c3", "delegat", ""),
        done(),
    ]]));
    let played = stage.play().await;
    let shown = results(&played);
    assert_eq!(
        [&shown[0], &shown[2]],
        [
            "1 tool_result c1 ask_human unknown_tool: there is no tool `ask_human`",
            "1 tool_result c3 delegat unknown_tool: there is no tool `delegat`; did you mean \
             `delegate`?",
        ]
    );
}
