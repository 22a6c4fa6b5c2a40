//! Whether the model goes in circles: the same calls with the same outcomes, over and over.
//!
//! Counts only: what is done about it is the loop's to say, once a batch of calls is through. A
//! call is its tool and its arguments, whatever the order of their keys; a failure's outcome is its
//! kind, since its words may hold times.

use crate::{Repetition, canonical};
use belljar_types::{Content, ToolCall, ToolResult};
use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};

/// The longest cycle that is looked for.
const LONGEST: usize = 5;

#[derive(Debug)]
pub(crate) struct Repetitions {
    limits: Repetition,
    /// The latest calls with their outcomes, at most [`LONGEST`].
    latest: VecDeque<(u64, String)>,
    /// For each length of a cycle, how many calls in a row were the one that many calls before.
    runs: [u32; LONGEST],
    /// The cycle that the model was told of, and how many times over it was then.
    told: Option<(usize, u32)>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    GoOn,
    /// The model is to read this.
    Remind(String),
    /// The run is to end; for people.
    Stop(String),
}

impl Repetitions {
    pub(crate) fn new(limits: Repetition) -> Self {
        Self { limits, latest: VecDeque::new(), runs: [0; LONGEST], told: None }
    }

    /// Takes a call that is over.
    pub(crate) fn note(&mut self, call: &ToolCall, result: &ToolResult) {
        let key = key(call, result);
        let known = self.latest.len();
        for (index, run) in self.runs.iter_mut().enumerate() {
            let before = known.checked_sub(index + 1).map(|at| self.latest[at].0);
            *run = if before == Some(key) { run.saturating_add(1) } else { 0 };
        }
        self.latest.push_back((key, call.tool.clone()));
        if self.latest.len() > LONGEST {
            self.latest.pop_front();
        }
    }

    /// Judges what has been noted.
    pub(crate) fn judge(&mut self) -> Judgement {
        let Some((length, times)) = self.cycle() else {
            self.told = None;
            return Judgement::GoOn;
        };
        match self.told {
            Some((told, before)) if told == length => {
                if times >= before.saturating_add(self.limits.more) {
                    Judgement::Stop(format!(
                        "the model repeated {} {times} times over, also after it was told; say \
                         what it should do instead, or ask for a part of it",
                        self.name(length)
                    ))
                } else {
                    Judgement::GoOn
                }
            }
            _ => {
                self.told = Some((length, times));
                Judgement::Remind(format!(
                    "You have repeated {} {times} times over, with the same arguments and the same \
                     outcome. Doing it again will not change it: try something else, or say what \
                     you have found and what stops you.",
                    self.name(length)
                ))
            }
        }
    }

    /// The shortest cycle that the latest calls are, and how many times over.
    fn cycle(&self) -> Option<(usize, u32)> {
        self.runs.iter().enumerate().find_map(|(index, run)| {
            let length = index + 1;
            let times = run / u32::try_from(length).unwrap_or(u32::MAX) + 1;
            let limit = if length == 1 { self.limits.same } else { self.limits.cycle };
            (times >= limit.max(2)).then_some((length, times))
        })
    }

    fn name(&self, length: usize) -> String {
        let tools: Vec<_> = self
            .latest
            .iter()
            .skip(self.latest.len().saturating_sub(length))
            .map(|(_, tool)| format!("`{tool}`"))
            .collect();
        match length {
            1 => format!("the same call of {}", tools.join("")),
            _ => format!("the same {length} calls ({})", tools.join(", ")),
        }
    }
}

fn key(call: &ToolCall, result: &ToolResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.tool.hash(&mut hasher);
    canonical::arguments(&call.arguments).hash(&mut hasher);
    match &result.outcome {
        Ok(output) => {
            output.content.iter().for_each(|content| hash_content(content, &mut hasher));
            output.structured.as_ref().map(canonical::value).hash(&mut hasher);
        }
        Err(error) => error.kind.hash(&mut hasher),
    }
    hasher.finish()
}

fn hash_content(content: &Content, hasher: &mut DefaultHasher) {
    std::mem::discriminant(content).hash(hasher);
    match content {
        Content::Text { text } => text.hash(hasher),
        Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => blob.data.hash(hasher),
        Content::Link { uri, .. } => uri.hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_types::{Arguments, Origin, ToolError, ToolErrorKind, ToolOutput};

    /// Notes one call for each letter, judging after each: `.` for going on, `r`, `s`.
    fn judged(calls: &str) -> String {
        let mut repetitions = Repetitions::new(Repetition::default());
        calls
            .chars()
            .map(|letter| {
                note(&mut repetitions, letter);
                match repetitions.judge() {
                    Judgement::GoOn => '.',
                    Judgement::Remind(_) => 'r',
                    Judgement::Stop(_) => 's',
                }
            })
            .collect()
    }

    fn note(repetitions: &mut Repetitions, letter: char) {
        let call = ToolCall {
            id: String::new(),
            tool: letter.to_string(),
            arguments: Arguments::parse("{}"),
        };
        repetitions.note(&call, &result(Ok(ToolOutput::text("x"))));
    }

    fn result(outcome: Result<ToolOutput, ToolError>) -> ToolResult {
        ToolResult { call_id: String::new(), tool: String::new(), outcome, origin: Origin::Host }
    }

    #[test]
    fn one_call_three_times_is_told_and_twice_more_stops() {
        assert_eq!(judged("aaaaa"), "..r.s");
        assert_eq!(judged("aabaabaab"), ".....r...");
        assert_eq!(judged("aaabaaab"), "..r...rr");
    }

    #[test]
    fn a_cycle_twice_over_is_told_and_twice_more_stops() {
        assert_eq!(judged("abababab"), "...r...s");
        assert_eq!(judged("abcabcabcabc"), ".....r.....s");
        assert_eq!(judged("abcdeabcdeabcdeabcde"), ".........r.........s");
        assert_eq!(judged("abcdefabcdef"), "............");
    }

    #[test]
    fn what_leaves_the_circle_starts_anew() {
        assert_eq!(judged("aaacaaaaa"), "..r...r.s");
        assert_eq!(judged("abcdefgh"), "........");
    }

    #[test]
    fn calls_of_one_batch_are_judged_together_and_the_model_is_told_before_it_ends() {
        let mut repetitions = Repetitions::new(Repetition::default());
        for _ in 0..40 {
            note(&mut repetitions, 'a');
        }
        assert!(matches!(repetitions.judge(), Judgement::Remind(_)));
        note(&mut repetitions, 'a');
        assert_eq!(repetitions.judge(), Judgement::GoOn);
        note(&mut repetitions, 'a');
        assert_eq!(
            repetitions.judge(),
            Judgement::Stop(
                "the model repeated the same call of `a` 42 times over, also after it was told; \
                 say what it should do instead, or ask for a part of it"
                    .to_owned()
            )
        );
    }

    #[test]
    fn other_arguments_or_another_outcome_is_no_repetition_and_other_words_of_a_failure_are() {
        let call = |arguments: &str| ToolCall {
            id: String::new(),
            tool: "t".to_owned(),
            arguments: Arguments::parse(arguments),
        };
        let fails = |message: &str| result(Err(ToolError::new(ToolErrorKind::Deadline, message)));
        let same = |a: (&ToolCall, &ToolResult), b: (&ToolCall, &ToolResult)| {
            key(a.0, a.1) == key(b.0, b.1)
        };
        let (ab, ba) = (call(r#"{"a":1,"b":{"x":1,"y":2}}"#), call(r#"{"b":{"y":2,"x":1},"a":1}"#));
        let text = |text: &str| result(Ok(ToolOutput::text(text)));
        assert!(same((&ab, &text("x")), (&ba, &text("x"))));
        assert!(!same((&ab, &text("x")), (&ab, &text("y"))));
        assert!(!same((&ab, &text("x")), (&call(r#"{"a":1}"#), &text("x"))));
        assert!(same((&ab, &fails("after 1 s")), (&ab, &fails("after 2 s"))));
        assert!(!same((&ab, &fails("")), (&ab, &text(""))));
    }
}
