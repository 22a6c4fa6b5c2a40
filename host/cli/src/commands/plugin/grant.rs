//! `belljar plugin grant`: a person looks at a plugin, and says what it may do.

use super::{
    is_bundled,
    look::{Look, folder_of},
};
use crate::{
    arguments::GrantArguments,
    confirm::confirm,
    exit::{self, Usage},
    screen::{SharedScreen, Tone},
    setup, visible,
};
use anyhow::Context as _;
use belljar_capability::{
    Binding, GrantPart, GrantSpec, Limits, Manifest, Mount, PluginGrant, SecretGrant, SpecError,
    Surroundings,
};
use belljar_sandbox::{MountError, PluginFolder, check_grantable};
use belljar_workspace::{Change, Expected, Flags, GrantStore, Places};
use std::{
    io,
    path::{Path, PathBuf},
};

pub(super) async fn grant(arguments: GrantArguments, screen: &SharedScreen) -> anyhow::Result<u8> {
    let GrantArguments { name, specs, dev, yes, world } = arguments;
    let mut more = PluginGrant::default();
    for spec in &specs {
        let part = part(&name, spec).map_err(|error| Usage(error.to_string()))?;
        more.extend(part.into_grant());
    }
    let places = Places::from_env()?;
    let workspace = setup::workspace(world.workspace.as_deref())?;
    let file = world.plugins.config.as_deref();
    let loaded = setup::configuration(&places, file, &workspace, Flags::default())?;
    let before = loaded.config.plugins.get(&name).cloned().unwrap_or_default();

    let look = if is_bundled(&name) {
        if dev.is_some() || specs.is_empty() {
            return Err(Usage(format!(
                "`{name}` comes with the program, so there is nothing to say yes to: name what it \
                 is granted, such as `belljar plugin grant {name} net=https://api.example.com`"
            ))
            .into());
        }
        None
    } else {
        let own_plugins = loaded.workspace_plugins.as_deref();
        let mut folders = setup::plugin_folders(&places, &world.plugins, own_plugins)?;
        if let Some(path) = &dev {
            // The one that is worked on, whatever else has its name.
            folders.insert(0, PluginFolder { path: dev_folder(&name, path)?, named: true });
        }
        Some(Look::at(&name, &places, &workspace, folders, screen).await?)
    };
    if let Some(look) = &look {
        more.binding = Some(match dev {
            Some(_) => Binding::Dev(look.path.clone()),
            None => Binding::Digest(look.record.digest.clone()),
        });
    }

    let mut after = before.clone();
    after.extend(more.clone());
    let home = std::env::home_dir();
    let around = setup::surroundings(&workspace, home.as_deref());
    let granted = after
        .resolve(None, around, Limits::default())
        .with_context(|| format!("`{name}` cannot be granted this"))?;
    for mount in &granted.mounts {
        check_folder(mount, &places)?;
    }

    let mut shown = vec![format!("the plugin `{}`", visible::line(&name))];
    shown.extend(look.iter().flat_map(Look::lines));
    if let (Some(look), Some(Binding::Digest(digest))) = (&look, &before.binding)
        && *digest != look.record.digest
    {
        shown.extend(look.differences(&places, digest));
    }
    shown.extend(what_it_gets(&before, &after, look.as_ref().and_then(Look::manifest)));
    let store = GrantStore::new(&places, file);
    screen.lock().toned(Tone::Plain, &shown.join("\n"));
    if !yes && !confirm(screen, "grant this?").await? {
        screen.lock().note("nothing was changed");
        return Ok(exit::FAILED);
    }
    if let Some(look) = &look
        && let Err(error) = look.record.keep(&places)
    {
        let note = format!("note: what it is now is not kept for the next look: {error}");
        screen.lock().note(&note);
    }
    store.apply(&Change::Grant { plugin: name, grant: more, expected: Expected::Grant(before) })?;
    screen.lock().note(&format!("written to `{}`", store.file().display()));
    Ok(exit::COMPLETED)
}

/// A grant with or without the plugin's name in front, as refusals print it.
fn part(name: &str, spec: &str) -> Result<GrantPart, SpecError> {
    match spec.parse::<GrantSpec>() {
        Ok(GrantSpec { plugin, part }) if plugin == name => Ok(part),
        _ => spec.parse(),
    }
}

fn dev_folder(name: &str, path: &Path) -> anyhow::Result<PathBuf> {
    if path.file_name().is_none_or(|file| *file != *format!("{name}.wasm")) {
        return Err(Usage(format!(
            "`{}` is not the file of `{name}`: name its `{name}.wasm` with `--dev`",
            path.display()
        ))
        .into());
    }
    folder_of(path).with_context(|| format!("there is no folder for `{}`", path.display()))
}

/// Whether a folder may be granted, wherever links lead. One that is not there yet is looked at when
/// it is opened.
fn check_folder(mount: &Mount, places: &Places) -> anyhow::Result<()> {
    match check_grantable(&mount.host, &places.folders()) {
        Err(MountError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        checked => Ok(checked?),
    }
}

/// All that a yes gives, with what is new marked.
fn what_it_gets(
    before: &PluginGrant,
    after: &PluginGrant,
    manifest: Option<&Manifest>,
) -> Vec<String> {
    let (old_parts, old_secrets) = (before.parts(), &before.secrets);
    let new = |is_old: bool| if is_old { "" } else { "  (new)" };
    let parts = after.parts().into_iter().map(|part| {
        let mark = new(old_parts.contains(&part));
        let idle = match manifest {
            Some(manifest) if !is_asked_for(&part, manifest) => {
                "  (its manifest does not ask for it, so it has no effect)"
            }
            _ => "",
        };
        format!("  {}{mark}{idle}", visible::line(&part.to_string()))
    });
    let secrets = after.secrets.iter().map(|secret: &SecretGrant| {
        let mark = new(old_secrets.contains(secret));
        format!("  secret {} for {}{mark}", secret.name(), secret.host())
    });
    let mut lines: Vec<_> = parts.chain(secrets).collect();
    if let Some(Binding::Dev(path)) = &after.binding {
        let path = visible::line(&path.display().to_string());
        lines.push(format!("  whatever lies at {path} gets this, however it changes"));
    }
    match lines.is_empty() {
        true => vec!["it gets no files, no network and no variables; its tools are offered".into()],
        false => {
            lines.insert(0, "it gets:".to_owned());
            lines
        }
    }
}

/// Whether a manifest asks for some of it: a plugin gets what is granted and asked for.
fn is_asked_for(part: &GrantPart, manifest: &Manifest) -> bool {
    let wants = &manifest.wants;
    let somewhere = Path::new("/somewhere");
    let around =
        Surroundings { workspace: Some(somewhere), home: Some(somewhere), variable: |_| None };
    match part {
        GrantPart::Read(_) | GrantPart::Write(_) => part
            .clone()
            .into_grant()
            .resolve(Some(manifest), around, Limits::default())
            .map_or(true, |granted| !granted.mounts.is_empty()),
        GrantPart::Env { name, .. } => wants.env.iter().any(|want| want.name == *name),
        GrantPart::Net(_) => !wants.net.is_empty(),
        GrantPart::Deny(_) | GrantPart::Limit(..) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_may_name_the_plugin_and_no_other() {
        let read = |spec: &str| part("weather", spec).map(|part| part.to_string());
        assert_eq!(read("read=data").as_deref(), Ok("read=data"));
        assert_eq!(read("weather.read=data").as_deref(), Ok("read=data"));
        assert_eq!(read("weather.limits.memory=1GiB").as_deref(), Ok("limits.memory=1GiB"));
        assert!(read("other.read=data").is_err());
        assert_eq!(
            part("files", "files.read=x").map(|part| part.to_string()).as_deref(),
            Ok("read=x")
        );
    }

    #[test]
    fn all_that_a_yes_gives_is_shown_and_what_is_new_of_it() {
        let grant = |parts: &[&str]| {
            let mut grant = PluginGrant::default();
            parts.iter().for_each(|one| grant.extend(part("a", one).unwrap().into_grant()));
            grant
        };
        let before = grant(&["read=x", "limits.memory=1GiB"]);
        let after = grant(&["read=x", "net=public", "limits.memory=2GiB"]);
        assert_eq!(
            what_it_gets(&before, &after, None),
            ["it gets:", "  read=x", "  net=public  (new)", "  limits.memory=2GiB  (new)"]
        );
        let none = PluginGrant::default();
        assert_eq!(
            what_it_gets(&none, &none, None),
            ["it gets no files, no network and no variables; its tools are offered"]
        );
        let manifest = Manifest::from_toml("manifest = 1\n[wants]\nfiles = [{ path = \"x\" }]\n");
        let idle = "  (its manifest does not ask for it, so it has no effect)";
        assert_eq!(
            what_it_gets(&after, &after, Some(&manifest.unwrap())),
            [
                "it gets:".to_owned(),
                "  read=x".to_owned(),
                format!("  net=public{idle}"),
                "  limits.memory=2GiB".to_owned()
            ]
        );
    }
}
