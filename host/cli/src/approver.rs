//! Asking a person at the terminal whether a call may run.
//!
//! Shows every byte of what would be called before a yes is taken, and takes no answer that was
//! typed before the question was there.

use crate::{
    arguments_block,
    screen::{SharedScreen, Tone},
    tty::Tty,
    visible,
};
use async_trait::async_trait;
use belljar_capability::PluginGrant;
use belljar_types::{Always, ApprovalAnswer, ApprovalQuestion, Approver};
use belljar_workspace::{Change, Expected, GrantStore};
use std::path::{Path, PathBuf};
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
    /// Where a yes for good is written, and for which workspace.
    store: Option<(GrantStore, PathBuf)>,
}

impl TerminalApprover {
    pub(crate) fn new(
        tty: Option<Tty>,
        screen: SharedScreen,
        shown: watch::Receiver<String>,
    ) -> Self {
        Self { tty, screen, shown, store: None }
    }

    /// The same, with a yes for good, which is written there for this workspace.
    pub(crate) fn writing_to(self, store: GrantStore, workspace: &Path) -> Self {
        Self { store: Some((store, workspace.to_owned())), ..self }
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
        let always = self.always(question);
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
}

/// A yes for good that can be given: what it would write, and where.
#[derive(Debug)]
struct ForGood<'a> {
    store: &'a GrantStore,
    line: String,
    change: Change,
}

impl ForGood<'_> {
    fn write(&self) -> Result<(), String> {
        self.store.apply(&self.change).map_err(|error| error.to_string())
    }
}

impl TerminalApprover {
    fn always(&self, question: &ApprovalQuestion) -> Option<ForGood<'_>> {
        let (store, workspace) = self.store.as_ref()?;
        let always = question.question.always.as_ref()?;
        let (line, change) = match always {
            Always::Rule { rule } => (
                format!("workspaces.{:?}.{always}", workspace.display().to_string()),
                Change::Allow { workspace: workspace.clone(), rule: rule.parse().ok()? },
            ),
            Always::Host { plugin, host } => (
                always.to_string(),
                Change::Grant {
                    plugin: plugin.to_string(),
                    grant: PluginGrant { net: vec![host.parse().ok()?], ..PluginGrant::default() },
                    // Not to other bytes that somebody else said yes to meanwhile.
                    expected: Expected::Digest(question.source.digest.to_string()),
                },
            ),
        };
        Some(ForGood { store, line, change })
    }
}

/// The question, with the answers that there are.
fn options(session: bool, always: Option<&ForGood<'_>>) -> String {
    let session = if session { "s for this session, " } else { "" };
    let always = match always {
        Some(ForGood { store, line, .. }) => {
            let file = store.file().display();
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
