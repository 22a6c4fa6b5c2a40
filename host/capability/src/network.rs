//! Network grants, and what they decide about a request and about an address.
//!
//! Everything here is a value or a function of values: nothing resolves a name, opens a socket or
//! sends anything. Hosts are compared in their canonical form only, so that no second spelling of
//! a host, a port or a path reaches what the first does not.

mod address;
mod arguments;
mod decide;
mod grant;
mod host;
mod path;
mod request;
mod secret;

pub use address::{is_public, special_range};
pub use arguments::request_in_arguments;
pub use decide::{NetDenial, NetworkScope, Permit, decide_address, decide_request};
pub use grant::{NetGrant, NetGrantError};
pub use host::{Host, HostError};
pub use request::{NetRequest, RequestError, Scheme};
pub use secret::{SecretError, SecretGrant, is_forbidden_header};
