use super::*;
use crate::{places::Places, prompt::Clock};
use belljar_types::Journal as _;
use std::{fs, path::Path};

struct Fixture {
    _guard: tempfile::TempDir,
    places: Places,
    store: SessionStore,
    id: String,
}

fn fixture() -> Fixture {
    let guard = tempfile::tempdir().unwrap();
    let places = Places::below(guard.path());
    let store = SessionStore::open(&places).unwrap();
    let id = store.create(Path::new("/w"), &Clock::system()).unwrap().session().to_owned();
    Fixture { _guard: guard, places, store, id }
}

impl Fixture {
    fn results(&self) -> SessionResults {
        self.store.results(&self.id, ResultLimits::default()).unwrap()
    }
}

#[test]
fn results_are_kept_whole_and_numbered_across_runs() {
    let fixture = fixture();
    let results = fixture.results();
    let first = results.keep("read_file", "one").unwrap();
    assert_eq!(first, KeptResult { name: "0001-read_file.txt".to_owned(), bytes: 3 });
    assert_eq!(first.guest_path(), "/results/0001-read_file.txt");
    let odd = results.keep("../Evil tool\u{0}/ü", "two").unwrap();
    assert_eq!(odd.name, "0002-___Evil_tool___.txt");
    drop(results);
    let results = fixture.results();
    assert_eq!(results.keep("read_file", "three").unwrap().name, "0003-read_file.txt");
    let read = |name: &str| fs::read_to_string(results.folder().join(name)).unwrap();
    assert_eq!([read(&first.name), read(&odd.name)], ["one", "two"]);
    assert_eq!(results.folder(), fixture.places.sessions().join(format!("{}.results", fixture.id)));
}

#[test]
fn a_result_is_read_in_pieces_that_end_between_characters() {
    let fixture = fixture();
    let results = fixture.results();
    let text = "aé漢😀z".repeat(50);
    let name = results.keep("t", &text).unwrap().name;
    let bytes = text.len() as u64;
    for length in [0, 1, 3, 4, 5, 7, 64, 10_000] {
        let (mut all, mut next) = (String::new(), Some(0));
        while let Some(offset) = next {
            let piece = results.read(&name, offset, length).unwrap();
            assert!(piece.text.len() <= length.max(4), "{length}");
            assert!(piece.next.is_none_or(|next| next > offset), "{length}");
            all.push_str(&piece.text);
            next = piece.next;
        }
        assert_eq!(all, text, "{length}");
    }
    // Anywhere inside a character: from its beginning.
    for (offset, first) in
        [(0, 'a'), (1, 'é'), (2, 'é'), (3, '漢'), (5, '漢'), (9, '😀'), (10, 'z')]
    {
        let piece = results.read(&name, offset, 4).unwrap();
        assert_eq!(piece.text.chars().next(), Some(first), "{offset}");
    }
    let end = Piece { text: String::new(), next: None, bytes };
    assert_eq!(results.read(&name, bytes, 10).unwrap(), end);
    assert_eq!(results.read(&name, u64::MAX, 10).unwrap(), end);
    assert_eq!(results.read(&name, bytes - 1, usize::MAX).unwrap().text, "z");
}

#[test]
fn only_what_was_kept_can_be_read() {
    let fixture = fixture();
    let results = fixture.results();
    let session = format!("{}.jsonl", fixture.id);
    for name in
        ["", "x", "../x", session.as_str(), "0001-t.txt", "0001-../t.txt", "1-t.txt", "0001-t"]
    {
        let error = results.read(name, 0, 10).unwrap_err().to_string();
        assert_eq!(error, format!("there is no result `{name}`"));
    }
    #[cfg(unix)]
    {
        let secret = fixture.places.state.join("secret");
        fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, results.folder().join("0001-t.txt")).unwrap();
        assert_eq!(
            results.read("0001-t.txt", 0, 10).unwrap_err().to_string(),
            "the result `0001-t.txt` is not read: it is a link, and links are not followed: put \
             the text into the file itself"
        );
        // And nothing is written through one.
        assert!(results.keep("t", "x").is_err());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    }
}

#[test]
fn what_is_kept_is_bounded_and_nothing_is_left_of_what_is_not() {
    let fixture = fixture();
    let limits = ResultLimits { result: 10, all: 25, count: 4 };
    let results = fixture.store.results(&fixture.id, limits).unwrap();
    let keep = |results: &SessionResults, bytes: usize| {
        results.keep("t", &"x".repeat(bytes)).map(|kept| kept.bytes).map_err(|e| e.to_string())
    };
    assert_eq!(
        keep(&results, 11),
        Err("a result of 11 bytes is not kept: 10 are the most".to_owned())
    );
    assert_eq!([keep(&results, 10), keep(&results, 10)], [Ok(10), Ok(10)]);
    let full = |count, bytes| {
        Err(format!(
            "no more results are kept: this session has {count} of them with {bytes} bytes"
        ))
    };
    assert_eq!(keep(&results, 6), full(2, 20));
    assert_eq!([keep(&results, 5), keep(&results, 0)], [Ok(5), Ok(0)]);
    assert_eq!(keep(&results, 0), full(4, 25));
    // What is there counts the next time too.
    let results = fixture.store.results(&fixture.id, limits).unwrap();
    assert_eq!(keep(&results, 0), full(4, 25));
    assert_eq!(fs::read_dir(results.folder()).unwrap().count(), 4);
}

#[test]
fn results_go_with_their_session_and_with_no_other() {
    let fixture = fixture();
    let other = fixture.store.create(Path::new("/w"), &Clock::system()).unwrap();
    let kept = fixture.store.results(other.session(), ResultLimits::default()).unwrap();
    kept.keep("t", "x").unwrap();
    let results = fixture.results();
    results.keep("t", "x").unwrap();
    let folder = results.folder().to_owned();
    // A session that is in use keeps them.
    assert!(matches!(fixture.store.remove(other.session()), Err(SessionError::Busy { .. })));
    fixture.store.remove(&fixture.id).unwrap();
    assert!(!folder.exists() && kept.folder().exists());
    let unknown = fixture.store.results(&fixture.id, ResultLimits::default()).unwrap_err();
    assert!(matches!(unknown, SessionError::Unknown { .. }), "{unknown}");
    assert_eq!(fixture.store.list().unwrap().sessions.len(), 1);
}

#[cfg(unix)]
#[test]
fn the_folder_is_private_and_what_is_not_is_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let fixture = fixture();
    let results = fixture.results();
    let name = results.keep("t", "x").unwrap().name;
    let folder = results.folder().to_owned();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&folder), mode(&folder.join(name))), (0o700, 0o600));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let open = || fixture.store.results(&fixture.id, ResultLimits::default()).map(drop);
    let error = open().unwrap_err().to_string();
    assert!(error.contains("can be read or written by others (mode 0755)"), "{error}");

    // A link in its place is not opened, and what it leads to is not removed with the session.
    let elsewhere = fixture.places.state.join("elsewhere");
    fs::rename(&folder, &elsewhere).unwrap();
    symlink(&elsewhere, &folder).unwrap();
    assert!(open().is_err());
    fixture.store.remove(&fixture.id).unwrap();
    assert!(folder.symlink_metadata().is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 1);
}

#[test]
fn an_excerpt_is_cut_between_characters() {
    let of = |text, head, tail| {
        let Excerpt { head, left_out, tail } = Excerpt::of(text, head, tail);
        (head, left_out, tail)
    };
    assert_eq!(of("", 2, 2), ("", 0, ""));
    assert_eq!(of("abcd", 2, 2), ("abcd", 0, ""));
    assert_eq!(of("abcde", 2, 2), ("ab", 1, "de"));
    assert_eq!(of("éééé", 3, 3), ("é", 4, "é"));
    assert_eq!(of("abcde", 0, 0), ("", 5, ""));
    assert_eq!(of("abcde", usize::MAX, 1), ("abcde", 0, ""));
}
