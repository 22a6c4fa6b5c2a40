//! Wants, grants and standings in words, for people. Everything goes through `visible`.

use crate::visible;
use belljar_capability::{Manifest, PluginGrant, Standing};

/// What a manifest asks for, one thing a line: what, and why where it says so.
pub(super) fn wants(manifest: &Manifest) -> Vec<String> {
    let wants = &manifest.wants;
    let because = |what: String, why: &str| {
        let why = if why.is_empty() { String::new() } else { format!(" ({})", visible::line(why)) };
        format!("{}{why}", visible::line(&what))
    };
    let files = wants.files.iter().map(|want| {
        let access = if want.write { "files.write" } else { "files.read" };
        let path = if want.path.is_empty() { "." } else { &want.path };
        because(format!("{access} {path}"), &want.why)
    });
    let net = wants.net.iter().map(|want| because(format!("net {}", want.host), &want.why));
    let env = wants.env.iter().map(|want| because(format!("env {}", want.name), &want.why));
    let secrets = wants.secrets.iter().map(|want| {
        because(format!("secret {} for {} in {}", want.name, want.host, want.header), &want.why)
    });
    let limits = wants
        .limits
        .iter()
        .map(|(name, want)| because(format!("limits.{name} {}", want.value), &want.why));
    files.chain(net).chain(env).chain(secrets).chain(limits).collect()
}

/// What a person granted, one thing a line.
pub(super) fn grants(grant: &PluginGrant) -> Vec<String> {
    let folder = |access: &str, host: &str, guest: Option<String>| {
        let at = guest.map(|guest| format!(" at {guest}")).unwrap_or_default();
        format!("{access} {}{at}", visible::line(host))
    };
    let guest = |folder: &belljar_capability::FolderGrant| {
        folder.guest.as_ref().map(|guest| format!("/{guest}"))
    };
    let read = grant.read.iter().map(|given| folder("files.read", &given.host, guest(given)));
    let write = grant.write.iter().map(|given| folder("files.write", &given.host, guest(given)));
    let deny = grant.deny.iter().map(|glob| format!("files.deny {}", visible::line(glob)));
    let net = grant.net.iter().map(|host| format!("net {host}"));
    let env = grant.env.keys().map(|name| format!("env {}", visible::line(name)));
    let secrets = grant
        .secrets
        .iter()
        .map(|secret| format!("secret {} for {}", visible::line(secret.name()), secret.host()));
    let limits =
        grant.limits.iter().map(|(limit, value)| format!("limits.{limit} {}", limit.show(*value)));
    read.chain(write).chain(deny).chain(net).chain(env).chain(secrets).chain(limits).collect()
}

/// A standing in a few words.
pub(super) fn standing(standing: &Standing) -> &'static str {
    match standing {
        Standing::Bundled => "bundled",
        Standing::Granted => "allowed",
        Standing::Dev => "allowed by its path, while you work on it",
        Standing::Named => "offered for this run, with no grants",
        Standing::Unseen => "not allowed yet",
        Standing::Changed { named: true, .. } => "changed; offered for this run, with no grants",
        Standing::Changed { named: false, .. } => "changed since it was allowed",
    }
}

/// A standing in one word, for scripts.
pub(super) fn standing_name(standing: &Standing) -> &'static str {
    match standing {
        Standing::Bundled => "bundled",
        Standing::Granted => "granted",
        Standing::Dev => "dev",
        Standing::Named => "named",
        Standing::Unseen => "unseen",
        Standing::Changed { .. } => "changed",
    }
}

/// A size as people read it.
pub(super) fn size(bytes: u64) -> String {
    belljar_capability::Limit::Memory.show(bytes)
}
