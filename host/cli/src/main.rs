//! The program: two lines, so that everything else can be tested.

use std::process::ExitCode;

fn main() -> ExitCode {
    belljar::main()
}
