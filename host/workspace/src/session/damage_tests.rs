//! Session files that were damaged, by chance and on purpose: nothing that is whole in them is
//! lost, what is not is named, and they go on.

use super::*;
use crate::{places::Places, prompt::Clock};
use belljar_types::{
    Arguments, AssistantMessage, AssistantPart, Journal, Message, Mode, Origin, Part,
    PermissionMode, Record, StopReason, ToolCall, ToolError, ToolErrorKind, ToolMessage,
    ToolOutput, ToolResult, Usage, UserMessage,
};
use proptest::{collection::vec, prelude::*};
use std::{fs, path::Path, sync::Arc};

fn message(message: Message) -> Record {
    Record::Message { message: Arc::new(message) }
}

fn said(text: &str) -> Record {
    message(Message::User(UserMessage { parts: vec![Part::text(text, Origin::Person)] }))
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        tool: "write_file".to_owned(),
        arguments: Arguments::parse(r#"{"path":"a"}"#),
    }
}

fn calls(ids: &[&str]) -> Record {
    let parts = ids.iter().map(|id| AssistantPart::ToolCall(call(id))).collect();
    message(Message::Assistant(AssistantMessage { parts, model: "a/b".to_owned(), cut: false }))
}

fn started(id: &str) -> Record {
    Record::CallStarted { call_id: id.to_owned() }
}

fn result(id: &str) -> Record {
    let result = ToolResult {
        call_id: id.to_owned(),
        tool: "write_file".to_owned(),
        outcome: Ok(ToolOutput::text("done")),
        origin: Origin::Host,
    };
    message(Message::Tool(ToolMessage { result }))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        any::<String>(),
        Just("{\"record\":\"stopped\"}\n".to_owned()),
        Just("\u{2028}\u{0}\"\\".to_owned()),
    ]
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let failed = |(id, text): (String, String)| {
        let result = ToolResult {
            call_id: id,
            tool: text.clone(),
            outcome: Err(ToolError::new(ToolErrorKind::Denied, text)),
            origin: Origin::Workspace { path: "a/b".to_owned() },
        };
        message(Message::Tool(ToolMessage { result }))
    };
    let record = prop_oneof![
        text().prop_map(|text| said(&text)),
        vec("[a-z0-9]{1,8}", 1..4)
            .prop_map(|ids| calls(&ids.iter().map(String::as_str).collect::<Vec<_>>())),
        text().prop_map(|id| started(&id)),
        text().prop_map(|id| result(&id)),
        (text(), text()).prop_map(failed),
        any::<(Option<u64>, Option<u64>)>().prop_map(|(input_tokens, output_tokens)| {
            let usage = Usage { input_tokens, output_tokens, cached_tokens: None };
            Record::Usage { usage }
        }),
        text().prop_map(|message| Record::Stopped { reason: StopReason::Completed, message }),
        text().prop_map(|model| Record::RunStarted {
            model,
            mode: Mode::Do,
            permission_mode: PermissionMode::Plan,
        }),
    ];
    vec(record, 0..8)
}

/// What happens to a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index),
    Flip(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<prop::sample::Index>;
    prop_oneof![
        place().prop_map(Damage::Cut),
        (place(), 1..=255_u8).prop_map(|(at, bits)| Damage::Flip(at, bits)),
        (place(), vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (place(), Just(b"\n{\"record\":\"hologram\"}\n".to_vec()))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
    ]
}

/// A session of these records on a disk of its own.
struct Kept {
    _guard: tempfile::TempDir,
    store: SessionStore,
    id: String,
    path: std::path::PathBuf,
}

async fn append(journal: &SessionJournal, records: &[Record]) {
    for record in records {
        journal.append(record).await.unwrap();
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn kept(records: &[Record]) -> Kept {
    let guard = tempfile::tempdir().unwrap();
    let store = SessionStore::open(&Places::below(guard.path())).unwrap();
    let journal = store.create(Path::new("/w"), &Clock::system()).unwrap();
    run(append(&journal, records));
    let (id, path) = (journal.session().to_owned(), journal.path().to_owned());
    Kept { _guard: guard, store, id, path }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_was_appended_is_what_is_read(first in records(), more in records()) {
        let Kept { store, id, .. } = &kept(&first);
        let (journal, resumed) = store.resume(id).unwrap();
        prop_assert_eq!(&resumed.records, &first);
        run(append(&journal, &more));
        let loaded = store.load(id).unwrap();
        prop_assert_eq!(loaded.records, [first, more].concat());
        prop_assert_eq!(loaded.notices, Vec::<String>::new());
    }

    /// One place of a file is damaged: all lines but those that the damage touches are there, in
    /// order, and the file goes on as it is.
    #[test]
    fn damage_costs_no_more_than_the_lines_that_it_touches(
        records in records(),
        damage in damage(),
        more in records(),
    ) {
        let Kept { store, id, path, .. } = &kept(&records);
        let whole = fs::read(path).unwrap();
        let mut bytes = whole.clone();
        match &damage {
            Damage::Cut(at) => bytes.truncate(at.index(whole.len())),
            Damage::Flip(at, bits) => {
                let at = at.index(whole.len());
                bytes[at] ^= bits;
            }
            Damage::Insert(at, inserted) => {
                let at = at.index(whole.len());
                bytes.splice(at..at, inserted.iter().copied());
            }
        }
        fs::write(path, &bytes).unwrap();
        let same_start = whole.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
        let same_end = match damage {
            Damage::Cut(_) => 0,
            _ => whole.iter().rev().zip(bytes.iter().rev()).take_while(|(a, b)| a == b).count(),
        };
        // Records whose lines, with both newlines around them, were not touched.
        let mut untouched = Vec::new();
        let mut at = 0;
        for (number, line) in whole.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let end = at + line.len();
            if number > 0 && (end <= same_start || at > whole.len() - same_end) {
                untouched.push(records[number - 1].clone());
            }
            at = end;
        }
        let loaded = match store.load(id) {
            Ok(loaded) => loaded,
            Err(SessionError::Newer { .. }) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        let mut rest = loaded.records.iter();
        for record in &untouched {
            prop_assert!(rest.any(|read| read == record), "{record:?} is lost: {loaded:?}");
        }
        // Damage can make a line that reads as another one, but never silently fewer.
        if loaded.records.len() < records.len() && !matches!(damage, Damage::Cut(_)) {
            prop_assert!(!loaded.notices.is_empty());
        }

        let (journal, resumed) = match store.resume(id) {
            Err(SessionError::Empty { .. }) => return Ok(()),
            resumed => resumed.unwrap(),
        };
        prop_assert_eq!(&resumed, &loaded);
        run(append(&journal, &more));
        let again = store.load(id).unwrap();
        prop_assert_eq!(again.records, [loaded.records, more].concat());
        let lines = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        prop_assert!(fs::read(path).unwrap().starts_with(&bytes[..lines]), "a whole line was changed");
    }

    #[test]
    fn a_file_of_anything_is_no_panic(bytes in vec(any::<u8>(), 0..400)) {
        let Kept { store, id, path, .. } = &kept(&[]);
        fs::write(path, &bytes).unwrap();
        let _ = store.load(id);
        let _ = store.resume(id);
        let _ = store.list();
    }
}
