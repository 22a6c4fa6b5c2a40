//! The commands, one file each. A command returns the program's exit code, or the error that is
//! printed for it.

mod call;
mod completions;
mod demo;
mod drive;
mod plugin;
mod run;
mod tools;

pub(crate) use call::call;
pub(crate) use completions::completions;
pub(crate) use demo::demo;
pub(crate) use plugin::plugin;
pub(crate) use run::run;
pub(crate) use tools::tools;
