//! `edit_file`: one exact text for another, and never a guess.

use crate::{
    diff,
    kind::{self, Kind},
    nearest, write,
};
use belljar_sdk::prelude::*;
use belljar_workspace_path::{Workspace, WorkspacePath, bytes, count};
use memchr::memmem;
use std::{borrow::Cow, fs, ops::Range};

/// Up to which size a file is edited, since it is held in memory twice.
const FILE_BYTES: u64 = 16 * 1024 * 1024;
/// How many places of an ambiguous text are named.
const PLACES: usize = 20;

#[arguments]
pub(crate) struct EditFile {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file, white space included, with enough
    /// lines around the change that it is there only once.
    old_text: String,
    /// The text to put in its place.
    new_text: String,
    /// Whether to replace every place where `old_text` stands, rather than the only one.
    #[serde(default)]
    all: bool,
}

/// Replaces an exact text in a file by another. Read the file first. A text that is missing, or
/// that is there more than once without `all`, changes nothing: the answer then says how often it
/// is there, in which lines, and what comes nearest. Line ends (LF or CRLF) stay those of the file.
/// Returns the change as a diff.
#[tool(destructive, title = "Edit a file")]
pub(crate) fn edit_file(arguments: EditFile) -> Result<Output, Failure> {
    edit(&Workspace::of_this_call(), &arguments)
}

fn edit(workspace: &Workspace, arguments: &EditFile) -> Result<Output, Failure> {
    let path = workspace.path(&arguments.path)?;
    if arguments.old_text.is_empty() {
        return Err(Failure::invalid_arguments(
            "`old_text` is empty: give the text to replace; a whole file is written with \
             `write_file`",
        ));
    }
    if arguments.old_text == arguments.new_text {
        return Err(Failure::invalid_arguments(
            "`old_text` and `new_text` are the same: there is nothing to change",
        ));
    }
    let content = content(&path)?;
    let Spelling { old, new, places } = spelling(&content, arguments);
    let places = match (places.as_slice(), arguments.all) {
        ([], _) => return Err(Failure::failed(missing(&path, &content, &arguments.old_text))),
        ([_], _) => places,
        (_, true) => apart(&places, old.len()),
        (_, false) => return Err(Failure::failed(ambiguous(&path, &content, &places))),
    };
    if old == new {
        return Err(Failure::invalid_arguments(
            "`old_text` and `new_text` differ in line ends only, and those stay as the file has \
             them",
        ));
    }
    let replaced: Vec<Range<usize>> =
        places.iter().map(|start| *start..*start + old.len()).collect();
    let after = replace(&content, &replaced, new.as_bytes());
    write::replace(&path, &after)?;
    let made = count(replaced.len() as u64, "replacement");
    Ok(Output::text(format!(
        "edited `{path}`: {made}\n{}",
        diff::show(&content, &replaced, new.as_bytes())
    )))
}

fn content(path: &WorkspacePath) -> Result<Vec<u8>, Failure> {
    let metadata = path.place().metadata().map_err(|error| path.explain("edit", error))?;
    if metadata.is_dir() {
        return Err(Failure::failed(format!("`{path}` is a folder, not a file")));
    }
    if !metadata.is_file() {
        return Err(Failure::failed(format!(
            "`{path}` is neither a file nor a folder, and cannot be edited"
        )));
    }
    if metadata.len() > FILE_BYTES {
        return Err(Failure::failed(format!(
            "`{path}` has {}: files of up to {} can be edited",
            bytes(metadata.len()),
            bytes(FILE_BYTES)
        )));
    }
    let content = fs::read(path.place()).map_err(|error| path.explain("edit", error))?;
    match kind::of(&content) {
        Kind::Text => Ok(content),
        Kind::Utf16(_) => Err(Failure::failed(format!(
            "`{path}` is a text in UTF-16, which cannot be edited in place: write it with \
             `write_file`, which makes it UTF-8"
        ))),
        Kind::Binary(media_type) => Err(Failure::failed(format!(
            "`{path}` is a binary file, not text: {}",
            media_type.unwrap_or("of unknown kind")
        ))),
    }
}

/// The texts in the file's own line ends, and where the old one stands.
struct Spelling<'a> {
    old: Cow<'a, str>,
    new: Cow<'a, str>,
    places: Vec<usize>,
}

/// A file whose lines all end alike has both texts in its own line ends. In a mixed one the old
/// text is taken as it was given, and only where that is missing in the other spelling.
fn spelling<'a>(content: &[u8], arguments: &'a EditFile) -> Spelling<'a> {
    let (old, new) = (arguments.old_text.as_str(), arguments.new_text.as_str());
    let given = || Spelling { old: old.into(), new: new.into(), places: places(content, old) };
    let with = |line_end: fn(&str) -> String| {
        let old = line_end(old);
        let places = places(content, &old);
        Spelling { old: old.into(), new: line_end(new).into(), places }
    };
    let crlf = memmem::find_iter(content, b"\r\n").count();
    let lf = memchr::memchr_iter(b'\n', content).count() - crlf;
    match (crlf, lf) {
        (0, 0) => given(),
        (0, _) if !old.contains("\r\n") => given(),
        (0, _) => with(to_lf),
        (_, 0) => with(to_crlf),
        _ => {
            let given = given();
            if !given.places.is_empty() {
                return given;
            }
            let lf = with(to_lf);
            if lf.places.is_empty() { with(to_crlf) } else { lf }
        }
    }
}

fn to_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn to_crlf(text: &str) -> String {
    to_lf(text).replace('\n', "\r\n")
}

/// Where the text begins, overlapping places included: `aa` stands twice in `aaa`.
fn places(content: &[u8], text: &str) -> Vec<usize> {
    let finder = memmem::Finder::new(text);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(found) = finder.find(&content[from..]) {
        places.push(from + found);
        from += found + 1;
    }
    places
}

/// The places that can be replaced one after the other.
fn apart(places: &[usize], length: usize) -> Vec<usize> {
    let mut end = 0;
    places
        .iter()
        .copied()
        .filter(|start| {
            let is_apart = *start >= end;
            if is_apart {
                end = start + length;
            }
            is_apart
        })
        .collect()
}

fn replace(content: &[u8], replaced: &[Range<usize>], new: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(content.len() + replaced.len() * new.len());
    let mut end = 0;
    for range in replaced {
        after.extend_from_slice(&content[end..range.start]);
        after.extend_from_slice(new);
        end = range.end;
    }
    after.extend_from_slice(&content[end..]);
    after
}

fn missing(path: &WorkspacePath, content: &[u8], old: &str) -> String {
    let nearest = nearest::explain(&String::from_utf8_lossy(content), old);
    format!("`old_text` is not in `{path}`, nothing was changed: {nearest}")
}

fn ambiguous(path: &WorkspacePath, content: &[u8], places: &[usize]) -> String {
    let mut line = 1;
    let mut counted = 0;
    let mut named: Vec<String> = places
        .iter()
        .take(PLACES)
        .map(|place| {
            line += memchr::memchr_iter(b'\n', &content[counted..*place]).count();
            counted = *place;
            line.to_string()
        })
        .collect();
    if places.len() > PLACES {
        named.push("…".to_owned());
    }
    format!(
        "`old_text` is in `{path}` {} times, nothing was changed: it begins in lines {}; give more \
         of the lines around the one that is meant, or set `all`",
        places.len(),
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};
    use belljar_sdk::serde_json::Value;

    fn run(content: &str, call: Value) -> (Result<Output, Failure>, String) {
        let folder = Folder::with(&[("a", content.as_bytes())]);
        let mut call = call;
        call["path"] = "a".into();
        let output = edit(&folder.workspace, &arguments(call));
        (output, folder.text("a"))
    }

    #[test]
    fn the_only_place_is_replaced_and_shown() {
        let (output, after) =
            run("one\ntwo\nthree\n", json!({"old_text": "two\n", "new_text": "2\n2b\n"}));
        assert_eq!(after, "one\n2\n2b\nthree\n");
        let text = "edited `a`: 1 replacement\n\
                    @@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n";
        assert_eq!(output, Ok(texts(&[text])));
    }

    #[test]
    fn texts_are_replaced_to_the_byte() {
        for (content, old, new, all, expected) in [
            ("a b a", "b", "c", false, "a c a"),
            ("a b a", "a", "", true, " b "),
            ("aaaa", "aa", "b", true, "bb"),
            ("aaa", "aa", "b", true, "ba"),
            ("tail", "ail", "op", false, "top"),
            ("a", "a", "", false, ""),
            ("x = 1  \n", "1  \n", "1\n", false, "x = 1\n"),
            ("\u{fc}ber", "\u{fc}", "\u{1f980}", false, "\u{1f980}ber"),
            // A replacement is no pattern.
            ("a.b", ".", "$0\\1", false, "a$0\\1b"),
        ] {
            let call = json!({"old_text": old, "new_text": new, "all": all});
            let (output, after) = run(content, call);
            assert!(output.is_ok(), "{output:?}");
            assert_eq!(after, expected, "{content:?}: {old:?} to {new:?}");
        }
    }

    #[test]
    fn line_ends_stay_those_of_the_file() {
        for (content, old, new, expected) in [
            // CRLF throughout: both texts may be in LF.
            ("a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", "x\r\ny\r\nz\r\nc\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
            ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
            // LF throughout: both texts may be in CRLF.
            ("a\nb\n", "a\r\nb", "x\r\ny", "x\ny\n"),
            // Mixed: as given, and else in the other spelling.
            ("a\r\nb\nc\r\n", "a\r\nb\n", "x\n", "x\nc\r\n"),
            ("a\r\nb\nc\r\n", "a\nb", "x", "x\nc\r\n"),
            ("a\r\nb\r\nc\n", "a\nb\n", "x\ny\n", "x\r\ny\r\nc\n"),
            ("a\r\nb\nc\n", "b\r\nc", "x\r\ny", "a\r\nx\ny\n"),
            // No line end at all.
            ("a", "a", "b\n", "b\n"),
        ] {
            let (_, after) = run(content, json!({"old_text": old, "new_text": new}));
            assert_eq!(after, expected, "{content:?}: {old:?} to {new:?}");
        }
    }

    #[test]
    fn an_ambiguous_text_is_refused_with_its_places() {
        let content = "let a = 1;\nlet b = 2;\n\nlet a = 1;\n";
        let (output, after) = run(content, json!({"old_text": "let a", "new_text": "let c"}));
        let text = "`old_text` is in `a` 2 times, nothing was changed: it begins in lines 1, 4; \
                    give more of the lines around the one that is meant, or set `all`";
        assert_eq!((output, after.as_str()), (Err(Failure::failed(text)), content));

        let (output, after) = run("aaa", json!({"old_text": "aa", "new_text": "b"}));
        let text = "`old_text` is in `a` 2 times, nothing was changed: it begins in lines 1, 1; \
                    give more of the lines around the one that is meant, or set `all`";
        assert_eq!((output, after.as_str()), (Err(Failure::failed(text)), "aaa"));
    }

    #[test]
    fn a_missing_text_is_refused_with_what_comes_nearest() {
        let content = "fn main() {\n    run(1);\n}\n";
        let call = json!({"old_text": "fn main() {\n  run(1);\n}\n", "new_text": "x"});
        let (output, after) = run(content, call);
        let text = "`old_text` is not in `a`, nothing was changed: lines 1–3 differ from it in \
                    white space only; they are\nfn main() {\n    run(1);\n}";
        assert_eq!((output, after.as_str()), (Err(Failure::failed(text)), content));
    }

    #[test]
    fn what_makes_no_edit_is_refused() {
        let invalid = |text: &str| Failure::invalid_arguments(text);
        for (content, old, new, failure) in [
            (
                "a",
                "",
                "b",
                invalid(
                    "`old_text` is empty: give the text to replace; a whole file is written with \
                     `write_file`",
                ),
            ),
            (
                "a",
                "a",
                "a",
                invalid("`old_text` and `new_text` are the same: there is nothing to change"),
            ),
            (
                "a\r\nb",
                "a\n",
                "a\r\n",
                invalid(
                    "`old_text` and `new_text` differ in line ends only, and those stay as the \
                     file has them",
                ),
            ),
            ("a\0b", "a", "b", Failure::failed("`a` is a binary file, not text: of unknown kind")),
        ] {
            let (output, after) = run(content, json!({"old_text": old, "new_text": new}));
            assert_eq!((output, after.as_str()), (Err(failure), content));
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_survive() {
        let folder = Folder::with(&[("a", b"gr\xfcn und blau\n")]);
        let call = json!({"path": "a", "old_text": "blau", "new_text": "rot"});
        edit(&folder.workspace, &arguments(call)).unwrap();
        assert_eq!(fs::read(folder.place("a")).unwrap(), b"gr\xfcn und rot\n");
    }

    #[test]
    fn a_file_that_is_too_large_or_missing_says_so() {
        let folder = Folder::with(&[("src/a", b"x")]);
        fs::File::create(folder.place("large")).unwrap().set_len(FILE_BYTES + 1).unwrap();
        for (path, text) in [
            (
                "large",
                "`large` has 16,777,217 bytes: files of up to 16,777,216 bytes can be edited",
            ),
            ("src", "`src` is a folder, not a file"),
            ("lorge", "`lorge` does not exist; did you mean `large`?"),
        ] {
            let call = json!({"path": path, "old_text": "a", "new_text": "b"});
            assert_eq!(edit(&folder.workspace, &arguments(call)), Err(Failure::failed(text)));
        }
    }
}
