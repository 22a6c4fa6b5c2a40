//! The `[plugins.NAME]` tables: what a person granted, or what a workspace asks for.
//!
//! ```toml
//! [plugins.weather]
//! digest = "sha256:…"             # or `dev = "/path/weather.wasm"`; neither for a bundled plugin
//! files.read = ["data", { host = "~/sets", guest = "/sets" }]
//! files.write = ["out"]
//! files.deny = ["**/.env"]
//! net = ["https://api.open-meteo.com"]
//! env = ["TZ"]                    # or { TZ = "UTC", LANG = true }, where `true` is the host's own
//! secrets = [{ name = "KEY", from_env = "KEY", host = "api.open-meteo.com", header = "authorization" }]
//! limits = { deadline = "10s", memory = "64MiB" }
//! ```

use super::{
    ConfigError,
    document::{Located, Section},
};
use belljar_capability::{
    Binding, DenyGlobs, FolderGrant, GrantError, Limit, LimitSettings, Limits, NetGrant,
    PluginGrant, SecretGrant, Surroundings, UnknownLimit, is_variable,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use toml::de::DeValue;

/// Whose tables they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A person's: they give.
    Granted,
    /// A workspace's: they ask, and what nobody may ask for in a file is an error.
    Requested,
}

const KEYS: [&str; 7] = ["digest", "dev", "files", "net", "env", "secrets", "limits"];

/// Reads the tables by plugin name.
pub(super) fn read(
    section: &Section<'_>,
    role: Role,
) -> Result<BTreeMap<String, PluginGrant>, ConfigError> {
    let plugin = |name: Located<&str>| {
        if name.value.is_empty() || name.value.contains(char::is_control) {
            let problem = "a plugin's name is that of its file, without `.wasm`".to_owned();
            return Err(ConfigError::Value { at: name.at, problem });
        }
        let Some(table) = section.section(name.value)? else { return Ok(None) };
        let grant = grant(&table, name.value, role)?;
        check(&grant).map_err(|error| ConfigError::Value {
            at: name.at,
            problem: format!("`{}`: {error}", table.name),
        })?;
        Ok(Some((name.value.to_owned(), grant)))
    };
    section.names().map(plugin).filter_map(Result::transpose).collect()
}

fn grant(section: &Section<'_>, plugin: &str, role: Role) -> Result<PluginGrant, ConfigError> {
    section.only(&KEYS)?;
    if role == Role::Requested {
        const ONLY_A_PERSON: &str = "it can ask for files, hosts, names of variables and limits, \
                                     and a person grants them";
        for key in ["digest", "dev", "secrets"] {
            refuse(section, key, ONLY_A_PERSON)?;
        }
    }
    let mut grant = PluginGrant {
        binding: binding(section, plugin)?,
        net: net(section)?,
        env: env(section, role)?,
        secrets: secrets(section)?,
        ..PluginGrant::default()
    };
    if let Some(files) = section.section("files")? {
        files.only(&["read", "write", "deny"])?;
        grant.read = folders(&files, "read")?;
        grant.write = folders(&files, "write")?;
        grant.deny = deny(&files)?;
    }
    if let Some(section) = section.section("limits")? {
        grant.limits = limits(&section)?;
    }
    Ok(grant)
}

/// A key that is there and must not be.
pub(super) fn refuse(
    section: &Section<'_>,
    key: &str,
    why: &'static str,
) -> Result<(), ConfigError> {
    match section.value(key) {
        None => Ok(()),
        Some(Located { at, .. }) => {
            Err(ConfigError::NotTheWorkspaces { at, key: section.dotted(key), why })
        }
    }
}

fn binding(section: &Section<'_>, plugin: &str) -> Result<Option<Binding>, ConfigError> {
    let wrong = |at, problem: String| Err(ConfigError::Value { at, problem });
    match (section.string("digest")?, section.string("dev")?) {
        (None, None) => Ok(None),
        (Some(_), Some(dev)) => wrong(
            dev.at,
            format!("`{}` has both `digest` and `dev`: keep the one that is meant", section.name),
        ),
        (Some(digest), None) => match is_digest(digest.value) {
            true => Ok(Some(Binding::Digest(digest.value.to_owned()))),
            false => wrong(
                digest.at,
                format!(
                    "`{}` is `sha256:` and 64 hexadecimal digits, as `belljar plugin grant \
                     {plugin}` writes it",
                    section.dotted("digest")
                ),
            ),
        },
        (None, Some(dev)) => {
            let path = Path::new(dev.value);
            let is_its_file =
                path.file_name().is_some_and(|name| *name == *format!("{plugin}.wasm"));
            if path.is_absolute() && is_its_file {
                return Ok(Some(Binding::Dev(path.to_owned())));
            }
            wrong(
                dev.at,
                format!("`{}` is the absolute path of a `{plugin}.wasm`", section.dotted("dev")),
            )
        }
    }
}

/// Whether a text is a digest as it is written everywhere.
pub(super) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn folders(files: &Section<'_>, key: &str) -> Result<Vec<FolderGrant>, ConfigError> {
    const EXPECTED: &str = "an array of folders, each a string or `{ host = …, guest = … }`";
    let read = |Located { value, at }: Located<&DeValue<'_>>| {
        let wrong = |problem: String| ConfigError::Value { at: at.clone(), problem };
        let folder = match value {
            DeValue::String(host) => FolderGrant { host: host.to_string(), guest: None },
            DeValue::Table(table) => {
                let table = files.element(key, table);
                table.only(&["host", "guest"])?;
                let host = table.string("host")?.ok_or_else(|| {
                    wrong(format!("`{}` has no `host`: name the folder", table.name))
                })?;
                let guest = match table.string("guest")? {
                    Some(guest) => Some(guest.value.parse().map_err(
                        |error: belljar_capability::GuestPathError| wrong(error.to_string()),
                    )?),
                    None => None,
                };
                FolderGrant { host: host.value.to_owned(), guest }
            }
            other => return Err(files.wrong_type(at, key, EXPECTED, other)),
        };
        if folder.host.is_empty() || folder.host.contains(char::is_control) {
            let key = files.dotted(key);
            return Err(wrong(format!("`{key}` names a folder: write `.` for the workspace")));
        }
        Ok(folder)
    };
    files.items(key, EXPECTED)?.into_iter().map(read).collect()
}

fn deny(files: &Section<'_>) -> Result<Vec<String>, ConfigError> {
    let read = |glob: Located<&str>| match DenyGlobs::new([glob.value]) {
        Ok(_) => Ok(glob.value.to_owned()),
        Err(error) => Err(ConfigError::Value { at: glob.at, problem: error.to_string() }),
    };
    files.strings("deny")?.into_iter().map(read).collect()
}

fn net(section: &Section<'_>) -> Result<Vec<NetGrant>, ConfigError> {
    let read = |text: Located<&str>| {
        text.value.parse().map_err(|error: belljar_capability::NetGrantError| ConfigError::Value {
            at: text.at,
            problem: error.to_string(),
        })
    };
    section.strings("net")?.into_iter().map(read).collect()
}

/// Names in an array, or names with values in a table.
pub(super) fn env(
    section: &Section<'_>,
    role: Role,
) -> Result<BTreeMap<String, Option<String>>, ConfigError> {
    let name = |name: &str, at| match is_variable(name) {
        true => Ok(name.to_owned()),
        false => Err(ConfigError::Value {
            at,
            problem: format!(
                "`{}` names variables: letters, digits and `_`, not a digit first",
                section.dotted("env")
            ),
        }),
    };
    let Some(Located { value, at }) = section.value("env") else { return Ok(BTreeMap::new()) };
    let values = match value {
        DeValue::Array(_) => {
            let names = section.strings("env")?.into_iter();
            return names.map(|text| Ok((name(text.value, text.at)?, None))).collect();
        }
        DeValue::Table(_) if role == Role::Requested => {
            let why = "it asks for variables by name, in an array; their values are a person's";
            return Err(ConfigError::NotTheWorkspaces { at, key: section.dotted("env"), why });
        }
        DeValue::Table(_) => section.section("env")?,
        other => {
            const EXPECTED: &str = "an array of names or a table of names and values";
            return Err(section.wrong_type(at, "env", EXPECTED, other));
        }
    };
    let Some(values) = values else { return Ok(BTreeMap::new()) };
    let read = |key: Located<&str>| {
        let name = name(key.value, key.at)?;
        let Some(Located { value, at }) = values.value(key.value) else { return Ok((name, None)) };
        match value {
            DeValue::String(value) if !value.contains('\0') => Ok((name, Some(value.to_string()))),
            DeValue::Boolean(true) => Ok((name, None)),
            other => {
                const EXPECTED: &str = "a string, or `true` for the host's own value";
                Err(values.wrong_type(at, key.value, EXPECTED, other))
            }
        }
    };
    values.names().map(read).collect()
}

fn secrets(section: &Section<'_>) -> Result<Vec<SecretGrant>, ConfigError> {
    const EXPECTED: &str = "an array of tables";
    const KEYS: [&str; 5] = ["name", "from_env", "host", "header", "format"];
    let read = |Located { value, at }: Located<&DeValue<'_>>| {
        let DeValue::Table(table) = value else {
            return Err(section.wrong_type(at, "secrets", EXPECTED, value));
        };
        let table = section.element("secrets", table);
        table.only(&KEYS)?;
        let text = |key| {
            let found = table.string(key)?.map(|text| text.value);
            found.ok_or_else(|| ConfigError::Value {
                at: at.clone(),
                problem: format!("a secret of `{}` has no `{key}`: write one", table.name),
            })
        };
        let format = table.string("format")?.map_or("{}", |format| format.value);
        SecretGrant::new(text("name")?, text("from_env")?, text("host")?, text("header")?, format)
            .map_err(|error| ConfigError::Value { at: at.clone(), problem: error.to_string() })
    };
    section.items("secrets", EXPECTED)?.into_iter().map(read).collect()
}

fn limits(section: &Section<'_>) -> Result<LimitSettings, ConfigError> {
    let read = |key: Located<&str>| {
        let wrong = |problem: String| ConfigError::Value { at: key.at.clone(), problem };
        let limit: Limit =
            key.value.parse().map_err(|error: UnknownLimit| wrong(error.to_string()))?;
        let Some(Located { value, at }) = section.value(key.value) else {
            return Err(wrong(format!("`{}` has no value", section.dotted(key.value))));
        };
        let value = match value {
            DeValue::String(text) => limit.parse(text),
            DeValue::Integer(number) if limit.is_number() => {
                let number = u64::from_str_radix(number.as_str(), number.radix());
                limit.checked(number.unwrap_or(u64::MAX))
            }
            other => {
                let (key, expected) = (key.value, limit.expected());
                return Err(section.wrong_type(at, key, expected, other));
            }
        };
        value.map(|value| (limit, value)).map_err(|error| wrong(error.to_string()))
    };
    section.names().map(read).collect()
}

/// Finds what means nothing in any workspace. What depends on the workspace and the home folder
/// shows where the plugin is loaded.
fn check(grant: &PluginGrant) -> Result<(), GrantError> {
    let somewhere = PathBuf::from("/somewhere");
    let around =
        Surroundings { workspace: Some(&somewhere), home: Some(&somewhere), variable: |_| None };
    match grant.resolve(None, around, Limits::default()) {
        Err(
            GrantError::NoGuestPath(_)
            | GrantError::SamePlace(_)
            | GrantError::NoWorkspace(_)
            | GrantError::NoHome(_),
        )
        | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}
