//! Network grants and what they decide: as tables, and as properties of all values.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

mod addresses;
mod grants;
mod properties;
mod secrets;
mod spellings;
