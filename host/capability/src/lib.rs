//! What a plugin asks for, what a person grants, what one call gets, and what a rule decides.
//!
//! Everything here is a value or a function of values: no file, no socket, no clock, no engine.

mod decide;
mod rules;
mod world;

pub use decide::{Subject, decide, is_offered};
pub use rules::{Rule, RuleError, Rules};
pub use world::{Access, World, world};
