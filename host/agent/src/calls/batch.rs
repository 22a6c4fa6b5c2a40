//! Running prepared calls, one or several at once: what they tell while they run, further attempts
//! where they are `unavailable`, and what counts after a cancel.
//!
//! Each call is a task of its own, so that it goes on while the reader is slow and a panic in it
//! stays there.

use super::{
    Progress, Ready, interrupted,
    words::{broken_report, cause},
};
use crate::{driver::Driver, panics, retry::Schedule, stop::Stop};
use belljar_types::{
    Action, ApprovalAnswer, CallObserver, CallReport, CallUpdate, Decision, EventKind, Origin,
    Record, StopReason, ToolCall, ToolError, ToolErrorKind, ToolResult, ToolSource, Toolbox,
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::{sync::mpsc, task::JoinError};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

/// How many updates of running calls may wait for the reader; further ones are left out and
/// counted, since the guest's thread cannot wait.
const WAITING_UPDATES: usize = 64;

/// A call of the batch.
struct Running {
    call: ToolCall,
    source: ToolSource,
    decision: Decision,
    answer: Option<ApprovalAnswer>,
    attempts: Option<Schedule>,
    left_out: Arc<AtomicU32>,
    report: Option<CallReport>,
}

type Ended = (usize, Result<CallReport, JoinError>);
type Tasks = FuturesUnordered<BoxFuture<'static, Ended>>;

impl Driver {
    /// Runs calls that were decided on, and closes them in order: they are the first open ones.
    pub(super) async fn run_batch(&mut self, batch: Vec<Ready>) -> Result<(), Stop> {
        self.check_cancel()?;
        for (index, ready) in batch.iter().enumerate() {
            if ready.runs {
                self.start_call(index, ready.is_read_only()).await?;
            }
        }
        let (sender, mut updates) = mpsc::channel(WAITING_UPDATES);
        let mut tasks = Tasks::new();
        let mut running = Vec::new();
        for (index, ready) in batch.into_iter().enumerate() {
            let one = self.running(&ready);
            let observer = observer(index, sender.clone(), one.left_out.clone());
            let run = ready.prepared.run(ready.answer, observer, self.cancel.child_token());
            tasks.push(task(index, run));
            running.push(one);
        }
        let mut closed = 0;
        while closed < running.len() {
            if let Some(report) = running[closed].report.take() {
                while let Ok(update) = updates.try_recv() {
                    self.show(&running, update).await;
                }
                self.close_running(&running[closed], report).await?;
                closed += 1;
                continue;
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => {
                    return self.settle_batch(running.split_off(closed), closed, tasks).await;
                }
                Some(update) = updates.recv() => self.show(&running, update).await,
                Some((index, joined)) = tasks.next() => {
                    let one = &mut running[index];
                    let report = joined.unwrap_or_else(|error| broken_report(&one.call, error));
                    match self.try_again(one, report).await? {
                        Err(report) => one.report = Some(report),
                        Ok((delay, failed)) => {
                            let observer = observer(index, sender.clone(), one.left_out.clone());
                            let again = Again {
                                toolbox: self.agent.toolbox.clone(),
                                call: one.call.clone(),
                                source: one.source.clone(),
                                decision: one.decision.clone(),
                                answer: one.answer.clone(),
                                failed,
                            };
                            let cancel = self.cancel.child_token();
                            tasks.push(task(index, again.run(delay, observer, cancel)));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn running(&self, ready: &Ready) -> Running {
        let definition = ready.prepared.definition();
        let may_repeat = definition.hints.read_only || definition.hints.idempotent;
        Running {
            call: ready.call.clone(),
            source: definition.source.clone(),
            decision: ready.prepared.decision().clone(),
            answer: ready.answer.clone(),
            attempts: (ready.runs && may_repeat).then(|| self.agent.settings.tool_retry.schedule()),
            left_out: Arc::default(),
            report: None,
        }
    }

    /// The delay before a further attempt, with what it is made after; or the report as it stays.
    async fn try_again(
        &mut self,
        one: &mut Running,
        report: CallReport,
    ) -> Result<Result<(Duration, CallReport), CallReport>, Stop> {
        let (Err(error), Some(attempts)) = (&report.outcome, &mut one.attempts) else {
            return Ok(Err(report));
        };
        if error.kind != ToolErrorKind::Unavailable {
            return Ok(Err(report));
        }
        let Ok((attempt, delay)) = attempts.failed(error.retry_after_ms.map(Duration::from_millis))
        else {
            return Ok(Err(report));
        };
        let reason = format!("`{}`: {}", one.call.tool, error.message);
        if report.receipt.is_some() {
            // What each attempt did is kept.
            let (call_id, receipt) = (one.call.id.clone(), report.receipt.clone());
            self.session.append(Record::CallDone { call_id, receipt }).await?;
        }
        self.events
            .emit(EventKind::Retry {
                what: "tool".to_owned(),
                attempt,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                reason,
            })
            .await;
        Ok(Ok((delay, report)))
    }

    /// After a cancel: waits a moment for what the calls still report, and closes them all.
    async fn settle_batch(
        &mut self,
        mut running: Vec<Running>,
        closed: usize,
        mut tasks: Tasks,
    ) -> Result<(), Stop> {
        let waited = async {
            while let Some((index, joined)) = tasks.next().await {
                if let (Some(one), Ok(report)) =
                    (index.checked_sub(closed).and_then(|at| running.get_mut(at)), joined)
                {
                    one.report = Some(report);
                }
            }
        };
        // What does not report within the grace is left behind.
        let _ = tokio::time::timeout(self.agent.settings.cancel_grace, waited).await;
        drop(tasks);
        for one in running {
            let progress = self.open.front().map_or(Progress::Started, |open| open.progress);
            let report = after_cancel(&one.call, one.report, progress);
            let CallReport { outcome, origin, receipt } = report;
            let (call_id, tool) = (one.call.id, one.call.tool);
            self.finish_call(ToolResult { call_id, tool, outcome, origin }, receipt).await?;
        }
        Err(Stop::canceled())
    }

    async fn close_running(&mut self, one: &Running, report: CallReport) -> Result<(), Stop> {
        let left_out = one.left_out.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            let tool = &one.call.tool;
            let message = format!("{left_out} updates of `{tool}` came too fast and were left out");
            self.notice(message).await;
        }
        let CallReport { outcome, origin, receipt } = report;
        let (call_id, tool) = (one.call.id.clone(), one.call.tool.clone());
        self.finish_call(ToolResult { call_id, tool, outcome, origin }, receipt).await
    }

    async fn show(&mut self, running: &[Running], (index, update): (usize, CallUpdate)) {
        let Some(one) = running.get(index) else { return };
        let call_id = one.call.id.clone();
        let kind = match update {
            CallUpdate::Progress { done, total, message } => {
                EventKind::ToolProgress { call_id, done, total, message }
            }
            CallUpdate::Output { text } => EventKind::ToolOutput { call_id, text },
        };
        self.events.emit(kind).await;
    }
}

/// What a call reported counts also after a cancel, unless all it says is that it was cancelled:
/// that is told in the run's own words.
fn after_cancel(call: &ToolCall, report: Option<CallReport>, progress: Progress) -> CallReport {
    let is_canceled = |report: &CallReport| matches!(&report.outcome, Err(error) if error.kind == ToolErrorKind::Canceled);
    let (progress, receipt) = match report {
        Some(report) if !is_canceled(&report) => return report,
        Some(CallReport { receipt: Some(receipt), .. }) => (progress, Some(receipt)),
        // Without a receipt it was still waiting for a place to run in.
        Some(_) => (Progress::NotStarted, None),
        None => (progress, None),
    };
    let result = interrupted(call, cause(StopReason::Canceled), progress);
    CallReport { outcome: result.outcome, origin: result.origin, receipt }
}

/// A further attempt at a call.
struct Again {
    toolbox: Arc<dyn Toolbox>,
    call: ToolCall,
    source: ToolSource,
    decision: Decision,
    answer: Option<ApprovalAnswer>,
    /// What the attempt before reported.
    failed: CallReport,
}

impl Again {
    /// Waits, decides anew, and runs the call if that is still the call that was decided on.
    async fn run(
        self,
        delay: Duration,
        observer: CallObserver,
        cancel: CancellationToken,
    ) -> CallReport {
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                // The attempt before is over, and this one never was.
                let error = ToolError::new(ToolErrorKind::Canceled, "cancelled between attempts");
                return CallReport {
                    outcome: Err(error),
                    origin: Origin::Host,
                    receipt: self.failed.receipt,
                };
            }
            () = tokio::time::sleep(delay) => {}
        }
        let prepared = panics::catch(|| self.toolbox.prepare(&self.call));
        let Ok(Ok(prepared)) = prepared else { return self.failed };
        let is_the_same = prepared.definition().source == self.source
            && *prepared.decision() == self.decision
            && self.decision.action != Action::Deny;
        if is_the_same { prepared.run(self.answer, observer, cancel).await } else { self.failed }
    }
}

fn task(
    index: usize,
    run: impl Future<Output = CallReport> + Send + 'static,
) -> BoxFuture<'static, Ended> {
    AbortOnDropHandle::new(tokio::spawn(run)).map(move |joined| (index, joined)).boxed()
}

fn observer(
    index: usize,
    sender: mpsc::Sender<(usize, CallUpdate)>,
    left_out: Arc<AtomicU32>,
) -> CallObserver {
    Arc::new(move |update: CallUpdate| {
        if sender.try_send((index, update)).is_err() {
            left_out.fetch_add(1, Ordering::Relaxed);
        }
    })
}
