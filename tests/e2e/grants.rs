//! Grants: made by a person, bound to the bytes that were looked at, in force or not.

use crate::support::{Ended, Machine, calls, of_type, says};
use belljar_test_guests::{HOSTILE, NOOP};
use serde_json::{Value, json};
use std::fs;

const CONFIG: &str = "config/belljar/config.toml";

fn put(machine: &Machine, name: &str, bytes: &[u8]) {
    machine.write_at(&format!("data/belljar/plugins/{name}.wasm"), bytes);
}

fn config(machine: &Machine) -> String {
    fs::read_to_string(machine.path(CONFIG)).unwrap_or_default()
}

fn call(machine: &Machine, tool: &str, arguments: &Value, options: &[&str]) -> Ended {
    let arguments = arguments.to_string();
    let mut line = vec!["call", tool, &arguments, "-o", "json"];
    line.extend(options);
    machine.run(line)
}

fn result(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// What the refusal says a person can type, as a shell would take it apart.
fn remedy(ended: &Ended) -> Vec<String> {
    let result = result(ended);
    let remedy = result["error"]["remedy"].as_str().unwrap_or_else(|| panic!("{ended:#?}"));
    let (option, value) = remedy.split_once(' ').unwrap();
    vec![option.to_owned(), value.trim_matches('\'').to_owned()]
}

#[test]
fn a_plugin_is_offered_after_a_yes_to_its_bytes_and_no_others() {
    let machine = Machine::new();
    put(&machine, "noop", NOOP.bytes);
    let echo = json!({"text": "here"});
    let unseen = call(&machine, "noop__echo", &echo, &[]);
    assert_eq!(unseen.code, 7, "{unseen:?}");
    assert_eq!(result(&unseen)["error"]["remedy"], "belljar plugin grant noop");
    assert!(!machine.run(["tools"]).stdout.contains("noop"));

    // Nobody is there to ask, so nothing is granted.
    let nobody = machine.run(["plugin", "grant", "noop"]);
    assert_eq!(nobody.code, 1, "{nobody:?}");
    assert!(nobody.stderr.contains(NOOP.digest) && nobody.stderr.contains("--yes"), "{nobody:?}");
    assert_eq!(config(&machine), "");

    let granted = machine.run(["plugin", "grant", "noop", "--yes"]);
    assert_eq!(granted.code, 0, "{granted:?}");
    for line in ["tool    echo (reads): Says the text back.", NOOP.digest, "no files"] {
        assert!(granted.stderr.contains(line), "{line}: {granted:?}");
    }
    assert_eq!(config(&machine), format!("[plugins.noop]\ndigest = \"{}\"\n", NOOP.digest));
    assert_eq!(call(&machine, "noop__echo", &echo, &[]).code, 0);

    put(&machine, "noop", HOSTILE.bytes);
    let changed = call(&machine, "noop__environment", &json!({}), &[]);
    assert_eq!(changed.code, 7, "{changed:?}");
    let message = result(&changed)["error"]["message"].to_string();
    assert!(message.contains("has changed since the user allowed it"), "{message}");

    let granted = machine.run(["plugin", "grant", "noop", "--yes"]);
    assert_eq!(granted.code, 0, "{granted:?}");
    for line in [
        "it has changed since you said yes:".to_owned(),
        format!("digest  {} before", NOOP.digest),
        "tools removed: echo, noop".to_owned(),
        "environment".to_owned(),
    ] {
        assert!(granted.stderr.contains(&line), "{line}: {granted:?}");
    }
    assert_eq!(config(&machine), format!("[plugins.noop]\ndigest = \"{}\"\n", HOSTILE.digest));
    assert_eq!(call(&machine, "noop__environment", &json!({}), &[]).code, 0);

    let revoked = machine.run(["plugin", "revoke", "noop"]);
    assert_eq!((revoked.code, config(&machine).as_str()), (0, ""), "{revoked:?}");
    assert_eq!(call(&machine, "noop__environment", &json!({}), &[]).code, 7);
    assert_eq!(machine.run(["plugin", "revoke", "noop"]).code, 1);
}

#[test]
fn grants_of_a_changed_plugin_are_suspended_even_in_a_folder_that_was_named() {
    let machine = Machine::new();
    machine.write_at("named/hostile.wasm", HOSTILE.bytes);
    let table =
        |digest: &str| format!("[plugins.hostile]\ndigest = \"{digest}\"\nenv = {{ A = \"b\" }}\n");
    let named = machine.path("named").display().to_string();
    let environment = |options: &[&str]| {
        let all = [&["--plugins", named.as_str()], options].concat();
        let ended = call(&machine, "hostile__environment", &json!({}), &all);
        result(&ended)["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    };
    machine.write_at(CONFIG, table(HOSTILE.digest));
    assert_eq!(environment(&[]), "A=b");
    machine.write_at(CONFIG, table(NOOP.digest));
    assert_eq!(environment(&[]), "");
    // A flag grants what it says, and brings back nothing that is suspended.
    assert_eq!(environment(&["--grant", "hostile.env=C=d"]), "C=d");
    machine.write_at(CONFIG, table(HOSTILE.digest));
    assert_eq!(environment(&["--grant", "hostile.env=C=d", "--grant", "hostile.env=A"]), "C=d");
    assert_eq!(
        environment(&["--grant", "hostile.env=C=d", "--grant", "hostile.env=A=x"]),
        "A=x\nC=d"
    );
}

#[test]
fn a_flag_says_yes_for_one_run() {
    let machine = Machine::new();
    put(&machine, "hostile", HOSTILE.bytes);
    let environment =
        |options: &[&str]| call(&machine, "hostile__environment", &json!({}), options);
    assert_eq!(environment(&[]).code, 7);
    let ended = environment(&["--grant", "hostile.env=TZ=UTC"]);
    assert_eq!(result(&ended)["content"][0]["text"], "TZ=UTC", "{ended:?}");
    assert_eq!(environment(&[]).code, 7);
    assert_eq!(config(&machine), "");
    // An allow rule of the configuration is bound to bytes that a person looked at.
    machine.write_at(CONFIG, "[rules]\nallow = [\"hostile__*\"]\n");
    let write = json!({"path": "a", "text": "b"});
    let model = machine.script(&[calls("hostile__write_path", write), says("done")]);
    let run = |options: &[&str]| {
        let line = ["run", "-m", &model, "-o", "stream-json", "--grant", "hostile.env=TZ"];
        let ended = machine.run([&line[..], options, &["x"]].concat());
        let events = ended.events();
        of_type(&events, "tool_result")[0]["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(run(&[]).contains("only where a rule allows it"), "{}", run(&[]));
    assert!(!run(&["--allow", "hostile__*"]).contains("only where a rule allows it"));
    // One that names nobody is told.
    let ended = call(&machine, "list_directory", &json!({}), &["--grant", "hostil.env=TZ"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("gives nothing to `hostil`"), "{ended:?}");
}

#[test]
fn a_grant_that_means_nothing_is_refused_where_it_is_made() {
    let machine = Machine::new();
    put(&machine, "noop", NOOP.bytes);
    machine.write("file.txt", "x");
    std::os::unix::fs::symlink("/proc", machine.workspace().join("link")).unwrap();
    let own = machine.path("data/belljar/plugins").display().to_string();
    let cases = [
        ("read=/proc:/p".to_owned(), 1, "shows the system's own state"),
        ("read=/sys/kernel:/p".to_owned(), 1, "shows the system's own state"),
        ("write=/dev:/p".to_owned(), 1, "shows the system's own state"),
        ("read=link".to_owned(), 1, "link` shows the system's own state"),
        ("read=/etc".to_owned(), 1, "lies outside the workspace"),
        ("read=../x".to_owned(), 1, "climbs with `..`"),
        ("read=/etc:/tmp".to_owned(), 1, "temporary folder"),
        ("read=file.txt".to_owned(), 1, "file.txt` cannot be opened"),
        (format!("read={own}:/p"), 1, "one of Belljar's own folders"),
        ("net=example.com".to_owned(), 2, "is not a network grant"),
        ("env=A B".to_owned(), 2, "no variable's name"),
        ("limits.memory=1".to_owned(), 2, "out of range"),
        ("other.read=x".to_owned(), 2, "cannot be granted"),
        ("nonsense".to_owned(), 2, "is not a grant"),
    ];
    for (spec, code, why) in cases {
        let ended = machine.run(["plugin", "grant", "noop", &spec, "--yes"]);
        assert_eq!(ended.code, code, "{spec}: {ended:?}");
        assert!(ended.stderr.contains(why), "{spec}: {ended:?}");
        assert_eq!(config(&machine), "", "{spec}");
    }
    for (line, code, why) in [
        (vec!["plugin", "grant", "missing", "--yes"], 1, "no `missing.wasm` lies in"),
        (vec!["plugin", "grant", "files", "--yes"], 2, "comes with the program"),
        (vec!["plugin", "grant", "noop", "--dev", "other.wasm", "--yes"], 2, "is not the file of"),
        (vec!["plugin", "revoke", "noop", "deny"], 2, "cannot be revoked"),
        (
            vec!["call", "list_directory", "--grant", "noop.read=/proc:/p"],
            2,
            "the system's own state",
        ),
    ] {
        let ended = machine.run(&line);
        assert_eq!(ended.code, code, "{line:?}: {ended:?}");
        assert!(ended.stderr.contains(why), "{line:?}: {ended:?}");
    }
    machine.write_at("data/belljar/plugins/broken.wasm", "no plugin");
    let ended = machine.run(["plugin", "grant", "broken", "--yes"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("is not WebAssembly"), "{ended:?}");
}

#[test]
fn a_grant_to_a_path_holds_while_somebody_works_on_it() {
    let machine = Machine::new();
    machine.write("target/hostile.wasm", NOOP.bytes);
    let grant = ["plugin", "grant", "hostile", "env=A=b", "--dev", "target/hostile.wasm", "--yes"];
    let granted = machine.run(grant);
    assert_eq!(granted.code, 0, "{granted:?}");
    let real = machine.workspace().canonicalize().unwrap().join("target/hostile.wasm");
    assert!(granted.stderr.contains("however it changes"), "{granted:?}");
    assert!(config(&machine).contains(&format!("dev = {:?}", real.display().to_string())));
    // However its folder is named, and whatever lies there now.
    machine.write("target/hostile.wasm", HOSTILE.bytes);
    for folder in ["target", "./target/../target"] {
        let ended = call(&machine, "hostile__environment", &json!({}), &["--plugins", folder]);
        assert_eq!(result(&ended)["content"][0]["text"], "A=b", "{ended:?}");
    }
    // Another file of that name is another plugin.
    put(&machine, "hostile", HOSTILE.bytes);
    assert_eq!(call(&machine, "hostile__environment", &json!({}), &[]).code, 7);
}

/// For each limit that a guest can meet: with less it is refused, the refusal names the line, and
/// with exactly that line it works.
#[test]
fn the_line_that_a_refusal_over_a_limit_names_is_enough() {
    let machine = Machine::new();
    let text = |bytes: usize| json!({"text": "x".repeat(bytes)});
    // A limit is doubled at a time, so what is too little by less is granted by the first line.
    let progress = json!({"bytes": 100_000, "times": 20});
    let note = json!({"path": "many/note", "text": "x".repeat(5_000)});
    let many = json!({"folder": "many", "count": 30});
    let cases = [
        ("hostile__sleep", json!({"milliseconds": 1_200}), "deadline", "1s", "deadline"),
        ("hostile__recurse", json!({"depth": 100}), "fuel", "half", "out_of_fuel"),
        ("noop__noop", json!({}), "memory", "64KiB", "memory_limit"),
        ("noop__noop", json!({}), "instances", "1", "memory_limit"),
        ("noop__echo", text(5_000), "crossing", "4KiB", "output_limit"),
        ("hostile__huge_progress", progress, "crossings", "1MiB", "output_limit"),
        ("hostile__huge_structured", json!({"bytes": 5_000}), "result", "4KiB", "output_limit"),
        ("hostile__huge_random", json!({"bytes": 50_000}), "random", "4KiB", "output_limit"),
        ("hostile__poll_many", json!({"count": 100}), "open_files", "50", "memory_limit"),
        ("hostile__write_path", note, "written_bytes", "4000", "denied"),
        ("hostile__many_files", many, "created_files", "20", "denied"),
    ];
    for (tool, arguments, limit, less, kind) in cases {
        put(&machine, "hostile", HOSTILE.bytes);
        put(&machine, "noop", NOOP.bytes);
        let plugin = tool.split("__").next().unwrap();
        let fresh = || {
            std::fs::remove_dir_all(machine.path("workspace/many")).unwrap_or_default();
            machine.write("many/there", "already");
        };
        fresh();
        let folder = format!("{plugin}.write=many");
        let enough = call(&machine, tool, &arguments, &["--grant", &folder]);
        assert_eq!(enough.code, 0, "{limit}: {}", enough.stderr);
        let used = result(&enough)["receipt"]["fuel_used"].as_u64().unwrap();
        let less = if less == "half" { (used * 2 / 3).to_string() } else { less.to_owned() };
        let mut option = vec!["--grant".to_owned(), format!("{plugin}.limits.{limit}={less}")];
        let mut refusals = 0;
        loop {
            fresh();
            let mut options = vec!["--grant", folder.as_str()];
            options.extend(option.iter().map(String::as_str));
            let ended = call(&machine, tool, &arguments, &options);
            if ended.code == 0 {
                break;
            }
            let error = &result(&ended)["error"];
            assert_eq!((ended.code, &error["kind"]), (7, &json!(kind)), "{option:?}: {error}");
            let setting = format!("`limits.{limit}`");
            assert!(error["message"].as_str().unwrap().contains(&setting), "{error}");
            option = remedy(&ended);
            assert!(option[1].starts_with(&format!("{plugin}.limits.{limit}=")), "{option:?}");
            refusals += 1;
            assert!(refusals < 6, "{option:?}");
        }
        assert!(refusals > 0, "{option:?} was no limit");
        // What a flag does for one run, the same text does for good.
        let granted = machine.run(["plugin", "grant", plugin, &folder, &option[1], "--yes"]);
        assert_eq!(granted.code, 0, "{granted:?}");
        fresh();
        assert_eq!(call(&machine, tool, &arguments, &[]).code, 0, "{option:?}");
        assert_eq!(machine.run(["plugin", "revoke", plugin]).code, 0);
    }
}

/// What a plugin reads and writes: without a grant nothing, with one for reading nothing is
/// written, and the line that the refusal names is enough, for one run and for good.
#[test]
fn the_line_that_a_refusal_to_write_names_is_enough() {
    for folder in ["data", "/outside"] {
        let machine = Machine::new();
        put(&machine, "hostile", HOSTILE.bytes);
        machine.write("data/a.txt", "inside");
        machine.write_at("outside/a.txt", "outside");
        let outside = machine.path("outside").display().to_string();
        let read = match folder {
            "data" => "hostile.read=data".to_owned(),
            guest => format!("hostile.read={outside}:{guest}"),
        };
        let folder = folder.trim_start_matches('/');
        let file = format!("{folder}/a.txt");
        let reading = json!({"path": file});
        let writing = json!({"path": file, "text": "new"});
        let none = call(&machine, "hostile__read_path", &reading, &["--grant", "hostile.env=A"]);
        assert!(matches!(none.code, 6 | 7), "{none:?}");
        let ended = call(&machine, "hostile__read_path", &reading, &["--grant", &read]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let refused = call(&machine, "hostile__write_path", &writing, &["--grant", &read]);
        assert_eq!(refused.code, 7, "{refused:?}");
        let line = remedy(&refused);
        assert!(line[1].starts_with("hostile."), "{line:?}");
        let ended = call(
            &machine,
            "hostile__write_path",
            &writing,
            &["--grant", &read, &line[0], &line[1]],
        );
        assert_eq!(ended.code, 0, "{line:?}: {ended:?}");
        assert_eq!(
            result(&call(&machine, "hostile__read_path", &reading, &["--grant", &read]))["content"]
                [0]["text"],
            "new"
        );
        let granted = machine.run(["plugin", "grant", "hostile", &read, &line[1], "--yes"]);
        assert_eq!(granted.code, 0, "{granted:?}");
        assert_eq!(call(&machine, "hostile__write_path", &writing, &[]).code, 0);
        // A deny glob wins, and says so.
        let granted = machine.run(["plugin", "grant", "hostile", "deny=a.txt", "--yes"]);
        assert_eq!(granted.code, 0, "{granted:?}");
        let denied = call(&machine, "hostile__read_path", &reading, &[]);
        assert_eq!(denied.code, 7, "{denied:?}");
        assert!(denied.stderr.contains("the deny glob `a.txt` closes it"), "{denied:?}");
    }
}

#[test]
fn an_error_in_one_table_is_an_error_and_nothing_runs() {
    let machine = Machine::new();
    for (table, why) in [
        ("[plugins.noop]\nnets = []\n", "`plugins.noop.nets`: did you mean `plugins.noop.net`?"),
        ("[plugins.noop]\ndigest = \"sha256:0\"\n", "`plugins.noop.digest` is"),
        ("[plugins.noop]\nfiles.read = [\"/proc\"]\n", "the system's own state"),
    ] {
        machine.write_at(CONFIG, table);
        for line in [&["call", "list_directory"][..], &["tools"], &["plugin", "revoke", "noop"]] {
            let ended = machine.run(line);
            assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{ended:?}");
            assert!(
                ended.stderr.contains(why) && ended.stderr.contains(":2: ")
                    || ended.stderr.contains(":1: "),
                "{ended:?}"
            );
        }
    }
}

/// A model that obeys an order to grant finds nothing that would do it.
#[test]
fn no_tool_grants() {
    let machine = Machine::new();
    put(&machine, "hostile", HOSTILE.bytes);
    machine.write_at(CONFIG, "model = \"ollama/x\"\n");
    let own = machine.path(CONFIG).display().to_string();
    let wider = "[rules]\nallow = [\"*\"]\n";
    let model = machine.script(&[
        calls("belljar", json!({"command": "plugin grant hostile read=. --yes"})),
        calls("write_file", json!({"path": own, "content": wider})),
        calls("write_file", json!({"path": "../config/belljar/config.toml", "content": wider})),
        calls("write_file", json!({"path": "belljar.toml", "content": wider})),
        calls("write_file", json!({"path": ".belljar/plugins/x.wasm", "content": "x"})),
        says("I could not."),
    ]);
    let ended =
        machine.run(["run", "-m", &model, "-o", "stream-json", "--permission-mode", "bypass", "x"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.events();
    let results = of_type(&events, "tool_result");
    assert!(results.iter().all(|result| result["ok"] == false), "{results:#?}");
    assert_eq!(config(&machine), "model = \"ollama/x\"\n");
    assert!(!machine.workspace().join("belljar.toml").exists());
    assert!(!machine.workspace().join(".belljar").exists());
}

#[cfg(target_os = "linux")]
mod always {
    use super::*;
    use crate::terminal::Terminal;

    fn edits(machine: &Machine, path: &str) -> String {
        machine
            .script(&[calls("write_file", json!({"path": path, "content": "new"})), says("done")])
    }

    #[test]
    fn always_writes_the_line_that_it_shows_and_holds_in_this_workspace_alone() {
        let machine = Machine::new();
        machine.write_at(CONFIG, "# mine\nmax_turns = 9\n");
        let model = edits(&machine, "a.txt");
        let mut terminal = Terminal::start(&machine, &["run", "-m", &model, "write it"]);
        terminal.wait_for("a always (writes `workspaces.");
        terminal.wait_for("n REASON: ");
        terminal.answer("a");
        let (code, shown) = terminal.end();
        assert_eq!((code, machine.read("a.txt").as_str()), (0, "new"), "{shown}");
        let folder = machine.workspace().canonicalize().unwrap().display().to_string();
        let line = format!("workspaces.{folder:?}.allow = [\"files/write_file\"]");
        assert!(shown.contains(&line), "{shown}");
        assert_eq!(
            config(&machine),
            format!(
                "# mine\nmax_turns = 9\n\n[workspaces.{folder:?}]\nallow = [\"files/write_file\"]\n"
            )
        );
        // Nobody is asked here any more, and elsewhere nothing is allowed.
        let model = edits(&machine, "b.txt");
        let ended = machine.run(["run", "-m", &model, "write it"]);
        assert_eq!((ended.code, machine.read("b.txt").as_str()), (0, "new"), "{ended:?}");
        fs::create_dir(machine.path("elsewhere")).unwrap();
        let elsewhere = machine.path("elsewhere").display().to_string();
        machine.run(["run", "-m", &model, "-C", &elsewhere, "write it"]);
        assert!(!machine.path("elsewhere/b.txt").exists());
    }

    #[test]
    fn where_it_cannot_be_written_it_is_asked_again() {
        use std::os::unix::fs::PermissionsExt;
        let machine = Machine::new();
        machine.write_at(CONFIG, "max_turns = 9\n");
        let model = edits(&machine, "a.txt");
        let mut terminal = Terminal::start(&machine, &["run", "-m", &model, "write it"]);
        terminal.wait_for("n REASON: ");
        fs::set_permissions(machine.path(CONFIG), fs::Permissions::from_mode(0o666)).unwrap();
        terminal.answer("a");
        terminal.wait_for("not written: ");
        terminal.wait_for("n REASON: ");
        terminal.answer("n");
        let (code, shown) = terminal.end();
        assert_eq!(code, 0, "{shown}");
        assert!(!machine.workspace().join("a.txt").exists());
        assert_eq!(config(&machine), "max_turns = 9\n");
    }

    #[test]
    fn there_is_no_yes_for_good_to_a_protected_path() {
        let machine = Machine::new();
        let model = edits(&machine, "AGENTS.md");
        let mut terminal = Terminal::start(&machine, &["run", "-m", &model, "write it"]);
        terminal.wait_for("n REASON: ");
        terminal.answer("a");
        terminal.wait_for("there is no yes for good to this");
        terminal.wait_for("n REASON: ");
        terminal.answer("y");
        let (code, shown) = terminal.end();
        assert_eq!((code, machine.read("AGENTS.md").as_str()), (0, "new"), "{shown}");
        assert!(!shown.contains("a always"), "{shown}");
        assert_eq!(config(&machine), "");
    }

    #[test]
    fn a_person_is_asked_before_a_grant_is_written() {
        let machine = Machine::new();
        put(&machine, "noop", NOOP.bytes);
        for (answer, code, written) in [("n", 1, false), ("y", 0, true)] {
            let mut terminal =
                Terminal::start(&machine, &["plugin", "grant", "noop", "net=public"]);
            terminal.wait_for("  net=public  (new)");
            terminal.wait_for("grant this? y or n: ");
            terminal.answer(answer);
            let (ended, shown) = terminal.end();
            assert_eq!((ended, config(&machine).contains("public")), (code, written), "{shown}");
        }
    }
}
