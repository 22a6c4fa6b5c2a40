//! The limits and policies of a run, as values.

use crate::RetryPolicy;
use std::time::Duration;

/// The limits and policies of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How many requests to the model one run may make, but for those that make room or are made
    /// again.
    pub max_turns: u32,
    /// Whether, once they are used up, the model is asked for one last answer without calls.
    pub last_answer: bool,
    /// How many calls in a row may name a tool that does not exist.
    pub unknown_tool_limit: u32,
    /// How many answers in a row may be cut by the model's length limit.
    pub length_cut_limit: u32,
    /// How many times in a row the model may pause its turn and be asked to go on.
    pub pause_limit: u32,
    /// The most tokens that one answer may have; the model's own default if absent.
    pub max_output_tokens: Option<u32>,
    /// How failed model requests are tried again.
    pub model_retry: RetryPolicy,
    /// How calls that are `unavailable` are tried again, where the tool is read-only or idempotent.
    pub tool_retry: RetryPolicy,
    /// How many neighbouring calls of read-only tools may run at once; 1 runs each alone.
    pub parallel_calls: usize,
    pub repetition: Repetition,
    /// The model's window in tokens, where it does not say so itself or should be used less.
    pub context_window: Option<u64>,
    pub compaction: Compaction,
    pub actions: Actions,
    /// In plan mode the model reads the full reminder in round 1 and in each round whose number
    /// this divides, and a short one in the others.
    pub plan_reminder_every: u32,
    /// Memory is not written where more than this share of what a run added came from elsewhere
    /// than the person, the model and the host.
    pub memory_untrusted_share: f64,
    /// How long a cancelled call may take to report before it is left behind.
    pub cancel_grace: Duration,
    /// How many events may wait for the reader before the loop waits too; at least 1.
    pub event_buffer: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_turns: 15,
            last_answer: false,
            unknown_tool_limit: 2,
            length_cut_limit: 2,
            pause_limit: 5,
            max_output_tokens: None,
            model_retry: RetryPolicy::for_models(),
            tool_retry: RetryPolicy::for_tools(),
            parallel_calls: 8,
            repetition: Repetition::default(),
            context_window: None,
            compaction: Compaction::default(),
            actions: Actions::default(),
            plan_reminder_every: 4,
            memory_untrusted_share: 0.5,
            // A run ends within 100 ms of a cancel; the rest is for the bookkeeping after it.
            cancel_grace: Duration::from_millis(90),
            event_buffer: 16,
        }
    }
}

/// When calls that repeat themselves are told to the model, and when they end the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// How often in a row one call with one outcome earns a reminder.
    pub same: u32,
    /// How often in a row a cycle of two or more calls does.
    pub cycle: u32,
    /// How many more times after the reminder end the run.
    pub more: u32,
}

impl Default for Repetition {
    fn default() -> Self {
        Self { same: 3, cycle: 2, more: 2 }
    }
}

/// When room is made in the conversation. Shares are of the model's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compaction {
    /// Whether the model is asked for summaries; without them the oldest turns are left out.
    pub summaries: bool,
    /// Past this share older messages become a summary.
    pub at: f64,
    /// Past this share, and without a summary, the oldest turns are left out.
    pub truncate_at: f64,
    /// The share that the latest messages may keep beside a summary.
    pub keep: f64,
    /// How many summaries in a row may fail before no more are asked for.
    pub failures: u32,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { summaries: true, at: 0.8, truncate_at: 0.9, keep: 0.2, failures: 3 }
    }
}

/// What the loop itself offers to the model as tools. `load_skill` is there where there are skills.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Actions {
    pub ask_person: bool,
    pub note_plan: bool,
    /// Where tool definitions would take more than this share of the model's window, the rest is
    /// found with `find_tools`. Nothing offers them all.
    pub find_tools_past: Option<f64>,
    pub delegate: Option<Delegation>,
}

impl Actions {
    /// All of them, with their defaults.
    pub fn all() -> Self {
        Self {
            ask_person: true,
            note_plan: true,
            find_tools_past: Some(0.1),
            delegate: Some(Delegation::default()),
        }
    }
}

/// The limits of subagents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delegation {
    pub max_turns: u32,
    /// How many levels of subagents there may be.
    pub depth: u32,
}

impl Default for Delegation {
    fn default() -> Self {
        Self { max_turns: 10, depth: 2 }
    }
}
