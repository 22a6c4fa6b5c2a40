//! Driving a run: its events into a sink, with the program's own notices among them.

use crate::{
    arguments::{OutputArguments, OutputFormat},
    control::Said,
    exit,
    screen::SharedScreen,
    show::Sink,
};
use belljar_agent::{Agent, Run, RunRequest, start};
use belljar_types::{Event, EventKind, Origin, Part, StopReason, Usage};
use futures::StreamExt as _;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long the program stays for the memory after a run.
const MEMORY: Duration = Duration::from_secs(20);

/// A run that is ready to start.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) agent: Agent,
    pub(super) request: RunRequest,
    /// What was found out before the run; told right after its `start`.
    pub(super) notices: Vec<String>,
    pub(super) sink: Sink,
    /// Told the call whose approval was shown.
    pub(super) shown: watch::Sender<String>,
    /// What another program says meanwhile.
    pub(super) said: Option<mpsc::Receiver<Said>>,
}

/// Runs it to its end.
///
/// # Errors
///
/// The runtime went away under it, or standard output cannot be written.
pub(super) async fn drive(plan: Plan) -> anyhow::Result<u8> {
    let Plan { agent, request, notices, mut sink, shown, mut said } = plan;
    let mut run = start(agent, request);
    let mut numbers = Numbers::default();
    let mut notices = notices.into_iter();
    let mut failed = None;
    loop {
        let event = tokio::select! {
            // A cancel must not wait behind a flood of events.
            biased;
            said = next_said(&mut said) => {
                let notice = follow(&run, said).map(|notice| numbers.event(notice));
                if let Some(Err(error)) = notice.map(|notice| sink.show(&notice)) {
                    run.cancel();
                    failed.get_or_insert(error);
                }
                continue;
            }
            event = run.next() => event,
        };
        let Some(event) = event else { break };
        let is_start = matches!(event.kind, EventKind::Start { .. });
        let approval = match &event.kind {
            EventKind::Approval { call_id, .. } => Some(call_id.clone()),
            _ => None,
        };
        let event = numbers.renumber(event);
        let mut told = sink.show(&event);
        if is_start {
            for message in notices.by_ref() {
                let notice = numbers.event(EventKind::Notice { message });
                told = told.and(sink.show(&notice));
            }
        }
        if let Some(call_id) = approval {
            shown.send_replace(call_id);
        }
        if let Err(error) = told {
            // Nobody reads what else it does.
            run.cancel();
            failed.get_or_insert(error);
        }
    }
    let finished = run.finish().await?;
    if let Some(memory) = finished.memory {
        // Beside the events, which ended with the stop.
        for sentence in memory.written(MEMORY).await.into_iter().flatten() {
            sink.aside(&sentence);
        }
    }
    failed.map_or_else(|| Ok(exit::of_stop(finished.reason)), exit::of_write_error)
}

/// The next thing that another program says; waits for ever where none speaks any more.
async fn next_said(said: &mut Option<mpsc::Receiver<Said>>) -> Said {
    if let Some(receiver) = said {
        if let Some(next) = receiver.recv().await {
            return next;
        }
        *said = None;
    }
    std::future::pending().await
}

/// Does what was said. What changes nothing is told.
fn follow(run: &Run, said: Said) -> Option<EventKind> {
    let message = match said {
        Said::Cancel => {
            run.cancel();
            return None;
        }
        Said::User(text) => match run.steer(vec![Part::text(&text, Origin::Person)]) {
            Ok(()) => return None,
            Err(error) => format!("a message was not taken: {error}"),
        },
        Said::Nonsense(message) => message,
    };
    Some(EventKind::Notice { message })
}

/// Numbers events without gaps, those of the loop and the program's own.
#[derive(Debug, Default)]
struct Numbers {
    next: u64,
}

impl Numbers {
    fn renumber(&mut self, event: Event) -> Event {
        let seq = self.next;
        self.next += 1;
        Event { seq, ..event }
    }

    /// An event outside rounds.
    fn event(&mut self, kind: EventKind) -> Event {
        self.renumber(Event { kind, seq: 0, iteration: 0, agent: None })
    }
}

/// Ends the event stream of a run that never began: scripts wait for exactly one `stop`.
pub(super) fn failed_early(screen: &SharedScreen, output: &OutputArguments, error: &anyhow::Error) {
    let message = format!("{error:#}");
    let kind = "configuration".to_owned();
    let error = EventKind::Error { kind, message: message.clone() };
    tell(screen, output, [error, stop(StopReason::StreamError, message)]);
}

/// The same for one that was interrupted before it began.
pub(super) fn canceled_early(screen: &SharedScreen, output: &OutputArguments) {
    let message = "interrupted by the user".to_owned();
    tell(screen, output, [stop(StopReason::Canceled, message)]);
}

fn tell<const N: usize>(screen: &SharedScreen, output: &OutputArguments, kinds: [EventKind; N]) {
    let mut sink = match output.output_format {
        OutputFormat::Text => return,
        OutputFormat::Json => Sink::Last(screen.clone()),
        OutputFormat::StreamJson => Sink::Lines(screen.clone()),
    };
    let mut numbers = Numbers::default();
    for kind in kinds {
        // The program ends with its code whether or not somebody reads this.
        let _ = sink.show(&numbers.event(kind));
    }
}

/// The stop of a run that never began.
pub(super) fn stop(reason: StopReason, message: String) -> EventKind {
    EventKind::Stop {
        reason,
        message,
        turns: 0,
        duration_ms: 0,
        usage: Usage::default(),
        result: String::new(),
        denials: 0,
        denied: Vec::new(),
        session: String::new(),
    }
}

#[cfg(test)]
mod tests;
