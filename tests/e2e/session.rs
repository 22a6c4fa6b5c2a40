//! `belljar` by itself, at a terminal: what a person types and sees.

use crate::{
    support::{Machine, calls, says},
    system,
};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{Read, Write},
    process::{Child, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

/// A person at a session.
struct Person {
    child: Child,
    keys: File,
    comes: Receiver<String>,
    /// All that was shown.
    shown: String,
}

impl Person {
    fn sits_down(machine: &Machine, turns: &[Value], options: &[&str]) -> Self {
        let model = machine.script(turns);
        let (person, program) = system::open_terminal();
        let mut command = machine.command(["-m", &model].iter().chain(options));
        let of_program = || Stdio::from(program.try_clone().unwrap());
        command.stdin(of_program()).stdout(of_program()).stderr(of_program());
        command.env("NO_COLOR", "1").env("TERM", "xterm");
        let child = command.spawn().unwrap();
        let (sender, comes) = mpsc::channel();
        let mut screen = person.try_clone().unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Where the program is gone, reading its terminal is an error.
            while let Ok(length @ 1..) = screen.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        let mut sits = Self { child, keys: person, comes, shown: String::new() };
        sits.sees("script/");
        sits
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until a text is shown after all that was waited for before.
    fn sees(&mut self, text: &str) {
        self.types_until("", text);
    }

    /// Types keys again and again until a text is shown: a question takes no key at first, so that
    /// none answers it that was meant for something else.
    fn types_until(&mut self, keys: &str, text: &str) {
        const PATIENCE: u32 = 300;
        for _ in 0..PATIENCE {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return;
            }
            self.types(keys);
            if let Ok(more) = self.comes.recv_timeout(Duration::from_millis(100)) {
                self.shown.push_str(&more);
            }
        }
        panic!("{text:?} was never shown: {}", self.shown);
    }

    /// Leaves with Ctrl-D.
    fn leaves(mut self) -> i32 {
        self.types("\x15\x04");
        self.sees("belljar --resume ");
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn write(path: &str) -> Value {
    calls("write_file", json!({"path": path, "content": "x"}))
}

#[test]
fn a_turn_is_asked_about_and_the_next_one_knows_of_it() {
    let machine = Machine::new();
    let turns = [write("a.txt"), says("It is there."), says("As I said.")];
    let mut person = Person::sits_down(&machine, &turns, &[]);
    person.types("make a.txt\r");
    person.sees("allow?");
    assert!(!machine.workspace().join("a.txt").exists());
    person.types_until("y", "It is there.");
    assert_eq!(machine.read("a.txt"), "x");
    person.types("\x15is it?\r");
    person.sees("As I said.");
    person.types("/status\r");
    person.sees("permission mode");
    person.types("/undo\r");
    person.sees("there is no `/undo`");
    assert_eq!(person.leaves(), 0);
    let messages = machine.session().iter().filter(|record| record["record"] == "message").count();
    assert_eq!(messages, 6, "both turns are in the one session");
}

#[test]
fn an_interrupt_is_no_refusal_and_the_session_goes_on_after_a_kill() {
    let machine = Machine::new();
    let mut person = Person::sits_down(&machine, &[write("a.txt"), says("never")], &[]);
    person.types("make a.txt\r");
    person.sees("allow?");
    person.types_until("\x1b", "interrupted");
    assert!(!machine.workspace().join("a.txt").exists());
    let session = machine.session();
    let result = session.iter().rfind(|record| record["message"]["role"] == "tool").unwrap();
    assert!(result.to_string().contains("\"canceled\""), "{result}");
    person.child.kill().unwrap();
    drop(person);

    let mut person = Person::sits_down(&machine, &[says("I remember.")], &["--continue"]);
    person.types("go on\r");
    person.sees("I remember.");
    assert_eq!(person.leaves(), 0);
    assert_eq!(machine.session()[0], session[0]);
}

#[test]
fn the_mode_is_changed_by_a_key_and_a_plan_changes_nothing() {
    let machine = Machine::new();
    let turns = [
        write("a.txt"),
        says("Written."),
        write("b.txt"),
        says("1. Write `b.txt`."),
        write("b.txt"),
        says("Carried out."),
    ];
    let mut person = Person::sits_down(&machine, &turns, &[]);
    person.types("\x1b[Z");
    person.sees("accept-edits");
    person.types("make a.txt\r");
    person.sees("Written.");
    assert_eq!(machine.read("a.txt"), "x", "nobody was asked");
    person.types("/plan make b.txt\r");
    person.sees("1. Write");
    assert!(!machine.workspace().join("b.txt").exists());
    person.types("/do\r");
    person.sees("Carried out.");
    assert_eq!(machine.read("b.txt"), "x");
    assert_eq!(person.leaves(), 0);
}

/// At the turn limit a plan that goes on is still one: nothing is changed in a mode that allows it.
#[test]
fn a_plan_that_goes_on_past_the_turn_limit_changes_nothing() {
    let machine = Machine::new();
    let look = calls("list_directory", json!({}));
    let turns =
        [look, write("a.txt"), says("1. Write `a.txt`."), write("a.txt"), says("Carried out.")];
    let options = ["--permission-mode", "bypass", "--max-turns", "1"];
    let mut person = Person::sits_down(&machine, &turns, &options);
    person.types("/plan make a.txt\r");
    person.sees("go on?");
    person.types_until("y", "write_file");
    person.sees("go on?");
    assert!(!machine.workspace().join("a.txt").exists());
    person.types_until("y", "1. Write");
    assert!(!machine.workspace().join("a.txt").exists());
    person.types("\x15/do\r");
    person.sees("go on?");
    assert_eq!(machine.read("a.txt"), "x");
    person.types_until("y", "Carried out.");
    assert_eq!(person.leaves(), 0);
}
