//! Configuration, workspace and model.

use super::finding::Finding;
use crate::{arguments::DoctorArguments, model, setup};
use belljar_model::models_at;
use belljar_workspace::{Config, Flags, Places, Sources, Workspace};
use std::path::PathBuf;

/// What is set, as far as it could be read.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) config: Config,
    /// The folder of plugins that a trusted workspace brings.
    pub(super) workspace_plugins: Option<PathBuf>,
    pub(super) findings: Vec<Finding>,
}

pub(super) async fn read(places: &Places, arguments: &DoctorArguments) -> Settings {
    let (workspace, finding) = workspace(arguments);
    let file = arguments.plugins.config.clone().unwrap_or_else(|| places.config_file());
    let shown = file.display();
    let built_in = model::built_in_names();
    let built_in: Vec<_> = built_in.iter().map(String::as_str).collect();
    let loaded = belljar_workspace::load(Sources {
        places,
        file: arguments.plugins.config.as_deref(),
        workspace: workspace.as_ref(),
        built_in: &built_in,
        environment: std::env::vars_os().collect(),
        flags: Flags::default(),
    });
    let mut settings = Settings { findings: vec![finding], ..Settings::default() };
    match loaded {
        Ok(loaded) => {
            settings.findings.push(Finding::ok(
                "configuration",
                match file.try_exists() {
                    Ok(true) => format!("`{shown}` is read"),
                    _ => format!("none: the defaults hold, and `{shown}` is where it would be"),
                },
            ));
            let notices = loaded.notices.into_iter();
            settings.findings.extend(notices.map(|notice| Finding::note("configuration", notice)));
            settings.config = loaded.config;
            settings.workspace_plugins = loaded.workspace_plugins;
        }
        // What follows is looked at as if there were none.
        Err(error) => settings.findings.push(
            Finding::problem("configuration", setup::error_chain(&error))
                .mended_by(format!("change or remove what is named in `{shown}`")),
        ),
    }
    settings.findings.extend(keys());
    settings.findings.extend(local_servers().await);
    settings.findings.push(chosen_model(&settings.config).await);
    settings
}

fn workspace(arguments: &DoctorArguments) -> (Option<Workspace>, Finding) {
    match setup::workspace(arguments.workspace.as_deref()) {
        Ok(workspace) => {
            let shown = workspace.folder().display().to_string();
            let text = match workspace.repository() {
                Some(root) => format!("`{shown}`, in the repository `{}`", root.display()),
                None => format!("`{shown}`, in no repository"),
            };
            (Some(workspace), Finding::ok("workspace", text))
        }
        Err(error) => {
            let finding = Finding::problem("workspace", format!("{error:#}"))
                .mended_by("belljar doctor --workspace DIR");
            (None, finding)
        }
    }
}

/// Which variables hold a key, and never what it is.
fn keys() -> Vec<Finding> {
    let set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let (set, unset): (Vec<_>, Vec<_>) =
        model::key_variables().into_iter().partition(|variable| set(variable));
    let list = |names: Vec<String>| names.join(", ");
    match (set.is_empty(), unset.is_empty()) {
        (true, _) => vec![Finding::note("keys", format!("none of {} is set", list(unset)))],
        (false, true) => vec![Finding::ok("keys", format!("set: {}", list(set)))],
        (false, false) => {
            vec![Finding::ok("keys", format!("set: {}; not set: {}", list(set), list(unset)))]
        }
    }
}

async fn local_servers() -> Vec<Finding> {
    let asked = model::LOCAL.map(|(name, url)| async move { (name, url, models_at(url).await) });
    let answers = futures::future::join_all(asked).await;
    let findings = answers.into_iter().map(|(name, url, models)| match models {
        Some(models) => {
            Finding::ok("local server", format!("{name} at {url} lists {} models", models.len()))
        }
        None => Finding::note("local server", format!("{name}: none answers at {url}")),
    });
    findings.collect()
}

async fn chosen_model(config: &Config) -> Finding {
    match model::choose(config).await {
        Ok(chosen) => {
            let name = format!("{}/{}", chosen.model.provider(), chosen.model.name());
            let how = chosen.notice.map(|notice| format!(": {notice}")).unwrap_or_default();
            Finding::ok("model", format!("`{name}` would be used{how}"))
        }
        Err(error) => Finding::problem("model", format!("{error:#}"))
            .mended_by("export ANTHROPIC_API_KEY=…, or name a model with `--model PROVIDER/NAME`"),
    }
}
