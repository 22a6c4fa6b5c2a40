//! What one call gets.

use crate::{Access, Granted, GuestPath, NetGrant, NetworkScope};
use belljar_types::{Hints, PermissionMode};
use std::sync::Arc;

/// What one call can reach. Anything that is not here does not exist for the guest.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// What its plugin gets, shared by all of its calls; the rest of this narrows it.
    pub granted: Arc<Granted>,
    /// Nothing can be written, whatever is granted.
    pub read_only: bool,
    pub network: NetworkScope,
    /// What a person said yes to for this call.
    pub approved: Approved,
}

/// What a person's answer adds to one call, each thing by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Approved {
    /// Protected paths that may be written.
    pub protected: Vec<GuestPath>,
    /// A host that the arguments name.
    pub host: Option<NetGrant>,
}

impl World {
    /// How far a granted folder is open to this call.
    pub fn access(&self, granted: Access) -> Access {
        if self.read_only { Access::Read } else { granted }
    }

    /// Whether the call can write anything at all.
    pub fn can_write(&self) -> bool {
        !self.read_only && self.granted.mounts.iter().any(|mount| mount.access == Access::ReadWrite)
    }
}

/// The world of a call that was allowed: what its plugin gets, narrowed by the mode and by what the
/// tool says of itself. A tool that calls itself read-only gets its folders read-only, so lying
/// gains nothing; one that does not call itself open-world gets no network at all.
pub fn world(
    granted: &Arc<Granted>,
    mode: PermissionMode,
    hints: Hints,
    approved: Approved,
) -> World {
    let plan = mode == PermissionMode::Plan;
    World {
        granted: Arc::clone(granted),
        read_only: hints.read_only || plan,
        network: match (hints.open_world, plan) {
            (false, _) => NetworkScope::None,
            (true, true) => NetworkScope::ReadOnly,
            (true, false) => NetworkScope::Full,
        },
        approved,
    }
}
