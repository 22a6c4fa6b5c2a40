//! A command for comparison with other runtimes: reads `{"text": "…"}` from stdin and answers with
//! the number of its words on stdout. It is no plugin: a host of plugins refuses it.

#![cfg(target_family = "wasm")]

#[path = "../../bench/src/work.rs"]
#[expect(dead_code, reason = "of the work that is shared, a command does one piece")]
mod work;

use std::io::{self, Write};

struct Command;

impl wasip2::exports::cli::run::Guest for Command {
    fn run() -> Result<(), ()> {
        let input: serde_json::Value = serde_json::from_reader(io::stdin()).map_err(drop)?;
        let text = input["text"].as_str().ok_or(())?;
        writeln!(io::stdout(), "{}", work::words_as_json(text)).map_err(drop)
    }
}

wasip2::cli::command::export!(Command);
