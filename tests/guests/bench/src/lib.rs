//! A guest that works with text and files, and one that never ends: what benches compare with the
//! same code elsewhere. What it does is in `work`, which the benches also run natively.

pub mod work;

use belljar_sdk::prelude::*;
use std::{hint::black_box, io, path::Path};

#[derive(Deserialize, JsonSchema)]
struct CountWords {
    text: String,
}

/// Counts the words of a text.
#[tool(read_only, idempotent)]
fn count_words(args: CountWords) -> String {
    work::words_as_json(&args.text)
}

#[derive(Deserialize, JsonSchema)]
struct OnePath {
    path: String,
}

/// Reads a file and says how many bytes it has.
#[tool(read_only, idempotent)]
fn read_file(args: OnePath) -> Result<String, Failure> {
    Ok(work::read_file(Path::new(&args.path)).context("reading")?.to_string())
}

/// Reads all files below a folder and says how many bytes they have.
#[tool(read_only, idempotent)]
fn read_all(args: OnePath) -> Result<String, Failure> {
    Ok(work::read_all(Path::new(&args.path)).context("reading")?.to_string())
}

#[derive(Deserialize, JsonSchema)]
struct Grep {
    path: String,
    text: String,
}

/// Counts the lines with a text in all files below a folder.
#[tool(read_only, idempotent)]
fn grep(args: Grep) -> Result<String, Failure> {
    Ok(work::grep(Path::new(&args.path), &args.text).context("reading")?.to_string())
}

#[derive(Deserialize, JsonSchema)]
struct ForEver {
    what: Loop,
    /// The file or folder of the loops over files.
    #[serde(default)]
    path: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Loop {
    Compute,
    HostCalls,
    OpenFile,
    ReadFile,
    ListFolder,
}

/// Does something without end.
#[tool(read_only)]
fn for_ever(args: ForEver) -> Result<Output, Failure> {
    let path = Path::new(&args.path);
    let mut number = 1_u64;
    loop {
        match args.what {
            Loop::Compute => number = black_box(number.wrapping_mul(3)),
            Loop::HostCalls => drop(black_box(host::remaining())),
            Loop::OpenFile => drop(std::fs::File::open(path).context("opening")?),
            Loop::ReadFile => drop(black_box(std::fs::read(path).context("reading")?)),
            Loop::ListFolder => {
                let names =
                    std::fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
                drop(black_box(names.context("listing")?));
            }
        }
    }
}

belljar_sdk::plugin!(count_words, read_file, read_all, grep, for_ever);
