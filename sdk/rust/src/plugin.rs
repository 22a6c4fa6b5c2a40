//! A plugin: its tools in declared order, listed and called by name. The same object serves the
//! component's exports and native tests.

use crate::{
    Failure, Output,
    arguments::{self, Arguments},
    output::IntoOutcome,
    schema,
};
use serde_json::Value;
use std::fmt;

/// A plugin's tools. `plugin!` makes the one of a crate: `plugin()`.
pub struct Plugin {
    entries: &'static [Entry],
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// A letter, then letters, digits or `_`, 64 at most.
    pub name: &'static str,
    /// For people, where the name is not enough.
    pub title: Option<&'static str>,
    /// For the model: what the tool does, when to use it, what it returns.
    pub description: &'static str,
    /// JSON Schema (2020-12) of the arguments; its type is `object`.
    pub input_schema: Value,
    /// JSON Schema of [`Output::structured`], where the tool gives any.
    pub output_schema: Option<Value>,
    pub hints: Hints,
}

/// What a call may do to the world outside. A hint is shown to people and picks the world that the
/// host builds for the call; it never widens one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing: the host gives the call a read-only world.
    pub read_only: bool,
    /// May delete or overwrite: approval prompts say so.
    pub destructive: bool,
    /// The same call twice has the effect of one.
    pub idempotent: bool,
    /// Talks to systems beyond the workspace: without it, the call has no network.
    pub open_world: bool,
}

impl Hints {
    /// A tool that says nothing about itself.
    pub const NONE: Self =
        Self { read_only: false, destructive: false, idempotent: false, open_world: false };
}

impl Plugin {
    #[doc(hidden)]
    pub const fn new(entries: &'static [Entry]) -> Self {
        Self { entries }
    }

    /// The tools, in the order in which they were declared.
    pub fn tools(&self) -> Vec<Tool> {
        self.entries.iter().map(Entry::tool).collect()
    }

    /// Calls a tool as the host does. `arguments` is a JSON object.
    ///
    /// # Errors
    ///
    /// [`Failure::UnknownTool`] for a name that the plugin does not have,
    /// [`Failure::InvalidArguments`] for arguments that do not fit the tool's schema, and what the
    /// tool itself fails with.
    pub fn call(&self, name: &str, arguments: &str) -> Result<Output, Failure> {
        let entry =
            self.entries.iter().find(|entry| entry.name == name).ok_or(Failure::UnknownTool)?;
        (entry.call)(arguments)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.name)).finish()
    }
}

/// Implemented by the type that `#[tool]` declares beside a function, under the same name.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    label = "not a tool",
    note = "put `#[tool]` on a function, and the function's path into `plugin!`"
)]
pub trait DeclaredTool {
    const ENTRY: Entry;
}

/// A tool's function, by its types.
#[doc(hidden)]
pub trait Signature {
    type Arguments: Arguments;
    type Output: IntoOutcome;

    fn call(arguments: Self::Arguments) -> Self::Output;
}

/// A declared tool, without its types.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "seen by the macros only")]
pub struct Entry {
    name: &'static str,
    title: Option<&'static str>,
    description: &'static str,
    hints: Hints,
    // Schemas are made when tools are listed, so that a call does not pay for them.
    input_schema: fn() -> Value,
    output_schema: fn() -> Option<Value>,
    call: fn(&str) -> Result<Output, Failure>,
}

impl Entry {
    pub const fn of<T: Signature>(
        name: &'static str,
        title: Option<&'static str>,
        description: &'static str,
        hints: Hints,
    ) -> Self {
        Self {
            name,
            title,
            description,
            hints,
            input_schema: schema::input_schema::<T::Arguments>,
            output_schema: T::Output::output_schema,
            call: |arguments| T::call(arguments::parse(arguments)?).into_outcome(),
        }
    }

    fn tool(&self) -> Tool {
        Tool {
            name: self.name,
            title: self.title,
            description: self.description,
            input_schema: (self.input_schema)(),
            output_schema: (self.output_schema)(),
            hints: self.hints,
        }
    }
}

/// Whether a tool before the one at `index` has its name.
#[doc(hidden)]
pub const fn is_declared_before(entries: &[Entry], index: usize) -> bool {
    let mut other = 0;
    while other < index {
        if is_same(entries[other].name.as_bytes(), entries[index].name.as_bytes()) {
            return true;
        }
        other += 1;
    }
    false
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    let mut index = 0;
    while index < left.len() && index < right.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    left.len() == right.len()
}
