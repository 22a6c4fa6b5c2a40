//! The session as values: what a person or the run does goes in, what is shown and what is to be
//! done comes out.
//!
//! No clock, no terminal, no task: the time comes with each input.

mod dialog;
mod prompt;
mod sending;
mod session;
mod transcript;
mod view;

pub(crate) use session::{Effect, Input, Session, Size};
pub(crate) use view::Live;
