//! Secrets that the host adds to requests, for one host each.

use super::{Host, NetRequest, RequestError, Scheme, request::split_authority};
use serde::{Deserialize, Serialize};

/// A secret, bound to a host and to the header that it goes in. The value itself is never part of
/// it: it is read from the host's environment when a call needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SecretText", into = "SecretText")]
pub struct SecretGrant {
    name: String,
    from_env: String,
    host: Host,
    port: Option<u16>,
    header: String,
    format: String,
}

/// A secret that cannot be granted, or a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error(
        "`{name}` is not a name: write letters, digits and `_`, beginning with a letter, as in \
         `WEATHER_KEY`"
    )]
    Name { name: String },
    #[error("`{host}` is not a host that a secret can be bound to: {reason}")]
    Host { host: String, reason: RequestError },
    #[error("`{header}` is not a header that a secret can go in: write one as `authorization`")]
    Header { header: String },
    #[error(
        "`{format}` does not say where the secret goes: write it with one `{{}}`, as in `Bearer {{}}`"
    )]
    Format { format: String },
    #[error(
        "the secret `{name}` is shorter than {MINIMUM} bytes, too short to be found again in what \
         comes back: use a longer one"
    )]
    Short { name: String },
    #[error(
        "the secret `{name}` holds characters that no header takes: use visible ASCII characters"
    )]
    Value { name: String },
}

/// The shortest value, in bytes.
const MINIMUM: usize = 8;

/// Headers that are not a guest's or a secret's to set: they frame the message or speak about the
/// connection, which are the host's.
const FORBIDDEN: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The form in configuration.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretText {
    name: String,
    from_env: String,
    host: String,
    header: String,
    #[serde(default = "bare")]
    format: String,
}

fn bare() -> String {
    "{}".to_owned()
}

impl SecretGrant {
    /// Makes a grant from the texts of a configuration. The host is `host[:port]`, exactly one;
    /// without a port it is the default one of the scheme.
    ///
    /// # Errors
    ///
    /// A text that is not what it should be; the message says what to write.
    pub fn new(
        name: &str,
        from_env: &str,
        host: &str,
        header: &str,
        format: &str,
    ) -> Result<Self, SecretError> {
        for name in [name, from_env] {
            if !is_name(name) {
                return Err(SecretError::Name { name: name.to_owned() });
            }
        }
        let (bound_to, port) = split_authority(host)
            .map_err(|reason| SecretError::Host { host: host.to_owned(), reason })?;
        let lower = header.to_ascii_lowercase();
        if !is_header(&lower) || is_forbidden_header(&lower) {
            return Err(SecretError::Header { header: header.to_owned() });
        }
        if format.matches("{}").count() != 1 || !is_visible(format) {
            return Err(SecretError::Format { format: format.to_owned() });
        }
        Ok(Self {
            name: name.to_owned(),
            from_env: from_env.to_owned(),
            host: bound_to,
            port,
            header: lower,
            format: format.to_owned(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The variable of the host's environment that holds the value.
    pub fn from_env(&self) -> &str {
        &self.from_env
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// In lower case.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Whether the secret goes with a request: to exactly its host and port, over https; over
    /// http only where that never leaves the machine.
    pub fn goes_with(&self, request: &NetRequest) -> bool {
        let is_safe = match request.scheme() {
            Scheme::Https => true,
            Scheme::Http => self.host.address().is_some_and(|address| address.is_loopback()),
        };
        let port = self.port.unwrap_or(request.scheme().default_port());
        is_safe && *request.host() == self.host && request.port() == port
    }

    /// The header's value for a secret.
    ///
    /// # Errors
    ///
    /// The secret is too short to be redacted, or no header can hold it. The message never has it.
    pub fn header_value(&self, secret: &str) -> Result<String, SecretError> {
        if secret.len() < MINIMUM {
            return Err(SecretError::Short { name: self.name.clone() });
        }
        if !is_visible(secret) || secret != secret.trim() {
            return Err(SecretError::Value { name: self.name.clone() });
        }
        Ok(self.format.replacen("{}", secret, 1))
    }
}

/// Whether a header is the host's own, by its name in lower case.
pub fn is_forbidden_header(name: &str) -> bool {
    FORBIDDEN.contains(&name) || name.starts_with(':') || name.starts_with("proxy-")
}

fn is_name(text: &str) -> bool {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 100
        && text.chars().all(of_a_name)
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_header(text: &str) -> bool {
    let of_a_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    (1..=100).contains(&text.len()) && text.chars().all(of_a_token)
}

fn is_visible(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
}

impl TryFrom<SecretText> for SecretGrant {
    type Error = SecretError;

    fn try_from(text: SecretText) -> Result<Self, SecretError> {
        Self::new(&text.name, &text.from_env, &text.host, &text.header, &text.format)
    }
}

impl From<SecretGrant> for SecretText {
    fn from(grant: SecretGrant) -> Self {
        let SecretGrant { name, from_env, host, port, header, format } = grant;
        let host = match port {
            Some(port) => format!("{host}:{port}"),
            None => host.to_string(),
        };
        Self { name, from_env, host, header, format }
    }
}
