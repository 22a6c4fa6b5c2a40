//! Editing the text of the configuration: only what a change is about, and the rest byte for byte.
//!
//! Works from two readings of the file, before and after; whether the result reads back as the
//! second one is for the caller to check.

use crate::config::{Config, WorkspaceSettings};
use belljar_capability::{Binding, FolderGrant, Limit, PluginGrant, SecretGrant};
use std::{collections::BTreeMap, path::Path};
use toml_edit::{Array, DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value};

/// The text that says what `after` says; nothing where it has a shape that cannot be edited.
pub(super) fn edit(text: &str, before: &Config, after: &Config) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    // Comments alone belong to nothing, and would end up behind what is added.
    let comments = document.is_empty() && !text.trim().is_empty();
    if comments {
        document = DocumentMut::new();
    }
    let root = document.as_table_mut();
    for (name, granted) in &before.plugins {
        match after.plugins.get(name) {
            None => remove_in(root, "plugins", name)?,
            Some(now) if now != granted => plugin(entry(root, "plugins", name)?, granted, now)?,
            Some(_) => {}
        }
    }
    for (name, now) in after.plugins.iter().filter(|(name, _)| !before.plugins.contains_key(*name))
    {
        plugin(entry(root, "plugins", name)?, &PluginGrant::default(), now)?;
    }
    let none = WorkspaceSettings::default();
    for (path, now) in &after.workspaces {
        let settings = before.workspaces.get(path).unwrap_or(&none);
        if settings != now {
            let name = workspace_name(root, path)?;
            workspace(entry(root, "workspaces", &name)?, settings, now)?;
        }
    }
    Some(if comments { format!("{}\n\n{document}", text.trim_end()) } else { document.to_string() })
}

/// The table `[kind.name]`, made where it is missing.
fn entry<'a>(root: &'a mut Table, kind: &str, name: &str) -> Option<&'a mut dyn TableLike> {
    if !root.contains_key(kind) {
        let mut all = Table::new();
        all.set_implicit(true);
        root.insert(kind, Item::Table(all));
    }
    let all = root.get_mut(kind)?.as_table_like_mut()?;
    if !all.contains_key(name) {
        all.insert(name, Item::Table(Table::new()));
    }
    all.get_mut(name)?.as_table_like_mut()
}

fn remove_in(root: &mut Table, kind: &str, name: &str) -> Option<()> {
    root.get_mut(kind)?.as_table_like_mut()?.remove(name).map(drop)
}

/// The name that a folder has in the file, where it is there under another spelling.
fn workspace_name(root: &Table, path: &Path) -> Option<String> {
    let named = root.get("workspaces").and_then(Item::as_table_like).and_then(|all| {
        all.iter().map(|(name, _)| name.to_owned()).find(|name| Path::new(name) == path)
    });
    named.or_else(|| path.to_str().map(str::to_owned))
}

fn plugin(table: &mut dyn TableLike, before: &PluginGrant, after: &PluginGrant) -> Option<()> {
    if before.binding != after.binding {
        let (digest, dev) = match &after.binding {
            Some(Binding::Digest(digest)) => (Some(digest.as_str()), None),
            Some(Binding::Dev(path)) => (None, Some(path.to_str()?)),
            None => (None, None),
        };
        for (key, value) in [("digest", digest), ("dev", dev)] {
            match value {
                Some(value) => set(table, key, value.into()),
                None => drop(table.remove(key)),
            }
        }
    }
    let (read, write) = ((&before.read, &after.read), (&before.write, &after.write));
    if read.0 != read.1 || write.0 != write.1 || before.deny != after.deny {
        if !table.contains_key("files") {
            let mut files = Table::new();
            files.set_dotted(true);
            table.insert("files", Item::Table(files));
        }
        let files = table.get_mut("files")?.as_table_like_mut()?;
        list(files, "read", read.0, read.1, folder)?;
        list(files, "write", write.0, write.1, folder)?;
        list(files, "deny", &before.deny, &after.deny, |glob| glob.as_str().into())?;
        if files.is_empty() {
            table.remove("files");
        }
    }
    list(table, "net", &before.net, &after.net, |net| net.to_string().into())?;
    list(table, "secrets", &before.secrets, &after.secrets, secret)?;
    env(table, &before.env, &after.env)?;
    limits(table, &before.limits, &after.limits)
}

fn workspace(
    table: &mut dyn TableLike,
    before: &WorkspaceSettings,
    after: &WorkspaceSettings,
) -> Option<()> {
    list(table, "allow", &before.allow, &after.allow, |rule| rule.text().into())?;
    match &after.trusted {
        Some(digest) => set(table, "trusted", digest.as_str().into()),
        None => drop(table.remove("trusted")),
    }
    Some(())
}

/// Sets a value; what a person wrote behind it stays.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

/// Turns an array that says `before` into one that says `after`: elements that are in both stay as
/// they are written.
fn list<T: PartialEq>(
    table: &mut dyn TableLike,
    key: &str,
    before: &[T],
    after: &[T],
    write: impl Fn(&T) -> Value,
) -> Option<()> {
    if before == after {
        return Some(());
    }
    if !table.contains_key(key) {
        table.insert(key, Item::Value(Array::new().into()));
    }
    if table.get(key).is_some_and(Item::is_array_of_tables) {
        // `[[…]]` becomes an array of inline tables, under a key without its brackets.
        let mut item = table.remove(key)?;
        item.make_value();
        table.insert(key, item);
    }
    let array = table.get_mut(key)?.as_array_mut()?;
    for (at, element) in before.iter().enumerate().rev() {
        if !after.contains(element) {
            array.remove(at);
        }
    }
    for element in after.iter().filter(|element| !before.contains(element)) {
        array.push(write(element));
    }
    // The blank behind the comma of what stood before it.
    if let Some(first) = array.get_mut(0)
        && before.first().is_some_and(|first| !after.contains(first))
        && first.decor().prefix().and_then(RawString::as_str) == Some(" ")
    {
        first.decor_mut().set_prefix("");
    }
    if array.is_empty() {
        table.remove(key);
    }
    Some(())
}

fn folder(folder: &FolderGrant) -> Value {
    match &folder.guest {
        None => folder.host.as_str().into(),
        Some(guest) => {
            inline([("host", folder.host.as_str().into()), ("guest", guest.to_string().into())])
        }
    }
}

fn secret(secret: &SecretGrant) -> Value {
    // The form that the reader takes is the one that the type serializes to.
    let Ok(serde_json::Value::Object(texts)) = serde_json::to_value(secret) else {
        return InlineTable::new().into();
    };
    let text = |(key, value): (&String, &serde_json::Value)| {
        Some((key.clone(), Value::from(value.as_str()?)))
    };
    InlineTable::from_iter(texts.iter().filter_map(text)).into()
}

fn inline<const N: usize>(values: [(&str, Value); N]) -> Value {
    InlineTable::from_iter(values).into()
}

type Variables = BTreeMap<String, Option<String>>;

fn env(table: &mut dyn TableLike, before: &Variables, after: &Variables) -> Option<()> {
    if before == after {
        return Some(());
    }
    let has_values = after.values().any(Option::is_some);
    let is_table = table.get("env").is_some_and(Item::is_table_like);
    if !is_table && !has_values {
        let names = |variables: &Variables| variables.keys().cloned().collect::<Vec<_>>();
        // The file's order is not the map's.
        let written = table.get("env").and_then(Item::as_array).map(|array| {
            array.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        });
        let before = written.unwrap_or_default();
        return list(table, "env", &before, &names(after), |name| name.as_str().into());
    }
    if !is_table {
        let names = before.iter().map(|(name, value)| (name.as_str(), variable(value)));
        table.insert("env", Item::Value(InlineTable::from_iter(names).into()));
    }
    map(table, "env", before, after, variable)
}

fn variable(value: &Option<String>) -> Value {
    match value {
        Some(value) => value.as_str().into(),
        None => true.into(),
    }
}

fn limits(
    table: &mut dyn TableLike,
    before: &BTreeMap<Limit, u64>,
    after: &BTreeMap<Limit, u64>,
) -> Option<()> {
    if before == after {
        return Some(());
    }
    if !table.contains_key("limits") {
        table.insert("limits", Item::Value(InlineTable::new().into()));
    }
    let named = |limits: &BTreeMap<Limit, u64>| -> BTreeMap<String, (Limit, u64)> {
        let named = |(limit, value): (&Limit, &u64)| (limit.name().to_owned(), (*limit, *value));
        limits.iter().map(named).collect()
    };
    map(table, "limits", &named(before), &named(after), |(limit, value)| {
        limit_value(*limit, *value)
    })
}

/// As people write it where that is exact, else as a number in the limit's own unit.
fn limit_value(limit: Limit, value: u64) -> Value {
    let shown = limit.show(value);
    let is_exact = limit.parse(&shown) == Ok(value);
    match i64::try_from(value) {
        Ok(number) if limit.is_number() && (!is_exact || shown == value.to_string()) => {
            number.into()
        }
        _ => shown.into(),
    }
}

/// Turns a table that says `before` into one that says `after`.
fn map<V: PartialEq>(
    table: &mut dyn TableLike,
    key: &str,
    before: &BTreeMap<String, V>,
    after: &BTreeMap<String, V>,
    write: impl Fn(&V) -> Value,
) -> Option<()> {
    let written = table.get_mut(key)?.as_table_like_mut()?;
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        written.remove(name);
    }
    for (name, value) in after.iter().filter(|(name, value)| before.get(*name) != Some(value)) {
        set(written, name, write(value));
    }
    if written.is_empty() {
        table.remove(key);
    }
    Some(())
}
