//! The paths that the bundled tools take as arguments: reading one, telling the model why one was
//! refused and what to write instead, and walking the files below one.
//!
//! It never opens a file for a tool and never decides what a call may reach: the sandbox does. It
//! looks at the argument alone, so that a path that leaves the workspace is answered as such
//! although the guest's own library would quietly strip what makes it leave.

mod glob;
mod ignored;
mod missing;
mod path;
mod walk;
mod wording;

pub use glob::Globs;
pub use path::{Workspace, WorkspacePath};
pub use walk::{Found, Unreadable, Walk};
pub use wording::{bytes, count, cut, number};
