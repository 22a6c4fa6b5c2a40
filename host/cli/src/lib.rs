//! The `belljar` command: arguments, the wiring of the crates behind each command, and the sinks
//! that put events in front of people and scripts.
//!
//! It decides nothing about calls and knows no protocol: what another front end would need lives
//! in the crates that it wires. All text for people passes through `screen`, so that nothing
//! that a model, a tool or a file says reaches a terminal raw.

mod arguments;
mod exit;

mod screen;

mod approver;
mod arguments_block;
mod commands;
mod confirm;
mod control;
mod lasting;
mod model;
mod prompt;
mod setup;
mod show;
mod signals;
mod tty;

use arguments::{Arguments, Command, SessionCommand};
use belljar_terminal::visible;
use clap::{Parser, error::ErrorKind};
use screen::SharedScreen;
use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
    process::ExitCode,
};

/// The program with the arguments of this process.
pub fn main() -> ExitCode {
    belljar_sandbox::raise_open_files();
    run_from(std::env::args_os())
}

/// The program with these arguments, the first of which is its own name. It reads and writes the
/// standard streams of this process, and reads its environment.
pub fn run_from(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let screen = SharedScreen::of_this_process();
    let code = match Arguments::try_parse_from(arguments) {
        Ok(Arguments { command: None, session }) => run_session(session, &screen),
        Ok(Arguments { command: Some(command), .. }) => run_command(command, &screen),
        Err(message) => show_usage(&message, &screen),
    };
    ExitCode::from(code)
}

fn show_usage(message: &clap::Error, screen: &SharedScreen) -> u8 {
    let text = message.render().to_string();
    match message.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            screen.lock().print(&text);
            exit::COMPLETED
        }
        _ => {
            screen.lock().note(&text);
            exit::USAGE
        }
    }
}

/// A session where there is a terminal to have it at; else what there is to run.
fn run_session(arguments: SessionCommand, screen: &SharedScreen) -> u8 {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        screen.lock().print(arguments::WHAT_TO_RUN);
        return exit::COMPLETED;
    }
    ended(on_runtime(commands::session(arguments, screen.clone())), screen)
}

fn run_command(command: Command, screen: &SharedScreen) -> u8 {
    let result = match command {
        Command::Compile(arguments) => {
            return belljar_sandbox::compile_in_child(&arguments.arguments);
        }
        Command::Plugin(command) => on_runtime(commands::plugin(command, screen.clone())),
        Command::Completions(arguments) => Ok(commands::completions(&arguments, screen)),
        Command::Run(arguments) => on_runtime(commands::run(arguments, screen.clone())),
        Command::Demo(arguments) => on_runtime(commands::demo(arguments, screen.clone())),
        Command::Call(arguments) => on_runtime(commands::call(arguments, screen.clone())),
        Command::Tools(arguments) => on_runtime(commands::tools(arguments, screen.clone())),
        Command::Trust(arguments) => on_runtime(commands::trust(arguments, screen.clone())),
        Command::Audit(arguments) => commands::audit(&arguments, screen),
        Command::Sessions(command) => on_runtime(commands::sessions(command, screen.clone())),
        Command::Selftest(arguments) => on_runtime(commands::selftest(arguments, screen.clone())),
        Command::Doctor(arguments) => on_runtime(commands::doctor(arguments, screen.clone())),
    };
    ended(result, screen)
}

fn ended(result: anyhow::Result<u8>, screen: &SharedScreen) -> u8 {
    result.unwrap_or_else(|error| {
        // The one place where an error that ends a command is printed.
        screen.lock().error(&format!("{error:#}"));
        exit::of_error(&error)
    })
}

/// Guests run on threads of their own and the reader of events on this one: two workers are
/// plenty for what is between them.
fn on_runtime(command: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(command);
    // A thread that is stuck in the kernel must not hold up the end of the program.
    runtime.shutdown_background();
    ended
}
