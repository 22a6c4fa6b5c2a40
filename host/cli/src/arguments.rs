//! The command line: commands and options of this version, and no others.

mod grants;
mod plugin;

pub(crate) use grants::{GrantArguments, RevokeArguments, TrustArguments};
pub(crate) use plugin::{
    AddArguments, CompileArguments, InspectArguments, ListArguments, PackArguments, PluginCommand,
    RemoveArguments,
};

use belljar_capability::{GrantSpec, Rule};
use belljar_types::PermissionMode;
use belljar_workspace::parse_permission_mode;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What the bare program says.
pub(crate) const WHAT_TO_RUN: &str = "\
belljar: an agent whose every tool runs in a sandbox made for that one call

  belljar                  a session in this folder, at a terminal
  belljar demo             watch it work: no account, no network
  belljar run \"PROMPT\"     one task in this folder, with a real model
  belljar tools            the tools that the model is offered
  belljar help             everything else
";

/// An agent whose every tool runs in a sandbox made for that one call.
#[derive(Debug, Parser)]
#[command(
    name = "belljar",
    version,
    bin_name = "belljar",
    after_help = "\
Standard output carries the answer, everything else goes to standard error.

Exit codes: 0 completed, 1 failed, 2 usage, 3 turn limit, 4 unknown-tool limit,
5 stopped by a guard, 6 a tool failed (call), 7 refused by a grant, a rule or a
limit (call), 130 canceled."
)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) session: SessionCommand,
}

/// The program by itself: a session in this folder, at the terminal.
#[derive(Debug, Args)]
pub(crate) struct SessionCommand {
    /// The model, such as `anthropic/claude-sonnet-5`; `script/FILE` plays turns from a file
    #[arg(short, long, value_name = "PROVIDER/NAME", value_parser = parse_model)]
    pub(crate) model: Option<String>,

    #[command(flatten)]
    pub(crate) session: SessionArguments,

    #[command(flatten)]
    pub(crate) world: WorldArguments,

    #[command(flatten)]
    pub(crate) policy: PolicyArguments,

    /// The most requests to the model in one turn (default: 15)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Do one task: the model calls tools until it has an answer
    Run(RunArguments),
    /// Watch the loop at work on a sample folder, with a scripted model
    Demo(DemoArguments),
    /// Call one tool, without a model
    Call(CallArguments),
    /// List the tools that the model would see
    Tools(ToolsArguments),
    /// Look at plugins, add and remove them, and say what they may do
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Let a folder's own `belljar.toml` and plugins count, after a look at them
    Trust(TrustArguments),
    /// Show the receipts of a session's calls: what ran, what it touched, what was refused
    Audit(AuditArguments),
    /// List, show and remove sessions
    #[command(subcommand)]
    Sessions(SessionsCommand),
    /// Attack this very build on this machine with hostile plugins
    Selftest(SelftestArguments),
    /// Tell what is set up, what is missing and what mends it
    Doctor(DoctorArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Compile a component, for the program itself
    #[command(name = COMPILE, hide = true)]
    Compile(CompileArguments),
}

/// What the program calls itself with to compile.
pub(crate) const COMPILE: &str = "compile-component";

#[derive(Debug, Args)]
#[command(after_help = "\
Standard input that holds data is added to the prompt:
  git diff | belljar run \"review this\"

Without --model, BELLJAR_MODEL or `model` in the configuration, the model is the
one of the first of these that is there: ANTHROPIC_API_KEY, OPENAI_API_KEY, a
server on this machine (Ollama, llama.cpp).

Where nobody can be asked (standard input or standard error is no terminal) the
permission mode is `dont-ask`, else `default`; with `--mode plan` it is `plan`.

With `--input-format stream-json` standard input carries lines such as
  {\"type\":\"user\",\"text\":\"…\"}             the prompt; later on, a message to the busy run
  {\"type\":\"approval_answer\",\"call_id\":\"…\",\"answer\":\"once\"}
  {\"type\":\"cancel\"}

Exit codes: 0 completed, 1 failed, 2 usage, 3 turn limit, 4 unknown-tool limit,
5 stopped by a guard, 130 canceled.")]
pub(crate) struct RunArguments {
    /// What is to be done; `-` reads it from standard input
    pub(crate) prompt: Option<String>,

    /// The model, such as `anthropic/claude-sonnet-5`; `script/FILE` plays turns from a file
    #[arg(short, long, value_name = "PROVIDER/NAME", value_parser = parse_model)]
    pub(crate) model: Option<String>,

    #[command(flatten)]
    pub(crate) world: WorldArguments,

    #[command(flatten)]
    pub(crate) policy: PolicyArguments,

    #[command(flatten)]
    pub(crate) session: SessionArguments,

    /// `plan` changes nothing and ends in a plan; `do` carries out the one that `--plan` gives
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub(crate) mode: RunMode,

    /// The plan to carry out, with `--mode do`; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,

    /// The most requests to the model (default: 15)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Write the model's turns to a new file, to be played again with `-m script/FILE`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// What standard input carries: the prompt's text, or lines of JSON from a program that
    /// answers questions, adds messages and cancels
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) input_format: InputFormat,

    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Which session the run goes on with; a new one where none is named.
#[derive(Debug, Args)]
pub(crate) struct SessionArguments {
    /// Go on with the last session of this folder
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) go_on: bool,

    /// Go on with the session that has this id
    #[arg(short, long, value_name = "ID")]
    pub(crate) resume: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunMode {
    #[default]
    Chat,
    Plan,
    Do,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Typing the command is the approval: a tool that would ask is not asked about.
Deny rules, grants and limits hold. The permission mode of the configuration is
for models and does not apply here; --permission-mode does.

  belljar call read_file '{\"path\": \"README.md\"}'

Exit codes: 0 completed, 1 failed, 2 usage (also: no such tool, arguments that
are not a JSON object), 6 the tool failed, 7 refused by a grant, a rule or a
limit, 130 canceled.")]
pub(crate) struct CallArguments {
    /// The tool, as `belljar tools` names it
    pub(crate) tool: String,

    /// Its arguments as a JSON object (default: `{}`); `-` reads them from standard input
    #[arg(value_name = "JSON")]
    pub(crate) arguments: Option<String>,

    #[command(flatten)]
    pub(crate) world: WorldArguments,

    #[command(flatten)]
    pub(crate) policy: PolicyArguments,

    /// What standard output carries
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output_format: CallFormat,

    #[command(flatten)]
    pub(crate) talk: TalkArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArguments {
    /// Print an array of tool definitions with schemas and hints
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) world: WorldArguments,

    #[command(flatten)]
    pub(crate) policy: PolicyArguments,
}

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    /// The session (default: the last one of this workspace)
    pub(crate) session: Option<String>,

    /// Print one JSON object for each call
    #[arg(long)]
    pub(crate) json: bool,

    /// The workspace whose last session is meant (default: the current folder)
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List all sessions, the one written to last first
    List,
    /// Show what was said in a session
    Show { id: String },
    /// Remove a session for good
    Remove {
        id: String,

        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each case is an attack by a plugin that is part of this program, and what must come
of it; after each, the next call must be served and nothing be left behind. No
network and no account is needed, and nothing of yours is read or written.

Exit codes: 0 all cases held, 1 one did not.")]
pub(crate) struct SelftestArguments {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each line is `ok`, `note` or `problem`, with the line that mends it. No plugin is
started, no key is shown, nothing is changed.

Exit codes: 0 no problem, 1 a problem.")]
pub(crate) struct DoctorArguments {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    /// The folder to work in (default: the current one)
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) plugins: PluginArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    pub(crate) shell: clap_complete::Shell,
}

/// What a call can reach.
#[derive(Debug, Args)]
pub(crate) struct WorldArguments {
    /// The folder to work in (default: the current one)
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) plugins: PluginArguments,
}

#[derive(Debug, Args)]
pub(crate) struct PluginArguments {
    /// A folder of plugins, besides your own; may be given more than once
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,

    /// The configuration to read instead of your own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// What decides about calls.
#[derive(Debug, Args)]
pub(crate) struct PolicyArguments {
    /// plan, default, accept-edits, dont-ask or bypass
    #[arg(long, value_name = "MODE", value_parser = parse_permission_mode)]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// A grant for this run alone, such as `weather.read=data`; may be given more than once
    #[arg(long = "grant", value_name = "SPEC")]
    pub(crate) grants: Vec<GrantSpec>,

    /// Allow a tool without asking: `TOOL` or `PLUGIN/TOOL`, with `*`; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Rule>,

    /// Deny a tool, whatever allows it; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Rule>,
}

#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// What standard output carries
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output_format: OutputFormat,

    #[command(flatten)]
    pub(crate) talk: TalkArguments,
}

/// How much people are told.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct TalkArguments {
    /// Tell more: reasoning, more of what tools return
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Tell nothing but errors and questions
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The answer
    #[default]
    Text,
    /// The stop event, as one JSON object
    Json,
    /// Every event as it happens, one JSON object a line
    StreamJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CallFormat {
    /// What the tool returned
    #[default]
    Text,
    /// The result and the call's receipt, as one JSON object
    Json,
}

fn parse_model(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, name)) if !provider.is_empty() && !name.is_empty() => Ok(text.to_owned()),
        _ => Err("write `PROVIDER/NAME`, such as `anthropic/claude-sonnet-5`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Command, clap::error::ErrorKind> {
        Arguments::try_parse_from(std::iter::once("belljar").chain(line.split_whitespace()))
            .map(|arguments| arguments.command.unwrap())
            .map_err(|error| error.kind())
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_lists_the_commands() {
        insta::assert_snapshot!(Arguments::command().render_long_help());
    }

    #[test]
    fn options_may_stand_before_and_after_the_prompt() {
        for line in [
            "run -m a/b -C d task --allow files/* --allow x",
            "run task -C d -m a/b \
             --allow=files/* --allow=x",
        ] {
            let Ok(Command::Run(run)) = parse(line) else { panic!("{line}") };
            let rules: Vec<_> = run.policy.allow.iter().map(Rule::text).collect();
            assert_eq!(
                (run.prompt.as_deref(), run.model.as_deref(), run.world.workspace, rules),
                (Some("task"), Some("a/b"), Some("d".into()), vec!["files/*", "x"]),
                "{line}"
            );
        }
    }

    #[test]
    fn what_this_version_does_not_know_or_cannot_hold_is_refused() {
        use clap::error::ErrorKind::{
            ArgumentConflict, DisplayHelpOnMissingArgumentOrSubcommand, InvalidSubcommand,
            InvalidValue, MissingRequiredArgument, UnknownArgument, ValueValidation,
        };
        let cases = [
            ("run x --mode act", InvalidValue),
            ("run x --continue --resume id", ArgumentConflict),
            ("run x --resume", InvalidValue),
            ("run x --input-format json", InvalidValue),
            ("run one two", UnknownArgument),
            ("plugin", DisplayHelpOnMissingArgumentOrSubcommand),
            ("plugin revoke", MissingRequiredArgument),
            ("plugin granted x", InvalidSubcommand),
            ("sessions remove", MissingRequiredArgument),
            ("run x --grant read=out", ValueValidation),
            ("run x --grant files.secrets=KEY", ValueValidation),
            ("run x --grant files.limits.memory=lots", ValueValidation),
            ("run x -m sonnet", ValueValidation),
            ("run x -m /sonnet", ValueValidation),
            ("run x --permission-mode yolo", ValueValidation),
            ("run x --allow files/*(path)", ValueValidation),
            ("run x --deny /", ValueValidation),
            ("run x --max-turns 0", ValueValidation),
            ("run x --max-turns -1", UnknownArgument),
            ("run x -o yaml", InvalidValue),
            ("call t -o stream-json", InvalidValue),
            ("run x -v -q", ArgumentConflict),
        ];
        for (line, kind) in cases {
            assert_eq!(parse(line).err(), Some(kind), "{line}");
        }
    }
}
