//! Asking a person at the terminal whether a call may run.
//!
//! Shows every byte of what would be called before a yes is taken, and takes no answer that was
//! typed before the question was there.

use crate::{
    arguments_block,
    lasting::{ForGood, Lasting},
    screen::{SharedScreen, Tone},
    tty::Tty,
    visible,
};
use async_trait::async_trait;
use belljar_types::{ApprovalAnswer, ApprovalQuestion, Approver, PersonQuestion};
use tokio::sync::watch;

/// Lines of a page where the terminal does not say how high it is.
const PAGE: usize = 20;
/// Lines of a page that are not arguments.
const AROUND: usize = 6;

/// A person at the terminal, or nobody.
#[derive(Debug)]
pub(crate) struct TerminalApprover {
    tty: Option<Tty>,
    screen: SharedScreen,
    /// The call whose approval the reader of the events has come to: the question must not appear
    /// before what led to it.
    shown: watch::Receiver<String>,
    /// Where a yes for good is written.
    lasting: Option<Lasting>,
}

impl TerminalApprover {
    pub(crate) fn new(
        tty: Option<Tty>,
        screen: SharedScreen,
        shown: watch::Receiver<String>,
    ) -> Self {
        Self { tty, screen, shown, lasting: None }
    }

    /// The same, with a yes for good, which is written there.
    pub(crate) fn writing_to(self, lasting: Lasting) -> Self {
        Self { lasting: Some(lasting), ..self }
    }
}

impl TerminalApprover {
    /// The next line; nothing where the input ended or the terminal went away.
    async fn line(&self, tty: &Tty) -> Option<String> {
        let line = tty.line().await.ok().flatten();
        if line.is_some() {
            self.screen.lock().answered();
        }
        line
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, question: &ApprovalQuestion) -> Option<ApprovalAnswer> {
        let tty = self.tty.as_ref()?;
        let mut shown = self.shown.clone();
        shown.wait_for(|call_id| *call_id == question.call.id).await.ok()?;

        self.screen.lock().toned(Tone::Question, &question.question.text);
        let lines = arguments_block::whole(&question.call);
        let page = tty.height().checked_sub(AROUND).filter(|page| *page > 0).unwrap_or(PAGE);
        let pages = lines.len().div_ceil(page);
        for (number, lines) in lines.chunks(page).enumerate() {
            {
                let mut screen = self.screen.lock();
                for (tone, line) in lines {
                    screen.toned(*tone, line);
                }
            }
            if number + 1 < pages {
                let left = format!(
                    "page {} of {pages}: Enter shows the next one, n refuses: ",
                    number + 1
                );
                tty.forget_typed();
                self.screen.lock().ask(&left);
                // A yes counts only once all was there to see.
                match self.line(tty).await.as_deref().map(parse) {
                    None => return Some(ApprovalAnswer::No),
                    Some(Some(answer)) if !answer.is_yes() => return Some(answer),
                    Some(_) => {}
                }
            }
        }
        let always = self.lasting.as_ref().and_then(|lasting| lasting.to(question));
        loop {
            tty.forget_typed();
            self.screen.lock().ask(&options(question.question.session, always.as_ref()));
            match self.line(tty).await {
                // The end of input is no consent.
                None => return Some(ApprovalAnswer::No),
                Some(line) => match parse(&line) {
                    Some(ApprovalAnswer::Session) if !question.question.session => {
                        self.screen.lock().note("this is asked each time: y or n");
                    }
                    Some(ApprovalAnswer::Always) => match &always {
                        None => self.screen.lock().note("there is no yes for good to this"),
                        Some(always) => match always.write() {
                            Ok(()) => return Some(ApprovalAnswer::Always),
                            Err(why) => self.screen.lock().note(&format!("not written: {why}")),
                        },
                    },
                    Some(answer) => return Some(answer),
                    None if line.trim().is_empty() => {}
                    None => {
                        let line = visible::short(&line, 60);
                        self.screen.lock().note(&format!("`{line}` is none of these"));
                    }
                },
            }
        }
    }

    async fn answer(&self, question: &PersonQuestion) -> Option<String> {
        let tty = self.tty.as_ref()?;
        {
            let mut screen = self.screen.lock();
            screen.toned(Tone::Question, "the model asks:");
            for line in question.text.lines() {
                screen.toned(Tone::Plain, line);
            }
            for (number, option) in question.options.iter().enumerate() {
                screen.toned(Tone::Plain, &format!("  {}  {option}", number + 1));
            }
        }
        tty.forget_typed();
        self.screen.lock().ask("your answer, or its number: ");
        let line = self.line(tty).await?;
        let line = line.trim();
        let chosen = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        Some(match chosen.and_then(|number| question.options.get(number)) {
            Some(option) => option.clone(),
            None => line.to_owned(),
        })
    }
}

/// The question, with the answers that there are.
fn options(session: bool, always: Option<&ForGood<'_>>) -> String {
    let session = if session { "s for this session, " } else { "" };
    let always = match always {
        Some(always) => {
            let (line, file) = (always.line(), always.file().display());
            format!("a always (writes `{line}` to `{file}`), ")
        }
        None => String::new(),
    };
    format!("allow? y once, {session}{always}n no, n REASON: ")
}

/// The answer that a line is.
fn parse(line: &str) -> Option<ApprovalAnswer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match (word.to_ascii_lowercase().as_str(), rest) {
        ("y" | "yes", "") => Some(ApprovalAnswer::Once),
        ("s" | "session", "") => Some(ApprovalAnswer::Session),
        ("a" | "always", "") => Some(ApprovalAnswer::Always),
        ("n" | "no", "") => Some(ApprovalAnswer::No),
        ("n" | "no" | "b" | "because", reason) if !reason.is_empty() => {
            Some(ApprovalAnswer::NoBecause(reason.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_is_an_answer() {
        let because = |reason: &str| Some(ApprovalAnswer::NoBecause(reason.to_owned()));
        let cases = [
            ("y", Some(ApprovalAnswer::Once)),
            (" YES ", Some(ApprovalAnswer::Once)),
            ("s", Some(ApprovalAnswer::Session)),
            ("a", Some(ApprovalAnswer::Always)),
            ("always", Some(ApprovalAnswer::Always)),
            ("a bit", None),
            ("n", Some(ApprovalAnswer::No)),
            ("no not that file", because("not that file")),
            ("b  use  another", because("use  another")),
            ("", None),
            ("b", None),
            ("yep", None),
            ("y but not there", None),
            ("s now", None),
            ("nope", None),
        ];
        for (line, answer) in cases {
            assert_eq!(parse(line), answer, "{line:?}");
        }
    }
}
