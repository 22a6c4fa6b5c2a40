use super::*;
use crate::{places::Places, prompt::Clock};
use belljar_types::{
    AssistantMessage, AssistantPart, Conversation, Journal, Message, Origin, Part, Record,
    StopReason, ToolMessage, ToolOutput, ToolResult, Usage, UserMessage,
};
use std::{fs, path::Path, sync::Arc};

const WORKSPACE: &str = "/home/u/project";

struct Fixture {
    _guard: tempfile::TempDir,
    places: Places,
    store: SessionStore,
}

fn fixture() -> Fixture {
    let guard = tempfile::tempdir().unwrap();
    let places = Places::below(guard.path());
    let store = SessionStore::open(&places).unwrap();
    Fixture { _guard: guard, places, store }
}

fn clock() -> Clock {
    Clock::new(|| "2026-03-31T23:59:00+02:00[+02:00]".parse().unwrap())
}

fn header(id: &str) -> Option<SessionHeader> {
    Some(SessionHeader {
        version: 1,
        id: id.to_owned(),
        workspace: WORKSPACE.to_owned(),
        created: "2026-03-31T21:59:00Z".to_owned(),
        belljar: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn message(message: Message) -> Record {
    Record::Message { message: Arc::new(message) }
}

fn records() -> Vec<Record> {
    let user =
        UserMessage { parts: vec![Part::text("Grüße\nund \"mehr\" \u{2028}", Origin::Person)] };
    let call = belljar_types::ToolCall {
        id: "1".to_owned(),
        tool: "read_file".to_owned(),
        arguments: belljar_types::Arguments::parse(r#"{"path":"a"}"#),
    };
    let assistant = AssistantMessage {
        parts: vec![
            AssistantPart::Text { text: "let me see".to_owned() },
            AssistantPart::ToolCall(call),
        ],
        model: "script/x".to_owned(),
        cut: false,
    };
    let result = ToolResult {
        call_id: "1".to_owned(),
        tool: "read_file".to_owned(),
        outcome: Ok(ToolOutput::text("{\"record\":\"stopped\"}\n")),
        origin: Origin::Host,
    };
    vec![
        Record::RunStarted {
            model: "script/x".to_owned(),
            mode: belljar_types::Mode::Chat,
            permission_mode: belljar_types::PermissionMode::Default,
        },
        message(Message::User(user)),
        message(Message::Assistant(assistant)),
        Record::CallStarted { call_id: "1".to_owned() },
        message(Message::Tool(ToolMessage { result })),
        Record::CallDone { call_id: "1".to_owned(), receipt: None },
        Record::Usage { usage: Usage { input_tokens: Some(3), ..Usage::default() } },
        Record::Stopped { reason: StopReason::Completed, message: String::new() },
    ]
}

async fn append_all(journal: &SessionJournal, records: &[Record]) {
    for record in records {
        journal.append(record).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_comes_back_as_it_was_written() {
    let Fixture { store, places, .. } = &fixture();
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let id = journal.session().to_owned();
    append_all(&journal, &records()).await;
    // While it is being written, too.
    let loaded = store.load(&id).unwrap();
    let expected =
        LoadedSession { id: id.clone(), header: header(&id), records: records(), notices: vec![] };
    assert_eq!(loaded, expected);

    let mut conversation = Conversation::default();
    for record in records() {
        if let Record::Message { message } = record {
            conversation.push(message);
        }
    }
    assert_eq!(loaded.conversation(), conversation);
    assert_eq!(loaded.conversation().check(), Ok(()));

    let text = fs::read_to_string(places.sessions().join(format!("{id}.jsonl"))).unwrap();
    assert_eq!(
        text.lines().next().unwrap(),
        format!(
            "{{\"record\":\"session\",\"version\":1,\"id\":\"{id}\",\"workspace\":\"{WORKSPACE}\",\
             \"created\":\"2026-03-31T21:59:00Z\",\"belljar\":\"{}\"}}",
            env!("CARGO_PKG_VERSION")
        )
    );
    assert_eq!(text.lines().count(), 1 + records().len());
}

#[test]
fn a_session_is_removed_unless_it_is_in_use() {
    let Fixture { store, places, .. } = &fixture();
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let id = journal.session().to_owned();
    assert_eq!(
        store.remove(&id).unwrap_err().to_string(),
        format!(
            "the session `{id}` is in use by another belljar: end that one first, or start a new \
             session"
        )
    );
    drop(journal);
    store.remove(&id).unwrap();
    assert_eq!(store.list().unwrap(), SessionList::default());
    assert_eq!(fs::read_dir(places.sessions()).unwrap().count(), 0);
    for id in [id.as_str(), "../config", ""] {
        assert!(matches!(store.remove(id), Err(SessionError::Unknown { .. })), "{id}");
    }
}

#[tokio::test]
async fn one_process_at_a_time_adds_to_a_session() {
    let Fixture { store, .. } = &fixture();
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let id = journal.session().to_owned();
    append_all(&journal, &records()[..2]).await;
    assert_eq!(
        store.resume(&id).unwrap_err().to_string(),
        format!(
            "the session `{id}` is in use by another belljar: end that one first, or start a new \
             session"
        )
    );
    drop(journal);
    let (journal, loaded) = store.resume(&id).unwrap();
    assert_eq!(loaded.records, records()[..2]);
    append_all(&journal, &records()[2..]).await;
    assert_eq!(store.load(&id).unwrap().records, records());
}

/// Whatever byte a crash or a cut falls on: no error, no whole record lost, and the session goes
/// on from there.
#[tokio::test]
async fn a_session_cut_anywhere_loads_and_goes_on() {
    let Fixture { store, places, .. } = &fixture();
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let id = journal.session().to_owned();
    append_all(&journal, &records()).await;
    drop(journal);
    let path = places.sessions().join(format!("{id}.jsonl"));
    let whole = fs::read(&path).unwrap();
    let more = Record::CallStarted { call_id: "more".to_owned() };
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let ends = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        // A line that lacks nothing but its newline is whole.
        let lines = ends + usize::from(whole.get(cut) == Some(&b'\n'));
        let in_line = !matches!(whole[..cut].last(), None | Some(b'\n'));
        let mut expected = LoadedSession {
            id: id.clone(),
            header: header(&id).filter(|_| lines > 0),
            records: records()[..lines.saturating_sub(1)].to_vec(),
            notices: vec![],
        };
        if in_line && lines == ends {
            expected.notices.push(format!(
                "session `{id}`: line {} was never written to its end and is dropped",
                lines + 1
            ));
        }
        if lines == 0 {
            let notice = format!("session `{id}`: its first line, the header, is missing");
            expected.notices.push(notice);
        }
        let loaded = store.load(&id).unwrap();
        assert_eq!(loaded, expected, "cut at {cut}");
        match store.resume(&id) {
            Err(SessionError::Empty { .. }) => assert_eq!(lines, 0, "cut at {cut}"),
            Err(error) => panic!("cut at {cut}: {error}"),
            Ok((journal, resumed)) => {
                assert_eq!(resumed, expected, "cut at {cut}");
                journal.append(&more).await.unwrap();
                expected.records.push(more.clone());
                expected.notices.clear();
                assert_eq!(store.load(&id).unwrap(), expected, "cut at {cut}");
            }
        }
    }
}

#[tokio::test]
async fn unreadable_lines_are_named_and_stay_in_the_file() {
    let Fixture { store, places, .. } = &fixture();
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let id = journal.session().to_owned();
    append_all(&journal, &records()[..1]).await;
    drop(journal);
    let path = places.sessions().join(format!("{id}.jsonl"));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"not JSON\n");
    bytes.extend_from_slice(b"{\"record\":\"hologram\",\"x\":1}\n");
    bytes.extend_from_slice(b"{\"record\":\"call_started\"}\n");
    bytes.extend_from_slice(b"\xff\xfe\n\n");
    bytes.extend_from_slice(b"{\"record\":\"session\",\"version\":1}\n");
    fs::write(&path, &bytes).unwrap();
    let (journal, loaded) = store.resume(&id).unwrap();
    journal.append(&records()[3]).await.unwrap();
    assert_eq!(loaded.records, records()[..1]);
    let starts = [
        "line 3 is not a record (expected ident at line 1 column 2) and is skipped",
        "line 4 holds a `hologram` that is not readable here (unknown variant `hologram`",
        "line 5 holds a `call_started` that is not readable here (missing field `call_id`",
        "line 6 is not a record (",
        "line 7 is not a record (",
        "line 8 holds a `session` that is not readable here (missing field `id`",
    ];
    assert_eq!(loaded.notices.len(), starts.len(), "{:?}", loaded.notices);
    for (notice, start) in loaded.notices.iter().zip(starts) {
        assert!(notice.starts_with(&format!("session `{id}`: {start}")), "{notice}");
    }
    assert!(fs::read(&path).unwrap().starts_with(&bytes));
    let again = store.load(&id).unwrap();
    assert_eq!(again.records, [records()[0].clone(), records()[3].clone()]);
    assert_eq!(again.notices, loaded.notices);
}

#[test]
fn a_newer_version_is_refused_by_name() {
    let Fixture { store, places, .. } = &fixture();
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let id = journal.session().to_owned();
    let path = journal.path().to_owned();
    drop(journal);
    fs::write(&path, "{\"record\":\"session\",\"version\":2,\"future\":true}\n").unwrap();
    let message = format!(
        "the session file `{}` is of version 2, and this belljar reads version 1: use the newer \
         belljar that wrote it",
        path.display()
    );
    assert_eq!(store.load(&id).unwrap_err().to_string(), message);
    assert_eq!(store.resume(&id).unwrap_err().to_string(), message);
    let listed = SessionStore::open(places).unwrap().list().unwrap();
    assert_eq!(listed, SessionList { sessions: vec![], notices: vec![message] });
}

#[test]
fn an_unknown_id_names_the_nearest_or_the_latest() {
    let Fixture { store, places, .. } = &fixture();
    let error = |id: &str| store.load(id).unwrap_err().to_string();
    let folder = places.sessions();
    assert_eq!(
        error("x"),
        format!("there is no session `x`: none has been kept yet in `{}`", folder.display())
    );
    let id = store.create(Path::new(WORKSPACE), &clock()).unwrap().session().to_owned();
    let typo = format!("{}x", &id[..id.len() - 1]);
    let near = format!("did you mean `{id}`?");
    let latest = format!("the latest one is `{id}`");
    for (wanted, hint) in [
        (typo.as_str(), &near),
        (&id[..13], &near),
        ("../../etc/passwd", &latest),
        ("00000000-0000-7000-8000-000000000000", &latest),
        ("", &latest),
    ] {
        assert_eq!(error(wanted), format!("there is no session `{wanted}`: {hint}"));
    }
}

#[tokio::test]
async fn sessions_are_listed_by_last_use_and_found_by_workspace() {
    let Fixture { store, .. } = &fixture();
    let other = "/home/u/other";
    let mut ids = Vec::new();
    for (workspace, age) in [(WORKSPACE, 10), (other, 20), (WORKSPACE, 30)] {
        let journal = store.create(Path::new(workspace), &clock()).unwrap();
        let file = fs::File::options().write(true).open(journal.path()).unwrap();
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000 - age);
        file.set_modified(modified).unwrap();
        let bytes = file.metadata().unwrap().len();
        ids.push((journal.session().to_owned(), workspace, modified, bytes));
    }
    let sessions = ids
        .iter()
        .map(|(id, workspace, modified, bytes)| SessionSummary {
            id: id.clone(),
            header: header(id).map(|h| SessionHeader { workspace: (*workspace).to_owned(), ..h }),
            modified: *modified,
            bytes: *bytes,
        })
        .collect();
    assert_eq!(store.list().unwrap(), SessionList { sessions, notices: vec![] });
    let latest = |workspace| store.latest(Path::new(workspace)).unwrap();
    assert_eq!(latest(WORKSPACE), Some(ids[0].0.clone()));
    assert_eq!(latest(other), Some(ids[1].0.clone()));
    assert_eq!(latest("/nowhere"), None);
}

#[cfg(unix)]
#[test]
fn files_are_private_and_what_is_not_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let Fixture { store, places, .. } = &fixture();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let journal = store.create(Path::new(WORKSPACE), &clock()).unwrap();
    let (id, path) = (journal.session().to_owned(), journal.path().to_owned());
    drop(journal);
    assert_eq!((mode(&places.sessions()), mode(&path)), (0o700, 0o600));

    for bits in [0o640, 0o604, 0o620] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let message = format!(
            "the session file `{path}` can be read or written by others (mode {bits:04o}), so it \
             is not read: if nobody else wrote to it, run `chmod 600 '{path}'`",
            path = path.display()
        );
        assert_eq!(store.load(&id).unwrap_err().to_string(), message);
        assert_eq!(store.resume(&id).unwrap_err().to_string(), message);
        let list = SessionList { sessions: vec![], notices: vec![message] };
        assert_eq!(store.list().unwrap(), list);
    }

    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    // Only the administrator can make a file that is somebody else's.
    if std::os::unix::fs::chown(&path, Some(4321), None).is_ok() {
        let user = rustix::process::geteuid().as_raw();
        let message = format!(
            "the session file `{path}` belongs to user 4321, and you are user {user}, so it is \
             not read: continue it as the user it belongs to",
            path = path.display()
        );
        assert_eq!(store.load(&id).unwrap_err().to_string(), message);
        assert_eq!(store.resume(&id).unwrap_err().to_string(), message);
        std::os::unix::fs::chown(&path, Some(user), None).unwrap();
    }

    let elsewhere = places.state.join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let message =
        format!("`{}` is not a regular file, so it is not read as a session", path.display());
    assert_eq!(store.load(&id).unwrap_err().to_string(), message);
    assert_eq!(store.resume(&id).unwrap_err().to_string(), message);

    fs::remove_file(&path).unwrap();
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(store.load(&id).unwrap_err().to_string(), message);
}
