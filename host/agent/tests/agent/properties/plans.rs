//! Random lives of a session: runs one after the other, each with a model, tools, people, readers
//! and disks of its own, and with an end.

use crate::support::{Asked, Step, Turn, fails, fails_after, finish};
use belljar_types::{
    ApprovalAnswer, Arguments, FinishReason, HookPoint, Mode, ModelErrorKind, ModelEvent,
    Reasoning, ToolCall, Usage,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use std::time::Duration;

/// What happens to a run from outside, at an event of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interference {
    Cancel,
    /// By a reader that then takes a minute.
    CancelSlowly,
    End,
    /// The reader goes away.
    Leave,
    /// The program is killed.
    Crash,
}

/// What hooks of a point say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Say {
    Block,
    End,
    Arguments,
    Context,
    Panic,
}

#[derive(Clone, Debug)]
pub(super) struct RunPlan {
    pub(super) turns: Vec<Turn>,
    pub(super) answers: Vec<Asked>,
    pub(super) interference: Option<(usize, Interference)>,
    /// At which events a person says something.
    pub(super) steering: Vec<usize>,
    /// The record that cannot be written, and whether that is a panic.
    pub(super) journal_fails_at: Option<(usize, bool)>,
    pub(super) hooks: Option<(HookPoint, Say)>,
    pub(super) mode: Mode,
    pub(super) has_prompt: bool,
    pub(super) window: Option<u64>,
    pub(super) summaries: bool,
    pub(super) has_actions: bool,
    pub(super) last_answer: bool,
    pub(super) parallel_calls: usize,
    pub(super) event_buffer: usize,
    pub(super) max_turns: u32,
    pub(super) reader_delay: Duration,
}

pub(super) fn lives() -> impl Strategy<Value = Vec<RunPlan>> {
    // One call id in sixty or so is used again.
    (vec(runs(), 1..4), vec(0..60_u32, 64)).prop_map(|(mut runs, dice)| {
        let mut next = 0;
        for step in runs.iter_mut().flat_map(|run| run.turns.iter_mut().flatten()) {
            if let Step::Event(ModelEvent::ToolCall(call)) = step {
                let again = dice[next % dice.len()] == 0;
                call.id = format!("c{}", if again { 0 } else { next });
                next += 1;
            }
        }
        runs
    })
}

fn runs() -> impl Strategy<Value = RunPlan> {
    let interference = select(vec![
        Interference::Cancel,
        Interference::Cancel,
        Interference::CancelSlowly,
        Interference::End,
        Interference::Leave,
        Interference::Crash,
        Interference::Crash,
    ]);
    let says = select(vec![Say::Block, Say::End, Say::Arguments, Say::Context, Say::Panic]);
    let script = (vec(turns(), 1..7), answers(), vec(0..30_usize, 0..3));
    let trouble = (
        option::weighted(0.6, (0..24_usize, interference)),
        option::weighted(0.15, (0..20_usize, any::<bool>())),
        option::weighted(0.2, (select(HookPoint::ALL.to_vec()), says)),
    );
    let limits = (
        option::weighted(0.5, 20..400_u64),
        any::<bool>(),
        prop_oneof![1 => Just(0), 9 => 1..7_u32],
        1..4_usize,
        1..5_usize,
    );
    let manner = (
        select(vec![Mode::Chat, Mode::Chat, Mode::Chat, Mode::Plan]),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        select(vec![0, 0, 0, 700]),
    );
    (script, trouble, limits, manner).prop_map(|(script, trouble, limits, manner)| {
        let (turns, answers, steering) = script;
        let (interference, journal_fails_at, hooks) = trouble;
        let (window, summaries, max_turns, parallel_calls, event_buffer) = limits;
        let (mode, has_prompt, has_actions, last_answer, delay) = manner;
        RunPlan {
            turns,
            answers,
            interference,
            steering,
            journal_fails_at,
            hooks,
            mode,
            has_prompt,
            window,
            summaries,
            has_actions,
            last_answer,
            parallel_calls,
            event_buffer,
            max_turns,
            reader_delay: Duration::from_millis(delay),
        }
    })
}

fn turns() -> impl Strategy<Value = Turn> {
    (vec(steps(), 0..8), endings()).prop_map(|(mut steps, ending)| {
        steps.extend(ending);
        steps
    })
}

fn texts() -> impl Strategy<Value = String> {
    select(vec!["", " ", "\n", "Hello", " world", "a longer text that takes some of the room "])
        .prop_map(str::to_owned)
}

fn calls() -> impl Strategy<Value = Step> {
    let tools = select(vec![
        "read",
        "read",
        "read",
        "write",
        "write",
        "write",
        "write",
        "locked",
        "hidden",
        "failing",
        "slow",
        "slow_read",
        "slow_read",
        "flaky_read",
        "stuck",
        "late",
        "queued",
        "chatty",
        "flood",
        "broken",
        "cracked",
        "nothing",
        "nothing",
        "",
        "delegate",
        "delegate",
        "delegate",
        "note_plan",
        "ask_person",
    ]);
    let arguments = select(vec![
        "",
        "{}",
        r#"{"p":1}"#,
        r#"{"p":1}"#,
        r#"{"bad":1}"#,
        r#"{"task":"look"}"#,
        r#"{"plan":"1. look"}"#,
        r#"{"question":"Which?"}"#,
        "{\"p\":",
        "[1]",
    ]);
    (tools, arguments).prop_map(|(tool, arguments)| {
        let arguments = match tool {
            // Else most of them would be refused.
            "delegate" if arguments.len() < 8 && arguments != "[1]" => r#"{"task":"look"}"#,
            _ => arguments,
        };
        Step::Event(ModelEvent::ToolCall(ToolCall {
            // Made unique above, but for a few.
            id: String::new(),
            tool: tool.to_owned(),
            arguments: Arguments::parse(arguments),
        }))
    })
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => texts().prop_map(|text| Step::Event(ModelEvent::Text(text))),
        1 => texts().prop_map(|text| Step::Event(ModelEvent::ReasoningDelta(text))),
        1 => texts().prop_map(|text| Step::Event(ModelEvent::Reasoning(Reasoning {
            text,
            signature: None,
            data: None,
        }))),
        8 => calls(),
        1 => (option::of(0..9_u64), option::of(0..9_u64)).prop_map(|(input, output)| {
            Step::Event(ModelEvent::Usage(Usage {
                input_tokens: input,
                output_tokens: output,
                cached_tokens: None,
            }))
        }),
        1 => (0..2000_u64).prop_map(|ms| Step::Wait(Duration::from_millis(ms))),
    ]
}

fn endings() -> impl Strategy<Value = Option<Step>> {
    let reasons = select(vec![
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::Pause,
        FinishReason::Refused,
    ]);
    let errors = select(vec![
        ModelErrorKind::Connection,
        ModelErrorKind::RateLimited,
        ModelErrorKind::Server,
        ModelErrorKind::Cut,
        ModelErrorKind::Cut,
        ModelErrorKind::Protocol,
        ModelErrorKind::Authentication,
        ModelErrorKind::ContextOverflow,
        ModelErrorKind::ContextOverflow,
    ]);
    prop_oneof![
        24 => reasons.prop_map(|reason| Some(finish(reason))),
        4 => errors.prop_map(|kind| Some(fails(kind))),
        1 => (0..200_u64).prop_map(|s| Some(fails_after(ModelErrorKind::RateLimited, s))),
        1 => Just(Some(Step::Panic)),
        1 => Just(None),
    ]
}

fn answers() -> impl Strategy<Value = Vec<Asked>> {
    let answer = select(vec![
        ApprovalAnswer::Once,
        ApprovalAnswer::Session,
        ApprovalAnswer::No,
        ApprovalAnswer::NoBecause("not now".to_owned()),
    ]);
    let asked = prop_oneof![
        4 => answer.clone().prop_map(Asked::Answers),
        2 => answer.prop_map(|answer| Asked::AnswersAfter(Duration::from_secs(1), answer)),
        1 => Just(Asked::Nobody),
        1 => Just(Asked::Panics),
    ];
    vec(asked, 0..4)
}
