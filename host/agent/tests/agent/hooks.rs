//! Hooks: they refuse and narrow, and never allow.

use crate::support::{Asked, Stage, call, conversation_lines, done, lines, text};
use async_trait::async_trait;
use belljar_types::{ApprovalAnswer, HookPoint, HookReport, Hooks, Origin, Part, StopReason};
use serde_json::{Map, Value, json};
use std::{
    fmt,
    sync::{Arc, Mutex},
};

/// Hooks of one point, which say what a function makes of an empty report.
pub(crate) struct ScriptedHooks {
    point: HookPoint,
    say: Box<dyn Fn(&mut HookReport) + Send + Sync>,
    inputs: Mutex<Vec<Value>>,
}

impl fmt::Debug for ScriptedHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hooks at {}", self.point)
    }
}

impl ScriptedHooks {
    pub(crate) fn new(
        point: HookPoint,
        say: impl Fn(&mut HookReport) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { point, say: Box::new(say), inputs: Mutex::default() })
    }

    /// What they read, in order.
    pub(crate) fn inputs(&self) -> Vec<Value> {
        self.inputs.lock().unwrap().clone()
    }
}

#[async_trait]
impl Hooks for ScriptedHooks {
    fn has(&self, point: HookPoint) -> bool {
        self.point == point
    }

    async fn run(&self, point: HookPoint, input: &Map<String, Value>) -> HookReport {
        assert_eq!(point, self.point);
        self.inputs.lock().unwrap().push(Value::Object(input.clone()));
        let mut report = HookReport::default();
        (self.say)(&mut report);
        report
    }
}

fn stage(hooks: &Arc<ScriptedHooks>) -> Stage {
    Stage::new(vec![vec![call("c1", "read", r#"{"p":1}"#), done()], vec![text("Done."), done()]])
        .request(|request| request.hooks = Some(hooks.clone()))
}

fn blocks(point: HookPoint) -> Arc<ScriptedHooks> {
    ScriptedHooks::new(point, |report| report.blocked = Some("not today".to_owned()))
}

#[tokio::test(start_paused = true)]
async fn each_point_is_asked_with_what_it_is_about() {
    for (point, inputs) in [
        (
            HookPoint::SessionStart,
            json!([{"model": "p/m", "mode": "chat", "permission_mode": "default"}]),
        ),
        (HookPoint::UserPrompt, json!([{"prompt": "go"}])),
        (HookPoint::PreRound, json!([{"iteration": 1}, {"iteration": 2}])),
        (
            HookPoint::PreTool,
            json!([{"call_id": "c1", "tool": "read", "plugin": "box", "arguments": {"p": 1}}]),
        ),
        (HookPoint::Stop, json!([{"reason": "completed", "message": ""}])),
        (HookPoint::Notification, json!([])),
        (HookPoint::PreCompact, json!([])),
        (HookPoint::SubagentStop, json!([])),
    ] {
        let hooks = ScriptedHooks::new(point, |_| {});
        let played = stage(&hooks).play().await;
        assert_eq!(Value::from(hooks.inputs()), inputs, "{point}");
        assert_eq!(played.finished.reason, StopReason::Completed, "{point}");
    }
    let hooks = ScriptedHooks::new(HookPoint::PostTool, |_| {});
    stage(&hooks).play().await;
    let input = hooks.inputs().remove(0);
    assert_eq!(input["result"]["call_id"], "c1");
    assert_eq!(input["receipt"]["plugin"], "box");
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_denied_and_says_why() {
    let hooks = blocks(HookPoint::PreTool);
    let stage = stage(&hooks);
    let played = stage.play().await;
    assert!(lines(&played.events).contains(
        &"1 tool_result c1 read denied: denied by a hook of the user's: not today".to_owned()
    ));
    assert_eq!(played.finished.denials, 1);
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_hook_cannot_allow_what_is_denied_or_answer_for_a_person() {
    // All that it can say is said, and nothing of it is a yes.
    let hooks = ScriptedHooks::new(HookPoint::PreTool, |report| {
        report.arguments = Some(Map::new());
        report.context = vec!["allowed: true".to_owned()];
    });
    let stage = Stage::new(vec![vec![
        call("c1", "locked", ""),
        call("c2", "hidden", ""),
        call("c3", "write", ""),
        done(),
    ]])
    .asked(vec![Asked::Answers(ApprovalAnswer::No)])
    .request(|request| request.hooks = Some(hooks.clone()));
    let played = stage.play().await;
    let results: Vec<_> = conversation_lines(&played.finished.conversation)
        .into_iter()
        .filter(|line| line.starts_with("tool "))
        .collect();
    assert_eq!(
        results,
        [
            "tool c1 locked denied: denied by the rule",
            "tool c2 hidden denied: `hidden` is denied by a rule",
            "tool c3 write denied: denied by the user",
        ]
    );
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
    assert_eq!(stage.approver.questions().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn changed_arguments_are_checked_again_and_shown_to_the_person() {
    let hooks = ScriptedHooks::new(HookPoint::PreTool, |report| {
        report.arguments = Some(json!({"p": "narrow"}).as_object().unwrap().clone());
    });
    let changed = Stage::new(vec![vec![call("c1", "write", r#"{"p":"wide"}"#), done()]])
        .asked(vec![Asked::Answers(ApprovalAnswer::Once)])
        .request(|request| request.hooks = Some(hooks.clone()));
    let played = changed.play().await;
    let shown = lines(&played.events);
    assert_eq!(
        shown[2..7],
        [
            "1 tool_call_start c1 box:write {\"p\":\"wide\"}",
            "1 notice a hook changed the arguments of `write` to {\"p\":\"narrow\"}",
            "1 approval c1 write may `write` change files? once,session,no,no_because",
            "1 approval_answer c1 once by person",
            "1 tool_result c1 write ok {\"p\":\"narrow\"}",
        ]
    );
    let asked = serde_json::to_string(&changed.approver.questions()[0].call.arguments).unwrap();
    assert_eq!(asked, r#"{"p":"narrow"}"#);

    let hooks = ScriptedHooks::new(HookPoint::PreTool, |report| {
        report.arguments = Some(json!({"bad": 1}).as_object().unwrap().clone());
    });
    let stage = stage(&hooks);
    let played = stage.play().await;
    assert!(lines(&played.events).contains(
        &"1 tool_result c1 read invalid_arguments: a hook of the user's changed the arguments, \
          and with them the call does not run: `bad` is not of the schema"
            .to_owned()
    ));
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_refused_prompt_ends_the_run_before_any_request() {
    let hooks = blocks(HookPoint::UserPrompt);
    let stage = stage(&hooks);
    let played = stage.play().await;
    assert_eq!(
        (played.finished.reason, played.finished.message.as_str()),
        (StopReason::Ended, "a hook refused the prompt: not today")
    );
    assert_eq!(stage.model.requests().len(), 0);
    assert_eq!(played.finished.conversation.messages().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_message_while_busy_is_told_and_the_run_goes_on() {
    let hooks = ScriptedHooks::new(HookPoint::UserPrompt, |_| {});
    let hooks = Arc::new(ScriptedHooks {
        say: Box::new({
            let seen = Mutex::new(0);
            move |report| {
                let mut seen = seen.lock().unwrap();
                *seen += 1;
                report.blocked = (*seen > 1).then(|| "not today".to_owned());
            }
        }),
        point: hooks.point,
        inputs: Mutex::default(),
    });
    let stage = stage(&hooks).settings(|settings| settings.event_buffer = 1);
    let played = crate::support::read(stage.start(), |run, event| {
        if event.seq == 1 {
            run.steer(vec![Part::text("and this", Origin::Person)]).unwrap();
        }
    })
    .await;
    assert!(
        lines(&played.events).contains(&"2 notice a hook refused the message: not today".into())
    );
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert!(
        !conversation_lines(&played.finished.conversation).contains(&"user \"and this\"".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_round_ends_the_run() {
    let hooks = blocks(HookPoint::PreRound);
    let stage = stage(&hooks);
    let played = stage.play().await;
    assert_eq!(
        (played.finished.reason, played.finished.message.as_str()),
        (StopReason::Ended, "a hook refused the round: not today")
    );
    assert_eq!(stage.model.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_objection_after_a_call_is_read_by_the_model() {
    let hooks = blocks(HookPoint::PostTool);
    let stage = stage(&hooks);
    let played = stage.play().await;
    assert_eq!(played.finished.reason, StopReason::Completed);
    assert_eq!(
        stage.model.requests()[1].reminders,
        ["After the call `c1` of `read` a check of the person's objects: not today"]
    );
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_left_to_refuse_an_objection_is_told() {
    for (point, iteration) in [(HookPoint::SessionStart, 0), (HookPoint::Stop, 2)] {
        let played = stage(&blocks(point)).play().await;
        assert_eq!(played.finished.reason, StopReason::Completed, "{point}");
        assert!(
            lines(&played.events)
                .contains(&format!("{iteration} notice a `{point}` hook objects: not today"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_end_the_run_and_open_calls_get_results() {
    for (point, ran) in [
        (HookPoint::SessionStart, 0),
        (HookPoint::UserPrompt, 0),
        (HookPoint::PreRound, 0),
        (HookPoint::PreTool, 0),
        (HookPoint::PostTool, 1),
    ] {
        let hooks = ScriptedHooks::new(point, |report| report.end = Some("enough".to_owned()));
        let stage = stage(&hooks);
        let played = stage.play().await;
        assert_eq!(
            (played.finished.reason, played.finished.message.as_str()),
            (StopReason::Ended, "enough"),
            "{point}"
        );
        assert_eq!(stage.toolbox.ran().len(), ran, "{point}");
        assert_eq!(belljar_agent::replay(stage.journal.records()), played.finished.conversation);
    }
    let hooks = ScriptedHooks::new(HookPoint::PreTool, |report| report.end = Some("so".to_owned()));
    let played = stage(&hooks).play().await;
    assert!(lines(&played.events).contains(
        &"1 tool_result c1 read canceled: the run was ended before the call ran".to_owned()
    ));
}

#[tokio::test(start_paused = true)]
async fn what_hooks_add_is_read_in_the_next_request_or_in_all() {
    for (point, in_all) in [
        (HookPoint::SessionStart, true),
        (HookPoint::UserPrompt, true),
        (HookPoint::PreRound, false),
        (HookPoint::PostTool, false),
    ] {
        let hooks =
            ScriptedHooks::new(point, |report| report.context = vec!["mind the gap".to_owned()]);
        let stage = stage(&hooks);
        stage.play().await;
        let last = stage.model.requests().pop().unwrap();
        assert_eq!(last.system.environment.contains("mind the gap"), in_all, "{point}");
        assert_eq!(last.reminders.contains(&"mind the gap".to_owned()), !in_all, "{point}");
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_that_panic_refuse() {
    let hooks = ScriptedHooks::new(HookPoint::PreTool, |_| panic!("the shell is broken"));
    let stage = stage(&hooks);
    let played = stage.play().await;
    assert_eq!(
        lines(&played.events)[3..5],
        [
            "1 notice running `pre_tool` hooks panicked, which is a bug: the shell is broken",
            "1 tool_result c1 read denied: denied by a hook of the user's: the `pre_tool` hooks \
             could not be asked",
        ]
    );
    assert_eq!(stage.toolbox.ran(), Vec::<String>::new());
}

#[derive(Debug)]
struct Hangs(HookPoint);

#[async_trait]
impl Hooks for Hangs {
    fn has(&self, point: HookPoint) -> bool {
        self.0 == point
    }

    async fn run(&self, _: HookPoint, _: &Map<String, Value>) -> HookReport {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_waits_for_no_hook() {
    for point in HookPoint::ALL {
        let stage =
            Stage::new(vec![vec![call("c1", "write", ""), call("c2", "stuck", ""), done()]])
                .asked(vec![Asked::Answers(ApprovalAnswer::Once)])
                .request(|request| request.hooks = Some(Arc::new(Hangs(point))));
        let run = stage.start();
        let handle = run.handle();
        tokio::spawn(async move {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            handle.cancel();
        });
        let began = tokio::time::Instant::now();
        let played = crate::support::read(run, |_, _| {}).await;
        assert_eq!(played.finished.reason, StopReason::Canceled, "{point}");
        assert!(began.elapsed() <= std::time::Duration::from_millis(1100), "{point}");
    }
}
