//! The events of a run as lines: those that are finished, and those that still change.

use crate::{
    arguments,
    backend::{Shown, Table},
    receipt, style,
    text::{self, MarkdownStream},
    visible,
};
use belljar_types::{
    Arguments, Content, DeniedCall, Event, EventKind, Receipt, StopReason, ToolErrorKind,
    ToolResult, Usage,
};
use ratatui_core::text::{Line, Span};
use std::collections::HashMap;

/// Lines of a result, of a change, and of the output of a call that runs.
const RESULT_LINES: usize = 4;
const CHANGE_LINES: usize = 24;
const OUTPUT_LINES: usize = 4;
/// Bytes of output and of reasoning that are kept to be shown.
const KEPT: usize = 8 << 10;
/// Calls that are shown while they run.
const CALLS: usize = 4;
/// Characters of one line of a failure or a notice.
const LINE: usize = 2_000;

/// What a group of lines is; groups of different kinds stand apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Person,
    Calls,
    Note,
    Reply,
}

/// A call that runs.
#[derive(Debug)]
struct Call {
    id: String,
    label: String,
    arguments: Arguments,
    progress: Option<String>,
    output: String,
    result: Option<ToolResult>,
}

/// The run so far.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    finished: Vec<Line<'static>>,
    last: Option<Kind>,
    stream: MarkdownStream,
    /// Text of this round came in pieces.
    has_streamed: bool,
    /// A text has ended, so that the next piece begins another.
    is_next_text: bool,
    reasoning: String,
    calls: Vec<Call>,
    /// What a person answered about calls.
    answers: HashMap<String, String>,
    has_failed: bool,
    pub(super) usage: Usage,
}

impl Transcript {
    /// What is finished since this was asked last.
    pub(super) fn take_finished(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.finished)
    }

    pub(super) fn person(&mut self, text: &str, columns: usize) {
        self.begin(Kind::Person);
        for (index, line) in visible::lines(text).split('\n').enumerate() {
            let mark = if index == 0 { "› " } else { "  " };
            let first = [Span::styled(mark, style::PERSON)];
            let line = Line::styled(line.to_owned(), style::PERSON);
            self.finished.extend(text::words(&line, &first, &[Span::raw("  ")], columns));
        }
        self.last = Some(Kind::Person);
    }

    pub(super) fn note(&mut self, text: &str, columns: usize) {
        self.lines(Kind::Note, text, style::FAINT, columns);
    }

    pub(super) fn problem(&mut self, text: &str, columns: usize) {
        self.lines(Kind::Note, text, style::BAD, columns);
    }

    pub(super) fn reply(&mut self, shown: &Shown, columns: usize) {
        match shown {
            Shown::Text(text) => self.lines(Kind::Reply, text, style::PLAIN, columns),
            Shown::Problem(text) => self.problem(text, columns),
            Shown::Table(table) => self.table(table, columns),
            Shown::Person(text) => self.person(text, columns),
            Shown::Event(event) => self.event(event, columns),
        }
    }

    pub(super) fn event(&mut self, event: &Event, columns: usize) {
        let agent = event.agent.as_deref();
        match &event.kind {
            EventKind::Start { .. } if agent.is_none() => {
                self.has_failed = false;
                self.answers.clear();
            }
            EventKind::RoundStart if agent.is_none() => self.end_text(columns),
            EventKind::TextDelta { text } if agent.is_none() => {
                self.end_reasoning(columns);
                self.has_streamed = true;
                let lines = self.stream.push(text, columns);
                self.text(lines);
            }
            EventKind::ReasoningDelta { text } if agent.is_none() => {
                self.reasoning.push_str(text);
                keep_the_end(&mut self.reasoning);
            }
            EventKind::AssistantText { text } => match agent {
                None => {
                    self.end_reasoning(columns);
                    if !std::mem::take(&mut self.has_streamed) {
                        let lines = self.stream.push(text, columns);
                        self.text(lines);
                    }
                    self.end_text(columns);
                }
                Some(agent) => self.of_agent(agent, text, columns),
            },
            EventKind::ToolCallStart { call_id, tool, plugin, arguments } => {
                if agent.is_none() {
                    self.end_reasoning(columns);
                    self.end_text(columns);
                }
                self.call(agent, call_id, tool, plugin.as_deref(), arguments);
            }
            EventKind::ApprovalAnswer { call_id, answer, by } if by == "person" => {
                self.answers.insert(call_id.clone(), answer.clone());
            }
            EventKind::ToolProgress { call_id, done, total, message } => {
                if let Some(call) = self.find(call_id) {
                    call.progress = Some(receipt::progress(*done, *total, message));
                }
            }
            EventKind::ToolOutput { call_id, text } => {
                if let Some(call) = self.find(call_id) {
                    call.output.push_str(text);
                    keep_the_end(&mut call.output);
                }
            }
            EventKind::ToolResult(result) => {
                if let Some(call) = self.find(&result.call_id) {
                    call.result = Some(result.clone());
                }
            }
            EventKind::ToolCallDone { call_id, receipt } => {
                self.done(call_id, receipt.as_ref(), columns);
            }
            EventKind::Usage { total, .. } if agent.is_none() => self.usage = *total,
            EventKind::Retry { what, attempt, delay_ms, reason } => {
                self.retry(what, *attempt, *delay_ms, reason, columns);
            }
            EventKind::Compaction { before_tokens, after_tokens } => {
                self.note(
                    &format!("compacted {before_tokens} tokens into {after_tokens}"),
                    columns,
                );
            }
            EventKind::Notice { message } => {
                self.note(&format!("note: {}", visible::short(message, LINE)), columns);
            }
            EventKind::Error { message, .. } => {
                self.end_text(columns);
                self.has_failed = true;
                self.problem(&format!("error: {}", visible::short(message, LINE)), columns);
            }
            EventKind::Stop { reason, message, turns, duration_ms, usage, denied, .. }
                if agent.is_none() =>
            {
                self.end_reasoning(columns);
                self.end_text(columns);
                self.stop(*reason, message, denied, columns);
                let rounds = if *turns == 1 { "round" } else { "rounds" };
                let time = receipt::milliseconds(duration_ms.saturating_mul(1000));
                self.note(&format!("{turns} {rounds} · {time}{}", tokens(usage)), columns);
                self.calls.clear();
            }
            _ => {}
        }
    }

    /// The stream of events ended without a `stop`.
    pub(super) fn lost(&mut self, columns: usize) {
        self.end_text(columns);
        self.calls.clear();
        self.problem("the run ended without saying why; the session can go on", columns);
    }

    /// What still changes, as lines: the text that is being written, and the calls that run.
    pub(super) fn live(&self, columns: usize, rows: usize, spinner: &str) -> Vec<Line<'static>> {
        let mut lines = self.stream.tail(columns);
        if !lines.is_empty() && self.stands_apart(Kind::Text) {
            lines.insert(0, Line::default());
        }
        if !self.reasoning.is_empty() {
            lines.push(Line::default());
            let text = visible::lines(&self.reasoning);
            let thought: Vec<_> = text
                .lines()
                .flat_map(|line| {
                    let line = Line::styled(line.to_owned(), style::FAINT);
                    text::words(&line, &[Span::raw("  ")], &[Span::raw("  ")], columns)
                })
                .collect();
            lines.extend(thought.into_iter().rev().take(3).rev());
        }
        if !self.calls.is_empty() && (!lines.is_empty() || self.stands_apart(Kind::Calls)) {
            lines.push(Line::default());
        }
        for call in self.calls.iter().take(CALLS) {
            let label = text::cut(&call.label, columns.saturating_sub(2));
            lines.push(Line::from(vec![
                Span::styled(format!("{spinner} "), style::CALL),
                Span::styled(label, style::CALL),
            ]));
            let progress = call.progress.iter().map(String::as_str);
            let output: Vec<_> = call.output.lines().collect();
            let output = output.iter().rev().take(OUTPUT_LINES).rev().copied();
            for line in progress.chain(output) {
                let line = text::cut(line, columns.saturating_sub(4));
                lines.push(Line::styled(format!("  … {line}"), style::FAINT));
            }
        }
        if self.calls.len() > CALLS {
            let more = format!("  and {} more calls", self.calls.len() - CALLS);
            lines.push(Line::styled(more, style::FAINT));
        }
        let hidden = lines.len().saturating_sub(rows);
        lines.drain(..hidden);
        lines
    }

    fn find(&mut self, id: &str) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| call.id == id)
    }

    fn call(
        &mut self,
        agent: Option<&str>,
        id: &str,
        tool: &str,
        plugin: Option<&str>,
        arguments: &Arguments,
    ) {
        let agent = agent.map(|agent| format!("{agent} › ")).unwrap_or_default();
        let plugin = plugin.map(|plugin| format!("{plugin}/")).unwrap_or_default();
        let label = format!("{agent}{plugin}{tool} {}", arguments::short(arguments));
        self.calls.push(Call {
            id: id.to_owned(),
            label: visible::line(label.trim_end()),
            arguments: arguments.clone(),
            progress: None,
            output: String::new(),
            result: None,
        });
    }

    fn done(&mut self, id: &str, receipt: Option<&Receipt>, columns: usize) {
        let Some(at) = self.calls.iter().position(|call| call.id == id) else { return };
        let call = self.calls.remove(at);
        self.begin(Kind::Calls);
        let is_good = call.result.as_ref().is_some_and(|result| result.outcome.is_ok());
        let mark = if is_good { style::GOOD } else { style::BAD };
        self.finished.push(Line::from(vec![
            Span::styled(if is_good { "● " } else { "✗ " }, mark),
            Span::styled(text::cut(&call.label, columns.saturating_sub(2)), style::CALL),
        ]));
        match call.result.as_ref().map(|result| &result.outcome) {
            None => {}
            Some(Ok(output)) => {
                let change = arguments::edit(&call.arguments)
                    .map(|(old, new)| text::change(old, new, CHANGE_LINES));
                match change {
                    Some(lines) => {
                        for line in lines {
                            let indent = [Span::raw("  ")];
                            self.finished.extend(text::hard(&line, &indent, &indent, columns));
                        }
                    }
                    None => self.output(&output.content, columns),
                }
            }
            Some(Err(error)) => {
                let answer = self.answers.get(id);
                let said_no = error.kind == ToolErrorKind::Denied
                    && answer.is_some_and(|answer| answer.starts_with("no"));
                let failure =
                    if said_no { "you said no".to_owned() } else { receipt::failure(error) };
                self.indented(&visible::short(&failure, LINE), style::BAD, columns);
                if let Some(remedy) = error.remedy.as_ref().filter(|_| !said_no) {
                    self.indented(&format!("`{remedy}` allows it"), style::FAINT, columns);
                }
            }
        }
        if let Some(receipt) = receipt {
            let line = receipt::line(receipt);
            let yes = self.answers.get(id).filter(|answer| !answer.starts_with("no"));
            let line = match yes {
                Some(yes) => format!("you said yes ({yes}) · {line}"),
                None => line,
            };
            self.indented(&visible::short(&line, LINE), style::FAINT, columns);
        }
        self.last = Some(Kind::Calls);
    }

    fn output(&mut self, content: &[Content], columns: usize) {
        let mut lines = Vec::new();
        let mut more = 0_usize;
        for content in content {
            let text = match content {
                Content::Text { text } => text.clone(),
                other => receipt::content(other),
            };
            for line in text.lines() {
                if lines.len() < RESULT_LINES {
                    lines.push(text::cut(line, columns.saturating_sub(4)));
                } else {
                    more += 1;
                }
            }
        }
        if more > 0 {
            let word = if more == 1 { "line" } else { "lines" };
            lines.push(format!("… {more} more {word}"));
        }
        for line in lines {
            self.finished.push(Line::styled(format!("  │ {line}"), style::FAINT));
        }
    }

    fn indented(&mut self, text: &str, style: ratatui_core::style::Style, columns: usize) {
        let indent = [Span::raw("  ")];
        let line = Line::styled(text.to_owned(), style);
        self.finished.extend(text::words(&line, &indent, &indent, columns));
    }

    fn of_agent(&mut self, agent: &str, text: &str, columns: usize) {
        if text.trim().is_empty() {
            return;
        }
        self.begin(Kind::Calls);
        let text = visible::lines(text);
        let mut lines = text.lines();
        let first = lines.by_ref().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let line = format!("{} › {first}", visible::line(agent));
        self.indented(&line, style::FAINT, columns);
        let more = lines.count();
        if more > 0 {
            self.indented(&format!("… {more} more lines"), style::FAINT, columns);
        }
        self.last = Some(Kind::Calls);
    }

    fn retry(&mut self, what: &str, attempt: u32, delay: u64, reason: &str, columns: usize) {
        let mut void = "";
        if what == "model" {
            self.reasoning.clear();
            if std::mem::take(&mut self.has_streamed) {
                self.end_text(columns);
                void = "; the text of this round so far is void";
            }
        }
        let reason = visible::short(reason, LINE);
        let what = visible::short(what, LINE);
        let text = format!("the {what} failed: {reason}; attempt {attempt} in {delay} ms{void}");
        self.note(&text, columns);
    }

    fn stop(&mut self, reason: StopReason, message: &str, denied: &[DeniedCall], columns: usize) {
        let remedies: Vec<_> = denied
            .iter()
            .filter_map(|denied| Some((denied, denied.remedy.as_ref()?)))
            .map(|(denied, remedy)| format!("`{}`: `{remedy}` allows it", denied.tool))
            .collect();
        if !remedies.is_empty() {
            self.note(&format!("denied in this run:\n{}", remedies.join("\n")), columns);
        }
        match reason {
            StopReason::Completed => {}
            StopReason::Canceled => self.problem("interrupted", columns),
            _ if self.has_failed => {}
            _ => self.problem(&format!("stopped: {}", visible::short(message, LINE)), columns),
        }
    }

    fn table(&mut self, table: &Table, columns: usize) {
        let row = |cells: &Vec<String>| {
            cells.iter().map(|cell| Line::raw(visible::line(cell))).collect::<Vec<_>>()
        };
        let mut cells = text::Cells { has_head: !table.head.is_empty(), rows: Vec::new() };
        cells.rows.extend(Some(&table.head).filter(|head| !head.is_empty()).map(row));
        cells.rows.extend(table.rows.iter().map(row));
        self.begin(Kind::Reply);
        self.finished.extend(text::table(&cells, columns));
        self.last = Some(Kind::Reply);
    }

    fn text(&mut self, lines: Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        self.begin(Kind::Text);
        self.is_next_text = false;
        self.finished.extend(lines);
        self.last = Some(Kind::Text);
    }

    fn end_text(&mut self, columns: usize) {
        let lines = self.stream.end(columns);
        self.text(lines);
        self.is_next_text = true;
        self.has_streamed = false;
    }

    fn end_reasoning(&mut self, columns: usize) {
        let reasoning = std::mem::take(&mut self.reasoning);
        let first = reasoning.lines().find(|line| !line.trim().is_empty());
        if let Some(first) = first {
            self.begin(Kind::Note);
            let line = text::cut(first, columns.saturating_sub(2));
            self.finished.push(Line::styled(format!("∴ {line}"), style::FAINT));
            self.last = Some(Kind::Note);
        }
    }

    fn lines(&mut self, kind: Kind, text: &str, style: ratatui_core::style::Style, columns: usize) {
        self.begin(kind);
        for line in visible::lines(text.trim_end()).split('\n') {
            let line = Line::styled(line.to_owned(), style);
            self.finished.extend(text::words(&line, &[], &[], columns));
        }
        self.last = Some(kind);
    }

    fn begin(&mut self, kind: Kind) {
        if self.stands_apart(kind) {
            self.finished.push(Line::default());
        }
    }

    fn stands_apart(&self, kind: Kind) -> bool {
        self.last.is_some_and(|last| match kind {
            _ if last != kind => true,
            Kind::Text => self.is_next_text,
            kind => kind == Kind::Person,
        })
    }
}

/// The tokens of a run, behind a dot.
pub(super) fn tokens(usage: &Usage) -> String {
    match (usage.input_tokens, usage.output_tokens) {
        (None, None) => String::new(),
        (input, output) => {
            let (input, output) = (count(input.unwrap_or(0)), count(output.unwrap_or(0)));
            format!(" · {input} in, {output} out")
        }
    }
}

fn count(tokens: u64) -> String {
    match tokens {
        0..10_000 => tokens.to_string(),
        _ => format!("{}k", tokens / 1000),
    }
}

/// Cuts the beginning off what has grown too long.
fn keep_the_end(text: &mut String) {
    if text.len() > 2 * KEPT {
        let mut at = text.len() - KEPT;
        while !text.is_char_boundary(at) {
            at += 1;
        }
        text.drain(..at);
    }
}
