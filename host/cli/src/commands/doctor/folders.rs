//! Belljar's own folders and the compile cache. Looks at metadata, and makes nothing.

use super::finding::Finding;
use belljar_workspace::Places;
use std::{
    fs::{self, Metadata},
    io,
    path::Path,
};

pub(super) fn findings(places: &Places) -> Vec<Finding> {
    let own = [
        ("configuration", &places.config),
        ("data", &places.data),
        ("state", &places.state),
        ("cache", &places.cache),
    ];
    let mut findings: Vec<_> = own.map(|(what, path)| own_folder(what, path)).into();
    findings.push(private("sessions", &places.sessions()));
    findings.push(compile_cache(&places.cache.join("components")));
    findings
}

/// What a folder's metadata says about who may use it.
enum Look {
    Missing,
    Ours { mode: u32 },
    Fault(Finding),
}

fn look(about: &'static str, what: &str, path: &Path) -> Look {
    let shown = path.display();
    let fault = |text: String| Look::Fault(Finding::problem(about, text));
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Look::Missing,
        Err(error) => fault(format!("{what}: `{shown}` cannot be looked at: {error}")),
        Ok(metadata) if !metadata.is_dir() => {
            let text = format!("{what}: `{shown}` is not a folder");
            Look::Fault(
                Finding::problem(about, text).mended_by(format!("mv '{shown}' '{shown}.old'")),
            )
        }
        Ok(metadata) => match owner_and_mode(&metadata) {
            Some((owner, user, _)) if owner != user => {
                fault(format!("{what}: `{shown}` belongs to user {owner}, and you are user {user}"))
            }
            Some((_, _, mode)) => Look::Ours { mode },
            None => Look::Ours { mode: 0o700 },
        },
    }
}

#[cfg(unix)]
fn owner_and_mode(metadata: &Metadata) -> Option<(u32, u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    Some((metadata.uid(), user, metadata.mode() & 0o7777))
}

#[cfg(not(unix))]
fn owner_and_mode(_: &Metadata) -> Option<(u32, u32, u32)> {
    None
}

/// One that others must not write to.
fn own_folder(what: &str, path: &Path) -> Finding {
    let shown = path.display();
    match look("folders", what, path) {
        Look::Missing => Finding::ok("folders", format!("{what}: `{shown}` is made when needed")),
        Look::Fault(finding) => finding,
        Look::Ours { mode } if mode & 0o022 != 0 => {
            let text = format!("{what}: `{shown}` can be written by others (mode {mode:04o})");
            Finding::problem("folders", text).mended_by(format!("chmod go-w '{shown}'"))
        }
        Look::Ours { .. } => Finding::ok("folders", format!("{what}: `{shown}`")),
    }
}

/// One that others should not read either.
fn private(what: &str, path: &Path) -> Finding {
    let shown = path.display();
    match look("folders", what, path) {
        Look::Missing => Finding::ok("folders", format!("{what}: none yet")),
        Look::Fault(finding) => finding,
        Look::Ours { mode } if mode & 0o077 != 0 => {
            let text = format!("{what}: `{shown}` can be read by others (mode {mode:04o})");
            Finding::problem("folders", text).mended_by(format!("chmod go= '{shown}'"))
        }
        Look::Ours { .. } => {
            let count = fs::read_dir(path).map_or(0, Iterator::count);
            Finding::ok("folders", format!("{what}: `{shown}` with {count} files"))
        }
    }
}

fn compile_cache(path: &Path) -> Finding {
    const ABOUT: &str = "compile cache";
    let shown = path.display();
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    match look(ABOUT, "compiled plugins", path) {
        _ if is_link => Finding::problem(ABOUT, format!("`{shown}` is a link, and is not used"))
            .mended_by(format!("rm '{shown}'")),
        Look::Missing => Finding::ok(ABOUT, format!("`{shown}` is made when needed")),
        Look::Fault(finding) => finding.mended_by(format!("rm -r '{shown}'")),
        Look::Ours { mode } if mode & 0o077 != 0 => {
            let text = format!("`{shown}` can be read or written by others, and is not used");
            Finding::problem(ABOUT, text).mended_by(format!("rm -r '{shown}'"))
        }
        Look::Ours { .. } => match size(path) {
            Ok((files, bytes)) => {
                let size = mebibytes(bytes);
                Finding::ok(ABOUT, format!("`{shown}` holds {files} files, {size}"))
            }
            Err(error) => Finding::problem(ABOUT, format!("`{shown}` cannot be read: {error}"))
                .mended_by(format!("rm -r '{shown}'")),
        },
    }
}

fn size(folder: &Path) -> io::Result<(usize, u64)> {
    let mut all = (0, 0);
    for entry in fs::read_dir(folder)? {
        // Another program may clear it meanwhile.
        if let Ok(metadata) = entry?.metadata() {
            all = (all.0 + 1, all.1 + metadata.len());
        }
    }
    Ok(all)
}

fn mebibytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    let size = bytes as f64 / f64::from(1 << 20);
    format!("{size:.1} MiB")
}
