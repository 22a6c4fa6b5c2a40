//! What a person is asked about a call: its reach, in words.

use crate::prepared::rule_for;
use belljar_capability::{Access, Approved, NetworkScope, World};
use belljar_types::{Always, Question, ToolDefinition};

/// Asks about a call in the world that it would get. A yes for good binds the bytes of the plugin,
/// so there is none for a plugin that nobody has said yes to.
pub(crate) fn question(
    tool: &ToolDefinition,
    world: &World,
    asks_for: &Approved,
    is_known: bool,
) -> Question {
    let reach: Vec<_> =
        network(world, asks_for).into_iter().chain(files(tool, world, asks_for)).collect();
    let reach = match reach.as_slice() {
        [] => "gets no files and no network".to_owned(),
        reach => reach.join(", and "),
    };
    let is_protected = !asks_for.protected.is_empty();
    let always = match &asks_for.host {
        Some(host) => Always::Host { plugin: tool.source.plugin.clone(), host: host.to_string() },
        None => Always::Rule { rule: rule_for(tool) },
    };
    Question {
        text: format!("`{}` of the plugin `{}` {reach}", tool.tool, tool.source.plugin),
        session: !is_protected,
        always: (is_known && !is_protected).then_some(always),
    }
}

fn network(world: &World, asks_for: &Approved) -> Option<String> {
    let hosts: Vec<_> = match &asks_for.host {
        Some(host) => vec![host.to_string()],
        None if world.network == NetworkScope::None => Vec::new(),
        None => world.granted.net.iter().map(ToString::to_string).collect(),
    };
    (!hosts.is_empty()).then(|| format!("may send requests to {}", hosts.join(", ")))
}

fn files(tool: &ToolDefinition, world: &World, asks_for: &Approved) -> Option<String> {
    let mounts = &world.granted.mounts;
    if !asks_for.protected.is_empty() {
        let paths: Vec<_> =
            asks_for.protected.iter().map(|path| format!("`{}`", path.as_str())).collect();
        return Some(format!("may write {}, which other programs obey", paths.join(", ")));
    }
    if mounts.is_empty() {
        return None;
    }
    let writes = world.can_write();
    let open = mounts.iter().filter(|mount| !writes || mount.access == Access::ReadWrite);
    let places: Vec<_> = open.map(|mount| format!("`{}`", mount.guest)).collect();
    let place = match mounts.as_slice() {
        [only] if only.guest.is_root() => "the workspace".to_owned(),
        _ => places.join(", "),
    };
    Some(match (writes, tool.hints.destructive) {
        (false, _) => format!("may read files in {place}"),
        (true, false) => format!("may change files in {place}"),
        (true, true) => format!("may change, overwrite and delete files in {place}"),
    })
}
