//! Builds the tests' guests.

use belljar_guest_build::{Guest, embed};
use std::process::ExitCode;

fn main() -> ExitCode {
    embed(&[
        Guest { name: "hostile", package: "belljar-guest-hostile" },
        Guest { name: "http", package: "belljar-guest-http" },
        Guest { name: "noop", package: "belljar-guest-noop" },
        Guest { name: "odd", package: "belljar-guest-odd" },
        Guest { name: "raw", package: "belljar-guest-raw" },
    ])
}
