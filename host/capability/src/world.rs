//! What one call gets.

use belljar_types::{Hints, PermissionMode};

/// How far a folder is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    ReadWrite,
}

/// What one call can reach. Anything that is not here does not exist for the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// The workspace, at `/`.
    pub workspace: Option<Access>,
}

/// The world of a call that was allowed: the grant, narrowed by the mode and by what the tool says
/// of itself. A tool that calls itself read-only gets its folders read-only, so lying gains
/// nothing.
pub fn world(granted: World, mode: PermissionMode, hints: Hints) -> World {
    let narrow = |access: Access| {
        if hints.read_only || mode == PermissionMode::Plan { Access::Read } else { access }
    };
    World { workspace: granted.workspace.map(narrow) }
}
