//! Builds the tests' guests.

use belljar_guest_build::{Guest, embed};
use std::process::ExitCode;

fn main() -> ExitCode {
    embed(&[Guest { name: "noop", package: "belljar-guest-noop" }])
}
