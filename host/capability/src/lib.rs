//! What a plugin asks for, what a person grants, what one call gets, and what a rule decides.
//!
//! Everything here is a value or a function of values: no file, no socket, no clock, no engine.

mod decide;
mod network;
mod rules;
mod world;

pub use decide::{Subject, decide, is_offered};
pub use network::{
    Host, HostError, NetDenial, NetGrant, NetGrantError, NetRequest, NetworkScope, Permit,
    RequestError, Scheme, SecretError, SecretGrant, decide_address, decide_request,
    hosts_in_arguments, is_forbidden_header, is_public, special_range,
};
pub use rules::{Rule, RuleError, Rules};
pub use world::{Access, World, world};
