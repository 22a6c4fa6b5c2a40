//! What the screen looks like.

use super::*;

const MARKDOWN: &str = "## Found\n\nThe **last** line is dropped, 日本語 too; see [the \
    guide](https://doc.rust-lang.org).\n\n```rust\nfn parse() -> &str {\n    \"é\"\n}\n```\n\n\
    | a | b |\n|---|---|\n| `x` | 日本 |\n\n1. one\n2. two\n   - deep\n\n> quoted\n\nend &#27; \u{1b}[2J";

/// A run at the moments when something different is on the screen.
fn moments(size: Size) -> Vec<(&'static str, String)> {
    let mut terminal = Terminal::running(size);
    let mut moments = Vec::new();
    terminal.tell(EventKind::ReasoningDelta { text: "They want it mended.\nFirst".to_owned() });
    terminal.tell(delta("I look *at* it"));
    let read = call("c1", "read_file", json!({"path": "a.rs"}));
    terminal.tell(EventKind::call_start(&read, Some("files".into())));
    let call_id = || "c1".to_owned();
    let message = "lines".to_owned();
    terminal.tell(EventKind::ToolProgress { call_id: call_id(), done: 1, total: Some(3), message });
    terminal
        .tell(EventKind::ToolOutput { call_id: call_id(), text: "one\ntwo\u{1b}[A".to_owned() });
    terminal.wait(SECOND);
    moments.push(("running", terminal.screen()));
    terminal.tell(result(&read, Ok(ToolOutput::text("1\n2\n3\n4\n5\n6"))));
    terminal.tell(done(&read));
    let edit = edit("new\n");
    terminal.tell(EventKind::RoundStart);
    terminal.tell(EventKind::call_start(&edit, Some("files".into())));
    terminal.tell(approval(&edit));
    terminal.take(Input::Asked(question(&edit), Some("`a rule` to `config.toml`".to_owned())));
    moments.push(("asking", terminal.screen()));
    terminal.wait(SECOND);
    assert_eq!(terminal.press(KeyCode::Char('y')).len(), 1);
    terminal.tell(answered(&edit, "once"));
    terminal.tell(result(&edit, Ok(ToolOutput::text("ok"))));
    terminal.tell(done(&edit));
    terminal.tell(EventKind::RoundStart);
    terminal.tell(delta(MARKDOWN));
    terminal.tell(EventKind::AssistantText { text: MARKDOWN.to_owned() });
    terminal.tell(stop(StopReason::Completed, ""));
    moments.push(("done", terminal.screen()));
    moments
}

#[test]
fn a_run_in_a_small_terminal() {
    for (name, screen) in moments(SMALL) {
        insta::assert_snapshot!(format!("small_{name}"), screen);
    }
}

#[test]
fn a_run_in_a_large_terminal() {
    for (name, screen) in moments(LARGE) {
        insta::assert_snapshot!(format!("large_{name}"), screen);
    }
}

/// The screen after a text that came in these pieces.
fn after(pieces: &[&str]) -> (String, (u16, u16)) {
    let mut terminal = Terminal::running(LARGE);
    for piece in pieces {
        terminal.tell(delta(piece));
    }
    terminal.tell(EventKind::AssistantText { text: pieces.concat() });
    terminal.tell(stop(StopReason::Completed, ""));
    (terminal.screen(), terminal.emulator.screen().cursor_position())
}

#[test]
fn a_text_ends_in_the_same_screen_however_it_was_cut() {
    let expected = after(&[MARKDOWN]);
    for (at, _) in MARKDOWN.char_indices() {
        assert_eq!(after(&[&MARKDOWN[..at], &MARKDOWN[at..]]), expected, "cut at {at}");
    }
    let pieces: Vec<_> = MARKDOWN.split_inclusive(|_| true).collect();
    assert_eq!(after(&pieces), expected);
}

#[test]
fn nothing_hostile_reaches_the_terminal() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}1A\u{90}q\u{9c}\r\u{8}\u{202e}\u{200b}";
    let mut terminal = Terminal::new(LARGE);
    terminal.take(Input::Paste(hostile.to_owned()));
    assert_eq!(terminal.press(KeyCode::Enter).len(), 2);
    terminal.tell(start());
    terminal.tell(EventKind::RoundStart);
    terminal.tell(EventKind::ReasoningDelta { text: hostile.to_owned() });
    terminal.tell(delta(&format!("# {hostile}\n[x](http://{hostile})\n```{hostile}\n{hostile}")));
    let bad =
        call(hostile, hostile, json!({hostile: hostile, "path": hostile, "content": hostile}));
    terminal.tell(EventKind::call_start(&bad, Some(hostile.into())));
    let message = hostile.to_owned();
    let call_id = hostile.to_owned();
    terminal.tell(EventKind::ToolProgress { call_id, done: 1, total: None, message });
    let (call_id, text) = (hostile.to_owned(), hostile.to_owned());
    terminal.tell(EventKind::ToolOutput { call_id, text });
    let mut asked = question(&bad);
    asked.question.text = hostile.to_owned();
    asked.source.plugin = hostile.into();
    terminal.tell(approval(&bad));
    terminal.take(Input::Asked(asked, Some(hostile.to_owned())));
    terminal.wait(SECOND);
    terminal.type_in("b\u{1b}\u{202e}");
    terminal.press(KeyCode::Enter);
    let error = ToolError::new(belljar_types::ToolErrorKind::Failed, hostile).with_remedy(hostile);
    terminal.tell(result(&bad, Err(error)));
    terminal.tell(done(&bad));
    let (reason, what) = (hostile.to_owned(), hostile.to_owned());
    terminal.tell(EventKind::Retry { what, attempt: 2, delay_ms: 1, reason });
    terminal.tell(EventKind::Notice { message: hostile.to_owned() });
    terminal.tell(EventKind::Error { kind: hostile.to_owned(), message: hostile.to_owned() });
    terminal.tell(stop(StopReason::MaxIterations, hostile));
    let mut hostile_status = status(PermissionMode::Default);
    hostile_status.model = hostile.to_owned();
    terminal.take(Input::Status(hostile_status));
    let table =
        crate::Table { head: vec![hostile.to_owned()], rows: vec![vec![hostile.to_owned()]] };
    let shown = vec![
        crate::Shown::Text(hostile.to_owned()),
        crate::Shown::Problem(hostile.to_owned()),
        crate::Shown::Table(table),
        crate::Shown::Person(hostile.to_owned()),
    ];
    terminal.take(Input::Replied(crate::Reply { shown }));
    // Each drawing was looked at byte by byte; and this is what a person sees in the end.
    insta::assert_snapshot!("hostile", terminal.screen());
}

#[test]
fn a_resize_in_the_middle_of_a_text_leaves_one_live_area() {
    let mut terminal = Terminal::running(SMALL);
    terminal.tell(delta("A first paragraph that is written.\n\nA second one that is "));
    terminal.type_in("a line that I write meanwhile");
    for columns in [60, 100, 40, 80] {
        terminal.resize(Size { columns, rows: 24 });
        terminal.tell(delta("still being written, "));
        let screen = terminal.screen();
        let count = |text: &str| screen.matches(text).count();
        assert_eq!(
            (count("A first"), count("A second"), count("› a line that"), count("Esc interrupts")),
            (1, 1, 1, 1),
            "{screen}"
        );
    }
    insta::assert_snapshot!("resized", terminal.screen());
}

#[test]
fn a_text_that_is_higher_than_the_terminal_shows_its_end_while_it_is_written() {
    let mut terminal = Terminal::running(SMALL);
    let list: String = (1..=60).map(|number| format!("{number}. item\n")).collect();
    terminal.tell(delta(&list));
    let screen = terminal.screen();
    assert!(screen.contains("60. item") && !screen.contains("40. item"), "{screen}");
    terminal.tell(stop(StopReason::Completed, ""));
    let screen = terminal.screen();
    assert!(screen.contains("60. item") && screen.contains("45. item"), "{screen}");
}

#[test]
fn the_status_line_gives_way_in_a_narrow_terminal() {
    let mut terminal = Terminal::running(Size { columns: 30, rows: 8 });
    terminal.wait(SECOND);
    let screen = terminal.screen();
    assert_eq!(screen.lines().last(), Some("⠋ 1 s · Esc interrupts"), "{screen}");
}
