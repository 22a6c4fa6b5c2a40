//! Fuzz targets for everything that reads what others wrote: manifests, configuration, rules,
//! network grants and addresses, paths and deny globs, streams of model servers, components.
//!
//! A target takes any bytes, and panics where a promise about them does not hold; that the bytes
//! are refused is no failure. Inputs are made from samples and a seed, so that each can be made
//! again; an input that fails is kept as a file, and `corpus/TARGET` holds those of the past, which
//! are tried first. Nothing here judges how long something takes, but for what never ends.

mod generate;
mod run;
mod targets;

pub use run::{Budget, Failing, Fault, Tried, run};
pub use targets::{TARGETS, Target, Verdict, target};
