//! Calls beside each other and one after the other: state, starving, cancelling, pairs.

use crate::commands::selftest::{
    case::{Case, Outcome, next_call},
    levels::Levels,
    stage::{self, CANARY, Stage, call, call_with, words},
};
use anyhow::ensure;
use belljar_capability::Limits;
use belljar_test_guests::HOSTILE;
use belljar_types::{Origin, ToolErrorKind::Canceled};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;

pub(super) fn cases() -> Vec<Case> {
    let starving = Limits { deadline: Duration::from_secs(1), ..stage::limits() };
    vec![
        Case::text_answers(25, "state_in_memory"),
        Case::text_answers(25, "state_in_grown_memory"),
        Case::text_answers(25, "state_in_global"),
        Case::text_answers(25, "state_in_table"),
        Case::text_answers(25, "state_in_dropped_segments"),
        Case::scene(27, "spinners and sleepers", |stage| Box::pin(starving_others(stage)))
            .under(starving),
        Case::scene(28, "cancelled at every step", |stage| Box::pin(cancelled(stage))),
        Case::scene(32, "one reads what the other was given", |stage| Box::pin(pair(stage))),
    ]
}

/// Other plugins are served while a plugin uses all that it may have.
async fn starving_others(stage: &Stage) -> Outcome {
    stage.add("second.wasm", HOSTILE.bytes)?;
    let sandbox = stage.open().await?;
    let ticks = Arc::new(AtomicU64::new(0));
    let ticker = tokio::spawn({
        let ticks = Arc::clone(&ticks);
        async move {
            loop {
                tokio::time::sleep(Duration::from_millis(10)).await;
                ticks.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let mut attackers = tokio::task::JoinSet::new();
    for tool in ["hostile__spin", "second__sleep_for_ever"] {
        for _ in 0..8 {
            let sandbox = sandbox.clone();
            attackers.spawn(async move { call(&sandbox, tool, json!({})).await.outcome.is_err() });
        }
    }
    let mut served = 0;
    while !attackers.is_empty() {
        next_call(&sandbox).await?;
        served += 1;
        while let Some(ended) = attackers.try_join_next() {
            ensure!(ended?, "an attacker answered");
        }
    }
    ticker.abort();
    let ticks = ticks.load(Ordering::Relaxed);
    ensure!(served >= 20, "only {served} other calls were served meanwhile");
    ensure!(ticks >= 10, "the loop's ticker advanced {ticks} times only");
    Ok(format!("{served} other calls were served meanwhile, and the loop ticked {ticks} times"))
}

/// Cancels after each number of steps, until calls end by themselves before.
async fn cancelled(stage: &Stage) -> Outcome {
    let sandbox = stage.open().await?;
    // The first call of a plugin loads it.
    call(&sandbox, "hostile__count", json!({})).await;
    next_call(&sandbox).await?;
    let before = Levels::now();
    let mut canceled = 0;
    for round in 0..60_u32 {
        let tool =
            ["hostile__spin", "hostile__sleep_for_ever", "hostile__flood_emit"][round as usize % 3];
        let cancel = CancellationToken::new();
        let running = call_with(&sandbox, tool, json!({}), Arc::new(|_| {}), cancel.clone());
        let canceling = async {
            for _ in 0..round * 7 {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (report, ()) = tokio::join!(running, canceling);
        let text = words(&report);
        ensure!(report.outcome.is_err_and(|error| error.kind == Canceled), "{tool}: {text}");
        ensure!(!text.contains("left behind"), "{tool}: {text}");
        canceled += 1;
    }
    next_call(&sandbox).await?;
    Levels::now().check_back_to(&before)?;
    Ok(format!("{canceled} calls were cancelled"))
}

/// Two plugins with the same bytes: the grant of one is no grant of the other.
async fn pair(stage: &Stage) -> Outcome {
    stage.add("second.wasm", HOSTILE.bytes)?;
    let sandbox = stage.open().await?;
    let write = json!({"path": "shared.txt", "text": CANARY});
    let wrote = call(&sandbox, "hostile__write_path", write).await;
    ensure!(wrote.outcome.is_ok(), "the one with the grant: {}", words(&wrote));
    for tool in ["read_path", "stat_path", "list_path"] {
        let path = if tool == "list_path" { "/" } else { "shared.txt" };
        let report = call(&sandbox, &format!("second__{tool}"), json!({"path": path})).await;
        let text = words(&report);
        ensure!(report.outcome.is_err(), "the one without a grant: {text}");
        ensure!(!text.contains(CANARY), "the one without a grant read: {text}");
        let is_its_own =
            matches!(&report.origin, Origin::Plugin { plugin, .. } if &**plugin == "second");
        ensure!(is_its_own, "its result is said to come from {:?}", report.origin);
    }
    Ok("the other saw nothing".to_owned())
}
