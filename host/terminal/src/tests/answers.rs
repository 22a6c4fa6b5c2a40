//! What the person is asked, and what counts as an answer.

use super::*;
use belljar_types::{ApprovalAnswer, ToolErrorKind};

fn asking(call: &ToolCall, always: Option<&str>) -> Terminal {
    let mut terminal = Terminal::running(SMALL);
    terminal.tell(EventKind::call_start(call, Some("files".into())));
    terminal.tell(approval(call));
    terminal.take(Input::Asked(question(call), always.map(str::to_owned)));
    terminal
}

fn answer(answer: ApprovalAnswer) -> Vec<Effect> {
    vec![Effect::Answer("c2".to_owned(), answer)]
}

#[test]
fn each_key_is_its_answer() {
    let cases = [
        ("y", answer(ApprovalAnswer::Once)),
        ("Y", answer(ApprovalAnswer::Once)),
        ("s", answer(ApprovalAnswer::Session)),
        ("n", answer(ApprovalAnswer::No)),
        ("a", vec![Effect::WriteAlways("c2".to_owned())]),
        ("x", vec![]),
    ];
    for (keys, effects) in cases {
        let mut terminal = asking(&edit("new\n"), Some("`rule` to `file`"));
        terminal.wait(SECOND);
        assert_eq!(terminal.type_in(keys), effects, "{keys}");
    }
}

#[test]
fn a_key_that_came_before_the_question_was_seen_is_no_answer() {
    let mut terminal = asking(&edit("new\n"), None);
    assert_eq!(terminal.type_in("y"), []);
    terminal.wait(Duration::from_millis(399));
    assert_eq!(terminal.type_in("y"), []);
    terminal.wait(Duration::from_millis(1));
    assert_eq!(terminal.type_in("y"), answer(ApprovalAnswer::Once));
}

#[test]
fn a_yes_counts_once_every_page_was_seen() {
    let text: String = (1..=30).map(|line| format!("line {line}\u{1b}[2J\n")).collect();
    let mut terminal = asking(&edit(&text), Some("`rule` to `file`"));
    terminal.wait(SECOND);
    insta::assert_snapshot!("page_1", terminal.screen());
    for key in ["y", "s", "a"] {
        assert_eq!(terminal.type_in(key), [], "{key}");
        assert!(terminal.screen().contains("a yes counts once every page was seen"));
    }
    let mut seen = terminal.screen();
    while !terminal.screen().contains("y once") {
        assert_eq!(terminal.press(KeyCode::Enter), []);
        seen.push_str(&terminal.screen());
    }
    for line in 1..=30 {
        assert!(seen.contains(&format!("+ line {line}\\u{{1b}}[2J")), "{line}");
    }
    insta::assert_snapshot!("page_last", terminal.screen());
    // Another size has other pages, which nobody has seen.
    terminal.resize(Size { columns: 60, rows: 20 });
    assert_eq!(terminal.type_in("y"), []);
    assert_eq!(terminal.type_in("n"), answer(ApprovalAnswer::No));
}

#[test]
fn nothing_is_approved_that_the_terminal_is_too_small_to_show() {
    let call = edit("new\n");
    for rows in 1..40 {
        let mut terminal = asking(&call, Some("`rule` to `file`"));
        terminal.resize(Size { columns: 40, rows });
        terminal.wait(SECOND);
        let mut seen = terminal.screen();
        for _ in 0..10 {
            terminal.press(KeyCode::Enter);
            seen.push_str(&terminal.screen());
        }
        let parts = ["may `edit_file` change", "path: \"a.rs\"", "- old", "+ new"];
        let is_seen = parts.iter().all(|part| seen.contains(part));
        let is_approved = terminal.type_in("y") == answer(ApprovalAnswer::Once);
        assert!(is_seen || !is_approved, "{rows} rows: {seen}");
        assert_eq!(is_approved, rows >= 12, "{rows} rows");
        if !is_approved {
            assert_eq!(terminal.type_in("n"), answer(ApprovalAnswer::No));
        }
    }
}

#[test]
fn a_no_with_a_reason_is_typed() {
    let mut terminal = asking(&edit("new\n"), None);
    terminal.wait(SECOND);
    assert_eq!(terminal.type_in("bnot yx"), []);
    terminal.press(KeyCode::Backspace);
    assert!(terminal.screen().contains("no, because: not y"));
    assert_eq!(terminal.press(KeyCode::Esc), [], "ends the typing alone");
    terminal.type_in("buse b.rs");
    let because = ApprovalAnswer::NoBecause("use b.rs".to_owned());
    assert_eq!(terminal.press(KeyCode::Enter), answer(because));
}

#[test]
fn a_yes_for_good_is_one_only_once_it_was_written() {
    let mut terminal = asking(&edit("new\n"), Some("`rule` to `file`"));
    terminal.wait(SECOND);
    let failed = Input::Written("c2".to_owned(), Err("the disk is full".to_owned()));
    assert_eq!(terminal.take(failed), []);
    assert!(terminal.screen().contains("not written: the disk is full"));
    let written = Input::Written("c2".to_owned(), Ok(()));
    assert_eq!(terminal.take(written), answer(ApprovalAnswer::Always));
    let mut terminal = asking(&edit("new\n"), None);
    terminal.wait(SECOND);
    assert_eq!(terminal.type_in("a"), []);
    assert!(terminal.screen().contains("there is no yes for good to this"));
}

#[test]
fn a_question_waits_for_what_led_to_it() {
    let call = edit("new\n");
    let mut terminal = Terminal::running(SMALL);
    terminal.take(Input::Asked(question(&call), None));
    assert!(!terminal.screen().contains("may `edit_file`"));
    terminal.tell(EventKind::call_start(&call, Some("files".into())));
    terminal.tell(approval(&call));
    assert!(terminal.screen().contains("may `edit_file`"));
}

#[test]
fn questions_of_a_batch_come_one_after_the_other() {
    let (first, mut second) = (edit("new\n"), edit("other\n"));
    second.id = "c3".to_owned();
    let mut terminal = asking(&first, None);
    terminal.tell(approval(&second));
    terminal.take(Input::Asked(question(&second), None));
    terminal.wait(SECOND);
    assert!(terminal.screen().contains("1 more to answer after it"));
    assert_eq!(terminal.type_in("y"), answer(ApprovalAnswer::Once));
    assert_eq!(terminal.type_in("y"), [], "the second was not seen yet");
    terminal.wait(SECOND);
    assert_eq!(terminal.type_in("y"), [Effect::Answer("c3".to_owned(), ApprovalAnswer::Once)]);
}

#[test]
fn an_interrupt_is_not_a_no() {
    let mut terminal = asking(&edit("new\n"), None);
    terminal.wait(SECOND);
    assert_eq!(terminal.press(KeyCode::Esc), [Effect::Cancel, Effect::Dismiss]);
    assert!(!terminal.screen().contains("may `edit_file`"));
}

#[test]
fn what_was_refused_says_what_would_allow_it() {
    let call = edit("new\n");
    let mut terminal = Terminal::running(SMALL);
    terminal.tell(EventKind::call_start(&call, Some("files".into())));
    let error = ToolError::new(ToolErrorKind::Denied, "not in this mode");
    terminal.tell(result(&call, Err(error.with_remedy("--allow files/edit_file"))));
    terminal.tell(EventKind::ToolCallDone { call_id: call.id.clone(), receipt: None });
    let screen = terminal.screen();
    assert!(
        screen.contains("  denied: not in this mode\n  `--allow files/edit_file` allows it"),
        "{screen}"
    );
}

#[test]
fn at_the_turn_limit_it_asks_whether_to_go_on() {
    let limit = |terminal: &mut Terminal| {
        terminal.tell(stop(StopReason::MaxIterations, "the turn limit of 15 was reached"));
    };
    let mut terminal = Terminal::running(SMALL);
    limit(&mut terminal);
    insta::assert_snapshot!("limit", terminal.screen());
    assert_eq!(terminal.type_in("y"), [Effect::Start(Turn::GoOn)]);
    limit(&mut terminal);
    assert_eq!(terminal.type_in("n"), []);
    assert!(!terminal.screen().contains("go on?"));
    terminal.send("again");
    limit(&mut terminal);
    assert_eq!(
        terminal.send("do this"),
        [Effect::Start(Turn::Message("do this".to_owned()))],
        "a message is an answer too"
    );
}
