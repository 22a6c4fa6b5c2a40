//! Builds the bundled plugins' components.

use belljar_guest_build::{Guest, embed};
use std::process::ExitCode;

fn main() -> ExitCode {
    embed(&[
        Guest { name: "files", package: "belljar-plugin-files" },
        Guest { name: "search", package: "belljar-plugin-search" },
        Guest { name: "web", package: "belljar-plugin-web" },
    ])
}
