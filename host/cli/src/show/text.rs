//! A run as text for people: the answer on standard output, all the rest on standard error.
//!
//! At a terminal the model's text is streamed as it comes. Anywhere else standard output gets the
//! final answer alone, since only the end of a round tells whether its text was one.

use super::{ResultLines, denials::Denials, receipt};
use crate::{
    arguments::TalkArguments,
    arguments_block,
    screen::{SharedScreen, Tone},
    visible,
};
use belljar_types::{Content, EventKind, Receipt, StopReason, ToolResult};
use std::{collections::HashSet, io};

/// Characters of one line of a result, a failure or a notice.
const LINE: usize = 200;
/// Lines of a failure.
const FAILURE_LINES: usize = 6;

#[derive(Debug)]
pub(crate) struct Text {
    screen: SharedScreen,
    talk: TalkArguments,
    lines: ResultLines,
    /// The text of the round, until it turns out to be the answer or not.
    held: Option<String>,
    /// Whether text of this round is on the terminal already.
    is_streaming: bool,
    /// The call that is under way.
    result: Option<ToolResult>,
    /// Calls that a person said no to.
    refused: HashSet<String>,
    denials: Denials,
    has_failed: bool,
}

impl Text {
    pub(crate) fn screen(&self) -> &SharedScreen {
        &self.screen
    }

    pub(super) fn new(screen: SharedScreen, talk: TalkArguments, lines: ResultLines) -> Self {
        Self {
            screen,
            talk,
            lines,
            held: None,
            is_streaming: false,
            result: None,
            refused: HashSet::new(),
            denials: Denials::default(),
            has_failed: false,
        }
    }

    pub(super) fn show(&mut self, event: &EventKind) -> io::Result<()> {
        match event {
            EventKind::Start { session, model, workspace, permission_mode, .. } => self.say(
                Tone::Faint,
                &format!(
                    "{model} in {workspace}, permission mode {permission_mode}, session {session}"
                ),
            ),
            EventKind::RoundStart => self.flush(),
            EventKind::TextDelta { text } => return self.delta(text),
            EventKind::ReasoningDelta { text } => self.reasoning(text),
            EventKind::AssistantText { text } => return self.whole(text),
            EventKind::ToolCallStart { tool, plugin, arguments, .. } => {
                self.flush();
                let plugin = plugin.as_deref().map(|plugin| format!("{plugin}/"));
                let line = format!(
                    "→ {}{} {}",
                    visible::short(&plugin.unwrap_or_default(), LINE),
                    visible::short(tool, LINE),
                    arguments_block::short(arguments)
                );
                self.say(Tone::Call, line.trim_end());
            }
            // Whoever asks shows the question.
            EventKind::Approval { .. } => {}
            EventKind::ApprovalAnswer { call_id, answer, by } => self.answered(call_id, answer, by),
            EventKind::ToolProgress { done, total, message, .. } => {
                let line = receipt::progress(*done, *total, message);
                self.say(Tone::Faint, &format!("  … {}", visible::short(&line, LINE)));
            }
            EventKind::ToolOutput { text, .. } => {
                for line in text.lines() {
                    self.say(Tone::Faint, &format!("  … {}", visible::short(line, LINE)));
                }
            }
            EventKind::ToolResult(result) => self.result = Some(result.clone()),
            EventKind::ToolCallDone { call_id, receipt } => {
                self.done(call_id, receipt.as_ref());
            }
            EventKind::Usage { .. } => {}
            EventKind::Retry { what, attempt, delay_ms, reason } => {
                self.retry(what, *attempt, *delay_ms, reason);
            }
            EventKind::Compaction { before_tokens, after_tokens } => self
                .say(Tone::Faint, &format!("compacted {before_tokens} tokens into {after_tokens}")),
            EventKind::Notice { message } => self.say(Tone::Plain, &format!("note: {message}")),
            EventKind::Error { message, .. } => {
                self.flush();
                self.has_failed = true;
                self.screen.lock().error(message);
            }
            EventKind::Stop { reason, message, turns, duration_ms, usage, result, .. } => {
                let ended = self.end(result);
                self.stopped(*reason, message);
                let tokens = match (usage.input_tokens, usage.output_tokens) {
                    (None, None) => String::new(),
                    (input, output) => {
                        format!(", {} tokens in, {} out", input.unwrap_or(0), output.unwrap_or(0))
                    }
                };
                let rounds = if *turns == 1 { "round" } else { "rounds" };
                self.say(Tone::Faint, &format!("{turns} {rounds}, {duration_ms} ms{tokens}"));
                return ended;
            }
        }
        Ok(())
    }

    /// A line for people, unless they want quiet.
    fn say(&self, tone: Tone, text: &str) {
        if !self.talk.quiet {
            self.screen.lock().toned(tone, text);
        }
    }

    fn delta(&mut self, text: &str) -> io::Result<()> {
        let mut screen = self.screen.lock();
        if !screen.is_out_terminal() {
            return Ok(());
        }
        self.is_streaming = true;
        screen.stream(text)
    }

    fn reasoning(&self, text: &str) {
        if self.talk.verbose {
            self.screen.lock().piece(Tone::Faint, text);
        }
    }

    fn whole(&mut self, text: &str) -> io::Result<()> {
        let mut screen = self.screen.lock();
        if !screen.is_out_terminal() {
            self.held = Some(text.to_owned());
            return Ok(());
        }
        if std::mem::take(&mut self.is_streaming) { screen.end_stream() } else { screen.line(text) }
    }

    /// The text that was held is no answer, since the run went on after it.
    fn flush(&mut self) {
        if let Some(text) = self.held.take() {
            self.say(Tone::Plain, &text);
        }
    }

    /// The text that is still held is the answer.
    fn end(&mut self, result: &str) -> io::Result<()> {
        let mut screen = self.screen.lock();
        screen.end_stream()?;
        match self.held.take() {
            Some(_) if !result.is_empty() => screen.line(result),
            _ => Ok(()),
        }
    }

    fn answered(&mut self, call_id: &str, answer: &str, by: &str) {
        if by == "person" && matches!(answer, "no" | "no_because") {
            self.refused.insert(call_id.to_owned());
        }
        if by == "mode" {
            self.say(Tone::Faint, "  nobody is there to ask");
        }
    }

    fn done(&mut self, call_id: &str, receipt: Option<&Receipt>) {
        let Some(result) = self.result.take() else { return };
        let answered = self.refused.remove(call_id);
        self.denials.add(&result, receipt, answered);
        let touched = receipt.map(receipt::line);
        match &result.outcome {
            Ok(output) => {
                for content in &output.content {
                    match content {
                        Content::Text { text } => self.excerpt(text),
                        other => self.say(
                            Tone::Faint,
                            &format!("  │ {}", visible::short(&receipt::content(other), LINE)),
                        ),
                    }
                }
                let touched = touched.unwrap_or_else(|| "done".to_owned());
                self.say(Tone::Good, &format!("  ✓ {touched}"));
            }
            Err(error) => {
                let failure = receipt::failure(error);
                let mut lines = failure.lines();
                let first = visible::short(lines.next().unwrap_or_default(), LINE);
                self.say(Tone::Bad, &format!("  ✗ {first}"));
                for line in lines.take(FAILURE_LINES) {
                    self.say(Tone::Bad, &format!("    {}", visible::short(line, LINE)));
                }
                if let Some(touched) = touched {
                    self.say(Tone::Faint, &format!("    {touched}"));
                }
            }
        }
    }

    /// The first lines of a result.
    fn excerpt(&self, text: &str) {
        let ResultLines(most) = self.lines;
        let count = text.lines().count();
        for line in text.lines().take(most) {
            self.say(Tone::Faint, &format!("  │ {}", visible::short(line, LINE)));
        }
        if count > most {
            let lines = if count - most == 1 { "line" } else { "lines" };
            self.say(Tone::Faint, &format!("  │ … {} more {lines}", count - most));
        }
    }

    fn retry(&mut self, what: &str, attempt: u32, delay_ms: u64, reason: &str) {
        self.held = None;
        let void = if std::mem::take(&mut self.is_streaming) {
            "; the text of this round so far is void"
        } else {
            ""
        };
        let reason = visible::short(reason, LINE);
        self.say(
            Tone::Plain,
            &format!("the {what} failed: {reason}; attempt {attempt} in {delay_ms} ms{void}"),
        );
    }

    fn stopped(&self, reason: StopReason, message: &str) {
        if let Some(summary) = self.denials.summary() {
            self.say(Tone::Plain, &summary);
        }
        if reason != StopReason::Completed && !self.has_failed && !message.is_empty() {
            self.screen.lock().toned(Tone::Bad, &format!("stopped: {message}"));
        }
    }
}

#[cfg(test)]
mod tests;
