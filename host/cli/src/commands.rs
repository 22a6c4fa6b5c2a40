//! The commands, one file each. A command returns the program's exit code, or the error that is
//! printed for it.

mod audit;
mod call;
mod completions;
mod demo;
mod doctor;
mod drive;
mod plugin;
mod run;
mod selftest;
mod session;
mod sessions;
mod tools;
mod trust;

pub(crate) use audit::audit;
pub(crate) use call::call;
pub(crate) use completions::completions;
pub(crate) use demo::demo;
pub(crate) use doctor::doctor;
pub(crate) use plugin::plugin;
pub(crate) use run::run;
pub(crate) use selftest::selftest;
pub(crate) use session::run as session;
pub(crate) use sessions::sessions;
pub(crate) use tools::tools;
pub(crate) use trust::trust;
