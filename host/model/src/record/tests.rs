use super::*;
use crate::Script;
use belljar_types::{Arguments, FinishReason, Reasoning, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::json;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

type Items = Vec<Result<ModelEvent, ModelError>>;

/// A model that streams these turns, one after the other.
#[derive(Debug)]
struct Sayer {
    turns: Vec<Items>,
    next: AtomicUsize,
}

fn sayer(turns: Vec<Items>) -> Arc<dyn Model> {
    Arc::new(Sayer { turns, next: AtomicUsize::new(0) })
}

impl Model for Sayer {
    fn name(&self) -> &str {
        "m"
    }

    fn provider(&self) -> &str {
        "p"
    }

    fn context_window(&self) -> Option<u64> {
        Some(7)
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        Box::pin(stream::iter(self.turns[self.next.fetch_add(1, Ordering::Relaxed)].clone()))
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn said(model: &dyn Model) -> Items {
    block_on(model.stream(ModelRequest::default()).collect())
}

fn text(text: &str) -> Result<ModelEvent, ModelError> {
    Ok(ModelEvent::Text(text.to_owned()))
}

fn done() -> Result<ModelEvent, ModelError> {
    Ok(ModelEvent::Done(FinishReason::Stop))
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_recorded_model_is_the_same_to_the_loop() {
    let recorder = Recorder::create(folder().path().join("r.jsonl")).unwrap();
    let model = recorder.record(sayer(Vec::new()));
    assert_eq!((model.provider(), model.name(), model.context_window()), ("p", "m", Some(7)));
}

#[test]
fn a_recording_is_a_script_that_people_can_read() {
    let folder = folder();
    let path = folder.path().join("run.jsonl");
    let recorder = Recorder::create(&path).unwrap();
    let call = ModelEvent::ToolCall(ToolCall {
        id: "toolu_1".to_owned(),
        tool: "read_file".to_owned(),
        arguments: Arguments::parse("{\"path\": \"a\"}"),
    });
    let usage = Usage { input_tokens: Some(3), output_tokens: None, cached_tokens: Some(1) };
    let signed =
        Reasoning { text: "Hm.".to_owned(), signature: Some("s+/=".to_owned()), data: None };
    let turns = vec![
        vec![text("Let "), text("me."), Ok(call), Ok(ModelEvent::Usage(usage)), done()],
        vec![text("Let me"), Ok(ModelEvent::Reasoning(signed)), text("."), done()],
        vec![Err(ModelError {
            kind: ModelErrorKind::RateLimited,
            message: "slow".to_owned(),
            retry_after: Some(Duration::from_micros(1500)),
        })],
    ];
    let model = recorder.record(sayer(turns.clone()));
    assert_eq!((model.provider(), model.name()), ("p", "m"));
    for turn in &turns {
        assert_eq!(said(&*model), *turn);
    }
    assert_eq!(recorder.turns().unwrap(), 3);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        r#"// The model's turns of one run, to be played as `script/FILE`.
{"text":"Let me.","calls":[{"tool":"read_file","arguments":{"path":"a"},"id":"toolu_1"}],"usage":{"input_tokens":3,"cached_tokens":1}}
{"stream":[{"text":"Let me"},{"kept":{"text":"Hm.","signature":"s+/="}},{"text":"."}]}
{"stream":[],"error":{"kind":"rate_limited","message":"slow","retry_after_ms":2}}
"#
    );
    let played = Script::load(&path).unwrap().into_model("run.jsonl");
    assert_eq!(said(&played), turns[0]);
    assert_eq!(said(&played), turns[1]);
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("run.jsonl");
    Recorder::create(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let folder = folder();
    let path = folder.path().join("run.jsonl");
    std::fs::write(&path, "precious").unwrap();
    let error = Recorder::create(&path).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{}` exists already: name another file, or remove it", path.display())
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    let missing = folder.path().join("no/run.jsonl");
    let error = Recorder::create(&missing).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot create the recording `{}`", missing.display()));
    assert!(matches!(error, RecordError::Create { .. }));
}

/// A disk with room for so many bytes.
#[derive(Clone, Debug)]
struct SmallDisk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
    can_cut: bool,
}

impl SmallDisk {
    fn text(&self) -> String {
        String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
    }
}

impl Write for SmallDisk {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap();
        let fitting = more.len().min(self.room - bytes.len());
        if fitting == 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no room"));
        }
        bytes.extend_from_slice(&more[..fitting]);
        Ok(fitting)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper for SmallDisk {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        if !self.can_cut {
            return Err(io::Error::other("no cutting"));
        }
        self.bytes.lock().unwrap().truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

fn on_small_disk(room: usize, can_cut: bool) -> (SmallDisk, Result<Recorder, RecordError>) {
    let disk = SmallDisk { bytes: Arc::default(), room, can_cut };
    (disk.clone(), Recorder::onto(disk, Path::new("run.jsonl")))
}

const LINE: &str = "{\"text\":\"a\"}\n";

#[test]
fn a_full_disk_ends_the_run_and_leaves_a_script() {
    let turns = || vec![vec![text("a"), done()]; 3];
    // Every byte at which the disk can be full while three turns are written.
    for room in 0..=HEAD.len() + 3 * LINE.len() {
        let (disk, recorder) = on_small_disk(room, true);
        let fitting = room.checked_sub(HEAD.len()).map(|room| room / LINE.len());
        let Some(fitting) = fitting else {
            assert_eq!(
                recorder.unwrap_err().to_string(),
                "cannot write to the recording `run.jsonl`: no room; it holds the run up to turn 0"
            );
            assert_eq!(disk.text(), "");
            continue;
        };
        let recorder = recorder.unwrap();
        let model = recorder.record(sayer(turns()));
        for turn in 0..3 {
            let problem = ModelError::new(
                ModelErrorKind::Configuration,
                format!(
                    "cannot write to the recording `run.jsonl`: no room; it holds the run up to \
                     turn {fitting}; make room there, or run without a recording"
                ),
            );
            let want = match turn {
                _ if turn < fitting => vec![text("a"), done()],
                _ if turn == fitting => vec![text("a"), Err(problem)],
                // Not asked any more.
                _ => vec![Err(problem)],
            };
            assert_eq!(said(&*model), want, "room for {room}, turn {turn}");
        }
        assert_eq!(disk.text(), HEAD.to_owned() + &LINE.repeat(fitting));
        assert_eq!(recorder.turns().is_ok(), fitting == 3);
    }
}

#[test]
fn a_line_that_cannot_be_taken_back_is_said_to_be_torn() {
    let (disk, recorder) = on_small_disk(HEAD.len() + 5, false);
    let recorder = recorder.unwrap();
    said(&*recorder.record(sayer(vec![vec![text("a"), done()]])));
    assert_eq!(
        recorder.turns().unwrap_err().to_string(),
        "cannot write to the recording `run.jsonl`: no room, and its last line is torn: no \
         cutting; it holds the run up to turn 0"
    );
    assert_eq!(
        Script::parse(&disk.text()).unwrap_err().to_string(),
        "line 2 of the script is no turn: EOF while parsing a string, at column 5; the file ends \
         in it, as a recording does that was broken off: remove this line"
    );
}

#[test]
fn turns_stand_in_the_order_in_which_they_were_asked_for() {
    let (disk, recorder) = on_small_disk(4096, true);
    let recorder = recorder.unwrap();
    let turns = ["one", "two", "three"].map(|word| vec![text(word), text(word), done()]).to_vec();
    let model = recorder.record(sayer(turns));
    let mut first = model.stream(ModelRequest::default());
    let second = model.stream(ModelRequest::default());
    let third = model.stream(ModelRequest::default());
    assert_eq!(block_on(first.next()), Some(text("one")));
    assert_eq!(block_on(third.collect::<Vec<_>>()).len(), 3);
    assert_eq!(recorder.turns().unwrap(), 0);
    // One that is dropped before its end, and one that was never read.
    drop(first);
    drop(second);
    assert_eq!(recorder.turns().unwrap(), 3);
    let left = r#""error":{"kind":"request","message":"the recorded run was canceled here"}"#;
    assert_eq!(
        disk.text().strip_prefix(HEAD).unwrap(),
        format!(
            "{{\"text\":\"one\",{left}}}\n{{{left}}}\n\
             {{\"stream\":[{{\"text\":\"three\"}},{{\"text\":\"three\"}}]}}\n"
        )
    );
}

#[test]
fn an_answer_without_end_is_recorded_as_cut() {
    let (_, recorder) = on_small_disk(4096, true);
    let model = recorder.unwrap().record(sayer(vec![vec![text("a")]]));
    let cut =
        ModelError::new(ModelErrorKind::Cut, "the model's stream ended before its answer did");
    assert_eq!(said(&*model), [text("a"), Err(cut)]);
}

fn events() -> impl Strategy<Value = ModelEvent> {
    let texts = || "[ a\n\u{e9}\u{2028}\"\\\\]{0,4}";
    let arguments = prop_oneof![
        texts().prop_map(Arguments::Text),
        Just(Arguments::Text("{}".to_owned())),
        texts().prop_map(|text| Arguments::Object(
            [("a".to_owned(), json!([text, 1.5, null]))].into_iter().collect()
        )),
    ];
    let figure = || proptest::option::of(any::<u64>());
    prop_oneof![
        4 => texts().prop_map(ModelEvent::Text),
        2 => texts().prop_map(ModelEvent::ReasoningDelta),
        1 => (texts(), proptest::option::of(texts()), proptest::option::of(texts()))
            .prop_map(|(text, signature, data)| ModelEvent::Reasoning(Reasoning {
                text, signature, data
            })),
        2 => ("[a-z]{1,3}_", arguments).prop_map(|(tool, arguments)| {
            ModelEvent::ToolCall(ToolCall { id: String::new(), tool, arguments })
        }),
        1 => (figure(), figure(), figure()).prop_map(|(input_tokens, output_tokens, cached_tokens)| {
            ModelEvent::Usage(Usage { input_tokens, output_tokens, cached_tokens })
        }),
    ]
}

fn ends() -> impl Strategy<Value = Result<ModelEvent, ModelError>> {
    use FinishReason::{Length, Pause, Refused, Stop};
    prop_oneof![
        proptest::sample::select(vec![Stop, Length, Refused, Pause])
            .prop_map(|finish| Ok(ModelEvent::Done(finish))),
        ("[ a-z\n]{0,8}", proptest::option::of(0..10_000_u64)).prop_map(|(message, wait)| {
            let retry_after = wait.map(Duration::from_millis);
            Err(ModelError { kind: ModelErrorKind::Server, message, retry_after })
        }),
    ]
}

proptest! {
    #[test]
    fn what_was_recorded_plays_to_the_same_events(
        turns in proptest::collection::vec((proptest::collection::vec(events(), 0..8), ends()), 1..4)
    ) {
        let mut number = 0;
        let turns: Vec<Items> = turns
            .into_iter()
            .map(|(events, end)| {
                let mut items: Items = events.into_iter().map(Ok).collect();
                for item in &mut items {
                    if let Ok(ModelEvent::ToolCall(call)) = item {
                        number += 1;
                        call.id = format!("c{number}");
                    }
                }
                items.push(end);
                items
            })
            .collect();
        let (disk, recorder) = on_small_disk(usize::MAX, true);
        let model = recorder.unwrap().record(sayer(turns.clone()));
        for turn in &turns {
            prop_assert_eq!(&said(&*model), turn);
        }
        let played = Script::parse(&disk.text()).unwrap().into_model("run");
        for turn in &turns {
            prop_assert_eq!(&said(&played), turn);
        }
    }
}
