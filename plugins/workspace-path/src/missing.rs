//! A path that does not exist: which step of it is missing, and the names that come nearest.
//! It reads listings, never files.

use crate::WorkspacePath;
use std::fs;

/// How many entries of a folder are compared.
const COMPARED: usize = 2_000;
/// How many names are offered.
const OFFERED: usize = 3;
/// The similarity, of 1, from which a name is worth offering.
const NEAR: f64 = 0.8;

pub(crate) fn explain(path: &WorkspacePath) -> String {
    let mut folder = path.workspace().root().to_path_buf();
    let mut shown = String::new();
    let steps: Vec<&str> = path.steps().collect();
    for (index, step) in steps.iter().enumerate() {
        let place = folder.join(step);
        let Ok(entry) = place.metadata() else {
            return missing_step(path, &folder, &shown, step, &steps[index + 1..]);
        };
        if !shown.is_empty() {
            shown.push('/');
        }
        shown.push_str(step);
        if entry.is_file() && index + 1 < steps.len() {
            return format!("`{path}` does not exist: `{shown}` is a file, not a folder");
        }
        folder = place;
    }
    format!("`{path}` is not there, or not of the kind that was asked for")
}

fn missing_step(
    path: &WorkspacePath,
    folder: &std::path::Path,
    shown: &str,
    step: &str,
    rest: &[&str],
) -> String {
    if folder.join(step).symlink_metadata().is_ok_and(|entry| entry.is_symlink()) {
        return format!(
            "`{path}` cannot be followed: `{}` is a link to something that does not exist or lies \
             outside the workspace",
            join(shown, step)
        );
    }
    let wanted = step.to_lowercase();
    let mut near: Vec<(f64, String)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .take(COMPARED)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (similarity(&wanted, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .collect();
    // By name too, so that the same folder gives the same offer.
    near.sort_by(|(a, a_name), (b, b_name)| b.total_cmp(a).then_with(|| a_name.cmp(b_name)));
    let offers: Vec<String> = near
        .into_iter()
        .take(OFFERED)
        .map(|(_, name)| {
            let sibling = join(shown, &name);
            let whole = rest.iter().fold(sibling.clone(), |path, step| join(&path, step));
            let spelling = if path.workspace().exists(&whole) { whole } else { sibling };
            format!("`{spelling}`")
        })
        .collect();
    let place = if shown.is_empty() { "the workspace".to_owned() } else { format!("`{shown}`") };
    let reason = if rest.is_empty() && shown.is_empty() {
        format!("`{path}` does not exist")
    } else {
        format!("`{path}` does not exist: {place} holds no `{step}`")
    };
    if step.contains('\\') {
        return format!(
            "{reason}; folders are separated by `/`: try `{}`",
            step.replace('\\', "/")
        );
    }
    match offers.split_last() {
        None => format!("{reason}; look with `list_directory` or `find_files`"),
        Some((only, [])) => format!("{reason}; did you mean {only}?"),
        Some((last, others)) => format!("{reason}; did you mean {} or {last}?", others.join(", ")),
    }
}

/// From 0 to 1. One slip in a short name (`scr` for `src`) is near, which the measure for longer
/// names does not see.
fn similarity(wanted: &str, name: &str) -> f64 {
    let slip = wanted.len() >= 3 && strsim::osa_distance(wanted, name) <= 1;
    strsim::jaro_winkler(wanted, name).max(if slip { 0.9 } else { 0.0 })
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

#[cfg(test)]
mod tests {
    use crate::Workspace;
    use belljar_sdk::Failure;
    use std::{fs, io};

    #[test]
    fn a_missing_path_names_what_comes_nearest() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/net")).unwrap();
        for file in ["README.md", "src/main.rs", "src/mail.rs", "src/lib.rs", "src/net/tcp.rs"] {
            fs::write(folder.path().join(file), "x").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("/nowhere/at/all", folder.path().join("dangling")).unwrap();
        let workspace = Workspace::at(folder.path());
        for (path, text) in [
            ("README", "`README` does not exist; did you mean `README.md`?"),
            ("readme.md", "`readme.md` does not exist; did you mean `README.md`?"),
            (
                "src/mian.rs",
                "`src/mian.rs` does not exist: `src` holds no `mian.rs`; did you mean \
                 `src/main.rs` or `src/mail.rs`?",
            ),
            (
                "scr/main.rs",
                "`scr/main.rs` does not exist: the workspace holds no `scr`; did you mean \
                 `src/main.rs`?",
            ),
            (
                "src/nett/udp.rs",
                "`src/nett/udp.rs` does not exist: `src` holds no `nett`; did you mean `src/net`?",
            ),
            ("zzz", "`zzz` does not exist; look with `list_directory` or `find_files`"),
            (
                "src/main.rs/x",
                "`src/main.rs/x` does not exist: `src/main.rs` is a file, not a folder",
            ),
            (
                r"src\main.rs",
                r"`src\main.rs` does not exist; folders are separated by `/`: try `src/main.rs`",
            ),
            (
                "dangling",
                "`dangling` cannot be followed: `dangling` is a link to something that does not \
                 exist or lies outside the workspace",
            ),
        ] {
            let failure = workspace
                .path(path)
                .unwrap()
                .explain("read", io::Error::from(io::ErrorKind::NotFound));
            assert_eq!(failure, Failure::failed(text));
        }
    }
}
