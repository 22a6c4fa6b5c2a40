//! The rounds: who works when, and what came of it.

use crate::peers::{Pace, Peer};
use anyhow::{Context, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(crate) const WORK: &str = "read a JSON object with a text of 1 KiB, answer with the number of \
                               its words as JSON";

/// What everybody is given, and what everybody must answer.
fn task() -> (String, Value) {
    let words = 171;
    (json!({"text": "words ".repeat(words)}).to_string(), json!({"words": words}))
}

/// What one way of doing the work took.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) version: String,
    pub(crate) answer: Value,
    pub(crate) calls: usize,
    pub(crate) median_us: f64,
    pub(crate) p99_us: f64,
    /// The median, in medians of the first.
    pub(crate) ratio: f64,
    /// The most memory that it held, where it is a process of its own; of a guest, its own memory.
    pub(crate) memory_kib: Option<u64>,
}

/// Compares all answers, then times everybody in turn.
///
/// # Errors
///
/// Somebody answers wrongly, or fails while it is timed.
pub(crate) fn in_turn(mut peers: Vec<Peer>, rounds: u32) -> anyhow::Result<Vec<Measured>> {
    let (input, expected) = task();
    let mut answers = Vec::new();
    for peer in &mut peers {
        let answer = peer.answer(&input).with_context(|| peer.name)?;
        ensure!(answer == expected, "`{}` answers {answer}, not {expected}", peer.name);
        answers.push(answer);
    }
    let mut times = vec![Vec::new(); peers.len()];
    for round in 0..rounds as usize {
        for turn in 0..peers.len() {
            // Nobody always follows the same one.
            let at = (turn + round) % peers.len();
            let peer = &mut peers[at];
            let calls = match peer.pace {
                Pace::Fast => {
                    // The caches are the one's that was before.
                    (peer.run)(&input)?;
                    20
                }
                Pace::Slow => 1,
            };
            for _ in 0..calls {
                let start = Instant::now();
                (peer.run)(&input)?;
                times[at].push(start.elapsed());
            }
        }
    }
    times.iter_mut().for_each(|times| times.sort_unstable());
    let first = percentile(&times[0], 50);
    peers
        .iter_mut()
        .zip(times)
        .zip(answers)
        .map(|((peer, times), answer)| {
            let median = percentile(&times, 50);
            Ok(Measured {
                name: peer.name,
                version: std::mem::take(&mut peer.version),
                answer,
                calls: times.len(),
                median_us: median.as_secs_f64() * 1e6,
                p99_us: percentile(&times, 99).as_secs_f64() * 1e6,
                ratio: median.as_secs_f64() / first.as_secs_f64(),
                memory_kib: (peer.memory)(&input)?.map(|bytes| bytes >> 10),
            })
        })
        .collect()
}

/// The smallest time that so many of a hundred do not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
