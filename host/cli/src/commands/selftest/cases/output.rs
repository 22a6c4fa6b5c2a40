//! Words: floods of them, and those that would act where they are shown.

use crate::{
    commands::selftest::{
        case::{Case, Outcome, next_call},
        stage::{self, Stage, call, call_with, words},
    },
    visible,
};
use anyhow::ensure;
use belljar_capability::Limits;
use belljar_test_guests::{Odd, odd};
use belljar_types::{
    CallUpdate,
    ToolErrorKind::{Deadline, OutOfFuel},
};
use serde_json::json;
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

/// Escape sequences, controls, bidirectional and zero-width characters.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}x\u{200b}\u{9b}31m\r\u{8}\u{feff}";

pub(super) fn cases() -> Vec<Case> {
    let flood = || json!({"bytes": 16 << 20});
    let soon = Limits { deadline: Duration::from_millis(300), ..stage::limits() };
    vec![
        Case::answers(7, "a flood on standard output", ("flood_stdout", flood()), "sent 168"),
        Case::answers(7, "a flood on standard error", ("flood_stderr", flood()), "sent 168"),
        Case::answers(7, "a flood in the log", ("flood_log", flood()), "sent 168")
            .under(stage::patient()),
        Case::ends(7, "output without end", ("flood_stdout", json!({})), &[Deadline, OutOfFuel]),
        Case::scene(7, "shown output without end", |stage| Box::pin(shown_without_end(stage)))
            .under(soon),
        Case::scene(7, "progress without end", |stage| Box::pin(progress_without_end(stage))),
        Case::text_ends(
            7,
            "crossing_log_without_end",
            &[Deadline, OutOfFuel, belljar_types::ToolErrorKind::OutputLimit],
        ),
        Case::text_ends(
            7,
            "crossing_emit_without_end",
            &[Deadline, OutOfFuel, belljar_types::ToolErrorKind::OutputLimit],
        ),
        Case::scene(22, "hostile words in a result", |stage| {
            Box::pin(hostile_words(stage, "hostile_words", json!({})))
        }),
        Case::scene(22, "hostile words in an error", |stage| {
            let arguments = json!({"kind": "failed", "message": HOSTILE});
            Box::pin(hostile_words(stage, "fail", arguments))
        }),
        Case::scene(22, "hostile words in the log", |stage| {
            let arguments = json!({"stdout": HOSTILE, "stderr": HOSTILE, "log": HOSTILE});
            Box::pin(hostile_words(stage, "print", arguments))
        }),
        Case::scene(22, "hostile words in a description", |stage| {
            Box::pin(hostile_description(stage))
        }),
        Case::file(
            22,
            "hostile words as a tool's name",
            ("odd.wasm", odd(Odd::NameHostile)),
            "names a tool",
        ),
    ]
}

/// What people are shown of a guest that shows without end.
async fn shown_without_end(stage: &Stage) -> Outcome {
    let sandbox = stage.open().await?;
    let shown = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&shown);
    let observer = Arc::new(move |update| {
        if let CallUpdate::Output { text } = update {
            *seen.lock().unwrap_or_else(PoisonError::into_inner) += text.len() as u64;
        }
    });
    let cancel = CancellationToken::new();
    let report = call_with(&sandbox, "hostile__flood_emit", json!({}), observer, cancel).await;
    ensure!(report.outcome.is_err(), "it answered: {}", words(&report));
    let shown = *shown.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(shown <= stage.limits.log + 100, "{shown} bytes were shown");
    next_call(&sandbox).await?;
    Ok(format!("{}; {shown} bytes were shown", words(&report)))
}

/// How often people are told of a guest that tells of progress in a tight loop.
async fn progress_without_end(stage: &Stage) -> Outcome {
    const REPORTS: usize = 200_000;
    let sandbox = stage.open().await?;
    let told = Arc::new(Mutex::new(0_usize));
    let seen = Arc::clone(&told);
    let observer = Arc::new(move |_| *seen.lock().unwrap_or_else(PoisonError::into_inner) += 1);
    let cancel = CancellationToken::new();
    let arguments = json!({"reports": REPORTS});
    let report = call_with(&sandbox, "hostile__flood_progress", arguments, observer, cancel).await;
    ensure!(report.outcome.is_ok(), "it failed: {}", words(&report));
    let told = *told.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(told < REPORTS / 100, "{told} of {REPORTS} reports were passed on");
    next_call(&sandbox).await?;
    Ok(format!("{told} of {REPORTS} reports were passed on"))
}

/// What a terminal would be shown of a call holds nothing that it would obey.
async fn hostile_words(stage: &Stage, tool: &str, arguments: serde_json::Value) -> Outcome {
    let sandbox = stage.open().await?;
    let report = call(&sandbox, &format!("hostile__{tool}"), arguments).await;
    let log = report.receipt.as_ref().map_or("", |receipt| &receipt.log);
    let text = format!("{}\n{log}", words(&report));
    ensure!(text.contains('\u{1b}'), "the guest said nothing hostile: {text:?}");
    nothing_acts(&text)
}

async fn hostile_description(stage: &Stage) -> Outcome {
    use belljar_types::Toolbox as _;
    stage.add("odd.wasm", &odd(Odd::DescriptionHostile))?;
    let sandbox = stage.open_with(stage.config()).await?;
    let tools = sandbox.tools();
    let texts = tools.iter().map(|tool| {
        format!("{}{}{}", tool.name, tool.title.as_deref().unwrap_or_default(), tool.description)
    });
    let text: String = texts.collect();
    ensure!(text.contains('\u{1b}'), "the guest said nothing hostile: {text:?}");
    nothing_acts(&text)
}

/// Looks at the text as the screen would write it, in each of its ways.
fn nothing_acts(text: &str) -> Outcome {
    let json = visible::json(&serde_json::to_string(text)?);
    for shown in [visible::lines(text), visible::line(text), json] {
        let acting = shown.chars().find(|c| {
            (c.is_control() && !matches!(c, '\n' | '\t'))
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}')
        });
        ensure!(acting.is_none(), "{acting:?} is in {shown:?}");
    }
    Ok("shown as text".to_owned())
}
