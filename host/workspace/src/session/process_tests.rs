//! What a session is after its process was killed, or could write no more: shown with processes.
//!
//! Each child is this same test binary, told to run one of the ignored tests here.

use super::{LoadedSession, SessionError, SessionStore};
use crate::{places::Places, prompt::Clock};
use belljar_types::{Journal, Record};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

const FOLDER: &str = "TEST_SESSION_FOLDER";

fn record(number: usize) -> Record {
    Record::CallStarted { call_id: format!("{number:01000}") }
}

/// A command that runs one test of this module in a process of its own.
fn child(test: &str, folder: &Path) -> Command {
    let mut command = Command::new("sh");
    // A write past the limit on file sizes is to fail, not to kill.
    command
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("session::process_tests::{test}"), "--ignored", "--nocapture"])
        .env(FOLDER, folder);
    command
}

fn store() -> SessionStore {
    let folder = std::env::var_os(FOLDER).unwrap();
    SessionStore::open(&Places::below(Path::new(&folder))).unwrap()
}

fn numbered(session: &LoadedSession) -> Vec<Record> {
    (0..session.records.len()).map(record).collect()
}

#[test]
fn a_session_that_can_grow_no_more_keeps_what_it_has_and_goes_on_later() {
    let folder = tempfile::tempdir().unwrap();
    let output = child("fill_the_disk", folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

#[tokio::test]
#[ignore = "run in a process of its own by the test above"]
async fn fill_the_disk() {
    let store = store();
    let journal = store.create(Path::new("/w"), &Clock::system()).unwrap();
    let (id, path) = (journal.session().to_owned(), journal.path().to_owned());
    for number in 0..3 {
        journal.append(&record(number)).await.unwrap();
    }
    let size = fs::metadata(&path).unwrap().len();

    // Room for part of a line: the kernel takes that part and refuses the rest.
    let Rlimit { maximum, .. } = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(size + 100), maximum }).unwrap();
    for _ in 0..2 {
        assert_eq!(
            journal.append(&record(3)).await.unwrap_err().message,
            format!(
                "cannot write the session file `{}`: File too large (os error 27): start a new \
                 session, or raise the limit on file sizes (`ulimit -f`); what was written before \
                 is unharmed",
                path.display()
            )
        );
        assert_eq!(fs::metadata(&path).unwrap().len(), size);
    }
    let loaded = store.load(&id).unwrap();
    assert_eq!((loaded.records.len(), &loaded.notices), (3, &vec![]));
    assert_eq!(loaded.records, numbered(&loaded));

    setrlimit(Resource::Fsize, Rlimit { current: maximum, maximum }).unwrap();
    journal.append(&record(3)).await.unwrap();
    let loaded = store.load(&id).unwrap();
    assert_eq!((loaded.records.len(), &loaded.notices), (4, &vec![]));
    assert_eq!(loaded.records, numbered(&loaded));
}

#[test]
fn what_was_appended_outlives_a_killed_process() {
    let folder = tempfile::tempdir().unwrap();
    let mut running =
        child("append_for_ever", folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut acknowledged = 0;
    for line in BufReader::new(running.stdout.take().unwrap()).lines() {
        acknowledged += usize::from(line.unwrap().ends_with("appended"));
        if acknowledged == 100 {
            // Another process has it: it is neither continued nor removed, and can be read.
            let store = SessionStore::open(&Places::below(folder.path())).unwrap();
            let id = store.latest(Path::new("/w")).unwrap().unwrap();
            let busy = format!(
                "the session `{id}` is in use by another belljar: end that one first, or start a \
                 new session"
            );
            assert_eq!(store.resume(&id).unwrap_err().to_string(), busy);
            assert_eq!(store.remove(&id).unwrap_err().to_string(), busy);
            assert!(store.load(&id).unwrap().records.len() >= 100);
        }
        if acknowledged == 200 {
            running.kill().unwrap();
            break;
        }
    }
    running.wait().unwrap();
    assert_eq!(acknowledged, 200);

    let store = SessionStore::open(&Places::below(folder.path())).unwrap();
    let id = store.latest(Path::new("/w")).unwrap().unwrap();
    let (_journal, session) = store.resume(&id).unwrap();
    assert!(session.records.len() >= acknowledged, "{}", session.records.len());
    assert_eq!(session.records, numbered(&session));
    assert!(matches!(store.resume(&id), Err(SessionError::Busy { .. })));
}

#[tokio::test]
#[ignore = "run in a process of its own by the test above"]
async fn append_for_ever() {
    let journal = store().create(Path::new("/w"), &Clock::system()).unwrap();
    let mut number = 0;
    // Ends when nobody reads any more, at the latest.
    loop {
        journal.append(&record(number)).await.unwrap();
        number += 1;
        std::io::stdout().write_all(b"appended\n").unwrap();
    }
}
