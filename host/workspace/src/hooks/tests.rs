use super::*;
use belljar_types::Hooks as _;
use serde_json::json;
use std::{
    fs::{self, File},
    io::Read,
};

struct Fixture {
    _guard: tempfile::TempDir,
    /// The workspace.
    folder: PathBuf,
    /// A folder beside it.
    beside: PathBuf,
}

fn fixture() -> Fixture {
    let guard = tempfile::tempdir().unwrap();
    let root = guard.path().canonicalize().unwrap();
    let (folder, beside) = (root.join("workspace"), root.join("workspace-beside"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&beside).unwrap();
    Fixture { _guard: guard, folder, beside }
}

/// A hook whose program is a shell, for the tests alone.
fn sh(script: &str) -> HookCommand {
    HookCommand {
        program: PathBuf::from("/bin/sh"),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        environment: BTreeMap::from([("PATH".to_owned(), Some("/usr/bin:/bin".to_owned()))]),
        timeout: Duration::from_secs(60),
        on_failure: OnFailure::Warn,
        source: Source::File { path: PathBuf::from("/c.toml"), line: 7 },
    }
}

fn blocking(hook: HookCommand) -> HookCommand {
    HookCommand { on_failure: OnFailure::Block, ..hook }
}

impl Fixture {
    fn hooks(&self, point: HookPoint, hooks: impl Into<Vec<HookCommand>>) -> Hooks {
        let host = |name: &str| (name == "FROM_HOST").then(|| OsString::from("host's"));
        Hooks::new(BTreeMap::from([(point, hooks.into())]), &self.folder, "session-1", host)
    }

    async fn run(&self, point: HookPoint, hooks: impl Into<Vec<HookCommand>>) -> HookReport {
        self.hooks(point, hooks).run(point, &Map::new()).await
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap()
    }
}

fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

fn notice(point: HookPoint, what: &str) -> String {
    format!("the `{point}` hook of /c.toml:7{what}")
}

const SILENT: &str = "a `pre_tool` hook of the person's could not decide, and is set to block \
                      then: what is wrong with it was told to the person";

/// What becomes of a broken hook of `pre_tool`, with either setting.
async fn broken(fixture: &Fixture, hook: HookCommand, failure: &str) {
    let point = HookPoint::PreTool;
    let shown = hook.program.display().to_string();
    let told =
        |what: &str| vec![notice(point, &format!(", `{shown}`, {failure}; it is broken {what}"))];
    let warned = HookReport { notices: told("and is passed over"), ..HookReport::default() };
    assert_eq!(fixture.run(point, [hook.clone()]).await, warned);
    let blocked = HookReport {
        blocked: Some(SILENT.to_owned()),
        notices: told("and blocks"),
        ..HookReport::default()
    };
    assert_eq!(fixture.run(point, [blocking(hook)]).await, blocked);
}

#[tokio::test]
async fn a_hook_reads_what_happens_in_the_workspace_at_every_point() {
    let fixture = fixture();
    for point in HookPoint::ALL {
        let hooks = fixture.hooks(point, [sh("cat > seen")]);
        assert!(hooks.has(point) && HookPoint::ALL.iter().filter(|p| hooks.has(**p)).count() == 1);
        let input = object(json!({"tool": "write_file", "hook": "forged", "text": "ü\n"}));
        assert_eq!(hooks.run(point, &input).await, HookReport::default(), "{point}");
        let seen: Value = serde_json::from_str(&fixture.text("seen")).unwrap();
        let expected = json!({
            "tool": "write_file",
            "text": "ü\n",
            "hook": point.name(),
            "session": "session-1",
            "workspace": fixture.folder.to_str().unwrap(),
        });
        assert_eq!(seen, expected);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_hook_has_the_variables_that_it_names_and_no_others() {
    let fixture = fixture();
    let mut hook = sh("cat /proc/$$/environ > seen");
    for (name, value) in [("FROM_HOST", None), ("NOT_THERE", None), ("OWN", Some("a b".to_owned()))]
    {
        hook.environment.insert(name.to_owned(), value);
    }
    assert_eq!(fixture.run(HookPoint::Stop, [hook]).await, HookReport::default());
    let seen = fixture.text("seen");
    let mut seen: Vec<_> = seen.split_terminator('\0').collect();
    seen.sort_unstable();
    assert_eq!(seen, ["FROM_HOST=host's", "OWN=a b", "PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn arguments_reach_the_program_as_they_are_written() {
    let fixture = fixture();
    let words = ["$HOME `id` *", "a;b|c>d", "", "-n \"x\""];
    let mut hook = sh("printf '<%s>' \"$@\" > seen");
    hook.arguments.push("name".to_owned());
    hook.arguments.extend(words.map(str::to_owned));
    assert_eq!(fixture.run(HookPoint::Stop, [hook]).await, HookReport::default());
    assert_eq!(fixture.text("seen"), words.map(|word| format!("<{word}>")).concat());
}

#[tokio::test]
async fn exit_codes_pass_block_or_break() {
    let fixture = fixture();
    let point = HookPoint::PreTool;
    let blocked =
        |reason: &str| HookReport { blocked: Some(reason.to_owned()), ..HookReport::default() };
    let cases = [
        ("exit 0", HookReport::default()),
        ("echo talk >&2; exit 0", HookReport::default()),
        ("echo ' \n'", HookReport::default()),
        ("echo ' not this one ' >&2; exit 2", blocked("not this one")),
        (
            "echo '{\"decision\":\"continue\"}'; exit 2",
            blocked("a hook refused it without saying why"),
        ),
    ];
    for (script, report) in cases {
        assert_eq!(fixture.run(point, [sh(script)]).await, report, "{script}");
    }
    broken(&fixture, sh("exit 1"), "ended with exit code 1").await;
    broken(&fixture, sh("echo 'a\nb' >&2; exit 3"), "ended with exit code 3: a b").await;
    broken(&fixture, sh("kill -9 $$"), "was ended by a signal").await;
}

#[tokio::test]
async fn a_decision_is_taken_as_it_is_meant() {
    use HookPoint::{Notification, PostTool, PreTool, SessionStart, Stop, UserPrompt};
    let fixture = fixture();
    let none = HookReport::default;
    let cases = [
        (PreTool, json!({}), none()),
        (PreTool, json!({"decision": "continue", "reason": "fine"}), none()),
        (
            PreTool,
            json!({"decision": "block", "reason": "no"}),
            HookReport { blocked: Some("no".to_owned()), ..none() },
        ),
        (
            UserPrompt,
            json!({"decision": "block", "reason": " "}),
            HookReport {
                blocked: Some("a hook refused it without saying why".to_owned()),
                ..none()
            },
        ),
        (
            SessionStart,
            json!({"decision": "end", "reason": "not today"}),
            HookReport { end: Some("not today".to_owned()), ..none() },
        ),
        (
            PreTool,
            json!({"arguments": {"path": "b"}, "notice": "moved"}),
            HookReport {
                arguments: Some(object(json!({"path": "b"}))),
                notices: vec![notice(PreTool, " says: moved")],
                ..none()
            },
        ),
        (
            PostTool,
            json!({"context": "The build is red."}),
            HookReport { context: vec!["The build is red.".to_owned()], ..none() },
        ),
        (PostTool, json!({"context": "\n"}), none()),
        // Where nothing can be refused any more, an objection is told.
        (
            Stop,
            json!({"decision": "block", "reason": "no"}),
            HookReport { notices: vec![notice(Stop, " objects: no")], ..none() },
        ),
        (
            Notification,
            json!({"decision": "block"}),
            HookReport {
                notices: vec![notice(
                    Notification,
                    " objects: a hook refused it without saying why",
                )],
                ..none()
            },
        ),
    ];
    for (point, decision, report) in cases {
        let hook = sh(&format!("printf '%s' '{decision}'"));
        assert_eq!(fixture.run(point, [hook]).await, report, "{point}: {decision}");
    }
}

/// A refusal that was misspelt does not pass for a yes.
#[tokio::test]
async fn a_decision_that_is_not_one_breaks_the_hook() {
    let fixture = fixture();
    let cases = [
        (
            "{\"decision\":\"deny\"}",
            "unknown variant `deny`, expected one of `continue`, `block`, `end` at line 1 column 18",
        ),
        (
            "{\"decison\":\"block\"}",
            "unknown field `decison`, expected one of `decision`, `reason`, `arguments`, `context`, `notice` at line 1 column 10",
        ),
        (
            "{\"decision\":\"allow\"}",
            "unknown variant `allow`, expected one of `continue`, `block`, `end` at line 1 column 19",
        ),
        ("{} {\"decision\":\"block\"}", "trailing characters at line 1 column 4"),
        ("all good", "expected value at line 1 column 1"),
        ("{\"arguments\":[]}", "invalid type: sequence, expected a map at line 1 column 13"),
        ("{\"context\":\"x\"}", "`context` means nothing at `pre_tool`"),
    ];
    for (said, why) in cases {
        let failure =
            format!("printed what is no decision ({why}): print one JSON object, or nothing");
        broken(&fixture, sh(&format!("printf '%s' '{said}'")), &failure).await;
    }
    for (point, said) in [
        (HookPoint::PostTool, "{\"arguments\":{}}"),
        (HookPoint::Stop, "{\"decision\":\"end\"}"),
        (HookPoint::Notification, "{\"context\":\"x\"}"),
    ] {
        let report = fixture.run(point, [sh(&format!("printf '%s' '{said}'"))]).await;
        assert!(report.notices[0].contains("means nothing at"), "{report:?}");
        assert_eq!(HookReport { notices: Vec::new(), ..report }, HookReport::default());
    }
}

#[tokio::test]
async fn hooks_run_in_order_until_one_refuses() {
    let fixture = fixture();
    let point = HookPoint::PreTool;
    let hooks = fixture.hooks(
        point,
        [
            sh("echo '{\"arguments\":{\"path\":\"b\"},\"notice\":\"first\"}'"),
            sh("cat > second; exit 7"),
            sh("cat > third; echo '{\"arguments\":{\"path\":\"c\"}}'"),
            sh("echo no >&2; exit 2"),
            sh("touch fifth"),
        ],
    );
    let report = hooks.run(point, &object(json!({"arguments": {"path": "a"}}))).await;
    let expected = HookReport {
        blocked: Some("no".to_owned()),
        arguments: Some(object(json!({"path": "c"}))),
        notices: vec![
            notice(point, " says: first"),
            notice(point, ", `/bin/sh`, ended with exit code 7; it is broken and is passed over"),
        ],
        ..HookReport::default()
    };
    assert_eq!(report, expected);
    for name in ["second", "third"] {
        let seen: Value = serde_json::from_str(&fixture.text(name)).unwrap();
        assert_eq!(seen["arguments"], json!({"path": "b"}), "{name}");
    }
    assert!(!fixture.folder.join("fifth").exists());
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let fixture = fixture();
    let not_started = |error: &str| format!("could not be started ({error}): check its `command`");
    let at = |path: &Path| HookCommand { program: path.to_owned(), ..sh("") };
    let missing = at(&fixture.beside.join("missing"));
    broken(&fixture, missing, &not_started("No such file or directory (os error 2)")).await;
    let text = fixture.beside.join("text");
    fs::write(&text, "#!/bin/sh\n").unwrap();
    broken(&fixture, at(&text), &not_started("Permission denied (os error 13)")).await;
    broken(&fixture, at(&fixture.beside), &not_started("Permission denied (os error 13)")).await;
}

#[tokio::test]
async fn a_program_that_a_tool_could_have_written_is_not_run() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let fixture = fixture();
    let inside = fixture.folder.join("hook");
    fs::write(&inside, "#!/bin/sh\ntouch ran\n").unwrap();
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    let link = fixture.beside.join("link");
    symlink(&inside, &link).unwrap();
    // Where it leads to today is no comfort: the link itself can be changed.
    let leads_out = fixture.folder.join("leads-out");
    symlink("/bin/sh", &leads_out).unwrap();
    let climbs = fixture.beside.join("../workspace/hook");
    symlink(&fixture.folder, fixture.beside.join("folder")).unwrap();
    let by_another_name = fixture.beside.join("folder/leads-out");
    for program in [inside, link, leads_out, climbs, by_another_name] {
        let failure = "was not started, since it lies in the workspace, where tool calls can \
                       change it: put it elsewhere";
        broken(&fixture, HookCommand { program, ..sh("touch ran") }, failure).await;
    }
    assert!(!fixture.folder.join("ran").exists());
}

#[tokio::test]
async fn megabytes_are_not_kept_and_hold_nobody_up() {
    let fixture = fixture();
    let too_much = "printed more than 65536 bytes, which is no decision: print one JSON object, or \
                    nothing";
    broken(&fixture, sh("head -c 5000000 /dev/zero"), too_much).await;
    let script = "head -c 5000000 /dev/zero | tr '\\0' x >&2; exit 2";
    let report = fixture.run(HookPoint::PreTool, [sh(script)]).await;
    let reason = format!("{} [cut here]", "x".repeat(16 << 10));
    assert_eq!(report, HookReport { blocked: Some(reason), ..HookReport::default() });
}

#[tokio::test]
async fn a_hook_need_not_read() {
    let fixture = fixture();
    let point = HookPoint::PostTool;
    // More than a pipe holds.
    let input = object(json!({"text": "x".repeat(4 << 20)}));
    for script in ["exit 0", "exec <&-; echo '{}'", "read -r -n 1 x; exit 0"] {
        let hooks = fixture.hooks(point, [sh(script)]);
        assert_eq!(hooks.run(point, &input).await, HookReport::default(), "{script}");
    }
    let hooks = fixture.hooks(point, [sh("wc -c > seen")]);
    assert_eq!(hooks.run(point, &input).await, HookReport::default());
    assert!(fixture.text("seen").trim().parse::<usize>().unwrap() > 4 << 20);
}

/// A pipe that a hook's children hold open: it ends when the last of them has.
struct Alive(File);

impl Alive {
    fn new(fixture: &Fixture) -> Self {
        use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
        let path = fixture.folder.join("alive");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        // Not blocking until somebody writes.
        let file = open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        Self(file.into())
    }

    fn blocking(&mut self) {
        rustix::fs::fcntl_setfl(&self.0, rustix::fs::OFlags::RDONLY).unwrap();
    }

    /// Waits for the end, and says what was written by then.
    fn end(&mut self) -> String {
        self.blocking();
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        text
    }
}

const CHILD: &str = "(echo up; exec sleep 1000) > alive &";

#[tokio::test]
async fn a_hook_that_hangs_is_killed_with_all_that_it_started() {
    let fixture = fixture();
    let mut alive = Alive::new(&fixture);
    let timeout = Duration::from_secs(2);
    let hang = HookCommand { timeout, ..sh(&format!("{CHILD} sleep 1000")) };
    let report = fixture.run(HookPoint::PreTool, [blocking(hang)]).await;
    let failure = ", `/bin/sh`, had not ended after 2s and was killed with all that it started: \
                   raise its `timeout` if it needs longer; it is broken and blocks";
    let expected = HookReport {
        blocked: Some(SILENT.to_owned()),
        notices: vec![notice(HookPoint::PreTool, failure)],
        ..HookReport::default()
    };
    assert_eq!(report, expected);
    assert_eq!(alive.end(), "up\n");

    let noisy = HookCommand { timeout: Duration::from_millis(500), ..sh("exec yes") };
    broken(
        &fixture,
        noisy,
        "had not ended after 0.5s and was killed with all that it started: raise its `timeout` if \
         it needs longer",
    )
    .await;
}

#[tokio::test]
async fn what_a_hook_leaves_behind_ends_with_it() {
    let fixture = fixture();
    let mut alive = Alive::new(&fixture);
    // It ends only when its child has written.
    let script = "mkfifo ready; (echo up; echo > ready; exec sleep 1000) > alive & read x < ready; \
                  echo '{\"notice\":\"done\"}'";
    let report = fixture.run(HookPoint::Stop, [sh(script)]).await;
    let notices = vec![notice(HookPoint::Stop, " says: done")];
    assert_eq!(report, HookReport { notices, ..HookReport::default() });
    assert_eq!(alive.end(), "up\n");
}

/// A child in a group of its own keeps the streams open, and is not waited for.
#[tokio::test]
async fn a_child_that_got_away_holds_nobody_up() {
    let fixture = fixture();
    let script = "mkfifo ready; setsid sh -c 'echo $$ > pid; echo > ready; exec sleep 1000' & \
                  read x < ready; echo '{\"notice\":\"done\"}'";
    let report = fixture.run(HookPoint::Stop, [sh(script)]).await;
    let pid = rustix::process::Pid::from_raw(fixture.text("pid").trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let notices = vec![notice(HookPoint::Stop, " says: done")];
    assert_eq!(report, HookReport { notices, ..HookReport::default() });
}

#[tokio::test]
async fn a_canceled_hook_is_killed_with_all_that_it_started() {
    let fixture = fixture();
    let mut alive = Alive::new(&fixture);
    let hooks = fixture.hooks(HookPoint::PreTool, [sh(&format!("{CHILD} wait"))]);
    let running = tokio::spawn(async move { hooks.run(HookPoint::PreTool, &Map::new()).await });
    // Until the child has written there is nothing to be read, and nobody holds the pipe.
    let mut first = [0; 3];
    let mut read = 0;
    while read < first.len() {
        match alive.0.read(&mut first[read..]) {
            Ok(more) => read += more,
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(&first, b"up\n");
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert_eq!(alive.end(), "");
}
