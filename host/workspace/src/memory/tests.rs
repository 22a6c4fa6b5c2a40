use super::*;
use std::fs;

struct Fixture {
    _guard: tempfile::TempDir,
    places: Places,
    memory: Memory,
}

fn fixture() -> Fixture {
    let guard = tempfile::tempdir().unwrap();
    let places = Places::below(guard.path());
    let memory = Memory::new(&places, Path::new("/home/u/My project"));
    Fixture { _guard: guard, places, memory }
}

fn entry(name: &str, summary: &str, bytes: usize) -> MemoryEntry {
    MemoryEntry { name: name.to_owned(), summary: summary.to_owned(), bytes }
}

fn message<T: std::fmt::Debug>(result: Result<T, MemoryError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_is_written_is_listed_read_and_removed() {
    let Fixture { memory, .. } = &fixture();
    assert_eq!(memory.index().unwrap(), MemoryIndex::default());
    assert!(!memory.folder().exists(), "looking makes nothing");
    assert_eq!(message(memory.read("x")), "there is no memory `x`: nothing has been kept yet");
    assert_eq!(message(memory.remove("x")), "there is no memory `x`: nothing has been kept yet");

    let text = "\n## How to build\u{7}\n\nRun the tests.\n";
    assert_eq!(memory.write("build-steps", text).unwrap(), Written::Added);
    assert_eq!(memory.write("build-steps", text).unwrap(), Written::Unchanged);
    let long = "é".repeat(121);
    assert_eq!(memory.write("a", &long).unwrap(), Written::Added);
    assert_eq!(memory.write("a", &format!("{long}!")).unwrap(), Written::Replaced);
    let entries = vec![
        entry("a", &format!("{}…", "é".repeat(120)), 243),
        entry("build-steps", "How to build", text.len()),
    ];
    assert_eq!(memory.index().unwrap(), MemoryIndex { entries, notices: Vec::new() });
    assert_eq!(memory.read("build-steps").unwrap(), text);
    assert_eq!(
        message(memory.read("build-stepz")),
        "there is no memory `build-stepz`: did you mean `build-steps`?"
    );
    assert_eq!(
        message(memory.remove("other")),
        "there is no memory `other`: the index lists what there is"
    );
    memory.remove("a").unwrap();
    assert_eq!(memory.index().unwrap().entries.len(), 1);
}

#[test]
fn no_two_workspaces_share_a_memory() {
    let Fixture { places, memory, .. } = &fixture();
    memory.write("a", "x").unwrap();
    for other in ["/home/u/my project", "/home/u/My-project", "/home/v/My project", "/"] {
        let other = Memory::new(places, Path::new(other));
        assert_eq!(other.index().unwrap(), MemoryIndex::default());
    }
    let same = Memory::new(places, Path::new("/home/u/My project"));
    assert_eq!(same.read("a").unwrap(), "x");
    let name = memory.folder().file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("my-project-") && name.len() == 43, "{name}");
}

#[test]
fn names_and_texts_are_bounded() {
    let Fixture { memory, .. } = &fixture();
    for name in ["", "..", "../x", "a/b", "A", "a.md", ".lock", "-a", "a-", "ü", &"a".repeat(65)] {
        let error = format!(
            "`{name}` cannot be the name of a memory: use 1 to 64 lower-case letters, digits and \
             hyphens"
        );
        assert_eq!(message(memory.write(name, "x")), error);
        assert_eq!(message(memory.read(name)), error);
        assert_eq!(message(memory.remove(name)), error);
    }
    assert_eq!(
        message(memory.write("a", " \n")),
        "the text of the memory `a` is empty: write something, or remove it"
    );
    assert_eq!(
        message(memory.write("a", &"x".repeat(MAX_MEMORY + 1))),
        "the memory `a` has 16385 bytes, and 16384 are allowed: make it shorter"
    );
    assert!(!memory.folder().exists());
}

#[test]
fn there_is_room_for_so_many_and_so_much() {
    let full = "there is no room for the memory `last`: a workspace keeps at most 100 of 262144 \
                bytes together; remove or shorten others first";
    let many = fixture();
    for number in 0..MAX_ENTRIES {
        many.memory.write(&format!("m{number}"), "x").unwrap();
    }
    assert_eq!(message(many.memory.write("last", "x")), full);
    assert_eq!(many.memory.write("m0", "y").unwrap(), Written::Replaced);

    let much = fixture();
    for number in 0..MAX_ALL / MAX_MEMORY {
        much.memory.write(&format!("m{number}"), &"x".repeat(MAX_MEMORY)).unwrap();
    }
    assert_eq!(message(much.memory.write("last", "x")), full);
    much.memory.write("m0", "shorter").unwrap();
    much.memory.write("last", "x").unwrap();
}

/// A process that was ended while it wrote leaves a file that is in nobody's way.
#[test]
fn a_write_that_did_not_end_changes_nothing() {
    let Fixture { memory, .. } = &fixture();
    memory.write("a", "before").unwrap();
    fs::write(memory.folder().join(TEMPORARY), "half of a te").unwrap();
    assert_eq!(memory.index().unwrap().entries, [entry("a", "before", 6)]);
    assert_eq!(memory.write("a", "after").unwrap(), Written::Replaced);
    assert_eq!(memory.read("a").unwrap(), "after");
    assert!(!memory.folder().join(TEMPORARY).exists());
}

#[test]
fn writers_take_turns() {
    let Fixture { memory, .. } = &fixture();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for number in 0..10 {
                    memory.write(&format!("t{thread}-{number}"), "x").unwrap();
                    memory.write("same", &format!("{thread} {number}")).unwrap();
                }
            });
        }
    });
    assert_eq!(memory.index().unwrap().entries.len(), 81);
}

#[cfg(unix)]
#[test]
fn files_are_private_and_what_is_not_is_named_and_not_read() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let Fixture { places, memory, .. } = &fixture();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    memory.write("a", "x").unwrap();
    let file = memory.folder().join("a.md");
    assert_eq!((mode(memory.folder()), mode(&file)), (0o700, 0o600));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    symlink(places.data.join("elsewhere"), memory.folder().join("b.md")).unwrap();
    fs::write(memory.folder().join("c.md"), "x".repeat(MAX_MEMORY + 1)).unwrap();
    fs::set_permissions(memory.folder().join("c.md"), fs::Permissions::from_mode(0o600)).unwrap();
    let reasons = [
        ("a", "it can be read or written by others (mode 0644)"),
        ("b", "it is a link, and links are not followed: put the text into the file itself"),
        ("c", "it is longer than 16384 bytes"),
    ];
    let notices =
        reasons.map(|(name, reason)| format!("the memory `{name}` is not read: {reason}"));
    assert_eq!(
        memory.index().unwrap(),
        MemoryIndex { entries: Vec::new(), notices: notices.to_vec() }
    );
    for (name, notice) in ["a", "b", "c"].iter().zip(notices) {
        assert_eq!(message(memory.read(name)), notice);
        assert_eq!(message(memory.write(name, "y")), notice);
    }
    assert!(!places.data.join("elsewhere").exists());
    // What is in the way can be removed.
    memory.remove("b").unwrap();
    fs::set_permissions(memory.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(message(memory.index()).contains("can be written by others (mode 0777)"));
    assert!(message(memory.write("d", "x")).contains("can be written by others (mode 0777)"));
}
