//! Hooks: commands of the user's configuration that are run at points of a session.
//!
//! A hook is an argument list, started without a shell, in the workspace's folder, with an empty
//! environment but for the variables that it names. It reads one JSON object and answers with its
//! exit code: 0, with an optional decision as one JSON object on standard output; 2, which blocks
//! with standard error as the reason; anything else is a hook that is broken. A hook may refuse or
//! narrow. Nothing that it says allows anything, and whether its answer is followed is the loop's.
//!
//! Hooks are the user's own programs and run with the user's rights, outside of every sandbox. One
//! that lies in the workspace is not run: a tool call could have written it.

mod decision;
mod process;

use crate::config::Source;
use async_trait::async_trait;
use belljar_types::{HookPoint, HookReport};
use decision::{Answer, Verdict};
use process::{Ended, Failure, Limits};
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How long a hook may take, where its configuration does not say.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A hook as the user configured it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// An absolute path.
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Variables by name; without a value the host's own.
    pub environment: BTreeMap<String, Option<String>>,
    pub timeout: Duration,
    pub on_failure: OnFailure,
    pub source: Source,
}

/// What a hook that is broken does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// A person is told.
    #[default]
    Warn,
    /// It refuses, as if it had said so.
    Block,
}

/// All hooks, in the order in which they are run.
pub type HookCommands = BTreeMap<HookPoint, Vec<HookCommand>>;

/// A variable of the host's environment.
type Variable = dyn Fn(&str) -> Option<OsString> + Send + Sync;

/// Runs hooks.
#[derive(Clone)]
pub struct Hooks {
    commands: Arc<HookCommands>,
    workspace: PathBuf,
    session: String,
    variable: Arc<Variable>,
    limits: Limits,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("commands", &self.commands).finish_non_exhaustive()
    }
}

#[async_trait]
impl belljar_types::Hooks for Hooks {
    fn has(&self, point: HookPoint) -> bool {
        self.commands.get(&point).is_some_and(|commands| !commands.is_empty())
    }

    /// Runs the hooks of a point, one after the other. Each reads `input` with `hook`, `session`
    /// and `workspace` added, and, at `pre_tool`, with the `arguments` as the hook before left
    /// them.
    ///
    /// Needs a tokio runtime with I/O and time. Dropping the future ends the hook that is running,
    /// with all that it started.
    async fn run(&self, point: HookPoint, input: &Map<String, Value>) -> HookReport {
        let mut report = HookReport::default();
        for command in self.commands.get(&point).into_iter().flatten() {
            let mut input = input.clone();
            input.insert("hook".to_owned(), point.name().into());
            input.insert("session".to_owned(), self.session.clone().into());
            let workspace = self.workspace.to_string_lossy();
            input.insert("workspace".to_owned(), workspace.into());
            if let Some(arguments) = &report.arguments {
                input.insert("arguments".to_owned(), Value::Object(arguments.clone()));
            }
            self.run_one(point, command, &Value::Object(input), &mut report).await;
            if report.blocked.is_some() || report.end.is_some() {
                break;
            }
        }
        report
    }
}

impl Hooks {
    /// `variable` is the host's environment: hooks get what they name of it.
    pub fn new(
        commands: HookCommands,
        workspace: &Path,
        session: &str,
        variable: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
    ) -> Self {
        Self {
            commands: Arc::new(commands),
            workspace: workspace.to_owned(),
            session: session.to_owned(),
            variable: Arc::new(variable),
            limits: Limits::default(),
        }
    }

    async fn start(&self, command: &HookCommand, input: &Value) -> Result<Ended, Failure> {
        if lies_in(&command.program, &self.workspace) {
            return Err(Failure::InWorkspace);
        }
        let environment = command.environment.iter().filter_map(|(name, value)| {
            let value = value.clone().map(OsString::from).or_else(|| (self.variable)(name))?;
            Some((OsString::from(name), value))
        });
        let mut process = tokio::process::Command::new(&command.program);
        process.args(&command.arguments).env_clear().envs(environment).current_dir(&self.workspace);
        process::run(process, input.to_string(), command.timeout, self.limits).await
    }

    async fn run_one(
        &self,
        point: HookPoint,
        command: &HookCommand,
        input: &Value,
        report: &mut HookReport,
    ) {
        let ended = self.start(command, input).await;
        let answer = ended.and_then(|ended| answer(point, ended, self.limits));
        let about = format!("the `{point}` hook of {}", command.source);
        match answer {
            Ok(Answer { verdict, arguments, context, notice }) => {
                report.notices.extend(notice.map(|notice| format!("{about} says: {notice}")));
                report.context.extend(context);
                if arguments.is_some() {
                    report.arguments = arguments;
                }
                match verdict {
                    Verdict::GoOn => {}
                    Verdict::Block(reason) if point.can_block() => report.blocked = Some(reason),
                    Verdict::Block(reason) => {
                        report.notices.push(format!("{about} objects: {reason}"));
                    }
                    Verdict::End(reason) => report.end = Some(reason),
                }
            }
            Err(failure) => {
                let blocks = command.on_failure == OnFailure::Block;
                let what = if blocks { "and blocks" } else { "and is passed over" };
                let shown = command.program.display();
                report.notices.push(format!("{about}, `{shown}`, {failure}; it is broken {what}"));
                if blocks {
                    report.blocked = Some(format!(
                        "a `{point}` hook of the person's could not decide, and is set to block \
                         then: what is wrong with it was told to the person"
                    ));
                }
            }
        }
    }
}

/// Whether those who may write in a folder can change what is run: the program lies there, or is
/// reached through it. One that is missing is not there to be changed.
fn lies_in(program: &Path, folder: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(folder);
    real(program).starts_with(&folder) || program.ancestors().any(|above| real(above) == folder)
}

/// What an end of a hook means.
fn answer(point: HookPoint, ended: Ended, limits: Limits) -> Result<Answer, Failure> {
    const BLOCK: i32 = 2;
    match ended.code {
        Some(0) if ended.output_cut => Err(Failure::TooMuch { most: limits.output }),
        Some(0) => decision::read(point, &ended.output).map_err(Failure::NoDecision),
        Some(BLOCK) => {
            let said = ended.errors.trim();
            let reason = match said {
                "" => "a hook refused it without saying why".to_owned(),
                _ if ended.errors_cut => format!("{said} [cut here]"),
                _ => said.to_owned(),
            };
            Ok(Answer { verdict: Verdict::Block(reason), ..Answer::default() })
        }
        code => Err(Failure::Code { code, errors: short(&ended.errors) }),
    }
}

/// The beginning of what a broken hook said.
fn short(errors: &str) -> String {
    const MOST: usize = 400;
    let line = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
