//! A guest that sends whatever requests it is told to, as no polite client would: straight through
//! `wasi:http`, with nothing checked on the way. It answers with what came of each.
//!
//! Natively it is empty.

#![cfg(target_family = "wasm")]

mod exchange;
mod tools;

belljar_sdk::plugin!(
    tools::send,
    tools::send_reading,
    tools::send_closed,
    tools::send_reading_closed,
    tools::set_header,
    tools::fill_fields,
    tools::hold_open,
    tools::emit_response,
);
