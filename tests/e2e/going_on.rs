//! Runs that go on with a session, plan and carry out, are recorded and played again, are driven by
//! another program, and meet the user's own hooks and skills.

use crate::support::{Ended, Machine, calls, json_lines, of_type, says};
use belljar_test_guests::HOSTILE;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    process::{Child, ChildStdout, Stdio},
};

fn run(machine: &Machine, turns: &[Value], options: &[&str]) -> Ended {
    let model = machine.script(turns);
    let mut arguments = vec!["run", "-m", &model, "-o", "stream-json"];
    arguments.extend(options);
    machine.run(arguments)
}

fn texts(session: &[Value], role: &str) -> Vec<String> {
    let messages = session.iter().filter(|record| record["record"] == "message");
    let of_role =
        messages.map(|record| &record["message"]).filter(|message| message["role"] == role);
    of_role
        .map(|message| message["parts"][0]["text"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn a_session_goes_on_where_it_ended_and_nothing_is_written_twice() {
    let machine = Machine::new();
    let none = run(&machine, &[says("x")], &["--continue", "and now?"]);
    assert_eq!(none.code, 1, "{none:?}");
    assert!(none.stderr.contains("there is no session of this folder"), "{none:?}");

    assert_eq!(run(&machine, &[says("one")], &["first"]).code, 0);
    let id = machine.session()[0]["id"].as_str().unwrap().to_owned();
    for options in [["--continue", "second"].as_slice(), &["--resume", &id, "third"]] {
        let ended = run(&machine, &[says("more")], options);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(ended.events()[0]["session"], id.as_str());
    }
    let session = machine.session();
    assert_eq!(texts(&session, "user"), ["first", "second", "third"]);
    assert_eq!(texts(&session, "assistant"), ["one", "more", "more"]);

    let unknown = run(&machine, &[says("x")], &["--resume", "0123", "x"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.stderr.contains("0123"), "{unknown:?}");
    machine.write("elsewhere/x", "");
    let model = machine.script(&[says("x")]);
    let elsewhere = machine.run(["run", "-m", &model, "-C", "elsewhere", "--resume", &id, "x"]);
    assert_eq!(elsewhere.code, 1, "{elsewhere:?}");
    assert!(elsewhere.stderr.contains("belongs to the folder"), "{elsewhere:?}");
}

/// The program is killed while a call runs and another waits: on going on both are decided about
/// anew, under what is granted then.
#[test]
fn calls_that_a_kill_left_open_are_decided_about_anew() {
    let machine = Machine::new();
    machine.write_at("data/belljar/plugins/hostile.wasm", HOSTILE.bytes);
    let both = json!({"calls": [
        {"tool": "hostile__sleep_for_ever"},
        {"tool": "write_file", "arguments": {"path": "a.txt", "content": "x"}},
    ]});
    let model = machine.script(&[both]);
    let grant = ["--grant", "hostile.env=A", "--permission-mode", "bypass"];
    let line = ["run", "-m", &model, "-o", "stream-json", "go"];
    let mut child = machine.spawn(line.into_iter().chain(grant));
    let started = || machine.session().iter().any(|record| record["record"] == "call_started");
    for line in BufReader::new(child.stdout.as_mut().unwrap()).lines() {
        if line.unwrap().contains("tool_call_start") {
            break;
        }
    }
    while !started() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    // Headless nothing is written without a rule, whatever was allowed before the kill.
    let short = ["--grant", "hostile.env=A", "--grant", "hostile.limits.deadline=200ms"];
    let mut options = vec!["--continue"];
    options.extend(short);
    let ended = run(&machine, &[says("I see.")], &options);
    assert_eq!(ended.code, 0, "{ended:?}");
    let events = ended.events();
    let kinds: Vec<_> = of_type(&events, "tool_result")
        .iter()
        .map(|result| result["error"]["kind"].clone())
        .collect();
    assert_eq!(kinds, [json!("deadline"), json!("denied")], "{ended:#?}");
    assert!(!machine.workspace().join("a.txt").exists());
}

#[test]
fn a_plan_changes_nothing_and_is_carried_out_when_a_person_gives_it() {
    let machine = Machine::new();
    let write = || calls("write_file", json!({"path": "a.txt", "content": "done"}));
    let planned =
        run(&machine, &[write(), says("1. Write `a.txt`.")], &["--mode", "plan", "make a.txt"]);
    assert_eq!(planned.code, 0, "{planned:?}");
    let events = planned.events();
    assert_eq!(
        (&events[0]["mode"], &events[0]["permission_mode"]),
        (&json!("plan"), &json!("plan"))
    );
    assert_eq!(of_type(&events, "tool_result")[0]["error"]["kind"], "denied");
    assert!(!machine.workspace().join("a.txt").exists());
    // Nor by way of a subagent.
    let by_helper = json!({"calls": [{"tool": "delegate", "arguments": {"task": "write it"}}]});
    let turns = [by_helper, write(), says("could not"), says("so be it")];
    let helped = run(&machine, &turns, &["--mode", "plan", "make a.txt"]);
    assert_eq!(helped.code, 0, "{helped:#?}");
    assert!(!machine.workspace().join("a.txt").exists());

    machine.write_at("plan.md", events.last().unwrap()["result"].as_str().unwrap());
    let plan = machine.path("plan.md").display().to_string();
    let allow = ["--allow", "files/write_file"];
    let mut options = vec!["--mode", "do", "--plan", &plan, "make a.txt"];
    options.extend(allow);
    let done = run(&machine, &[write(), says("Done.")], &options);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(machine.read("a.txt"), "done");

    for options in [&["--mode", "do", "x"][..], &["--plan", &plan, "x"]] {
        let ended = machine.run(["run"].iter().chain(options));
        assert_eq!(ended.code, 2, "{ended:?}");
    }
}

#[test]
fn a_recorded_run_plays_again_in_a_fresh_copy() {
    let machine = Machine::new();
    machine.write("a.txt", "one\n");
    let edit = json!({"path": "a.txt", "old_text": "one", "new_text": "two"});
    let turns = [
        calls("read_file", json!({"path": "a.txt"})),
        calls("edit_file", edit),
        json!({"reasoning": "hm", "text": "It says two.", "usage": {"input_tokens": 7}}),
    ];
    let file = machine.path("recorded.jsonl").display().to_string();
    let options = ["--allow", "files/edit_file", "change it"];
    let recorded = run(&machine, &turns, &[&["--record", file.as_str()][..], &options].concat());
    assert_eq!(recorded.code, 0, "{recorded:?}");
    assert!(recorded.stderr.contains("recorded 3 turns"), "{recorded:?}");
    let again = run(&machine, &turns, &["--record", &file, "x"]);
    assert_eq!(again.code, 1, "a recording is never written over: {again:?}");

    let fresh = Machine::new();
    fresh.write("a.txt", "one\n");
    let model = format!("script/{file}");
    let played = fresh.run(["run", "-m", &model, "-o", "stream-json"].into_iter().chain(options));
    let essence = |ended: &Ended| -> Vec<Value> {
        let mut events = ended.events();
        // Pieces of text are cut as they come, and the model has another name.
        events.retain(|event| event["type"] != "text_delta" && event["type"] != "reasoning_delta");
        for event in &mut events {
            for key in ["seq", "session", "workspace", "model", "duration_ms", "call_id", "message"]
            {
                event.as_object_mut().unwrap().remove(key);
            }
            if let Some(receipt) = event.get_mut("receipt") {
                *receipt =
                    json!([receipt["files_opened"], receipt["files_written"], receipt["ended"]]);
            }
        }
        events
    };
    assert_eq!(essence(&played), essence(&recorded));
    assert_eq!(fresh.read("a.txt"), "two\n");
}

/// A run that another program drives by lines.
struct Driven {
    child: Child,
    events: BufReader<ChildStdout>,
}

impl Driven {
    fn start(machine: &Machine, turns: &[Value]) -> Self {
        let model = machine.script(turns);
        let line = ["run", "-m", &model, "-o", "stream-json", "--input-format", "stream-json"];
        let mut child = machine.command(line).stdin(Stdio::piped()).spawn().unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        Self { child, events }
    }

    fn say(&mut self, line: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn until(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.events.read_line(&mut line).unwrap(), 0, "no `{kind}` came");
            let event: Value = serde_json::from_str(&line).unwrap();
            if event["type"] == kind {
                return event;
            }
        }
    }

    fn end(mut self) -> i32 {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn another_program_answers_adds_and_cancels() {
    let machine = Machine::new();
    let write = |path: &str| calls("write_file", json!({"path": path, "content": "x"}));
    let turns = [write("a.txt"), write("b.txt"), says("one is there")];
    let mut driven = Driven::start(&machine, &turns);
    driven.say(&json!({"type": "user", "text": "write both"}));
    let asked = driven.until("approval");
    driven.say(&json!({"type": "nonsense"}));
    assert!(driven.until("notice")["message"].as_str().unwrap().contains("line 2"));
    driven.say(&json!({"type": "user", "text": "only the first one"}));
    driven.say(&json!({"type": "approval_answer", "call_id": asked["call_id"], "answer": "once"}));
    let asked = driven.until("approval");
    driven.say(&json!({
        "type": "approval_answer", "call_id": asked["call_id"],
        "answer": "no_because", "reason": "only the first one"
    }));
    let result = driven.until("tool_result");
    assert!(
        result["error"]["message"].as_str().unwrap().contains("only the first one"),
        "{result}"
    );
    assert_eq!(driven.until("stop")["reason"], "completed");
    assert_eq!(driven.end(), 0);
    assert!(machine.workspace().join("a.txt").exists());
    assert!(!machine.workspace().join("b.txt").exists());
    assert_eq!(texts(&machine.session(), "user"), ["write both", "only the first one"]);

    // With the end of its input nobody answers any more.
    let machine = Machine::new();
    let mut driven = Driven::start(&machine, &[write("a.txt"), says("it was refused")]);
    driven.say(&json!({"type": "user", "text": "write"}));
    driven.until("approval");
    drop(driven.child.stdin.take());
    assert_eq!(driven.until("tool_result")["error"]["kind"], "denied");
    assert_eq!(driven.end(), 0);

    let machine = Machine::new();
    let mut driven = Driven::start(&machine, &[write("a.txt"), says("never")]);
    driven.say(&json!({"type": "user", "text": "write"}));
    driven.until("approval");
    driven.say(&json!({"type": "cancel"}));
    assert_eq!(driven.until("stop")["reason"], "canceled");
    assert_eq!(driven.end(), 130);
    assert!(!machine.workspace().join("a.txt").exists());
}

#[test]
fn hooks_of_the_user_refuse_and_those_of_a_workspace_do_not_exist() {
    let machine = Machine::new();
    let hook = machine.path("home/check");
    machine
        .write_at("home/check", "#!/bin/sh\ncat > \"$SEEN\"\necho 'not on a Friday' >&2\nexit 2\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o700)).unwrap();
    let seen = machine.path("seen.json");
    machine.write_at(
        "config/belljar/config.toml",
        format!(
            "[[hooks.pre_tool]]\ncommand = [{:?}]\nenv = {{ SEEN = {:?} }}\n",
            hook.display().to_string(),
            seen.display().to_string()
        ),
    );
    let turns = [calls("list_directory", json!({})), says("no")];
    let ended = run(&machine, &turns, &["look"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let events = ended.events();
    let result = of_type(&events, "tool_result")[0];
    assert_eq!(result["error"]["kind"], "denied", "{result}");
    assert!(result["error"]["message"].as_str().unwrap().contains("not on a Friday"), "{result}");
    let read: Value = serde_json::from_str(&fs::read_to_string(&seen).unwrap()).unwrap();
    assert_eq!((&read["hook"], &read["tool"]), (&json!("pre_tool"), &json!("list_directory")));
}

#[test]
fn a_skill_is_listed_loaded_and_grants_nothing() {
    let machine = Machine::new();
    machine.write_at(
        "data/belljar/skills/release/SKILL.md",
        "---\nname: release\ndescription: Makes a release.\nallowed-tools: Bash\n---\nTag it first.\n",
    );
    let turns = [calls("load_skill", json!({"name": "release"})), says("I know.")];
    let ended = run(&machine, &turns, &["release it"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let events = ended.events();
    let tools: Vec<_> = events[0]["tools"].as_array().unwrap().iter().collect();
    assert!(tools.contains(&&json!("load_skill")), "{tools:?}");
    assert_eq!(of_type(&events, "tool_result")[0]["ok"], true, "{events:#?}");
    let records = json_lines(&serde_json::to_string(&machine.session()).unwrap());
    assert!(records[0].as_array().unwrap().iter().any(|record| record["record"] == "skill_loaded"));
}

#[test]
fn the_memory_is_written_after_the_stop_where_the_user_wants_one() {
    let machine = Machine::new();
    let kept = says("[{\"name\": \"build\", \"text\": \"# Build with make\"}]");
    let turns = [says("Done."), kept];
    let file = || {
        let folders = fs::read_dir(machine.path("data/belljar/memory")).into_iter().flatten();
        let mut files = folders.map(|folder| folder.unwrap().path().join("build.md"));
        files.find_map(|file| fs::read_to_string(file).ok())
    };
    assert_eq!(run(&machine, &turns, &["build it"]).code, 0);
    assert_eq!(file(), None, "nobody asked for a memory");

    machine.write_at("config/belljar/config.toml", "memory = true\n");
    let ended = run(&machine, &turns, &["build it"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.events().last().unwrap()["result"], "Done.");
    assert!(ended.stderr.contains("the memory `build` was added"), "{ended:?}");
    assert_eq!(file().as_deref(), Some("# Build with make"));

    // A folder's own settings cannot ask for one.
    machine.write("belljar.toml", "memory = true\n");
    let trusted = machine.run(["trust", "--yes", &machine.workspace().display().to_string()]);
    assert_eq!(trusted.code, 1, "{trusted:?}");
    assert!(trusted.stderr.contains("`memory` is not a workspace's to set"), "{trusted:?}");
}
