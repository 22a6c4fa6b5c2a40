//! What the sandbox offers at one time: made whole, then published at once. A call that is under
//! way keeps the plugin that it was prepared with.

use crate::{
    catalog::{Found, PluginInfo},
    plugin::Plugin,
    toolbox::{Policy, subject},
};
use belljar_capability::{Standing, is_offered};
use belljar_types::ToolDefinition;
use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

pub(crate) struct Snapshot {
    /// From 0, one more for each that differs from the one before.
    pub(crate) generation: u64,
    /// Every tool, offered or not, by the model's name for it.
    pub(crate) tools: HashMap<Arc<str>, (Arc<Plugin>, Arc<ToolDefinition>)>,
    pub(crate) offered: Arc<[ToolDefinition]>,
    pub(crate) infos: Arc<[PluginInfo]>,
    problems: Vec<String>,
}

impl Snapshot {
    pub(crate) fn new(generation: u64, found: Found, policy: &Policy) -> Self {
        let Found { plugins, infos, problems } = found;
        let mut tools = HashMap::new();
        for plugin in &plugins {
            for tool in &plugin.tools {
                tools.insert(Arc::clone(&tool.name), (Arc::clone(plugin), Arc::clone(tool)));
            }
        }
        let mut offered: Vec<ToolDefinition> = tools
            .values()
            .filter(|(plugin, tool)| {
                plugin.standing.is_offered()
                    && is_offered(policy.mode, &policy.rules, &subject(plugin, tool))
            })
            .map(|(_, tool)| ToolDefinition::clone(tool))
            .collect();
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        Self { generation, tools, offered: offered.into(), infos: infos.into(), problems }
    }

    /// The tools of plugins that may be offered, which the mode or a rule denies.
    pub(crate) fn withheld(&self) -> Vec<Arc<ToolDefinition>> {
        let offered: HashSet<_> = self.offered.iter().map(|tool| &tool.name).collect();
        let mut withheld: Vec<_> = self
            .tools
            .values()
            .filter(|(plugin, tool)| plugin.standing.is_offered() && !offered.contains(&tool.name))
            .map(|(_, tool)| Arc::clone(tool))
            .collect();
        withheld.sort_by(|a, b| a.name.cmp(&b.name));
        withheld
    }

    /// What a person should know about how things stand, besides files that were not taken.
    pub(crate) fn notices(&self) -> Vec<String> {
        let taken = self.infos.iter().filter(|info| info.skipped.is_none());
        let about =
            taken.filter_map(|info| if needs_a_person(info) { Some(told(info)) } else { None });
        self.problems.iter().cloned().chain(about).collect()
    }

    /// Whether calls go to the same plugins.
    pub(crate) fn offers_the_same(&self, other: &Snapshot) -> bool {
        let same = |(name, (plugin, _)): (&Arc<str>, &(Arc<Plugin>, Arc<ToolDefinition>))| {
            other.tools.get(name).is_some_and(|(known, _)| Arc::ptr_eq(known, plugin))
        };
        self.tools.len() == other.tools.len() && self.tools.iter().all(same)
    }

    /// What a person should know about how this differs from the one before; nothing where it does
    /// not.
    pub(crate) fn news_since(&self, before: &Snapshot) -> Vec<String> {
        let known = |info: &PluginInfo, among: &[PluginInfo]| {
            among.iter().find(|other| other.path == info.path && other.name == info.name).cloned()
        };
        let mut news: Vec<String> =
            self.problems.iter().filter(|now| !before.problems.contains(now)).cloned().collect();
        for info in &*self.infos {
            match known(info, &before.infos) {
                Some(earlier) if is_same(&earlier, info) => {}
                Some(earlier) if is_plain_replacement(&earlier, info) => news.push(format!(
                    "the plugin `{}` was replaced: the next call uses the new file",
                    info.name
                )),
                _ => news.push(told(info)),
            }
        }
        for info in &*before.infos {
            if known(info, &self.infos).is_none() && !info.tools.is_empty() {
                news.push(format!("the plugin `{}` is gone, and its tools with it", info.name));
            }
        }
        news
    }
}

fn is_same(one: &PluginInfo, other: &PluginInfo) -> bool {
    let reason = |info: &PluginInfo| info.skipped.as_ref().map(ToString::to_string);
    one.digest == other.digest
        && one.standing == other.standing
        && one.serves_earlier == other.serves_earlier
        && reason(one) == reason(other)
}

fn is_plain_replacement(earlier: &PluginInfo, info: &PluginInfo) -> bool {
    earlier.is_offered() && info.is_offered() && !needs_a_person(info)
}

/// Whether something about it waits for a person.
fn needs_a_person(info: &PluginInfo) -> bool {
    let has_grants = info.standing.as_ref().is_some_and(Standing::has_grants);
    let is_named = matches!(info.standing, Some(Standing::Named));
    info.grant_problem.is_some() || !(has_grants || is_named)
}

/// One plugin or file in one sentence.
fn told(info: &PluginInfo) -> String {
    let name = &info.name;
    if let Some(reason) = &info.skipped {
        let path = info.path.as_deref().unwrap_or(Path::new(name)).display();
        let reason = crate::toolbox::chain(&**reason);
        let earlier = if info.serves_earlier { "; what it was before still serves" } else { "" };
        return format!("no plugin: `{path}` {reason}{earlier}");
    }
    if let Some(problem) = &info.grant_problem {
        return format!("the plugin `{name}` does not get all that its grant says: {problem}");
    }
    match &info.standing {
        Some(Standing::Unseen) => format!(
            "the plugin `{name}` is not allowed yet, so its tools are not offered: look at it with \
             `belljar plugin inspect {name}`, then allow it with `belljar plugin grant {name}`"
        ),
        Some(Standing::Changed { from, named }) => {
            let now = info.digest.as_deref().unwrap_or_default();
            let offered = if *named { "" } else { " and its tools are not offered" };
            format!(
                "the plugin `{name}` has changed since it was allowed (`{}` is now `{}`), so its \
                 grants are suspended{offered}: look at it with `belljar plugin inspect {name}`, \
                 then allow it with `belljar plugin grant {name}`",
                short(from),
                short(now)
            )
        }
        _ => {
            let tools: Vec<_> = info.tools.iter().map(|tool| format!("`{}`", tool.name)).collect();
            format!("the plugin `{name}` is there: {}", tools.join(", "))
        }
    }
}

/// Enough of a digest to tell two apart by eye.
fn short(digest: &str) -> &str {
    digest.get(.."sha256:".len() + 12).unwrap_or(digest)
}
