//! Searches as a model asks for them, and their whole answers.

use super::*;
use belljar_sdk::serde_json::{self, Value, json};
use std::fs;

struct Folder(tempfile::TempDir);

impl Folder {
    fn with(files: &[(&str, &[u8])]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (file, bytes) in files {
            let place = folder.path().join(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, bytes).unwrap();
        }
        Self(folder)
    }

    fn search(&self, call: Value) -> Result<String, Failure> {
        self.search_within(call, &|| Duration::MAX)
    }

    fn search_within(
        &self,
        call: Value,
        remaining: &dyn Fn() -> Duration,
    ) -> Result<String, Failure> {
        let arguments: SearchText = serde_json::from_value(call).unwrap();
        let output = search(&Workspace::at(self.0.path()), &arguments, remaining)?;
        let [belljar_sdk::Content::Text(text)] = &output.content[..] else {
            panic!("one text: {output:?}")
        };
        Ok(text.clone())
    }

    fn check(&self, call: Value, expected: &str) {
        assert_eq!(self.search(call.clone()), Ok(expected.to_owned()), "{call}");
    }
}

fn project() -> Folder {
    Folder::with(&[
        (".gitignore", b"/target\n"),
        (".env", b"token = 1\n"),
        (".git/config", b"token\n"),
        ("README.md", b"The Token is read.\r\nEnd of token\r\n"),
        ("src/a.rs", b"fn token() {}\n\nfn other() {}\nlet token = a.b(1);\n"),
        ("src/b.rs", b"nothing\n"),
        ("src/deep/c.rs", b"a\nb\ntoken\nd\ne\n"),
        ("logo.png", b"\x89PNG\0token\n"),
        ("target/out.rs", b"token\n"),
    ])
}

#[test]
fn matches_are_grouped_by_file_in_order() {
    project().check(
        json!({"pattern": "token"}),
        "README.md:2: End of token\n\
         src/a.rs:1: fn token() {}\n\
         src/a.rs:4: let token = a.b(1);\n\
         src/deep/c.rs:3: token\n\
         [4 matches in 3 files, of 4 searched; 1 binary file skipped]",
    );
}

#[test]
fn options_choose_what_is_searched_and_how() {
    let folder = project();
    for (call, expected) in [
        (
            json!({"pattern": "^the TOKEN", "ignore_case": true}),
            "README.md:1: The Token is read.\n\
             [1 match in 1 file, of 4 searched; 1 binary file skipped]",
        ),
        (
            json!({"pattern": "a.b(1)", "literal": true}),
            "src/a.rs:4: let token = a.b(1);\n\
             [1 match in 1 file, of 4 searched; 1 binary file skipped]",
        ),
        (
            json!({"pattern": "token$", "path": "README.md"}),
            "README.md:2: End of token\n[1 match in 1 file, of 1 searched]",
        ),
        (
            json!({"pattern": "token", "path": "src/deep"}),
            "src/deep/c.rs:3: token\n[1 match in 1 file, of 1 searched]",
        ),
        (
            json!({"pattern": "token", "glob": "*.md"}),
            "README.md:2: End of token\n[1 match in 1 file, of 1 searched]",
        ),
        (
            json!({"pattern": "token", "glob": ["*.rs", "!deep"]}),
            "src/a.rs:1: fn token() {}\nsrc/a.rs:4: let token = a.b(1);\n\
             [2 matches in 1 file, of 2 searched]",
        ),
        (
            json!({"pattern": "token", "files_only": true, "context": 2}),
            "README.md: 1 match\nsrc/a.rs: 2 matches\nsrc/deep/c.rs: 1 match\n\
             [4 matches in 3 files, of 4 searched; 1 binary file skipped]",
        ),
        (
            json!({"pattern": "token", "hidden": true, "glob": ".*"}),
            ".env:1: token = 1\n[1 match in 1 file, of 2 searched]",
        ),
        (
            json!({"pattern": "token", "ignored": true, "glob": "out.rs"}),
            "target/out.rs:1: token\n[1 match in 1 file, of 1 searched]",
        ),
        // What is named itself is searched.
        (
            json!({"pattern": "token", "path": "target"}),
            "target/out.rs:1: token\n[1 match in 1 file, of 1 searched]",
        ),
        (
            json!({"pattern": "token", "path": ".env", "glob": "*.rs"}),
            ".env:1: token = 1\n[1 match in 1 file, of 1 searched]",
        ),
        (
            json!({"pattern": "token", "path": "logo.png"}),
            "[nothing was searched: no file below `logo.png` was taken; 1 binary file skipped]",
        ),
        (json!({"pattern": "absent", "glob": "*.rs"}), "[no match for `absent` in 3 files]"),
        (
            json!({"pattern": "absent", "glob": "*.py"}),
            "[nothing was searched: no file below `.` was taken]",
        ),
    ] {
        folder.check(call, expected);
    }
}

#[test]
fn lines_around_a_match_are_marked() {
    let folder =
        Folder::with(&[("a", b"1\n2\nhit\n4\n5\n6\n7\nhit\n9\nhit\n11\n"), ("b", b"hit\nx\n")]);
    folder.check(
        json!({"pattern": "hit", "context": 1}),
        "a-2- 2\na:3: hit\na-4- 4\n--\na-7- 7\na:8: hit\na-9- 9\na:10: hit\na-11- 11\n\
         b:1: hit\nb-2- x\n\
         [4 matches in 2 files, of 2 searched]",
    );
    folder.check(
        json!({"pattern": "hit", "context": 1, "limit": 1}),
        "a-2- 2\na:3: hit\na-4- 4\n\
         [1 of 4 matches shown, in 2 files, of 2 searched: narrow down with `path` or `glob`, or \
         raise `limit`]",
    );
}

#[test]
fn a_limit_shows_the_first_and_counts_all() {
    let folder =
        Folder::with(&[("a", "hit\n".repeat(3).as_bytes()), ("b", b"hit\nno\n"), ("c", b"hit\n")]);
    folder.check(
        json!({"pattern": "hit", "limit": 2}),
        "a:1: hit\na:2: hit\n\
         [2 of 5 matches shown, in 3 files, of 3 searched: narrow down with `path` or `glob`, or \
         raise `limit`]",
    );
    folder.check(
        json!({"pattern": "hit", "limit": 3}),
        "a:1: hit\na:2: hit\na:3: hit\n\
         [3 of 5 matches shown, in 3 files, of 3 searched: narrow down with `path` or `glob`, or \
         raise `limit`]",
    );
    folder.check(
        json!({"pattern": "hit", "limit": 2, "files_only": true}),
        "a: 3 matches\nb: 1 match\n\
         [2 of 3 files with matches shown, of 3 searched: narrow down with `path` or `glob`, or \
         raise `limit`]",
    );
}

#[test]
fn an_answer_stays_below_the_size_of_a_result() {
    let line = format!("hit {}\n", "x".repeat(380));
    let folder = Folder::with(&[("a", line.repeat(1_000).as_bytes())]);
    let text = folder.search(json!({"pattern": "hit", "limit": 2_000})).unwrap();
    let note = "[130 of 1,000 matches shown, in 1 file, of 1 searched: narrow down with `path` or \
                `glob`]";
    assert!(text.ends_with(note), "{}", &text[text.len() - 200..]);
    assert!(text.len() < 52 * 1024, "{}", text.len());
}

#[test]
fn a_long_line_is_cut_around_its_match() {
    let line = format!("{}needle{}\n", "a".repeat(5_000), "b".repeat(5_000));
    Folder::with(&[("a.min.js", line.as_bytes())]).check(
        json!({"pattern": "needle"}),
        &format!(
            "a.min.js:1: … {}needle{} …\n[1 match in 1 file, of 1 searched]",
            "a".repeat(100),
            "b".repeat(294)
        ),
    );
}

#[test]
fn other_encodings_are_searched() {
    let folder = Folder::with(&[
        ("latin", b"gr\xfcn needle\n"),
        ("utf16", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0"),
    ]);
    folder.check(
        json!({"pattern": "needle"}),
        "latin:1: gr\u{fffd}n needle\nutf16:1: needle\n[2 matches in 2 files, of 2 searched]",
    );
}

#[test]
fn matches_before_the_first_nul_of_a_binary_file_are_not_shown() {
    let mut binary = b"hit\n".repeat(40_000);
    binary.push(0);
    Folder::with(&[("a.bin", &binary), ("b", b"hit\n")]).check(
        json!({"pattern": "hit"}),
        "b:1: hit\n[1 match in 1 file, of 1 searched; 1 binary file skipped]",
    );
}

#[test]
fn very_large_files_are_searched_only_by_name() {
    let folder = Folder::with(&[("large", b""), ("small", b"hit\n")]);
    let file = File::options().write(true).open(folder.0.path().join("large")).unwrap();
    file.set_len(FILE_BYTES + 1).unwrap();
    folder.check(
        json!({"pattern": "hit"}),
        "small:1: hit\n[1 match in 1 file, of 1 searched; 1 very large file skipped]",
    );
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let folder = Folder::with(&[("a", b"hit\n")]);
    std::os::unix::fs::symlink("a", folder.0.path().join("link")).unwrap();
    std::os::unix::fs::symlink(".", folder.0.path().join("loop")).unwrap();
    folder.check(json!({"pattern": "hit"}), "a:1: hit\n[1 match in 1 file, of 1 searched]");
}

#[test]
fn a_search_that_runs_out_of_time_says_what_it_has() {
    let folder = Folder::with(&[("a", b"hit\n"), ("b", b"hit\n")]);
    let looks = std::cell::Cell::new(0);
    let remaining = || {
        looks.set(looks.get() + 1);
        // At the start, before the first file, before the second.
        Duration::from_secs(if looks.get() < 3 { 30 } else { 2 })
    };
    assert_eq!(
        folder.search_within(json!({"pattern": "hit"}), &remaining),
        Ok("a:1: hit\n[at least 1 match in 1 file, of 1 searched; the time for this call was \
            nearly over, and the rest was not searched: narrow down with `path` or `glob`]"
            .to_owned())
    );
}

#[test]
fn what_cannot_be_searched_says_why() {
    let folder = project();
    let invalid = |text: &str| Failure::invalid_arguments(text);
    for (call, failure) in [
        (json!({"pattern": "a", "limit": 0}), invalid("`limit` is 1 to 2000, was 0")),
        (
            json!({"pattern": "a", "context": 51}),
            invalid("`context` is at most 50 lines, was 51: read the file instead"),
        ),
        (
            json!({"pattern": "a", "glob": "x["}),
            invalid(
                "`x[` is not a glob: unclosed character class at byte 1; missing ']' (to match a \
                 literal '[', escape it as '\\[' or '[[]')",
            ),
        ),
        (
            json!({"pattern": "a", "path": "scr"}),
            Failure::failed("`scr` does not exist; did you mean `src`?"),
        ),
        (
            json!({"pattern": "a", "path": "/etc"}),
            Failure::denied(
                "`/etc` is an absolute path: all paths are relative to the workspace, and nothing \
                 outside it can be reached; `.` is the workspace itself",
            ),
        ),
        (
            json!({"pattern": "a", "path": "src/../../x"}),
            Failure::denied(
                "`src/../../x` climbs out of the workspace: all paths are relative to the \
                 workspace, and nothing outside it can be reached; `.` is the workspace itself",
            ),
        ),
    ] {
        assert_eq!(folder.search(call), Err(failure));
    }
}

#[test]
fn people_hear_how_far_a_long_search_is() {
    let folder = Folder::with(&[]);
    for number in 0..1_001 {
        fs::write(folder.0.path().join(number.to_string()), "x").unwrap();
    }
    let (text, calls) =
        belljar_sdk::testing::record(|| folder.search(json!({"pattern": "absent"})));
    assert_eq!(text, Ok("[no match for `absent` in 1,001 files]".to_owned()));
    let progress = belljar_sdk::testing::HostCall::Progress {
        done: 1_000,
        total: None,
        message: "files searched".to_owned(),
    };
    assert_eq!(calls, [progress]);
}
