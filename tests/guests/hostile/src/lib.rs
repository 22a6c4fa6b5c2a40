//! A guest that attacks its host: one tool for each kind of attack. A tool that is stopped never
//! answers; one that is refused answers with what it was told, for the test to compare.
//!
//! It talks to WASI directly where the standard library would be too polite, so it is empty
//! natively.

#![cfg(target_family = "wasm")]

mod computing;
mod failures;
mod files;
mod floods;
mod handles;
mod memory;
mod network;
mod state;
mod waiting;

belljar_sdk::plugin!(
    computing::spin,
    computing::spin_in_host_calls,
    computing::recurse,
    computing::panic,
    computing::abort,
    computing::exit,
    memory::grow_memory,
    memory::touch_memory,
    memory::fill_memory,
    floods::flood_stdout,
    floods::flood_stderr,
    floods::flood_log,
    floods::flood_emit,
    floods::flood_progress,
    floods::print,
    floods::huge_text,
    floods::huge_log,
    floods::huge_structured,
    floods::many_pieces,
    floods::huge_progress,
    handles::open_many,
    handles::poll_many,
    handles::poll_one_many,
    handles::streams_many,
    handles::folders_many,
    handles::huge_random,
    handles::huge_read,
    waiting::sleep_for_ever,
    waiting::sleep,
    waiting::sleep_in_pieces,
    waiting::wait_for_the_end,
    waiting::wait_for_many,
    waiting::wait_for_nothing,
    waiting::read_stdin,
    waiting::read_for_ever,
    files::read_path,
    files::list_path,
    files::stat_path,
    files::write_path,
    files::write_path_read_only,
    files::change,
    files::change_read_only,
    files::fill_disk,
    files::many_files,
    network::connect,
    network::resolve,
    network::listen,
    state::count,
    state::environment,
    state::look_around,
    failures::fail,
    failures::wrong_structured,
    failures::hostile_words,
);
