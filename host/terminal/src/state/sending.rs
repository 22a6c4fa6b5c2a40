//! What becomes of a line that was sent: a message, a steering message or a command.

use super::session::{Doing, Effect, Session};
use crate::{
    backend::{Reply, Shown, Table, Turn},
    command::{self, COMMANDS, Slash},
};
use belljar_types::PermissionMode;
use std::time::Duration;

/// The keys, for `/help`.
const KEYS: [(&str, &str); 10] = [
    ("Enter", "send; while a run is busy: steer it"),
    ("Alt-Enter, Ctrl-J", "a new line; so does `\\` before Enter"),
    ("Esc", "interrupt the run"),
    ("Shift-Tab", "the next permission mode: default, accept-edits, plan"),
    ("Ctrl-C", "cancel; empty the line; twice: leave"),
    ("Ctrl-D", "leave, on an empty line"),
    ("Up, Down", "what was sent before"),
    ("@, Tab", "complete a file of the workspace"),
    ("/, Tab", "complete a command"),
    ("Ctrl-L", "draw the screen anew"),
];

impl Session {
    pub(super) fn send(&mut self, text: String, now: Duration, effects: &mut Vec<Effect>) {
        self.asks_to_go_on = None;
        effects.extend(self.prompt.remember(&text).map(Effect::Remember));
        if text.starts_with('/') && !text.contains('\n') {
            return self.slash(&text, now, effects);
        }
        match self.doing {
            Doing::Nothing => {
                self.transcript.person(&text, self.size.columns);
                self.start(Turn::Message(text), now, effects);
            }
            Doing::Run { .. } => effects.push(Effect::Steer(text)),
            Doing::Command { .. } => {
                self.prompt.set(&text);
                self.hint = Some("wait for the command, or Esc to call it off");
            }
        }
    }

    fn slash(&mut self, line: &str, now: Duration, effects: &mut Vec<Effect>) {
        let columns = self.size.columns;
        let slash = match command::parse(line) {
            Ok(slash) => slash,
            Err(why) => {
                self.transcript.problem(&why, columns);
                return self.prompt.set(line);
            }
        };
        let is_looking = match &slash {
            Slash::Help | Slash::Exit => true,
            Slash::Plan(_) | Slash::Do(_) => false,
            Slash::Backend(command) => command.is_looking(),
        };
        let is_in_the_way = match self.doing {
            Doing::Nothing => false,
            Doing::Run { .. } => !is_looking,
            Doing::Command { .. } => slash != Slash::Exit,
        };
        if is_in_the_way {
            self.hint = Some("not while something runs: wait, or Esc to interrupt");
            return self.prompt.set(line);
        }
        self.transcript.person(line, columns);
        match slash {
            Slash::Exit => self.leave(effects),
            Slash::Help => self.help(),
            Slash::Plan(task) if task.is_empty() => {
                effects.push(Effect::SetMode(PermissionMode::Plan));
            }
            Slash::Plan(task) => self.start(Turn::Plan(task), now, effects),
            Slash::Do(text) => self.start(Turn::Do(text), now, effects),
            Slash::Backend(command) => {
                if self.doing == Doing::Nothing {
                    self.doing = Doing::Command { since: now };
                }
                effects.push(Effect::Command(command));
            }
        }
    }

    fn help(&mut self) {
        let columns = self.size.columns;
        let keys = KEYS.map(|(key, what)| vec![key.to_owned(), what.to_owned()]);
        let commands = COMMANDS.map(|(name, takes, what)| {
            vec![format!("{name} {takes}").trim_end().to_owned(), what.to_owned()]
        });
        let rows = keys.into_iter().chain([Vec::new()]).chain(commands).collect();
        self.transcript.reply(&Shown::Table(Table { head: Vec::new(), rows }), columns);
    }

    pub(super) fn reply(&mut self, reply: &Reply) {
        for shown in &reply.shown {
            self.transcript.reply(shown, self.size.columns);
        }
    }
}
