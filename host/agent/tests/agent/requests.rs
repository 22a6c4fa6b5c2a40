//! How a request to the model is made: the parts of the chain, in their order, and those that a
//! user of the library adds.

use crate::support::{Stage, call, done, lines, text};
use async_trait::async_trait;
use belljar_agent::{Agent, Chain, Plan, Processor, ProcessorError, Round, SystemSource, start};
use belljar_types::{
    Arguments, Conversation, FinishReason, Message, Mode, Model, ModelEvent, ModelRequest,
    ModelStream, Origin, Part, StopReason, SystemPrompt, ToolCall, UserMessage,
};
use futures::{StreamExt, stream};
use std::sync::{Arc, Mutex};

/// A stable part that is not, and an environment that tells the round.
#[derive(Debug)]
struct Restless;

#[async_trait]
impl SystemSource for Restless {
    async fn system(&self, round: u32) -> SystemPrompt {
        SystemPrompt {
            stable: format!("rules as of round {round}").into(),
            environment: format!("round {round}"),
        }
    }
}

/// Rounds that call a tool, and one that answers.
fn rounds(calls: usize) -> Vec<crate::support::Turn> {
    (1..=calls)
        .map(|number| {
            vec![call(&format!("c{number}"), "read", &format!("{{\"n\":{number}}}")), done()]
        })
        .chain([vec![text("Done."), done()]])
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_stable_part_is_the_same_in_all_rounds_and_the_environment_is_made_anew() {
    let stage = Stage::new(rounds(2)).request(|request| request.system = Arc::new(Restless));
    stage.play().await;
    let systems: Vec<_> = stage
        .model
        .requests()
        .into_iter()
        .map(|request| (request.system.stable.to_string(), request.system.environment))
        .collect();
    let stable = || "rules as of round 1".to_owned();
    assert_eq!(
        systems,
        [
            (stable(), "round 1".to_owned()),
            (stable(), "round 2".to_owned()),
            (stable(), "round 3".to_owned()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn in_plan_mode_the_reminder_is_full_in_round_1_and_every_4th_and_short_between() {
    let stage = Stage::new(rounds(8)).request(|request| request.mode = Mode::Plan);
    stage.play().await;
    let full: Vec<bool> = stage
        .model
        .requests()
        .iter()
        .map(|request| match request.reminders.as_slice() {
            [one] => one.contains("Nothing may be changed"),
            others => panic!("{others:?}"),
        })
        .collect();
    assert_eq!(full, [true, false, false, true, false, false, false, true, false]);
    // Nothing of it stays in the conversation.
    let last = stage.model.requests().pop().unwrap();
    assert_eq!(last.conversation.messages().len(), 1 + 2 * 8);
}

#[tokio::test(start_paused = true)]
async fn in_chat_there_is_no_reminder() {
    let stage = Stage::new(rounds(1));
    stage.play().await;
    assert!(stage.model.requests().iter().all(|request| request.reminders.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn plan_mode_offers_tools_that_read_and_refuses_the_others() {
    let turns = vec![vec![
        call("c1", "chatty", ""),
        call("c2", "read", ""),
        call("c3", "write", ""),
        done(),
    ]];
    let stage = Stage::new(turns).request(|request| request.mode = Mode::Plan);
    let played = stage.play().await;
    let offered: Vec<_> =
        stage.model.requests()[0].tools.iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(offered, ["read", "slow_read"]);
    let results: Vec<_> =
        lines(&played.events).into_iter().filter(|line| line.contains("tool_result")).collect();
    let refused = "denied: in plan mode only tools that read are there: put what you would do into \
                   the plan";
    assert_eq!(
        results,
        [
            format!("1 tool_result c1 chatty {refused}"),
            "1 tool_result c2 read ok {}".to_owned(),
            format!("1 tool_result c3 write {refused}"),
        ]
    );
    assert_eq!(stage.toolbox.ran(), ["c2"]);
    assert_eq!(stage.approver.questions(), []);
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_plan_and_its_task_are_read_in_every_round() {
    let plan = Plan { task: "tidy up".to_owned(), text: "1. sweep".to_owned() };
    let stage = Stage::new(rounds(1)).request(|request| {
        request.mode = Mode::Do;
        request.plan = Some(plan);
        request.prompt = vec![];
    });
    let played = stage.play().await;
    for request in stage.model.requests() {
        let environment = request.system.environment;
        assert!(environment.contains("confirmed this plan"), "{environment}");
        assert!(environment.contains("\ntidy up\n") && environment.contains("\n1. sweep\n"));
    }
    assert_eq!(
        crate::support::conversation_lines(&played.finished.conversation)[0],
        "user \"tidy up\""
    );
}

#[tokio::test(start_paused = true)]
async fn doing_without_a_plan_says_so() {
    let stage = Stage::new(vec![]).request(|request| request.mode = Mode::Do);
    let played = stage.play().await;
    assert_eq!(
        lines(&played.events),
        [
            "0 error request: there is no plan to carry out: give one with `--plan FILE`",
            "0 stop StreamError \"there is no plan to carry out: give one with `--plan FILE`\" \
             turns=0 ms=0 usage=0/0 result=\"\" denials=0 s1",
        ]
    );
}

/// Adds a reminder that says what it saw.
#[derive(Debug)]
struct Tells(&'static str);

#[async_trait]
impl Processor for Tells {
    fn name(&self) -> &str {
        self.0
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        round: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        request.reminders.push(format!(
            "{} in round {}: {} messages, {} tools, {} tokens or more",
            self.0,
            round.number,
            request.conversation.messages().len(),
            request.tools.len(),
            round.tokens_of(&request).min(1)
        ));
        Ok(request)
    }
}

#[test]
fn the_chain_has_an_order_that_can_be_changed() {
    let mut chain = Chain::standard().with(Tells("mine"));
    chain.insert_before("history", Tells("early")).unwrap();
    chain.replace("plan", Tells("plan")).unwrap();
    chain.remove("environment").unwrap();
    assert_eq!(
        chain.names(),
        ["system", "early", "history", "tools", "plan", "reminder", "mine", "window"]
    );
    assert_eq!(
        chain.remove("nothing").unwrap_err().to_string(),
        "the chain has no processor `nothing`: it has `system`, `early`, `history`, `tools`, \
         `plan`, `reminder`, `mine`, `window`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_processor_of_the_users_own_sees_the_round_and_changes_its_request_only() {
    let stage = Stage::new(rounds(1)).request(|request| {
        request.chain.insert_before("history", Tells("early")).unwrap();
        request.chain = request.chain.clone().with(Tells("late"));
    });
    let played = stage.play().await;
    let reminders: Vec<_> =
        stage.model.requests().into_iter().map(|request| request.reminders).collect();
    assert_eq!(
        reminders,
        [
            [
                "early in round 1: 0 messages, 0 tools, 0 tokens or more",
                "late in round 1: 1 messages, 13 tools, 1 tokens or more"
            ],
            [
                "early in round 2: 0 messages, 0 tools, 0 tokens or more",
                "late in round 2: 3 messages, 13 tools, 1 tokens or more"
            ],
        ]
    );
    assert_eq!(played.finished.conversation.messages().len(), 4);
}

/// Goes wrong in a way of its own.
#[derive(Debug)]
enum Wrong {
    Fails,
    Panics,
    MakesNonsense,
}

#[async_trait]
impl Processor for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    async fn process(
        &self,
        mut request: ModelRequest,
        _: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        match self {
            Self::Fails => Err(ProcessorError::Failed("the index is gone".to_owned())),
            Self::Panics => panic!("the index is broken"),
            Self::MakesNonsense => {
                let blank = vec![Part::text(" ", Origin::Person)];
                request.conversation = Conversation::default();
                request.conversation.push(Message::User(UserMessage { parts: blank }));
                Ok(request)
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_processor_that_goes_wrong_ends_the_run_in_order() {
    for (wrong, message) in [
        (Wrong::Fails, "the request to the model cannot be made: the index is gone"),
        (Wrong::Panics, "the run broke off in a panic, which is a bug: the index is broken"),
        (
            Wrong::MakesNonsense,
            "a processor made a conversation no model takes: message 0: an empty text",
        ),
    ] {
        let stage = Stage::new(rounds(0))
            .request(|request| request.chain = request.chain.clone().with(wrong));
        let played = stage.play().await;
        assert_eq!(
            (played.finished.reason, played.finished.message.as_str()),
            (StopReason::StreamError, message)
        );
        assert_eq!(stage.model.requests().len(), 0);
    }
}

/// Never gets done.
#[derive(Debug)]
struct Hangs;

#[async_trait]
impl Processor for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }

    async fn process(
        &self,
        _: ModelRequest,
        _: &Round<'_>,
    ) -> Result<ModelRequest, ProcessorError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_processor_that_hangs_is_cancelled_with_its_run() {
    let stage =
        Stage::new(rounds(0)).request(|request| request.chain = request.chain.clone().with(Hangs));
    let played = crate::support::read(stage.start(), |run, event| {
        if event.iteration == 1 {
            run.cancel();
        }
    })
    .await;
    assert_eq!(played.finished.reason, StopReason::Canceled);
}

/// Notes where the list of messages of each request lies in memory, and calls a tool.
#[derive(Debug, Default)]
struct Looks(Mutex<Vec<usize>>);

impl Model for Looks {
    fn name(&self) -> &str {
        "m"
    }

    fn provider(&self) -> &str {
        "p"
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let mut seen = self.0.lock().unwrap();
        seen.push(request.conversation.messages().as_ptr().addr());
        let call = ToolCall {
            id: format!("c{}", seen.len()),
            tool: "read".to_owned(),
            arguments: Arguments::parse(&format!("{{\"n\":{}}}", seen.len())),
        };
        let events = [ModelEvent::ToolCall(call), ModelEvent::Done(FinishReason::Stop)];
        stream::iter(events.map(Ok)).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn the_conversation_is_never_copied_for_a_round() {
    let mut conversation = Conversation::default();
    for _ in 0..1000 {
        let parts = vec![Part::text("so", Origin::Person)];
        conversation.push(Message::User(UserMessage { parts }));
    }
    let stage = Stage::new(vec![])
        .settings(|settings| settings.max_turns = 100)
        .request(|request| request.conversation = conversation);
    let model = Arc::new(Looks::default());
    let agent = Agent { model: Some(model.clone()), ..stage.agent() };
    start(agent, stage.request.clone()).finish().await.unwrap();
    let seen = model.0.lock().unwrap();
    assert_eq!(seen.len(), 100);
    // It moves only where it outgrows its place, which doubles.
    let moves = seen.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(moves <= 1, "it moved {moves} times");
}
