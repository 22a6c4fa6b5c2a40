//! The work as a process of its own: `{"text": "…"}` on stdin, the number of its words on stdout.

use belljar_test_guests::work;
use serde_json::Value;
use std::{
    io::{self, Write},
    process::ExitCode,
};

fn main() -> ExitCode {
    let input: Option<Value> = serde_json::from_reader(io::stdin()).ok();
    let text = input.as_ref().and_then(|input| input["text"].as_str());
    let written = text.map(|text| writeln!(io::stdout(), "{}", work::words_as_json(text)));
    if let Some(Ok(())) = written { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
