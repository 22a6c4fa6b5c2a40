//! The session at the terminal: what a person sees of a run, what they are asked, and what they
//! type.
//!
//! Finished text goes into the terminal's own scrollback; a small live area below it holds the
//! text that is being written, the calls that run, the question, the line and the status. What a
//! key or an event does is a function of values (`state`), how text is laid out another (`text`),
//! and one place (`surface`) writes to the terminal, where hostile characters are text.
//!
//! It runs nothing and decides nothing: whoever runs the loop is a [`Backend`].

pub mod receipt;
pub mod visible;

mod approvals;
mod backend;
mod command;
mod run;

mod arguments;
mod guard;
mod history;
mod signals;
mod state;
mod style;
mod surface;
mod text;

pub use approvals::{Asked, Questions, SessionApprover, approvals};
pub use backend::{Backend, Reply, Shown, Status, Steered, Table, Turn};
pub use command::Command;
pub use run::{Left, Settings, Why, run};

#[cfg(test)]
mod tests;
