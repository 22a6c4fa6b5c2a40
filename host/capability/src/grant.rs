//! What a person grants a plugin, and what of it the plugin gets: the part that it asked for.

use crate::{
    DenyGlobError, DenyGlobs, GuestPath, GuestPathError, LimitSettings, Limits, Manifest, NetGrant,
    NetRequest, SecretGrant,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// How far a folder is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    Read,
    ReadWrite,
}

/// What a grant holds for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The bytes with this digest (`sha256:` and 64 hexadecimal digits), wherever they lie.
    Digest(String),
    /// Whatever lies at this path, for as long as somebody works on it.
    Dev(PathBuf),
}

/// A grant as a person wrote it: nothing is granted that is not here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PluginGrant {
    /// Nothing for a bundled plugin, which comes with the program.
    pub binding: Option<Binding>,
    pub read: Vec<FolderGrant>,
    pub write: Vec<FolderGrant>,
    /// Deny globs inside every folder.
    pub deny: Vec<String>,
    pub net: Vec<NetGrant>,
    /// Names of environment variables, each with a value, or with the host's own.
    pub env: BTreeMap<String, Option<String>>,
    pub secrets: Vec<SecretGrant>,
    pub limits: LimitSettings,
}

/// A folder as it is written: relative to the workspace, absolute, or from the home folder (`~/`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FolderGrant {
    pub host: String,
    /// Where it appears; nothing for a folder of the workspace, which appears where it lies.
    pub guest: Option<GuestPath>,
}

/// A folder of the host that a plugin gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Absolute.
    pub host: PathBuf,
    pub guest: GuestPath,
    pub access: Access,
}

/// What a plugin gets: the part of its grant that it asked for, or all of it where it has no
/// manifest. Shared by its calls.
#[derive(Clone, Debug, Default)]
pub struct Granted {
    /// No two at the same guest path.
    pub mounts: Vec<Mount>,
    pub deny: DenyGlobs,
    pub net: Vec<NetGrant>,
    /// What the manifest asks for; a request must be in this as well where there is a manifest.
    pub net_asked: Option<Vec<NetGrant>>,
    pub env: Vec<(String, String)>,
    pub secrets: Vec<SecretGrant>,
    /// All secrets that were granted, asked for or not: what its calls say is kept free of them.
    pub redacted: Vec<SecretGrant>,
    pub limits: Limits,
}

/// A grant that means nothing, or nothing safe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    #[error("the folder `{0}` lies outside the workspace: say where it appears, with `guest`")]
    NoGuestPath(String),
    #[error("the folder `{0}` is relative, and there is no workspace")]
    NoWorkspace(String),
    #[error("the folder `{0}` climbs with `..`: write it without")]
    Climbs(String),
    #[error("`{0}` starts in the home folder, which is not known: set `HOME`")]
    NoHome(String),
    #[error("two different folders are granted at `{0}`")]
    SamePlace(GuestPath),
    #[error(
        "`{0}` shows the system's own state instead of files, so it cannot be granted: grant a \
         folder of a disk"
    )]
    SystemState(String),
    #[error("`{0}` is the place of every call's own temporary folder: choose another guest path")]
    Temporary(GuestPath),
    #[error(transparent)]
    Deny(#[from] DenyGlobError),
    #[error(transparent)]
    GuestPath(#[from] GuestPathError),
}

/// Where every call has a temporary folder of its own.
pub const TEMPORARY: &str = "tmp";

/// What grants are resolved against.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Absolute.
    pub workspace: Option<&'a Path>,
    /// Absolute.
    pub home: Option<&'a Path>,
    /// The host's own environment, looked up by name.
    pub variable: fn(&str) -> Option<String>,
}

impl PluginGrant {
    /// Whether it gives anything at all beside the right to be offered.
    pub fn is_empty(&self) -> bool {
        let binding = self.binding.clone();
        *self == Self { binding, ..Self::default() }
    }

    /// Adds what another grant gives. Deny globs add up, of two limits the other's holds.
    pub fn extend(&mut self, other: Self) {
        fn add<T: PartialEq>(to: &mut Vec<T>, more: Vec<T>) {
            for one in more {
                if !to.contains(&one) {
                    to.push(one);
                }
            }
        }
        let Self { binding, read, write, deny, net, env, secrets, limits } = other;
        self.binding = binding.or(self.binding.take());
        add(&mut self.read, read);
        add(&mut self.write, write);
        add(&mut self.deny, deny);
        add(&mut self.net, net);
        add(&mut self.secrets, secrets);
        self.env.extend(env);
        self.limits.extend(limits);
    }

    /// What the plugin gets of this grant.
    ///
    /// # Errors
    ///
    /// The grant means nothing, or nothing safe; then the plugin gets nothing.
    pub fn resolve(
        &self,
        manifest: Option<&Manifest>,
        around: Surroundings<'_>,
        defaults: Limits,
    ) -> Result<Granted, GrantError> {
        let mounts = self.mounts(around)?;
        let variable = |(name, value): (&String, &Option<String>)| {
            let value = value.clone().or_else(|| (around.variable)(name))?;
            Some((name.clone(), value))
        };
        let all = Granted {
            mounts,
            deny: DenyGlobs::new(&self.deny)?,
            net: self.net.clone(),
            net_asked: None,
            env: self.env.iter().filter_map(variable).collect(),
            secrets: self.secrets.clone(),
            redacted: self.secrets.clone(),
            limits: defaults.with(&self.limits),
        };
        Ok(match manifest {
            Some(manifest) => all.asked_for(manifest),
            None => all,
        })
    }

    fn mounts(&self, around: Surroundings<'_>) -> Result<Vec<Mount>, GrantError> {
        let read = self.read.iter().map(|folder| (folder, Access::Read));
        let write = self.write.iter().map(|folder| (folder, Access::ReadWrite));
        let mut mounts: Vec<Mount> = Vec::new();
        for (folder, access) in read.chain(write) {
            let mount = folder.mount(access, around)?;
            match mounts.iter_mut().find(|other| other.guest == mount.guest) {
                Some(same) if same.host == mount.host => same.access = same.access.max(access),
                Some(_) => return Err(GrantError::SamePlace(mount.guest)),
                None => mounts.push(mount),
            }
        }
        mounts.sort_by(|a, b| a.guest.cmp(&b.guest));
        Ok(mounts)
    }
}

impl FolderGrant {
    fn mount(&self, access: Access, around: Surroundings<'_>) -> Result<Mount, GrantError> {
        let text = || self.host.clone();
        let host = if let Some(rest) =
            self.host.strip_prefix("~/").or((self.host == "~").then_some(""))
        {
            around.home.ok_or_else(|| GrantError::NoHome(text()))?.join(rest)
        } else if Path::new(&self.host).is_absolute() {
            PathBuf::from(&self.host)
        } else {
            let inside: GuestPath = self.host.parse().map_err(|_| GrantError::Climbs(text()))?;
            let workspace = around.workspace.ok_or_else(|| GrantError::NoWorkspace(text()))?;
            workspace.join(inside.as_str())
        };
        if host.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(GrantError::Climbs(text()));
        }
        // Collected again, a path loses its `.` and its trailing `/`.
        let host: PathBuf = host.components().collect();
        const STATE: [&str; 3] = ["/proc", "/sys", "/dev"];
        if STATE.iter().any(|state| host.starts_with(state)) {
            return Err(GrantError::SystemState(text()));
        }
        let in_workspace = || {
            let rest = host.strip_prefix(around.workspace?).ok()?;
            rest.to_str()?.parse::<GuestPath>().ok()
        };
        let guest = match &self.guest {
            Some(guest) => guest.clone(),
            None => in_workspace().ok_or_else(|| GrantError::NoGuestPath(text()))?,
        };
        if guest.as_str() == TEMPORARY || guest.as_str().starts_with("tmp/") {
            // A folder `tmp` of the workspace stays reachable under its parent.
            return Err(GrantError::Temporary(guest));
        }
        Ok(Mount { host, guest, access })
    }
}

impl Granted {
    /// Whether a request is granted and, where there is a manifest, asked for.
    pub fn covers(&self, request: &NetRequest) -> bool {
        let covered = |grants: &[NetGrant]| grants.iter().any(|grant| grant.covers(request));
        covered(&self.net) && self.net_asked.as_deref().is_none_or(covered)
    }

    /// The part of this that a manifest asks for.
    #[must_use]
    pub fn asked_for(self, manifest: &Manifest) -> Self {
        let wants = &manifest.wants;
        // Checked when the manifest was read, so none is left out here.
        let asked: Vec<(GuestPath, Access)> = wants
            .files
            .iter()
            .filter_map(|want| {
                let access = if want.write { Access::ReadWrite } else { Access::Read };
                Some((want.path.parse().ok()?, access))
            })
            .collect();
        let mounts = common(&self.mounts, &asked);
        let names: BTreeSet<_> = wants.env.iter().map(|want| &want.name).collect();
        Self {
            mounts,
            net: self.net,
            net_asked: Some(wants.net.iter().map(|want| want.host.clone()).collect()),
            env: self.env.into_iter().filter(|(name, _)| names.contains(name)).collect(),
            secrets: self
                .secrets
                .into_iter()
                .filter(|secret| {
                    wants.secrets.iter().any(|want| {
                        want.name == secret.name()
                            && want.host.eq_ignore_ascii_case(&secret.host().to_string())
                            && want.header.eq_ignore_ascii_case(secret.header())
                    })
                })
                .collect(),
            redacted: self.redacted,
            deny: self.deny,
            limits: self.limits,
        }
    }
}

/// What is both granted and asked for: at each place that either names, the narrower of the
/// deepest grant and the deepest wish above it.
fn common(granted: &[Mount], asked: &[(GuestPath, Access)]) -> Vec<Mount> {
    let places: BTreeSet<&GuestPath> = granted
        .iter()
        .map(|mount| &mount.guest)
        .chain(asked.iter().map(|(path, _)| path))
        .collect();
    let at = |place: &GuestPath| {
        let (mount, rest) = granted
            .iter()
            .filter_map(|mount| Some((mount, mount.guest.rest_of(place)?)))
            .max_by_key(|(mount, _)| mount.guest.as_str().len())?;
        let (_, wanted) = asked
            .iter()
            .filter(|(path, _)| path.rest_of(place).is_some())
            .max_by_key(|(path, _)| path.as_str().len())?;
        Some(Mount {
            // Joined to nothing, a path would end in `/`.
            host: if rest.is_empty() { mount.host.clone() } else { mount.host.join(rest) },
            guest: place.clone(),
            access: mount.access.min(*wanted),
        })
    };
    places.into_iter().filter_map(at).collect()
}
