//! Finding secrets in what comes back, in the forms that servers put them, and taking them out.

use super::SecretSource;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use belljar_capability::SecretGrant;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// Takes secrets out of whatever a plugin, a model or a person may read.
///
/// A secret is found as it is, percent-encoded, in base64 at any place of a longer text, as
/// hexadecimal digits, and as a JSON string or HTML text has it. A server that means to tell a
/// secret can always say it in a form that nobody looks for: a secret is bound to its own host,
/// which knows it anyway.
pub struct Redactor {
    forms: AhoCorasick,
    /// What each form is replaced by.
    replacements: Vec<String>,
    /// The length of the longest form, in bytes.
    longest: usize,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// A redactor of secrets, each with its name. Nothing where there is none, or none that can
    /// be looked for.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut named = BTreeMap::new();
        for (name, value) in secrets {
            for form in forms(value) {
                named.entry(form).or_insert_with(|| format!("[secret {name}]"));
            }
        }
        let longest = named.keys().map(Vec::len).max()?;
        let forms = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(named.keys())
            .ok()?;
        Some(Self { forms, replacements: named.into_values().collect(), longest })
    }

    /// The redactor for what was granted, where it has values.
    pub(crate) fn of_grants(grants: &[SecretGrant], source: &SecretSource) -> Option<Self> {
        if grants.is_empty() {
            return None;
        }
        let values: Vec<_> = grants
            .iter()
            .filter_map(|grant| {
                let value = source(grant.from_env())?;
                // One that cannot be sent need not be found, and a short one is found everywhere.
                grant.header_value(&value).is_ok().then_some((grant.name(), value))
            })
            .collect();
        Self::new(values.iter().map(|(name, value)| (*name, value.as_str())))
    }

    /// A text without the secrets.
    pub fn text(&self, text: &str) -> String {
        self.forms.replace_all(text, &self.replacements)
    }

    /// Every string of a JSON value, names of members included, without the secrets.
    pub fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(members) => {
                let whole = std::mem::take(members);
                for (name, mut member) in whole {
                    self.json(&mut member);
                    members.insert(self.text(&name), member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Bytes without the secrets.
    pub fn bytes(&self, bytes: &[u8]) -> Vec<u8> {
        self.forms.replace_all_bytes(bytes, &self.replacements)
    }

    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        // A name can hold a secret as well. Such a field is left out.
        let telling: Vec<_> =
            headers.keys().filter(|name| self.forms.is_match(name.as_str())).cloned().collect();
        for name in telling {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            if self.forms.is_match(value.as_bytes()) {
                *value = HeaderValue::from_bytes(&self.bytes(value.as_bytes()))
                    .unwrap_or(HeaderValue::from_static("[secret]"));
            }
        }
    }

    /// A redactor of bytes that come in pieces.
    pub(super) fn stream(self: &Arc<Self>) -> Redacting {
        Redacting { redactor: Arc::clone(self), held: Vec::new() }
    }
}

/// Redacts a stream. What may be the beginning of a secret is held back until it is known.
pub(super) struct Redacting {
    redactor: Arc<Redactor>,
    held: Vec<u8>,
}

impl Redacting {
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Takes a piece, and gives what can be shown by now.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        // A match that begins before this place is known in its full length.
        let known = (self.held.len() + 1).saturating_sub(self.redactor.longest);
        self.release(known)
    }

    /// Gives what is left.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        self.release(self.held.len())
    }

    fn release(&mut self, known: usize) -> Vec<u8> {
        let Redactor { forms, replacements, .. } = &*self.redactor;
        let mut shown = Vec::with_capacity(known);
        let mut done = 0;
        for found in forms.find_iter(&self.held) {
            if found.start() >= known {
                break;
            }
            shown.extend_from_slice(&self.held[done..found.start()]);
            shown.extend_from_slice(replacements[found.pattern()].as_bytes());
            done = found.end();
        }
        if done < known {
            shown.extend_from_slice(&self.held[done..known]);
            done = known;
        }
        self.held.drain(..done);
        shown
    }
}

/// The ways to write a secret.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    if bytes.is_empty() {
        return Vec::new();
    }
    let mut forms: Vec<Vec<u8>> = vec![bytes.to_vec()];
    let mut text = |form: String| forms.push(form.into_bytes());
    // Everything escaped that some encoder escapes, each with digits of either case.
    for is_plain in [
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte),
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte),
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!*'()".contains(&byte),
        |byte: u8| byte.is_ascii_alphanumeric(),
        |_| false,
    ] {
        for digits in [Digits::Upper, Digits::Lower] {
            let escaped = percent(bytes, is_plain, digits);
            text(escaped.replace("%20", "+"));
            text(escaped);
        }
    }
    text(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
    text(bytes.iter().map(|byte| format!("{byte:02X}")).collect());
    let json = Value::from(value).to_string();
    let json = json.trim_start_matches('"');
    let json = json.strip_suffix('"').unwrap_or(json);
    text(json.replace('/', "\\/"));
    text(json.to_owned());
    // Encoders that make JSON fit to stand in HTML escape more.
    for (escaped, upper) in [("&<>", false), ("&<>'+", true)] {
        text(json.chars().fold(String::new(), |mut form, c| {
            match (escaped.contains(c), upper) {
                (true, false) => form.push_str(&format!("\\u{:04x}", u32::from(c))),
                (true, true) => form.push_str(&format!("\\u{:04X}", u32::from(c))),
                (false, _) => form.push(c),
            }
            form
        }));
    }
    let html = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for (quote, apostrophe) in [("&quot;", "&#39;"), ("&#34;", "&#x27;"), ("\"", "'")] {
        text(html.replace('"', quote).replace('\'', apostrophe));
    }
    for in_base64 in base64_forms(bytes) {
        text(in_base64.replace('+', "-").replace('/', "_"));
        text(in_base64.replace('+', "%2B").replace('/', "%2F"));
        text(in_base64);
    }
    forms.sort();
    forms.dedup();
    forms
}

#[derive(Clone, Copy)]
enum Digits {
    Upper,
    Lower,
}

fn percent(bytes: &[u8], is_plain: fn(u8) -> bool, digits: Digits) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    for &byte in bytes {
        match digits {
            _ if is_plain(byte) => text.push(char::from(byte)),
            Digits::Upper => text.push_str(&format!("%{byte:02X}")),
            Digits::Lower => text.push_str(&format!("%{byte:02x}")),
        }
    }
    text
}

/// What base64 has of these bytes, wherever they stand in what is encoded: the characters that
/// depend on them alone.
fn base64_forms(bytes: &[u8]) -> impl Iterator<Item = String> {
    (0..3).map(move |before| {
        let mut shifted = vec![0; before];
        shifted.extend_from_slice(bytes);
        let text = STANDARD.encode(&shifted);
        // The characters with bits of what stands before or behind are left out.
        let first = (before * 8).div_ceil(6);
        let last = shifted.len() * 8 / 6;
        text[first..last].to_owned()
    })
}

#[cfg(test)]
mod tests;
