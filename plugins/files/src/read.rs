//! `read_file`: a file's text, in bounded memory, and exactly what was left out of it.

use crate::{
    kind::{self, Kind},
    lines,
};
use belljar_sdk::prelude::*;
use belljar_workspace_path::{Workspace, WorkspacePath, bytes, count, cut};
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

/// How many lines are shown where no limit was given.
const LINES: u64 = 2_000;
/// How much of one line is shown.
const LINE_BYTES: usize = 2_000;
/// How much text is shown: below what a result may have, with room for the notes.
const TEXT_BYTES: usize = 50 * 1024;
/// How far the lines after the last one shown are counted.
const COUNTED_BYTES: u64 = 64 * 1024 * 1024;
/// Up to which size an image comes with the answer.
const IMAGE_BYTES: u64 = 3 * 1024 * 1024;
/// Up to which size a text in UTF-16, which is decoded as a whole, is read.
const UTF16_BYTES: u64 = 8 * 1024 * 1024;
/// How many long lines are named.
const LONG_LINES: usize = 10;

#[arguments]
pub(crate) struct ReadFile {
    /// The file, relative to the workspace, such as `src/main.rs`.
    path: String,
    /// The first line to read, counted from 1. Default: 1.
    offset: Option<u64>,
    /// How many lines to read at most. Default: 2000.
    limit: Option<u64>,
    /// Whether each line begins with its number and a tab. They are not part of the file: leave
    /// them out of `edit_file`.
    #[serde(default)]
    line_numbers: bool,
}

/// Reads a text file. Returns its lines as they are; a note in brackets after them says what was
/// left out and how to read on. Long files: use `offset` and `limit`. Images (PNG, JPEG, GIF, WebP)
/// are returned as images; of other binary files you get the kind and the size.
#[tool(read_only, idempotent, title = "Read a file")]
pub(crate) fn read_file(arguments: ReadFile) -> Result<Output, Failure> {
    read(&Workspace::of_this_call(), &arguments)
}

fn read(workspace: &Workspace, arguments: &ReadFile) -> Result<Output, Failure> {
    let path = workspace.path(&arguments.path)?;
    let offset = arguments.offset.unwrap_or(1);
    let limit = arguments.limit.unwrap_or(LINES);
    if offset == 0 {
        return Err(Failure::invalid_arguments("`offset` is 0: lines are counted from 1"));
    }
    if limit == 0 {
        return Err(Failure::invalid_arguments("`limit` is 0: ask for one line or more"));
    }
    let (file, size) = open(&path)?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let failed = |error| path.explain("read", error);
    let start = reader.fill_buf().map_err(failed)?;
    if start.is_empty() {
        return Ok(Output::text(format!("[`{path}` is an empty file]")));
    }
    let request = Request { offset, limit, line_numbers: arguments.line_numbers, size };
    match kind::of(start) {
        Kind::Text => show(&path, &mut reader, &request, Vec::new()),
        Kind::Utf16(order) if size <= UTF16_BYTES => {
            let mut content = Vec::new();
            reader.read_to_end(&mut content).map_err(failed)?;
            let text = kind::decode_utf16(&content, order);
            show(&path, &mut text.as_bytes(), &request, vec!["decoded from UTF-16".to_owned()])
        }
        Kind::Utf16(_) => Ok(Output::text(format!(
            "[`{path}` is a text in UTF-16 of {}, too large to be decoded here]",
            bytes(size)
        ))),
        Kind::Binary(Some(image)) if is_shown(image) => {
            let head = format!("`{path}` is an image: {image}, {}", bytes(size));
            if size > IMAGE_BYTES {
                return Ok(Output::text(format!(
                    "[{head}; too large to be shown, which ends at {}]",
                    bytes(IMAGE_BYTES)
                )));
            }
            let mut data = Vec::new();
            reader.take(IMAGE_BYTES).read_to_end(&mut data).map_err(failed)?;
            Ok(Output::text(format!("[{head}]")).with_image(image, data))
        }
        Kind::Binary(media_type) => Ok(Output::text(format!(
            "[`{path}` is a binary file, not text: {}, {}]",
            media_type.unwrap_or("of unknown kind"),
            bytes(size)
        ))),
    }
}

fn open(path: &WorkspacePath) -> Result<(File, u64), Failure> {
    let metadata = path.place().metadata().map_err(|error| path.explain("read", error))?;
    if metadata.is_dir() {
        return Err(Failure::failed(format!(
            "`{path}` is a folder, not a file: look into it with `list_directory`"
        )));
    }
    // Opening a pipe waits for its other end.
    if !metadata.is_file() {
        return Err(Failure::failed(format!(
            "`{path}` is neither a file nor a folder, and cannot be read"
        )));
    }
    let file = File::open(path.place()).map_err(|error| path.explain("read", error))?;
    Ok((file, metadata.len()))
}

fn is_shown(media_type: &str) -> bool {
    matches!(media_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

struct Request {
    offset: u64,
    limit: u64,
    line_numbers: bool,
    size: u64,
}

fn show(
    path: &WorkspacePath,
    reader: &mut impl BufRead,
    request: &Request,
    mut notes: Vec<String>,
) -> Result<Output, Failure> {
    let failed = |error| path.explain("read", error);
    let skipped = lines::skip(reader, request.offset - 1).map_err(failed)?;
    let excerpt = excerpt(reader, request).map_err(failed)?;
    if excerpt.shown == 0 {
        return Err(Failure::failed(format!(
            "`{path}` has {}: there is nothing from line {} on",
            count(skipped, "line"),
            request.offset
        )));
    }
    notes.extend(left_out(request, &excerpt));
    notes.extend(long_lines(&excerpt));
    if excerpt.has_other_bytes {
        notes.push("bytes that are not UTF-8 are shown as \u{fffd}".to_owned());
    }
    if excerpt.has_crlf {
        notes.push("lines end in CRLF, which `edit_file` keeps".to_owned());
    }
    let output = Output::text(excerpt.text);
    Ok(if notes.is_empty() { output } else { output.with_text(format!("[{}]", notes.join("; "))) })
}

/// What is shown of a file.
#[derive(Default)]
struct Excerpt {
    text: String,
    /// How many lines.
    shown: u64,
    /// Lines that were cut, with their whole lengths.
    long: Vec<(u64, u64)>,
    has_other_bytes: bool,
    has_crlf: bool,
    /// How many lines come after; none where there are more than were counted.
    after: Option<u64>,
}

fn excerpt(reader: &mut impl BufRead, request: &Request) -> io::Result<Excerpt> {
    let mut excerpt = Excerpt::default();
    let mut rejected = 0;
    while excerpt.shown < request.limit {
        let Some(line) = lines::next(reader, LINE_BYTES)? else { break };
        let number = request.offset + excerpt.shown;
        let text = String::from_utf8_lossy(&line.bytes);
        let mut shown = String::with_capacity(text.len() + 16);
        if request.line_numbers {
            // Writing to a string cannot fail.
            let _ = write!(shown, "{number:>6}\t");
        }
        // A cut may have split the last character, which is then no error of the file.
        let text = if line.is_cut() { text.trim_end_matches('\u{fffd}') } else { &text };
        shown.push_str(cut(text, LINE_BYTES));
        if line.is_cut() {
            shown.push_str(" …\n");
        }
        if excerpt.text.len() + shown.len() > TEXT_BYTES {
            rejected = 1;
            break;
        }
        if line.is_cut() {
            excerpt.long.push((number, line.length));
        }
        excerpt.has_other_bytes |= text.contains('\u{fffd}') && !has_replacement(&line.bytes);
        excerpt.has_crlf |= text.ends_with("\r\n");
        excerpt.text.push_str(&shown);
        excerpt.shown += 1;
    }
    excerpt.after = lines::count(reader, COUNTED_BYTES)?.map(|after| after + rejected);
    Ok(excerpt)
}

/// Whether the file itself has the character that stands for bytes that are none.
fn has_replacement(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, "\u{fffd}".as_bytes()).is_some()
}

fn left_out(request: &Request, excerpt: &Excerpt) -> Option<String> {
    let first = request.offset;
    let next = first + excerpt.shown;
    let before = (first > 1).then(|| range(1, first - 1));
    match excerpt.after {
        Some(0) => {
            let total = next - 1;
            before.map(|before| format!("{before} of {total} left out"))
        }
        Some(after) => {
            let total = next - 1 + after;
            let after = range(next, total);
            let left_out = match before {
                // `line 1 and lines 5–9` says more than one range needs.
                Some(before) => format!("{before} and {after}"),
                None => after,
            };
            Some(format!("{left_out} of {total} left out: read on with offset {next}"))
        }
        None => {
            let before = before.map(|before| format!("{before} and ")).unwrap_or_default();
            Some(format!(
                "{before}all from line {next} on left out, of {}: read on with offset {next}",
                bytes(request.size)
            ))
        }
    }
}

fn range(first: u64, last: u64) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first}–{last}") }
}

fn long_lines(excerpt: &Excerpt) -> Option<String> {
    if excerpt.long.is_empty() {
        return None;
    }
    let mut named: Vec<String> = excerpt
        .long
        .iter()
        .take(LONG_LINES)
        .map(|(number, length)| format!("line {number} of {}", bytes(*length)))
        .collect();
    if excerpt.long.len() > LONG_LINES {
        named.push(format!("{} more", excerpt.long.len() - LONG_LINES));
    }
    Some(format!("cut to {} each: {}", bytes(LINE_BYTES as u64), named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Folder, arguments, json, texts};

    fn numbered(lines: std::ops::RangeInclusive<u64>) -> String {
        lines.map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn a_short_file_is_returned_as_it_is() {
        for text in ["one\ntwo\n", "no end", "\n", "t\u{e4}b\tspace  \n\n", "\u{feff}mark\n"] {
            let folder = Folder::with(&[("a", text.as_bytes())]);
            let output = read(&folder.workspace, &arguments(json!({"path": "./a"})));
            assert_eq!(output, Ok(texts(&[text])), "{text:?}");
        }
    }

    #[test]
    fn offset_and_limit_say_what_they_leave_out() {
        let folder = Folder::with(&[("a", numbered(1..=10).as_bytes())]);
        for (offset, limit, lines, note) in [
            (1, 10, 1..=10, ""),
            (1, 4, 1..=4, "[lines 5–10 of 10 left out: read on with offset 5]"),
            (1, 9, 1..=9, "[line 10 of 10 left out: read on with offset 10]"),
            (4, 3, 4..=6, "[lines 1–3 and lines 7–10 of 10 left out: read on with offset 7]"),
            (2, 99, 2..=10, "[line 1 of 10 left out]"),
            (10, 1, 10..=10, "[lines 1–9 of 10 left out]"),
        ] {
            let output = read(
                &folder.workspace,
                &arguments(json!({"path": "a", "offset": offset, "limit": limit})),
            );
            let text = numbered(lines);
            let expected = if note.is_empty() { texts(&[&text]) } else { texts(&[&text, note]) };
            assert_eq!(output, Ok(expected));
        }
    }

    #[test]
    fn by_default_a_long_file_is_read_in_pieces() {
        let folder = Folder::with(&[("a", "x\n".repeat(5_312).as_bytes())]);
        let output = read(&folder.workspace, &arguments(json!({"path": "a"})));
        let note = "[lines 2001–5312 of 5312 left out: read on with offset 2001]";
        assert_eq!(output, Ok(texts(&[&"x\n".repeat(2_000), note])));
    }

    #[test]
    fn text_ends_below_the_size_of_a_result() {
        let line = format!("{}\n", "y".repeat(1_023));
        let folder = Folder::with(&[("a", line.repeat(60).as_bytes())]);
        let output = read(&folder.workspace, &arguments(json!({"path": "a"})));
        let note = "[lines 51–60 of 60 left out: read on with offset 51]";
        assert_eq!(output, Ok(texts(&[&line.repeat(50), note])));
    }

    #[test]
    fn line_numbers_are_those_of_the_file() {
        let folder = Folder::with(&[("a", b"one\ntwo\nthree")]);
        let output = read(
            &folder.workspace,
            &arguments(json!({"path": "a", "offset": 2, "line_numbers": true})),
        );
        assert_eq!(output, Ok(texts(&["     2\ttwo\n     3\tthree", "[line 1 of 3 left out]"])));
    }

    #[test]
    fn long_lines_are_cut_and_named() {
        let text = format!("short\n{}\nend\n", "\u{e4}".repeat(3_000));
        let folder = Folder::with(&[("a", text.as_bytes())]);
        let output = read(&folder.workspace, &arguments(json!({"path": "a"})));
        let shown = format!("short\n{} …\nend\n", "\u{e4}".repeat(1_000));
        let note = "[cut to 2,000 bytes each: line 2 of 6,001 bytes]";
        assert_eq!(output, Ok(texts(&[&shown, note])));
    }

    #[test]
    fn other_encodings_and_line_ends_are_noted() {
        for (content, shown, note) in [
            (
                &b"gr\xfcn\n"[..],
                "gr\u{fffd}n\n",
                "[bytes that are not UTF-8 are shown as \u{fffd}]",
            ),
            (b"a\r\nb\r\n", "a\r\nb\r\n", "[lines end in CRLF, which `edit_file` keeps]"),
            (b"\xff\xfeh\0i\0\n\0", "hi\n", "[decoded from UTF-16]"),
        ] {
            let folder = Folder::with(&[("a", content)]);
            let output = read(&folder.workspace, &arguments(json!({"path": "a"})));
            assert_eq!(output, Ok(texts(&[shown, note])));
        }
        let folder = Folder::with(&[("a", "\u{fffd}\n".as_bytes())]);
        let output = read(&folder.workspace, &arguments(json!({"path": "a"})));
        assert_eq!(output, Ok(texts(&["\u{fffd}\n"])), "the file's own character is no error");
    }

    #[test]
    fn what_is_no_text_is_answered_by_kind_and_size() {
        let image = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let mut large = image.to_vec();
        large.resize(3 * 1024 * 1024 + 1, 0);
        let folder = Folder::with(&[
            ("empty", b""),
            ("a.png", image),
            ("large.png", &large),
            ("a.wasm", b"\0asm\x01\0\0\0"),
            ("odd", b"a\0b"),
        ]);
        for (path, output) in [
            ("empty", texts(&["[`empty` is an empty file]"])),
            (
                "a.png",
                texts(&["[`a.png` is an image: image/png, 16 bytes]"])
                    .with_image("image/png", image.to_vec()),
            ),
            (
                "large.png",
                texts(&["[`large.png` is an image: image/png, 3,145,729 bytes; too large to be \
                         shown, which ends at 3,145,728 bytes]"]),
            ),
            (
                "a.wasm",
                texts(&["[`a.wasm` is a binary file, not text: application/wasm, 8 bytes]"]),
            ),
            ("odd", texts(&["[`odd` is a binary file, not text: of unknown kind, 3 bytes]"])),
        ] {
            assert_eq!(read(&folder.workspace, &arguments(json!({"path": path}))), Ok(output));
        }
    }

    #[test]
    fn a_file_of_gigabytes_is_never_read_whole() {
        let folder = Folder::with(&[("a", b"first\nsecond\n")]);
        // A sparse file: the rest is one line of NULs, 3 GiB of them.
        let file = File::options().write(true).open(folder.place("a")).unwrap();
        let size = 3 * 1024 * 1024 * 1024;
        io::Seek::seek(&mut &file, io::SeekFrom::Start(16 * 1024)).unwrap();
        io::Write::write_all(&mut &file, &[b'x'; 2]).unwrap();
        // What is judged has no NUL.
        io::Seek::seek(&mut &file, io::SeekFrom::Start(0)).unwrap();
        io::Write::write_all(&mut &file, "text\n".repeat(2_000).as_bytes()).unwrap();
        file.set_len(size).unwrap();
        let output = read(&folder.workspace, &arguments(json!({"path": "a", "limit": 2})));
        let note = "[all from line 3 on left out, of 3,221,225,472 bytes: read on with offset 3]";
        assert_eq!(output, Ok(texts(&["text\ntext\n", note])));
    }

    #[test]
    fn what_cannot_be_read_says_what_to_do() {
        let folder = Folder::with(&[("src/main.rs", b"x\ny\n")]);
        let failed = |text: &str| Failure::failed(text);
        let invalid = |text: &str| Failure::invalid_arguments(text);
        for (arguments_json, failure) in [
            (
                json!({"path": "src"}),
                failed("`src` is a folder, not a file: look into it with `list_directory`"),
            ),
            (
                json!({"path": "src/mian.rs"}),
                failed(
                    "`src/mian.rs` does not exist: `src` holds no `mian.rs`; did you mean \
                     `src/main.rs`?",
                ),
            ),
            (
                json!({"path": "src/main.rs", "offset": 3}),
                failed("`src/main.rs` has 2 lines: there is nothing from line 3 on"),
            ),
            (
                json!({"path": "src/main.rs", "offset": 0}),
                invalid("`offset` is 0: lines are counted from 1"),
            ),
            (
                json!({"path": "src/main.rs", "limit": 0}),
                invalid("`limit` is 0: ask for one line or more"),
            ),
            (
                json!({"path": "/src/main.rs"}),
                Failure::denied(
                    "`/src/main.rs` is an absolute path: all paths are relative to the workspace, \
                     and nothing outside it can be reached; write `src/main.rs`",
                ),
            ),
        ] {
            assert_eq!(read(&folder.workspace, &arguments(arguments_json)), Err(failure));
        }
    }
}
