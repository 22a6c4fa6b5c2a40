//! What a plugin asks for, what a person grants, what one call gets, and what a rule decides.
//!
//! Everything here is a value or a function of values: no file, no socket, no clock, no engine.

mod decide;
mod grant;
mod limits;
mod manifest;
mod network;
mod paths;
mod rules;
mod spec;
mod standing;
mod world;

pub use decide::{Subject, Verdict, decide, is_offered};
pub use grant::{
    Access, Binding, FolderGrant, GrantError, Granted, Mount, PluginGrant, Surroundings, TEMPORARY,
};
pub use limits::{Limit, LimitError, LimitSettings, Limits, UnknownLimit};
pub use manifest::{
    DeclaredTool, MANIFEST_SECTION, MANIFEST_SIZE, Manifest, ManifestError, WantedFiles,
    WantedHost, WantedLimit, WantedName, WantedSecret, Wants, is_variable,
};
pub use network::{
    Host, HostError, NetDenial, NetGrant, NetGrantError, NetRequest, NetworkScope, Permit,
    RequestError, Scheme, SecretError, SecretGrant, decide_address, decide_request,
    is_forbidden_header, is_public, request_in_arguments, special_range,
};
pub use paths::{
    DenyGlobError, DenyGlobs, GuestPath, GuestPathError, begins_protected, is_protected,
};
pub use rules::{Rule, RuleError, RuleSubject, Rules};
pub use spec::{GrantKey, GrantPart, GrantSpec, SpecError, Withdrawal};
pub use standing::{Standing, standing};
pub use world::{Approved, World, world};
