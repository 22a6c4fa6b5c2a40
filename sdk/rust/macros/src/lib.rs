//! The macros of `belljar-sdk`. Plugins use them through that crate, whose documentation shows
//! them at work. They read functions and doc comments and write declarations; what a call does
//! lives in the SDK.

mod data;
mod plugin;
mod tool;
mod wants;

use proc_macro::TokenStream;

/// Makes a function a tool.
///
/// The function takes nothing or one struct of arguments (see [`macro@arguments`]) and returns
/// `Output`, a string or `Json<T>`, alone or in a `Result` whose error becomes a `Failure`. Its doc
/// comment is the description that the model reads.
///
/// In the parentheses, any of:
/// - `read_only`: the tool changes nothing, and gets a read-only world
/// - `destructive`: it may delete or overwrite
/// - `idempotent`: the same call twice has the effect of one
/// - `open_world`: it talks to systems beyond the workspace
/// - `title = "Read a file"`: a name for people
/// - `name = "read"`: the name for the model, where it is not the function's
///
/// A type of the function's name is declared beside it; [`macro@plugin`] finds it there.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(tool::expand(attribute.into(), item.into()))
}

/// Makes a struct or enum what a tool's arguments are made of: derives `Deserialize` and
/// `JsonSchema`, with the SDK's own copies of serde and schemars.
///
/// Doc comments of fields become descriptions in the schema; an `Option` may be left out. The
/// helper attributes `#[serde(…)]` and `#[schemars(…)]` work as usual.
#[proc_macro_attribute]
pub fn arguments(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(data::expand(data::Direction::Arguments, attribute.into(), item.into()))
}

/// Makes a struct or enum what a structured result, `Json<T>`, is made of: derives `Serialize` and
/// `JsonSchema`, with the SDK's own copies of serde and schemars.
#[proc_macro_attribute]
pub fn structured(attribute: TokenStream, item: TokenStream) -> TokenStream {
    finish(data::expand(data::Direction::Structured, attribute.into(), item.into()))
}

/// Makes the crate a plugin with the tools listed, and `plugin()` for its tests.
///
/// Once in a crate, at its root: `belljar_sdk::plugin!(read_file, edit::edit_file);`
///
/// A plugin that says what it wants carries a manifest, which people read before they grant
/// anything, and then gets no more than that, whatever it is granted:
///
/// ```text
/// belljar_sdk::plugin! {
///     tools: [forecast, report],
///     wants: {
///         files: [read "data" because "…", write "out" because "…"],
///         net: ["https://api.example.com" because "…"],
///         env: ["TZ" because "…"],
///         secrets: ["API_KEY" for "api.example.com" in "authorization" because "…"],
///         limits: [deadline "60s" because "…"],
///     },
/// }
/// ```
///
/// What is left out is not wanted; `wants: {}` wants nothing at all. Without `wants` there is no
/// manifest, and the plugin gets what a person grants to it by name. Version and description come
/// from the crate's `Cargo.toml`.
#[proc_macro]
pub fn plugin(input: TokenStream) -> TokenStream {
    finish(plugin::expand(input.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
