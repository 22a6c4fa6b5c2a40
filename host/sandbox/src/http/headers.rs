//! Header fields on their way out and in.

use super::is_forbidden_to_guests;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, IF_RANGE, RANGE},
};

/// Fields that ask a server to take a request for one of another method.
const METHOD_OVERRIDES: [&str; 3] =
    ["x-http-method", "x-http-method-override", "x-method-override"];

/// The first field that the guest may not send, by name.
pub(super) fn forbidden(headers: &HeaderMap, any_method: bool) -> Option<&HeaderName> {
    let is_override = |name: &str| !any_method && METHOD_OVERRIDES.contains(&name);
    headers.keys().find(|name| {
        let name = name.as_str();
        is_forbidden_to_guests(name) || is_override(name)
    })
}

/// Adds a secret, and takes out what would let a response bring it back in a form that it is not
/// found in: compressed, or in pieces.
pub(super) fn add_secret(headers: &mut HeaderMap, name: HeaderName, mut value: HeaderValue) {
    value.set_sensitive(true);
    headers.insert(name, value);
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
}

/// Asks for a body as it is.
pub(super) fn ask_for_plain(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Whether a body is sent as it is.
pub(super) fn is_plain(headers: &HeaderMap) -> bool {
    headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Bytes of all names and values.
pub(super) fn size(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}
