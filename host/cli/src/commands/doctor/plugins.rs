//! The plugins that are there: taken, refused, waiting for a yes. Each file is read and none is run.

use super::{finding::Finding, settings::Settings};
use crate::setup;
use belljar_capability::{Standing, standing};
use belljar_workspace::Places;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub(super) fn findings(places: &Places, named: &[PathBuf], settings: &Settings) -> Vec<Finding> {
    let bundled: Vec<_> = belljar_plugins::bundled().iter().map(|plugin| plugin.name).collect();
    let mut findings = vec![Finding::ok("plugins", format!("{} are bundled", bundled.join(", ")))];
    for path in named {
        findings.extend(folder(path, Asked::Named, settings));
    }
    let own = places.plugins();
    for path in [Some(&own), settings.workspace_plugins.as_ref()].into_iter().flatten() {
        findings.extend(folder(path, Asked::No, settings));
    }
    findings
}

/// Whether a person named the folder on the command line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Named,
    No,
}

fn folder(path: &Path, asked: Asked, settings: &Settings) -> Vec<Finding> {
    let shown = path.display();
    let mut files: Vec<PathBuf> = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && asked == Asked::No => {
            return vec![Finding::ok("plugins", format!("`{shown}`: none yet"))];
        }
        Err(error) => {
            let finding = Finding::problem("plugins", format!("`{shown}` cannot be read: {error}"));
            return vec![finding.mended_by(format!("ls -ld '{shown}'"))];
        }
    };
    files.sort();
    let (mut taken, mut findings) = (0, Vec::new());
    for file in files.iter().filter(|file| is_a_plugins(file)) {
        match plugin(file, asked, settings) {
            Some(finding) => findings.push(finding),
            None => taken += 1,
        }
    }
    let waiting = findings.iter().filter(|finding| finding.mend.is_some()).count();
    let refused = findings.len() - waiting;
    let text = format!("`{shown}`: {taken} taken, {waiting} waiting for a yes, {refused} refused");
    findings.insert(0, Finding::ok("plugins", text));
    findings
}

fn is_a_plugins(file: &Path) -> bool {
    let is_hidden = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !is_hidden && file.extension().is_some_and(|extension| extension == "wasm")
}

/// What keeps a file's tools from being offered.
fn plugin(file: &Path, asked: Asked, settings: &Settings) -> Option<Finding> {
    let shown = file.display();
    let inspected = match belljar_sandbox::inspect(file) {
        Ok(inspected) => inspected,
        Err(error) => {
            let reason = setup::error_chain(&error);
            return Some(Finding::note("plugins", format!("`{shown}` is refused: it {reason}")));
        }
    };
    let name = &inspected.name;
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let grant = settings.config.plugins.get(name);
    let waits = match standing(&inspected.digest, &real, grant, asked == Asked::Named) {
        Standing::Unseen => "has not been allowed",
        Standing::Changed { .. } => "has changed since it was allowed",
        Standing::Bundled | Standing::Granted | Standing::Dev | Standing::Named => return None,
    };
    let mend = format!("belljar plugin inspect '{shown}', then belljar plugin grant {name}");
    Some(Finding::note("plugins", format!("`{shown}` {waits}")).mended_by(mend))
}
