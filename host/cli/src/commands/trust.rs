//! `belljar trust`: a person looks at what a folder brings of its own, and lets it count.

use crate::{
    arguments::TrustArguments,
    confirm::confirm,
    exit, model,
    screen::{SharedScreen, Tone},
    setup, visible,
};
use anyhow::bail;
use belljar_workspace::{Change, Flags, GrantStore, Places, Project, own_layer};
use std::{fs, path::Path};

/// Plugin files that are named before the rest is counted.
const NAMED: usize = 20;

pub(crate) async fn trust(arguments: TrustArguments, screen: SharedScreen) -> anyhow::Result<u8> {
    let TrustArguments { folder, yes, remove, config } = arguments;
    let places = Places::from_env()?;
    let workspace = setup::workspace(folder.as_deref())?;
    let store = GrantStore::new(&places, config.as_deref());
    let project = Project::find(&workspace)?;
    if remove {
        let folder = project.as_ref().map_or(workspace.folder(), Project::folder).to_owned();
        let told = format!("`{}` is trusted no longer", folder.display());
        store.apply(&Change::Distrust { folder })?;
        screen.lock().note(&told);
        return Ok(exit::COMPLETED);
    }
    let Some(project) = project else {
        bail!(
            "`{}` brings nothing to trust: no `belljar.toml` and no `.belljar/plugins`, up to the \
             repository's root",
            workspace.folder().display()
        );
    };
    // What cannot be read after it was trusted is better known before.
    let loaded =
        setup::configuration(&places, config.as_deref(), &workspace, Flags::default())?.config;
    let built_in = model::built_in_names();
    let built_in: Vec<_> = built_in.iter().map(String::as_str).collect();
    own_layer(&project, &loaded, &built_in)?;

    let known = loaded.workspaces.get(project.folder()).and_then(|known| known.trusted.clone());
    let digest = project.digest();
    if known.as_ref() == Some(&digest) {
        screen.lock().note(&format!("`{}` is trusted as it is", project.folder().display()));
        return Ok(exit::COMPLETED);
    }
    let mut shown = vec![format!("the folder `{}` brings:", project.folder().display())];
    if let Some(text) = project.text() {
        shown.push(format!("`{}`", project.file().display()));
        shown.extend(text.lines().map(|line| format!("  │ {}", visible::line(line))));
    }
    shown.extend(project.plugins().iter().flat_map(|plugins| plugin_lines(plugins)));
    if known.is_some() {
        shown.push("its `belljar.toml` has changed since you trusted it".to_owned());
    }
    screen.lock().toned(Tone::Plain, &shown.join("\n"));
    if !yes && !confirm(&screen, "trust this folder?").await? {
        screen.lock().note("nothing was changed");
        return Ok(exit::FAILED);
    }
    store.apply(&Change::Trust { folder: project.folder().to_owned(), digest })?;
    screen.lock().note(&format!("written to `{}`", store.file().display()));
    Ok(exit::COMPLETED)
}

/// The plugins of a folder: trusting it makes them known, and none of them is run for that.
fn plugin_lines(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut lines = vec![format!("`{}`", folder.display())];
    lines.extend(names.iter().take(NAMED).map(|name| format!("  {}", visible::line(name))));
    if names.len() > NAMED {
        lines.push(format!("  and {} more", names.len() - NAMED));
    }
    lines.push(
        "  each plugin there still needs a yes of its own: `belljar plugin grant`".to_owned(),
    );
    lines
}
