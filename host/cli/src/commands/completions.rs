//! `belljar completions`: a script that a shell reads.

use crate::{
    arguments::{Arguments, CompletionsArguments},
    exit,
    screen::SharedScreen,
};
use clap::CommandFactory as _;

pub(crate) fn completions(arguments: &CompletionsArguments, screen: &SharedScreen) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "belljar", &mut script);
    screen.lock().print(&String::from_utf8_lossy(&script));
    exit::COMPLETED
}
