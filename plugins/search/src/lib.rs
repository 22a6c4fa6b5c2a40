//! The bundled plugin for searching text: the engine inside ripgrep over the files of the workspace.
//!
//! It reads and never writes. What it may not read it counts and goes past; what it left out of an
//! answer it says.

mod answer;
mod lines;
mod pattern;
mod search;
mod sink;

belljar_sdk::plugin! {
    tools: [search::search_text],
    wants: {
        files: [read "." because "searching the files of the workspace"],
    },
}
