//! `belljar run` with the scripted model: events, exit codes, sessions, permissions.

use crate::support::{Ended, Machine, calls, of_type, repository, says, types};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::Command,
};

/// A copy of the files that git knows in this repository.
fn copy_repository(to: &Path) {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(listed.status.success(), "these tests run in a clone");
    for name in
        String::from_utf8(listed.stdout).unwrap().split('\0').filter(|name| !name.is_empty())
    {
        let (from, to) = (repository().join(name), to.join(name));
        if from.is_file() {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
}

#[test]
fn five_rounds_of_real_calls_on_this_repository() {
    let machine = Machine::new();
    copy_repository(&machine.workspace());
    let model = machine.script(&[
        calls("find_files", json!({"pattern": "wit/*.wit"})),
        calls("search_text", json!({"pattern": "list-tools: func", "glob": "*.wit"})),
        calls("read_file", json!({"path": "wit/tools.wit"})),
        calls(
            "edit_file",
            json!({
                "path": "wit/tools.wit",
                "old_text": "/// `arguments` is a JSON object.",
                "new_text": "/// `arguments` is a JSON object, always."
            }),
        ),
        calls("read_file", json!({"path": "wit/tools.wit"})),
        says("The comment says always now."),
    ]);
    let ended = machine.run([
        "run",
        "-m",
        &model,
        "-o",
        "stream-json",
        "--allow",
        "files/edit_file",
        "sharpen the comment",
    ]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let round = ["round_start", "tool_call_start", "tool_result", "tool_call_done"];
    let mut expected = vec!["start"];
    for _ in 0..5 {
        expected.extend(round);
    }
    expected.extend(["round_start", "text", "assistant_text", "stop"]);
    let mut seen: Vec<_> = types(&events)
        .into_iter()
        .filter(|kind| !matches!(*kind, "notice" | "usage"))
        .map(|kind| if kind == "text_delta" { "text" } else { kind })
        .collect();
    seen.dedup();
    assert_eq!(seen, expected);
    let results = of_type(&events, "tool_result");
    assert!(results.iter().all(|result| result["ok"] == true), "{results:#?}");
    let text = |at: usize| results[at]["content"][0]["text"].as_str().unwrap();
    assert!(text(0).contains("wit/tools.wit"), "{}", text(0));
    assert!(text(1).contains("wit/tools.wit"), "{}", text(1));
    assert!(text(4).contains("is a JSON object, always."), "{}", text(4));
    assert!(machine.read("wit/tools.wit").contains("is a JSON object, always."));
    let done = of_type(&events, "tool_call_done");
    assert_eq!(done[3]["receipt"]["files_written"], json!(["wit/tools.wit"]));
    assert_eq!(done[3]["receipt"]["decision"]["rule"], "files/edit_file");
    let stop = events.last().unwrap();
    assert_eq!(
        (&stop["reason"], &stop["turns"], &stop["result"], &stop["denials"]),
        (&json!("completed"), &json!(6), &json!("The comment says always now."), &json!(0)),
    );
    let iterations: Vec<_> = of_type(&events, "round_start")
        .iter()
        .map(|event| event["iteration"].as_u64().unwrap())
        .collect();
    assert_eq!(iterations, [1, 2, 3, 4, 5, 6]);
}

fn run(machine: &Machine, turns: &[Value], options: &[&str]) -> Ended {
    let model = machine.script(turns);
    let mut arguments = vec!["run", "-m", &model, "-o", "stream-json"];
    arguments.extend(options);
    arguments.push("do it");
    machine.run(arguments)
}

fn stop_reason(ended: &Ended) -> String {
    ended.events().last().unwrap()["reason"].as_str().unwrap().to_owned()
}

#[test]
fn every_end_has_its_exit_code() {
    let unknown = || calls("no_such_tool", json!({}));
    let list = || calls("list_directory", json!({}));
    let error = json!({"error": {"kind": "request", "message": "no such model"}});
    let cut = || json!({"text": "half an", "finish": "length"});
    let cases: [(&str, Vec<Value>, &[&str], i32); 7] = [
        ("completed", vec![says("done")], &[], 0),
        ("stream_error", vec![error], &[], 1),
        ("stream_error", vec![list()], &[], 1),
        ("max_iterations", vec![list(), list(), list()], &["--max-turns", "2"], 3),
        ("unknown_tool_limit", vec![unknown(), unknown(), says("never")], &[], 4),
        ("refused", vec![json!({"finish": "refused"})], &[], 5),
        ("truncated", vec![cut(), cut(), says("never")], &[], 5),
    ];
    for (reason, turns, options, code) in cases {
        let machine = Machine::new();
        let ended = run(&machine, &turns, options);
        assert_eq!(stop_reason(&ended), reason, "{ended:#?}");
        assert_eq!(ended.code, code, "{reason}: {ended:#?}");
    }
}

#[test]
fn the_answer_alone_is_on_standard_output() {
    let machine = Machine::new();
    machine.write("a.txt", "content of a\n");
    let model =
        machine.script(&[calls("read_file", json!({"path": "a.txt"})), says("It says: a.")]);
    let ended = machine.run(["run", "-m", &model, "what does it say?"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "It says: a.\n"), "{ended:?}");
    assert!(ended.stderr.contains("read_file") && ended.stderr.contains("a.txt"), "{ended:?}");
    assert!(!ended.stderr.contains('\u{1b}'), "no colour where no terminal is: {ended:?}");

    let machine = Machine::new();
    let model = machine.script(&[says("The answer.")]);
    let ended = machine.run(["run", "-m", &model, "-o", "json", "x"]);
    let stop: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&stop["type"], &stop["result"]), (&json!("stop"), &json!("The answer.")));
}

#[test]
fn headless_writing_is_denied_and_the_line_that_allows_it_works() {
    let write =
        || vec![calls("write_file", json!({"path": "a.txt", "content": "x"})), says("I tried.")];
    let machine = Machine::new();
    let ended = run(&machine, &write(), &[]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let result = of_type(&events, "tool_result")[0];
    assert_eq!(result["error"]["kind"], "denied", "{result}");
    assert_eq!(events.last().unwrap()["denials"], 1);
    assert!(!machine.workspace().join("a.txt").exists());
    let start = &events[0];
    assert_eq!(start["permission_mode"], "dont-ask");
    assert!(!start["tools"].as_array().unwrap().contains(&json!("write_file")), "{start}");
    // The message names the option and the rule; exactly that works.
    let message = result["error"]["message"].as_str().unwrap();
    let rule = message.split("`--allow ").nth(1).unwrap().split('`').next().unwrap();
    let machine = Machine::new();
    let ended = run(&machine, &write(), &["--allow", rule]);
    assert_eq!((ended.code, machine.read("a.txt").as_str()), (0, "x"), "{ended:#?}");
}

#[test]
fn plan_mode_changes_nothing_whatever_the_rules() {
    let machine = Machine::new();
    machine.write("a.txt", "as it was");
    let turns = [
        calls("write_file", json!({"path": "a.txt", "content": "x"})),
        calls("read_file", json!({"path": "a.txt"})),
        says("A plan."),
    ];
    let ended = run(&machine, &turns, &["--permission-mode", "plan", "--allow", "files/*"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let results = of_type(&events, "tool_result");
    assert_eq!((&results[0]["ok"], &results[1]["ok"]), (&json!(false), &json!(true)));
    assert_eq!(machine.read("a.txt"), "as it was");
}

#[test]
fn a_deny_rule_holds_in_bypass() {
    let machine = Machine::new();
    let turns = [calls("write_file", json!({"path": "a.txt", "content": "x"})), says("ok")];
    let options = ["--permission-mode", "bypass", "--deny", "write_*"];
    let ended = run(&machine, &turns, &options);
    assert_eq!(of_type(&ended.events(), "tool_result")[0]["error"]["kind"], "denied");
    assert!(!machine.workspace().join("a.txt").exists());
}

#[test]
fn bad_arguments_and_failures_are_read_by_the_model_and_the_run_goes_on() {
    let machine = Machine::new();
    let turns = [
        json!({"calls": [
            {"tool": "read_file", "arguments": "{\"path\": "},
            {"tool": "read_file", "arguments": {"path": 5}},
            {"tool": "read_file", "arguments": {"path": "missing"}},
            {"tool": "read_fil", "arguments": {}},
            {"tool": "read_file", "arguments": {"path": "/etc/passwd"}},
        ]}),
        says("noted"),
    ];
    let ended = run(&machine, &turns, &[]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let kinds: Vec<_> = of_type(&events, "tool_result")
        .iter()
        .map(|result| result["error"]["kind"].as_str().unwrap())
        .collect();
    let expected = ["invalid_arguments", "invalid_arguments", "failed", "unknown_tool", "denied"];
    assert_eq!(kinds, expected);
}

#[test]
fn the_session_tells_the_whole_run() {
    let machine = Machine::new();
    machine.write("a.txt", "x");
    let ended = run(&machine, &[calls("read_file", json!({"path": "a.txt"})), says("done")], &[]);
    let events = ended.events();
    let records = machine.session();
    let kinds: Vec<_> = records.iter().map(|record| record["record"].as_str().unwrap()).collect();
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| *kind != "usage").collect();
    assert_eq!(
        kinds,
        [
            "session",
            "run_started",
            "message",
            "message",
            "call_started",
            "message",
            "call_done",
            "message",
            "stopped"
        ],
        "{records:#?}"
    );
    assert_eq!(records[0]["id"], events.last().unwrap()["session"]);
    let roles: Vec<_> = records
        .iter()
        .filter(|record| record["record"] == "message")
        .map(|record| record["message"]["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn piped_input_joins_the_prompt_or_is_it() {
    let machine = Machine::new();
    let model = machine.script(&[says("read")]);
    let ended =
        machine.run_with_input(["run", "-m", &model, "-o", "json", "review this"], "a diff");
    assert_eq!(ended.code, 0, "{ended:?}");
    let first = &machine.session()[2];
    let text = first.to_string();
    assert!(text.contains("review this") && text.contains("a diff"), "{text}");

    let machine = Machine::new();
    let model = machine.script(&[says("read")]);
    let ended = machine.run_with_input(["run", "-m", &model, "-o", "json", "-"], "all of it");
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(machine.session()[2].to_string().contains("all of it"));
}

#[test]
fn an_open_pipe_without_data_never_makes_a_run_wait() {
    let machine = Machine::new();
    let model = machine.script(&[says("done")]);
    let mut command = machine.command(["run", "-m", &model, "-o", "json", "x"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    // Held open until the run has ended by itself.
    let stdin = child.stdin.take();
    let ended = Ended::of(child.wait_with_output().unwrap());
    drop(stdin);
    assert_eq!(ended.code, 0, "{ended:?}");
}

/// Waits for an event of a type on a child's standard output, and gives back what is left of it.
fn wait_for(
    stdout: std::process::ChildStdout,
    kind: &str,
) -> (Vec<String>, BufReader<std::process::ChildStdout>) {
    let mut reader = BufReader::new(stdout);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "no `{kind}` in {lines:#?}");
        let found = line.contains(&format!("\"type\":\"{kind}\""));
        lines.push(line);
        if found {
            return (lines, reader);
        }
    }
}

#[test]
fn ctrl_c_cancels_cleanly_and_leaves_a_whole_session() {
    let machine = Machine::new();
    machine.write_at("plugins/hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let plugins = machine.path("plugins").display().to_string();
    for (tool, signal) in [("hostile__sleep_for_ever", "INT"), ("hostile__spin", "TERM")] {
        let _ = fs::remove_dir_all(machine.path("state"));
        let model = machine.script(&[calls(tool, json!({})), says("never")]);
        let mut child = machine.spawn([
            "run",
            "-m",
            &model,
            "--plugins",
            &plugins,
            "-o",
            "stream-json",
            "wait",
        ]);
        let (mut lines, mut rest) = wait_for(child.stdout.take().unwrap(), "tool_call_start");
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let mut line = String::new();
        while rest.read_line(&mut line).unwrap() != 0 {
            lines.push(std::mem::take(&mut line));
        }
        let code = child.wait().unwrap().code();
        let ended =
            Ended { code: code.unwrap_or(-1), stdout: lines.concat(), stderr: String::new() };
        let events = ended.events();
        assert_eq!((ended.code, stop_reason(&ended).as_str()), (130, "canceled"), "{events:#?}");
        assert_eq!(of_type(&events, "tool_result")[0]["error"]["kind"], "canceled");
        let records = machine.session();
        assert_eq!(records.last().unwrap()["record"], "stopped", "{records:#?}");
        let results = records.iter().filter(|record| record["message"]["role"] == "tool").count();
        assert_eq!(results, 1, "{records:#?}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let machine = Machine::new();
    machine.write_at("plugins/hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let plugins = machine.path("plugins").display().to_string();
    let turns: Vec<_> = (0..200).map(|_| calls("hostile__count", json!({}))).collect();
    let model = machine.script(&turns);
    let mut child = machine.spawn([
        "run",
        "-m",
        &model,
        "--plugins",
        &plugins,
        "-o",
        "stream-json",
        "--max-turns",
        "500",
        "count",
    ]);
    let (_, rest) = wait_for(child.stdout.take().unwrap(), "round_start");
    drop(rest);
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
}
