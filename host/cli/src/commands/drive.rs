//! Driving a run: its events into a sink, with the program's own notices among them.

use crate::{
    arguments::{OutputArguments, OutputFormat},
    control::{Control, Said},
    exit::{self, Usage},
    screen::SharedScreen,
    show::Sink,
};
use belljar_agent::{Agent, Run, RunRequest, start};
use belljar_types::{Event, EventKind, Origin, Part, StopReason, Usage as Tokens};
use futures::StreamExt as _;
use std::time::Duration;
use tokio::sync::watch;

/// How long the program stays for the memory after a run.
const MEMORY: Duration = Duration::from_secs(20);

/// A run that is ready to start.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) agent: Agent,
    pub(super) request: RunRequest,
    /// What was found out before the run; told right after its `start`.
    pub(super) notices: Vec<String>,
    pub(super) sink: Sink,
    /// Told the call whose approval was shown.
    pub(super) shown: watch::Sender<String>,
    /// Another program that says things meanwhile.
    pub(super) control: Option<Control>,
}

/// How far the events have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// Not to the `start`.
    Nothing,
    Start,
    Stop,
}

/// Runs it to its end.
///
/// # Errors
///
/// The runtime went away under it, or standard output cannot be written.
pub(super) async fn drive(prepared: Prepared) -> anyhow::Result<u8> {
    let Prepared { agent, request, mut notices, mut sink, shown, mut control } = prepared;
    let mut run = start(agent, request);
    let mut numbers = Numbers::default();
    let mut told = Told::Nothing;
    let mut failed = None;
    loop {
        let event = tokio::select! {
            biased;
            said = next_said(&mut control) => {
                let Some(message) = follow(&run, said) else { continue };
                let written = match told {
                    Told::Nothing => {
                        notices.push(message);
                        Ok(())
                    }
                    Told::Start => sink.show(&numbers.event(EventKind::Notice { message })),
                    // The stop is the last event.
                    Told::Stop => {
                        sink.aside(&message);
                        Ok(())
                    }
                };
                if let Err(error) = written {
                    run.cancel();
                    failed.get_or_insert(error);
                }
                continue;
            }
            event = run.next() => event,
        };
        let Some(event) = event else { break };
        let event = numbers.renumber(event);
        let approval = match &event.kind {
            EventKind::Start { .. } => {
                told = Told::Start;
                None
            }
            EventKind::Stop { .. } => {
                told = Told::Stop;
                None
            }
            EventKind::Approval { call_id, .. } => {
                if let Some(control) = &control {
                    control.questions.open(call_id);
                }
                Some(call_id.clone())
            }
            EventKind::ApprovalAnswer { call_id, .. } => {
                if let Some(control) = &control {
                    control.questions.close(call_id);
                }
                None
            }
            _ => None,
        };
        let mut written = sink.show(&event);
        if told == Told::Start {
            for message in std::mem::take(&mut notices) {
                let notice = numbers.event(EventKind::Notice { message });
                written = written.and(sink.show(&notice));
            }
        }
        if let Some(call_id) = approval {
            shown.send_replace(call_id);
        }
        if let Err(error) = written {
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

/// The next thing that another program says; waits for ever where none speaks any more. Its answers
/// to questions may still be on their way.
async fn next_said(control: &mut Option<Control>) -> Said {
    if let Some(control) = control
        && let Some(next) = control.said.recv().await
    {
        return next;
    }
    std::future::pending().await
}

/// Does what was said. What comes back is why it changed nothing.
fn follow(run: &Run, said: Said) -> Option<String> {
    match said {
        Said::User(text) => match run.steer(vec![Part::text(&text, Origin::Person)]) {
            Ok(()) => None,
            Err(error) => Some(format!("a message was not taken: {error}")),
        },
        Said::Nonsense(message) => Some(message),
    }
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
    let kind = if error.is::<Usage>() { "usage" } else { "configuration" }.to_owned();
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
        usage: Tokens::default(),
        result: String::new(),
        denials: 0,
        denied: Vec::new(),
        session: String::new(),
    }
}

#[cfg(test)]
mod tests;
