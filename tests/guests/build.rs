//! Builds the tests' guests: those in Rust, and those in the text format of components, where a
//! compiler would be in the way.

use belljar_guest_build::{Guest, embed};
use std::{env, error::Error, fmt::Write as _, fs, path::Path, process::ExitCode};

/// The exports that a text-format guest gives itself or takes from `parts.wat`.
const EXPORTS: [&str; 5] = ["memory", "realloc", "list", "call", "post"];

fn main() -> ExitCode {
    if let Err(error) = embed_texts(Path::new("text")) {
        println!("cargo::error=the text-format guests do not build: {error}");
        return ExitCode::FAILURE;
    }
    embed(&[
        Guest { name: "hostile", package: "belljar-guest-hostile" },
        Guest { name: "http", package: "belljar-guest-http" },
        Guest { name: "noop", package: "belljar-guest-noop" },
        Guest { name: "odd", package: "belljar-guest-odd" },
        Guest { name: "raw", package: "belljar-guest-raw" },
        Guest { name: "bench", package: "belljar-guest-bench" },
        Guest { name: "command", package: "belljar-guest-command" },
    ])
}

/// Writes `texts.rs`: an array with the name and the bytes of each guest of each file.
fn embed_texts(folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let out = env::var("OUT_DIR")?;
    let frame = fs::read_to_string(folder.join("frame.wat"))?;
    let parts = fs::read_to_string(folder.join("parts.wat"))?;
    let parts: Vec<_> = sections(&parts).collect();
    let mut files: Vec<_> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, std::io::Error>>()?;
    files.sort();
    let mut items = String::from("[\n");
    for file in files {
        if file.ends_with("frame.wat") || file.ends_with("parts.wat") {
            continue;
        }
        for (name, text) in sections(&fs::read_to_string(&file)?) {
            let component = wat::parse_str(component(&frame, &parts, text))
                .map_err(|error| format!("`{name}` in `{}`: {error}", file.display()))?;
            let path = Path::new(&out).join(name).with_extension("wasm");
            fs::write(&path, component)?;
            writeln!(items, "    Text {{ name: {name:?}, bytes: include_bytes!({path:?}) }},")?;
        }
    }
    items.push_str("]\n");
    fs::write(Path::new(&out).join("texts.rs"), items)?;
    Ok(())
}

/// The texts below lines of `;;; NAME`, with their names.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n;;; ").skip(1).filter_map(|section| section.split_once('\n'))
}

/// A guest in its frame, with the parts that it does not give itself.
fn component(frame: &str, parts: &[(&str, &str)], guest: &str) -> String {
    let gives = |name: &str| guest.contains(&format!("(export \"{name}\")"));
    let taken: String = parts
        .iter()
        .filter(|(name, _)| !EXPORTS.contains(name) || !gives(name))
        .map(|(_, part)| *part)
        .collect();
    let mut guest = guest.replace("{{parts}}", &taken);
    if !guest.contains("core instance $main") {
        guest.push_str("(core instance $main (instantiate $m))");
    }
    frame.replace("{{guest}}", &guest)
}
