//! `list_directory`: the entries of one folder.

use belljar_sdk::prelude::*;
use belljar_workspace_path::{Workspace, WorkspacePath, bytes, count};
use std::fs;

/// How many entries are shown.
const SHOWN: usize = 1_000;
/// How much text is shown: below what a result may have.
const TEXT_BYTES: usize = 50 * 1024;
/// How many entries of a folder are looked at: they are held in memory to be sorted.
const LOOKED_AT: usize = 50_000;

#[arguments]
pub(crate) struct ListDirectory {
    /// The folder, relative to the workspace. Default: `.`, the workspace itself.
    path: Option<String>,
}

/// Lists the entries of one folder: folders first, ending in `/`, then files with their sizes;
/// links show where they lead. Hidden and ignored entries are listed too. To look for files in
/// folders below, use `find_files`.
#[tool(read_only, idempotent, title = "List a folder")]
pub(crate) fn list_directory(arguments: ListDirectory) -> Result<Output, Failure> {
    list(&Workspace::of_this_call(), &arguments)
}

fn list(workspace: &Workspace, arguments: &ListDirectory) -> Result<Output, Failure> {
    let path = workspace.path(arguments.path.as_deref().unwrap_or("."))?;
    let metadata = path.place().metadata().map_err(|error| path.explain("list", error))?;
    if !metadata.is_dir() {
        return Err(Failure::failed(format!(
            "`{path}` is a file, not a folder: read it with `read_file`"
        )));
    }
    let Listing { mut entries, is_whole, unreadable } = entries(&path)?;
    if entries.is_empty() && unreadable == 0 {
        return Ok(Output::text(format!("[`{path}` is an empty folder]")));
    }
    entries.sort();
    let mut text = String::new();
    let mut shown = 0;
    for entry in entries.iter().take(SHOWN) {
        let line = line(&path, entry);
        if text.len() + line.len() > TEXT_BYTES {
            break;
        }
        text.push_str(&line);
        shown += 1;
    }
    text.push_str(&summary(&entries, shown, is_whole, unreadable));
    Ok(Output::text(text))
}

/// In the order in which entries are shown: folders first, by name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Folder,
    File,
    Link,
    Other,
}

struct Listing {
    entries: Vec<Entry>,
    is_whole: bool,
    unreadable: u64,
}

fn entries(path: &WorkspacePath) -> Result<Listing, Failure> {
    let failed = |error| path.explain("list", error);
    let mut listing = Listing { entries: Vec::new(), is_whole: true, unreadable: 0 };
    for entry in fs::read_dir(path.place()).map_err(failed)? {
        if listing.entries.len() == LOOKED_AT {
            listing.is_whole = false;
            break;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if listing.entries.is_empty() => return Err(failed(error)),
            Err(_) => {
                listing.unreadable += 1;
                break;
            }
        };
        let kind = match entry.file_type() {
            Ok(kind) if kind.is_dir() => Kind::Folder,
            Ok(kind) if kind.is_file() => Kind::File,
            Ok(kind) if kind.is_symlink() => Kind::Link,
            _ => Kind::Other,
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        listing.entries.push(Entry { kind, name });
    }
    Ok(listing)
}

fn line(path: &WorkspacePath, entry: &Entry) -> String {
    let place = path.place().join(&entry.name);
    // A line end in a name must not look like another entry.
    let name = entry.name.replace('\n', "\\n");
    match entry.kind {
        Kind::Folder => format!("{name}/\n"),
        Kind::File => match place.symlink_metadata() {
            Ok(metadata) => format!("{name}  {}\n", bytes(metadata.len())),
            Err(_) => format!("{name}\n"),
        },
        Kind::Link => match fs::read_link(place) {
            Ok(target) if target.is_relative() => format!("{name} -> {}\n", target.display()),
            // An absolute target is a path of the host.
            _ => format!("{name} -> (outside the workspace)\n"),
        },
        Kind::Other => format!("{name}  (neither a file nor a folder)\n"),
    }
}

fn summary(entries: &[Entry], shown: usize, is_whole: bool, unreadable: u64) -> String {
    let of = |kind| entries.iter().filter(|entry| entry.kind == kind).count() as u64;
    let mut parts: Vec<String> = [
        (of(Kind::Folder), "folder"),
        (of(Kind::File), "file"),
        (of(Kind::Link), "link"),
        (of(Kind::Other), "other entry"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, noun)| count(number, noun))
    .collect();
    if shown < entries.len() {
        parts.push(format!(
            "the last {} not shown: narrow down with `find_files`",
            count((entries.len() - shown) as u64, "entry")
        ));
    }
    if !is_whole {
        parts.push("there are more, which were not looked at".to_owned());
    }
    if unreadable > 0 {
        parts.push("the rest could not be read".to_owned());
    }
    format!("[{}]", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};

    #[test]
    fn folders_come_first_and_names_are_sorted() {
        let folder = Folder::with(&[
            ("b.txt", b"12345"),
            ("a.txt", b"1"),
            (".hidden", b""),
            ("z/inner", b""),
            ("c/inner", b""),
        ]);
        let text = "c/\nz/\n.hidden  0 bytes\na.txt  1 byte\nb.txt  5 bytes\n[2 folders, 3 files]";
        for call in [json!({}), json!({"path": "."}), json!({"path": "c/.."})] {
            assert_eq!(list(&folder.workspace, &arguments(call)), Ok(texts(&[text])));
        }
        let inner = list(&folder.workspace, &arguments(json!({"path": "c/"})));
        assert_eq!(inner, Ok(texts(&["inner  0 bytes\n[1 file]"])));
    }

    #[cfg(unix)]
    #[test]
    fn links_show_where_they_lead_but_no_path_of_the_host() {
        let folder = Folder::with(&[("a", b"")]);
        std::os::unix::fs::symlink("a", folder.place("near")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.place("far")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.place("socket")).unwrap();
        let text = "a  0 bytes\nfar -> (outside the workspace)\nnear -> a\n\
                    socket  (neither a file nor a folder)\n[1 file, 2 links, 1 other entry]";
        assert_eq!(list(&folder.workspace, &arguments(json!({}))), Ok(texts(&[text])));
    }

    #[test]
    fn a_large_folder_is_cut_with_counts() {
        let folder = Folder::with(&[]);
        for number in 0..1_003 {
            fs::write(folder.place(&format!("f{number:04}")), "").unwrap();
        }
        let lines: String = (0..1_000).map(|number| format!("f{number:04}  0 bytes\n")).collect();
        let text = format!(
            "{lines}[1,003 files, the last 3 entries not shown: narrow down with `find_files`]"
        );
        assert_eq!(list(&folder.workspace, &arguments(json!({}))), Ok(texts(&[&text])));
    }

    #[test]
    fn what_is_no_folder_says_so() {
        let folder = Folder::with(&[("a", b"x")]);
        fs::create_dir(folder.place("empty")).unwrap();
        let empty = list(&folder.workspace, &arguments(json!({"path": "empty"})));
        assert_eq!(empty, Ok(texts(&["[`empty` is an empty folder]"])));
        for (path, failure) in [
            ("a", Failure::failed("`a` is a file, not a folder: read it with `read_file`")),
            ("emtpy", Failure::failed("`emtpy` does not exist; did you mean `empty`?")),
            (
                "/",
                Failure::denied(
                    "`/` is an absolute path: all paths are relative to the workspace, and \
                     nothing outside it can be reached; `.` is the workspace itself",
                ),
            ),
        ] {
            assert_eq!(list(&folder.workspace, &arguments(json!({"path": path}))), Err(failure));
        }
    }
}
