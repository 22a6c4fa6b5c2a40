//! One grant in one line: what `--grant` takes, what `plugin grant` and `plugin revoke` take, and
//! what a refusal prints as the line that would allow exactly that.
//!
//! `PLUGIN.KEY=VALUE`, where KEY is `read`, `write`, `deny`, `net`, `env` or `limits.NAME`; the
//! longer `files.read`, `files.write` and `files.deny` of the configuration are taken too. A folder
//! is `HOST` or `HOST:GUEST`, and a `:` that is part of a path is written `\:`. What is displayed
//! reads back as the same value.

use crate::{
    DenyGlobError, DenyGlobs, FolderGrant, GuestPathError, Limit, LimitError, Limits, NetGrant,
    NetGrantError, PluginGrant, UnknownLimit, is_variable,
};
use std::{fmt, str::FromStr};

/// A grant to a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct GrantSpec {
    /// Without `=`, or it cannot be read back.
    pub plugin: String,
    pub part: GrantPart,
}

/// One thing of a [`PluginGrant`], as `KEY=VALUE`. Secrets have no such form: they are written into
/// the configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum GrantPart {
    Read(FolderGrant),
    Write(FolderGrant),
    Deny(String),
    Net(NetGrant),
    /// A name with its value, or with the host's own.
    Env {
        name: String,
        value: Option<String>,
    },
    /// In the limit's own unit.
    Limit(Limit, u64),
}

/// What a [`GrantPart`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantKey {
    Read,
    Write,
    Deny,
    Net,
    Env,
    Limit(Limit),
}

/// What is taken back from a plugin: one thing, or all of a kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Withdrawal {
    /// Of a variable or a limit the name counts, whatever its value.
    Part(GrantPart),
    All(GrantKey),
    Limits,
    Secret(String),
    Secrets,
}

/// A text that is no grant. Each says what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    #[error(
        "`{text}` is not a grant: write `PLUGIN.KEY=VALUE`, such as `weather.read=data` or \
         `weather.net=https://api.example.com`"
    )]
    Shape { text: String },
    #[error(
        "`{text}` is not a grant: write `KEY=VALUE`, such as `read=data` or \
         `net=https://api.example.com`"
    )]
    PartShape { text: String },
    #[error(
        "`{key}` cannot be granted: the keys are `read`, `write`, `deny`, `net`, `env` and \
         `limits.NAME`"
    )]
    Key { key: String },
    #[error(
        "the folder in `{text}` is empty or holds a control character: write `HOST` or `HOST:GUEST`"
    )]
    Folder { text: String },
    #[error("`{name}` is no variable's name: write `env=NAME` or `env=NAME=VALUE`")]
    Variable { name: String },
    #[error(
        "`{text}` is nothing that can be taken back: write a key such as `net` or `limits.memory`, \
         `KEY=VALUE` for one thing of it, `secrets` or `secrets=NAME`"
    )]
    Withdrawal { text: String },
    #[error(
        "a deny glob gives nothing, so it cannot be revoked: taking it out would open what it \
         closes; edit the configuration if that is what you want"
    )]
    WithdrawsDeny,
    #[error(transparent)]
    GuestPath(#[from] GuestPathError),
    #[error(transparent)]
    DenyGlob(#[from] DenyGlobError),
    #[error(transparent)]
    Net(#[from] NetGrantError),
    #[error(transparent)]
    Limit(#[from] LimitError),
    #[error(transparent)]
    UnknownLimit(#[from] UnknownLimit),
}

impl FromStr for GrantSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let shape = || SpecError::Shape { text: text.escape_debug().to_string() };
        let (name, value) = text.split_once('=').ok_or_else(shape)?;
        let (plugin, key) = split_key(name).ok_or_else(shape)?;
        if plugin.is_empty() || plugin.contains(char::is_control) {
            return Err(shape());
        }
        Ok(Self { plugin: plugin.to_owned(), part: GrantPart::read(key, value, text)? })
    }
}

impl fmt::Display for GrantSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plugin, part } = self;
        // After a plugin's name that ends in `.files` the short key would be read as the long one.
        let is_of_files = matches!(part.key(), GrantKey::Read | GrantKey::Write | GrantKey::Deny);
        let long = if is_of_files && plugin.ends_with(".files") { "files." } else { "" };
        write!(f, "{plugin}.{long}{part}")
    }
}

/// Plugin and key of what stands before the `=`. A plugin's name may hold dots.
fn split_key(name: &str) -> Option<(&str, &str)> {
    const LONG: [&str; 3] = [".files.read", ".files.write", ".files.deny"];
    const SHORT: [&str; 5] = [".read", ".write", ".deny", ".net", ".env"];
    for key in LONG.into_iter().chain(SHORT) {
        // `files.read` is the key `read` of the plugin `files`.
        if let Some(plugin) = name.strip_suffix(key).filter(|plugin| !plugin.is_empty()) {
            return Some((plugin, &name[plugin.len() + 1..]));
        }
    }
    if let Some(at) = name.rfind(".limits.") {
        return Some((&name[..at], &name[at + 1..]));
    }
    name.rsplit_once('.')
}

impl FromStr for GrantPart {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let shape = || SpecError::PartShape { text: text.escape_debug().to_string() };
        let (key, value) = text.split_once('=').ok_or_else(shape)?;
        Self::read(key, value, text)
    }
}

impl GrantPart {
    fn read(key: &str, value: &str, whole: &str) -> Result<Self, SpecError> {
        Ok(match key.parse()? {
            GrantKey::Read => Self::Read(read_folder(value, whole)?),
            GrantKey::Write => Self::Write(read_folder(value, whole)?),
            GrantKey::Deny => {
                DenyGlobs::new([value])?;
                Self::Deny(value.to_owned())
            }
            GrantKey::Net => Self::Net(value.parse()?),
            GrantKey::Env => {
                let (name, value) = match value.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (value, None),
                };
                if !is_variable(name) {
                    let name = name.escape_debug().to_string();
                    return Err(SpecError::Variable { name });
                }
                Self::Env { name: name.to_owned(), value }
            }
            GrantKey::Limit(limit) => Self::Limit(limit, limit.parse(value)?),
        })
    }

    /// The limit that is twice as high as the one that was met, or as often doubled as what was
    /// wanted takes; nothing where it cannot be as high.
    pub fn raised(limits: &Limits, limit: Limit, wanted: Option<u64>) -> Option<Self> {
        let mut value = limits.get(limit).max(1).checked_mul(2)?;
        while value < wanted.unwrap_or(0) {
            value = value.checked_mul(2)?;
        }
        limit.checked(value).ok().map(|value| Self::Limit(limit, value))
    }

    pub fn key(&self) -> GrantKey {
        match self {
            Self::Read(_) => GrantKey::Read,
            Self::Write(_) => GrantKey::Write,
            Self::Deny(_) => GrantKey::Deny,
            Self::Net(_) => GrantKey::Net,
            Self::Env { .. } => GrantKey::Env,
            Self::Limit(limit, _) => GrantKey::Limit(*limit),
        }
    }

    /// A grant of this alone.
    pub fn into_grant(self) -> PluginGrant {
        let mut grant = PluginGrant::default();
        match self {
            Self::Read(folder) => grant.read.push(folder),
            Self::Write(folder) => grant.write.push(folder),
            Self::Deny(glob) => grant.deny.push(glob),
            Self::Net(net) => grant.net.push(net),
            Self::Env { name, value } => drop(grant.env.insert(name, value)),
            Self::Limit(limit, value) => drop(grant.limits.insert(limit, value)),
        }
        grant
    }
}

impl PluginGrant {
    /// All that it gives, part by part, but for secrets.
    pub fn parts(&self) -> Vec<GrantPart> {
        let Self { binding: _, read, write, deny, net, env, secrets: _, limits } = self;
        let variables = env
            .iter()
            .map(|(name, value)| GrantPart::Env { name: name.clone(), value: value.clone() });
        (read.iter().cloned().map(GrantPart::Read))
            .chain(write.iter().cloned().map(GrantPart::Write))
            .chain(deny.iter().cloned().map(GrantPart::Deny))
            .chain(net.iter().cloned().map(GrantPart::Net))
            .chain(variables)
            .chain(limits.iter().map(|(limit, value)| GrantPart::Limit(*limit, *value)))
            .collect()
    }

    /// Takes something back. Says whether there was any of it.
    pub fn withdraw(&mut self, what: &Withdrawal) -> bool {
        fn clear<T>(list: &mut Vec<T>) -> bool {
            !std::mem::take(list).is_empty()
        }
        fn remove<T: PartialEq>(list: &mut Vec<T>, one: &T) -> bool {
            let before = list.len();
            list.retain(|other| other != one);
            list.len() < before
        }
        match what {
            Withdrawal::Part(GrantPart::Read(folder)) => remove(&mut self.read, folder),
            Withdrawal::Part(GrantPart::Write(folder)) => remove(&mut self.write, folder),
            Withdrawal::Part(GrantPart::Net(net)) => remove(&mut self.net, net),
            Withdrawal::Part(GrantPart::Env { name, .. }) => self.env.remove(name).is_some(),
            Withdrawal::Part(GrantPart::Limit(limit, _))
            | Withdrawal::All(GrantKey::Limit(limit)) => self.limits.remove(limit).is_some(),
            Withdrawal::All(GrantKey::Read) => clear(&mut self.read),
            Withdrawal::All(GrantKey::Write) => clear(&mut self.write),
            Withdrawal::All(GrantKey::Net) => clear(&mut self.net),
            Withdrawal::All(GrantKey::Env) => !std::mem::take(&mut self.env).is_empty(),
            Withdrawal::Limits => !std::mem::take(&mut self.limits).is_empty(),
            Withdrawal::Secrets => clear(&mut self.secrets),
            Withdrawal::Secret(name) => {
                let before = self.secrets.len();
                self.secrets.retain(|secret| secret.name() != name);
                self.secrets.len() < before
            }
            // It takes nothing away, so there is nothing to take back.
            Withdrawal::Part(GrantPart::Deny(_)) | Withdrawal::All(GrantKey::Deny) => false,
        }
    }
}

impl fmt::Display for GrantPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.key())?;
        match self {
            Self::Read(folder) | Self::Write(folder) => {
                escape(f, &folder.host)?;
                match &folder.guest {
                    Some(guest) => {
                        f.write_str(":")?;
                        escape(f, &guest.to_string())
                    }
                    None => Ok(()),
                }
            }
            Self::Deny(glob) => f.write_str(glob),
            Self::Net(net) => net.fmt(f),
            Self::Env { name, value: None } => f.write_str(name),
            Self::Env { name, value: Some(value) } => write!(f, "{name}={value}"),
            Self::Limit(limit, value) => f.write_str(&exact(*limit, *value)),
        }
    }
}

/// A limit's value as people read it where that is exact, else in its smallest unit.
fn exact(limit: Limit, value: u64) -> String {
    let shown = limit.show(value);
    if limit.parse(&shown) == Ok(value) { shown } else { format!("{value}B") }
}

/// A `\` before what is not special stands for itself, as people write it.
fn escape(f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
    f.write_str(&path.replace('\\', "\\\\").replace(':', "\\:"))
}

fn read_folder(text: &str, whole: &str) -> Result<FolderGrant, SpecError> {
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = chars.next_if(|next| c == '\\' && matches!(next, '\\' | ':'));
        match (c, escaped) {
            (_, Some(escaped)) => parts.last_mut().map_or((), |part| part.push(escaped)),
            (':', None) => parts.push(String::new()),
            (c, None) => parts.last_mut().map_or((), |part| part.push(c)),
        }
    }
    let wrong = || SpecError::Folder { text: whole.escape_debug().to_string() };
    let mut parts = parts.into_iter();
    let (host, guest) = match (parts.next(), parts.next(), parts.next()) {
        (Some(host), guest, None) => (host, guest),
        _ => return Err(wrong()),
    };
    if host.is_empty() || host.contains(char::is_control) || guest.as_deref() == Some("") {
        return Err(wrong());
    }
    let guest = guest.map(|guest| guest.parse()).transpose()?;
    Ok(FolderGrant { host, guest })
}

impl FromStr for GrantKey {
    type Err = SpecError;

    fn from_str(key: &str) -> Result<Self, SpecError> {
        Ok(match key {
            "read" | "files.read" => Self::Read,
            "write" | "files.write" => Self::Write,
            "deny" | "files.deny" => Self::Deny,
            "net" => Self::Net,
            "env" => Self::Env,
            key => match key.strip_prefix("limits.") {
                Some(limit) => Self::Limit(limit.parse()?),
                None => return Err(SpecError::Key { key: key.escape_debug().to_string() }),
            },
        })
    }
}

impl fmt::Display for GrantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Write => f.write_str("write"),
            Self::Deny => f.write_str("deny"),
            Self::Net => f.write_str("net"),
            Self::Env => f.write_str("env"),
            Self::Limit(limit) => write!(f, "limits.{limit}"),
        }
    }
}

impl FromStr for Withdrawal {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let read = match text.split_once('=') {
            None if text == "limits" => Self::Limits,
            None if text == "secrets" => Self::Secrets,
            None => match text.parse() {
                Ok(key) => Self::All(key),
                Err(SpecError::Key { .. }) => {
                    return Err(SpecError::Withdrawal { text: text.escape_debug().to_string() });
                }
                Err(error) => return Err(error),
            },
            Some(("secrets", name)) => Self::Secret(name.to_owned()),
            Some(_) => Self::Part(text.parse()?),
        };
        match read {
            Self::All(GrantKey::Deny) | Self::Part(GrantPart::Deny(_)) => {
                Err(SpecError::WithdrawsDeny)
            }
            read => Ok(read),
        }
    }
}

impl fmt::Display for Withdrawal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(part) => part.fmt(f),
            Self::All(key) => key.fmt(f),
            Self::Limits => f.write_str("limits"),
            Self::Secrets => f.write_str("secrets"),
            Self::Secret(name) => write!(f, "secrets={name}"),
        }
    }
}

#[cfg(test)]
mod tests;
