//! Write a Belljar plugin in Rust: functions and doc comments, no JSON.
//!
//! This crate owns everything between a plugin's functions and the component that the host loads:
//! schemas, the reading of arguments, results, failures, the exports. It never decides what a
//! plugin may do: a plugin reaches what its call was granted, through plain `std`.
//!
//! ```
//! use belljar_sdk::prelude::*;
//!
//! #[arguments]
//! struct Greet {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! /// Greets someone by name.
//! #[tool(read_only)]
//! fn greet(args: Greet) -> Result<String, Failure> {
//!     if args.name.is_empty() {
//!         return Err(Failure::invalid_arguments("`name` is empty: give a name"));
//!     }
//!     Ok(format!("Hello, {}.", args.name))
//! }
//!
//! belljar_sdk::plugin!(greet);
//!
//! # fn main() {
//! let output = plugin().call("greet", r#"{"name": "Ada"}"#);
//! assert_eq!(output, Ok(Output::text("Hello, Ada.")));
//! # }
//! ```

// The macros write paths that start with `::belljar_sdk`; so the crate's own tests can use them.
extern crate self as belljar_sdk;

mod arguments;
#[cfg(target_family = "wasm")]
mod bindings;
mod failure;
pub mod host;
pub mod http;
mod output;
mod plugin;
mod schema;
pub mod testing;

pub use belljar_sdk_macros::{arguments, plugin, structured, tool};
pub use failure::{Context, Failure};
pub use output::{Blob, Content, IntoOutput, Json, Link, Output};
pub use plugin::{Hints, Plugin, Tool};
pub use schemars;
pub use serde;
pub use serde_json;

/// What nearly every plugin uses.
pub mod prelude {
    pub use crate::{Context, Failure, Json, Output, arguments, host, structured, tool};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

/// What the macros write calls to: no part of the API.
#[doc(hidden)]
pub mod __private {
    pub use crate::{
        arguments::NoArguments,
        plugin::{DeclaredTool, Entry, Signature, is_declared_before},
    };

    #[cfg(target_family = "wasm")]
    pub use crate::bindings::{Component, export, generated};
}
