//! The host that a call of the bundled `web` tools will ask for, known before it runs.

use super::{NetGrant, NetRequest};
use serde_json::Value;

/// The grant that a call with these arguments needs: of the host in `url`. Nothing where the
/// argument is no URL that may be requested; the call then fails by itself.
pub fn hosts_in_arguments(arguments: &Value) -> Option<NetGrant> {
    let url = arguments.get("url")?.as_str()?;
    // The method only has to be one: grants of hosts are of every method.
    let request = NetRequest::for_url("GET", url).ok()?;
    Some(NetGrant::of_host(request.scheme(), request.host().clone(), request.port()))
}
