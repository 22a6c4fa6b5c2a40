//! What keys do, and messages that are sent in the middle of a run.

use super::*;
use crate::{Command, Reply, Steered};

fn message(text: &str) -> Vec<Effect> {
    vec![Effect::Start(Turn::Message(text.to_owned()))]
}

#[test]
fn a_message_in_the_middle_of_a_run_is_queued_until_a_round_takes_it() {
    let mut terminal = Terminal::running(SMALL);
    assert_eq!(terminal.send("use tabs"), [Effect::Steer("use tabs".to_owned())]);
    terminal.take(Input::Steered("use tabs".to_owned(), Steered::Queued));
    terminal.wait(SECOND);
    insta::assert_snapshot!("queued", terminal.screen());
    terminal.tell(EventKind::RoundStart);
    let screen = terminal.screen();
    assert!(screen.contains("\n› use tabs\n") && !screen.contains("queued"), "{screen}");
}

#[test]
fn what_a_canceled_run_did_not_take_comes_back_and_what_it_did_is_not_sent_twice() {
    let mut terminal = Terminal::running(SMALL);
    terminal.send("use tabs");
    terminal.take(Input::Steered("use tabs".to_owned(), Steered::Queued));
    terminal.send("and two");
    terminal.take(Input::Steered("and two".to_owned(), Steered::Closed));
    terminal.type_in("and");
    assert_eq!(terminal.press(KeyCode::Esc), [Effect::Cancel]);
    assert_eq!(terminal.press(KeyCode::Esc), [], "once is enough");
    assert_eq!(terminal.tell(stop(StopReason::Canceled, "")), []);
    let screen = terminal.screen();
    assert!(screen.contains("\n› use tabs\n") && screen.contains("in your next turn"), "{screen}");
    assert_eq!(terminal.press(KeyCode::Enter)[1..], message("and two\nand"));
}

#[test]
fn what_came_too_late_begins_the_next_run() {
    let mut terminal = Terminal::running(SMALL);
    terminal.send("one more thing");
    let late = Input::Steered("one more thing".to_owned(), Steered::Closed);
    assert_eq!(terminal.take(late), []);
    assert_eq!(terminal.tell(stop(StopReason::Completed, "")), message("one more thing"));
}

#[test]
fn control_c_cancels_and_twice_within_two_seconds_leaves() {
    let mut terminal = Terminal::running(SMALL);
    assert_eq!(terminal.ctrl('c'), [Effect::Cancel]);
    terminal.wait(2 * SECOND);
    assert_eq!(terminal.ctrl('c'), [Effect::Cancel, Effect::Leave]);
    let mut terminal = Terminal::new(SMALL);
    terminal.type_in("half a line");
    assert_eq!(terminal.ctrl('c'), []);
    assert!(!terminal.screen().contains("half"));
    assert!(terminal.screen().contains("Ctrl-C again leaves"));
    terminal.wait(2 * SECOND + Duration::from_millis(1));
    assert_eq!(terminal.ctrl('c'), []);
    terminal.wait(SECOND);
    assert_eq!(terminal.ctrl('c'), [Effect::Leave]);
}

#[test]
fn control_d_leaves_on_an_empty_line_alone() {
    let mut terminal = Terminal::new(SMALL);
    terminal.type_in("x");
    assert_eq!(terminal.ctrl('d'), []);
    terminal.press(KeyCode::Backspace);
    assert_eq!(terminal.ctrl('d'), [Effect::Leave]);
}

#[test]
fn shift_tab_goes_through_the_modes_and_never_to_a_wide_one() {
    use PermissionMode::{AcceptEdits, Bypass, Default, DontAsk, Plan};
    let next = [
        (Default, AcceptEdits),
        (AcceptEdits, Plan),
        (Plan, Default),
        (DontAsk, Default),
        (Bypass, Default),
    ];
    for (mode, next) in next {
        let mut terminal = Terminal::new(SMALL);
        terminal.take(Input::Status(status(mode)));
        assert!(terminal.screen().contains(mode.name()));
        assert_eq!(terminal.press(KeyCode::BackTab), [Effect::SetMode(next)]);
    }
}

#[test]
fn commands_go_to_the_backend_and_only_those_that_look_in_the_middle_of_a_run() {
    let mut terminal = Terminal::new(SMALL);
    assert_eq!(terminal.send("/plan"), [Effect::SetMode(PermissionMode::Plan)]);
    assert_eq!(terminal.send("/clear"), [Effect::Command(Command::Clear)]);
    assert_eq!(terminal.send("wait"), []);
    assert_eq!(terminal.press(KeyCode::Esc), [Effect::CallOff]);
    terminal.ctrl('c');
    terminal.send("/cost");
    terminal.take(Input::Replied(Reply::text("nothing yet")));
    assert_eq!(terminal.send("/exit"), [Effect::Leave]);
    let mut terminal = Terminal::running(SMALL);
    assert_eq!(terminal.send("/tools"), [Effect::Command(Command::Tools)]);
    terminal.take(Input::Replied(Reply::text("the tools")));
    assert_eq!(terminal.press(KeyCode::Esc), [Effect::Cancel], "the run is still there");
    assert_eq!(terminal.send("/clear"), []);
    assert!(terminal.screen().contains("› /clear"), "it is not lost");
    terminal.ctrl('u');
    assert_eq!(terminal.send("/toosl"), []);
    assert!(terminal.screen().contains("did you mean `/tools`?"));
}

#[test]
fn plans_and_doing_them_are_turns() {
    let mut terminal = Terminal::new(SMALL);
    assert_eq!(terminal.send("/plan a task"), [Effect::Start(Turn::Plan("a task".to_owned()))]);
    terminal.tell(stop(StopReason::Completed, ""));
    assert_eq!(terminal.send("/do"), [Effect::Start(Turn::Do(String::new()))]);
}

#[test]
fn help_names_every_key_and_command() {
    let mut terminal = Terminal::new(LARGE);
    assert_eq!(terminal.send("/help"), []);
    insta::assert_snapshot!("help", terminal.screen());
}

#[test]
fn a_run_that_ends_without_a_word_leaves_a_session_that_goes_on() {
    let mut terminal = Terminal::running(SMALL);
    terminal.tell(delta("half"));
    assert_eq!(terminal.take(Input::EventsEnded), []);
    assert!(terminal.screen().contains("the run ended without saying why"));
    assert_eq!(terminal.send("next"), message("next"));
}

#[test]
fn what_a_retry_makes_void_is_said() {
    let mut terminal = Terminal::running(SMALL);
    terminal.tell(delta("The answ"));
    let (what, reason) = ("model".to_owned(), "the stream was cut".to_owned());
    terminal.tell(EventKind::Retry { what, attempt: 2, delay_ms: 200, reason });
    terminal.tell(delta("The answer"));
    terminal.tell(EventKind::AssistantText { text: "The answer".to_owned() });
    insta::assert_snapshot!("retry", terminal.screen());
}
