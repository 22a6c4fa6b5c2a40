use super::*;
use crate::{screen::testing::screen, show::receipt::tests::receipt};
use belljar_types::{
    Arguments, Mode, Origin, PermissionMode, ToolError, ToolErrorKind, ToolOutput, Usage,
};

fn text(text: &str) -> String {
    text.to_owned()
}

fn call(id: &str, outcome: Result<ToolOutput, ToolError>) -> [EventKind; 3] {
    let receipt = outcome.is_ok().then(receipt);
    [
        EventKind::ToolCallStart {
            call_id: text(id),
            tool: text("read_file"),
            plugin: Some("files".into()),
            arguments: Arguments::parse(r#"{"path": "a\u001b.txt"}"#),
        },
        EventKind::ToolResult(ToolResult {
            call_id: text(id),
            tool: text("read_file"),
            outcome,
            origin: Origin::Host,
        }),
        EventKind::ToolCallDone { call_id: text(id), receipt },
    ]
}

fn stop(reason: StopReason, message: &str, result: &str) -> EventKind {
    EventKind::Stop {
        reason,
        message: text(message),
        turns: 2,
        duration_ms: 5,
        usage: Usage { input_tokens: Some(10), output_tokens: None, cached_tokens: None },
        result: text(result),
        denials: 0,
        denied: Vec::new(),
        session: text("s"),
    }
}

fn a_run() -> Vec<EventKind> {
    let start = EventKind::Start {
        session: text("s"),
        model: text("script/x"),
        workspace: text("/w"),
        mode: Mode::Chat,
        permission_mode: PermissionMode::DontAsk,
        tools: Vec::new(),
    };
    let mut events = vec![start, EventKind::RoundStart];
    events.extend(["I ", "look."].map(|delta| EventKind::TextDelta { text: text(delta) }));
    events.push(EventKind::AssistantText { text: text("I look.") });
    events.extend(call("1", Ok(ToolOutput::text("one\ntwo\u{1b}[2J\nthree\nfour"))));
    let error = ToolError::new(ToolErrorKind::Failed, "there is no such file");
    events.extend(call("2", Err(error)));
    events.push(EventKind::RoundStart);
    events.push(EventKind::TextDelta { text: text("The \u{1b}answer.") });
    events.push(EventKind::AssistantText { text: text("The \u{1b}answer.") });
    events.push(stop(StopReason::Completed, "", "The \u{1b}answer."));
    events
}

fn shown(terminal: bool, talk: TalkArguments, events: &[EventKind]) -> (String, String) {
    let (screen, out, err) = screen(terminal);
    let mut sink = Text::new(screen, talk, ResultLines(3));
    for event in events {
        sink.show(event).unwrap();
    }
    (out.text(), err.text())
}

#[test]
fn a_pipe_gets_the_answer_alone() {
    let (out, err) = shown(false, TalkArguments::default(), &a_run());
    assert_eq!(out, "The \u{1b}answer.\n");
    assert_eq!(
        err,
        "script/x in /w, permission mode dont-ask, session s\n\
         I look.\n\
         → files/read_file path=\"a\\u001b.txt\"\n  \
         │ one\n  \
         │ two\\u{1b}[2J\n  \
         │ three\n  \
         │ … 1 more line\n  \
         ✓ 3.3 ms · read-only · read a, b, c and 1 more · 2 KiB out · 3 MiB memory · refused: \
         read `/etc/passwd` (outside)\n\
         → files/read_file path=\"a\\u001b.txt\"\n  \
         ✗ failed: there is no such file\n\
         2 rounds, 5 ms, 10 tokens in, 0 out\n"
    );
}

#[test]
fn a_terminal_gets_the_text_as_it_comes_and_nothing_raw() {
    let (out, err) = shown(true, TalkArguments::default(), &a_run());
    assert_eq!(out, "I look.\nThe \\u{1b}answer.\n");
    assert!(err.contains("two\\u{1b}[2J"), "{err}");
}

#[test]
fn quiet_leaves_the_answer_and_errors() {
    let talk = TalkArguments { quiet: true, verbose: false };
    assert_eq!(shown(false, talk, &a_run()), (text("The \u{1b}answer.\n"), String::new()));
    let failed = [
        EventKind::Error { kind: text("cut"), message: text("the stream broke") },
        stop(StopReason::StreamError, "the stream broke", ""),
    ];
    assert_eq!(shown(false, talk, &failed), (String::new(), text("error: the stream broke\n")));
}

#[test]
fn a_run_that_ends_early_says_why_and_passes_nothing_off_as_the_answer() {
    let mut events = vec![EventKind::AssistantText { text: text("I look.") }];
    events.extend(call("1", Ok(ToolOutput::default())));
    events.push(stop(StopReason::MaxIterations, "the limit of 1 rounds is reached", "I look."));
    let (out, err) = shown(false, TalkArguments::default(), &events);
    assert_eq!(out, "");
    assert!(err.starts_with("I look.\n"), "{err}");
    assert!(err.contains("stopped: the limit of 1 rounds is reached\n"), "{err}");
}

#[test]
fn a_retry_makes_what_was_shown_void() {
    let events = [
        EventKind::TextDelta { text: text("Half") },
        EventKind::Retry { what: text("model"), attempt: 2, delay_ms: 10, reason: text("cut") },
        EventKind::TextDelta { text: text("Whole") },
        EventKind::AssistantText { text: text("Whole") },
        stop(StopReason::Completed, "", "Whole"),
    ];
    let (out, err) = shown(true, TalkArguments::default(), &events);
    assert_eq!(out, "Half\nWhole\n");
    assert!(err.contains("void"), "{err}");
    assert_eq!(shown(false, TalkArguments::default(), &events).0, "Whole\n");
}
