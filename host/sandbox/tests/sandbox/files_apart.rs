//! Places that are held apart whatever is granted: our own folders, and protected paths.

use crate::{
    files_rights::{
        DONE, Merged, NO, NONE, cat, check, folder, link, make, make_in, mkdir, outcomes, rename,
    },
    support::{Bench, raw_grant, run, snapshot, steps, text},
};
use belljar_capability::Rules;
use belljar_sandbox::{MountError, Policy, Sandbox, SandboxConfig, check_grantable};
use belljar_types::{ApprovalAnswer, PermissionMode, PreparedCall, Toolbox};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

#[tokio::test]
async fn our_own_folders_do_not_exist_in_a_home_that_is_the_workspace() {
    let bench = Bench::new();
    let home = bench.workspace();
    bench.write(".config/belljar/config.toml", "CANARY");
    bench.write(".cache/belljar/entry", "CANARY");
    bench.write("dots/bj/secret", "CANARY");
    bench.write("notes.txt", "notes");
    bench.write("prepared/belljar/config.toml", "evil");
    symlink("dots/bj", home.join("linked")).unwrap();
    symlink(".config", home.join("to-config")).unwrap();
    symlink(".config/belljar/config.toml", home.join("to-file")).unwrap();
    let own_folders = vec![
        home.join(".config/belljar"),
        home.join(".cache/belljar"),
        // Not there yet, with nothing on the way either.
        home.join(".local/state/belljar"),
        // By way of a link.
        home.join("linked"),
    ];
    let config = SandboxConfig {
        own_folders: own_folders.clone(),
        ..bench.raw_config(raw_grant(&[], &["."]))
    };
    let sandbox = Sandbox::open(config).await.unwrap();
    let before = snapshot(&home);
    let mut cases = vec![(folder(".config", "config"), DONE), (folder("dots", "dots"), DONE)];
    for path in [
        ".config/belljar",
        ".config/belljar/config.toml",
        ".config/./belljar/config.toml",
        "to-config/belljar/config.toml",
        "to-file",
        ".config/belljar/missing",
        ".cache/belljar/entry",
        ".local/state/belljar",
        ".local/state/belljar/x",
        "dots/bj/secret",
        "linked/secret",
    ] {
        cases.push((cat(path), NONE));
        cases.push((json!({"do": "open", "path": path, "follow": true, "with": "write"}), NONE));
        cases.push((
            json!({"do": "open", "path": path, "follow": true, "with": "read directory"}),
            NONE,
        ));
        cases.push((json!({"do": "stat_at", "path": path, "follow": true}), NONE));
        cases.push((
            json!({"do": "set_times_at", "path": path, "follow": true, "modified": 1}),
            NONE,
        ));
    }
    for path in [
        ".config/belljar",
        ".config/BELLJAR",
        ".config/belljar/config.toml",
        ".config/belljar/new",
        "to-config/belljar/new",
        ".cache/belljar",
        "dots/bj/new",
        "linked",
    ] {
        cases.push((mkdir(path), NO));
        cases.push((json!({"do": "symlink", "target": "x", "path": path}), NO));
        cases.push((json!({"do": "open", "path": path, "with": "create exclusive write"}), NO));
        cases.push((rename("notes.txt", path), NO));
        cases.push((link("notes.txt", path), NO));
    }
    for path in [".config/belljar", ".config/belljar/config.toml", "dots/bj", "dots/bj/secret"] {
        cases.push((json!({"do": "unlink", "path": path}), NONE));
        cases.push((json!({"do": "rmdir", "path": path}), NONE));
        cases.push((rename(path, "stolen"), NONE));
        cases.push((link(path, "stolen"), NONE));
        cases.push((json!({"do": "readlink", "path": path}), NONE));
    }
    cases.extend([
        (json!({"do": "cat", "at": "config", "path": "belljar/config.toml"}), NONE),
        (make_in("config", "belljar/new"), NO),
        (json!({"do": "cat", "at": "dots", "path": "bj/secret"}), NONE),
        // Nothing else takes the place of what leads there.
        (rename(".config", "stolen"), NO),
        (rename("prepared", ".config"), NO),
        (rename("dots", "stolen"), NO),
        (json!({"do": "unlink", "path": "linked"}), NONE),
        (rename("linked", "stolen"), NONE),
        (json!({"do": "symlink", "target": "prepared", "path": ".local"}), NO),
        (rename("prepared", ".local"), NO),
        (make(".local"), NO),
        (rename("prepared", ".LOCAL"), NO),
    ]);
    check(&sandbox, &cases).await;
    assert!(snapshot(&home) == before, "something has changed");
    // They are left out of listings. What leads there may be made by a guest, as a folder.
    let script = json!([
        folder(".config", "c"),
        {"do": "list", "handle": "c"},
        folder("dots", "d"),
        {"do": "list", "handle": "d"},
        mkdir(".local"),
        mkdir(".local/state"),
        mkdir(".local/state/belljar"),
        {"do": "symlink", "target": "../../prepared", "path": ".local/state/belljar"},
        rename(".local/state", "stolen"),
        rename("prepared/belljar", ".local/state/belljar"),
        make(".local/state/other"),
        cat("notes.txt")
    ]);
    let (answers, _) = steps(&sandbox, script).await;
    assert_eq!(answers[1], json!({"ok": []}));
    assert_eq!(answers[3], json!({"ok": []}));
    assert_eq!(outcomes(&answers[4..]), [DONE, DONE, NO, NO, NO, NO, DONE, DONE]);
    // None of them can be granted, nor what lies in them.
    for path in [".config/belljar", "linked", "dots/bj", "to-config/belljar"] {
        let error = check_grantable(&home.join(path), &own_folders).unwrap_err();
        assert!(matches!(error, MountError::Own { .. }), "{path}: {error}");
    }
    fs::create_dir(home.join(".config/belljar/inner")).unwrap();
    let inner = home.join(".config/belljar/inner");
    assert!(matches!(check_grantable(&inner, &own_folders), Err(MountError::Own { .. })));
    check_grantable(&home, &own_folders).unwrap();
}

#[tokio::test]
async fn what_is_no_folder_of_a_disk_cannot_be_granted() {
    let link = tempfile::TempDir::new().unwrap();
    for (name, target) in [("proc", "/proc"), ("dev", "/dev"), ("sys", "/sys/kernel")] {
        symlink(target, link.path().join(name)).unwrap();
    }
    let through = |name: &str| link.path().join(name);
    for path in [
        "/proc".into(),
        "/proc/self/fd".into(),
        "/proc/../proc".into(),
        "/sys".into(),
        "/sys/fs/cgroup".into(),
        "/dev".into(),
        "/dev/shm".into(),
        through("proc"),
        through("dev"),
        through("sys"),
    ] {
        let path: PathBuf = path;
        let error = check_grantable(&path, &[]).unwrap_err();
        assert!(matches!(error, MountError::SystemState { .. }), "{}: {error}", path.display());
    }
    let missing = check_grantable(Path::new("/no/such/folder"), &[]).unwrap_err();
    assert!(matches!(missing, MountError::Open { .. }), "{missing}");
    check_grantable(link.path(), &[]).unwrap();
}

/// Names that other programs obey, with something of the same kind that they do not.
const PROTECTED: [&str; 14] = [
    ".git/hooks/pre-commit",
    ".git/config",
    "sub/.git/config",
    ".GIT/config",
    ".belljar/plugins/x.wasm",
    "belljar.toml",
    "AGENTS.md",
    "sub/AGENTS.md",
    "agents.md",
    "CLAUDE.md",
    ".envrc",
    ".vscode/tasks.json",
    ".github/workflows/ci.yml",
    ".claude/skills/x/SKILL.md",
];

fn protected_fixture(bench: &Bench) {
    for path in PROTECTED {
        bench.write(path, "CANARY");
    }
    for path in ["file.txt", "prepared/hooks/pre-commit", "prepared/workflows/ci.yml", "plain/x"] {
        bench.write(path, "evil");
    }
    for (target, path) in [
        (".git", "to-git"),
        (".git/config", "to-config"),
        ("AGENTS.md", "to-agents"),
        ("../.github", "plain/to-github"),
        ("../", "plain/up"),
    ] {
        symlink(target, bench.workspace().join(path)).unwrap();
    }
}

/// Everything that would plant, change, move or take away what is protected.
fn attacks() -> Vec<Value> {
    let mut attacks = vec![
        folder(".git", "git"),
        folder(".github", "github"),
        folder("sub", "sub"),
        json!({"do": "open", "path": ".git/config", "as": "config", "with": "read"}),
    ];
    for path in PROTECTED {
        attacks.extend([
            json!({"do": "open", "path": path, "with": "write"}),
            json!({"do": "open", "path": path, "with": "read write"}),
            json!({"do": "open", "path": path, "with": "truncate"}),
            make(path),
            json!({"do": "unlink", "path": path}),
            rename(path, "taken"),
            rename("file.txt", path),
            link(path, "taken"),
            json!({"do": "set_times_at", "path": path, "modified": 1}),
            json!({"do": "set_times_at", "path": path, "follow": true, "modified": 1}),
        ]);
    }
    for path in ["plain/.git", "plain/AGENTS.md", "plain/.envrc", "plain/.Git.", "plain/git~1"] {
        attacks.extend([
            make(path),
            mkdir(path),
            json!({"do": "symlink", "target": "../prepared", "path": path}),
            rename("prepared", path),
            rename("file.txt", path),
            link("file.txt", path),
        ]);
    }
    attacks.extend([
        // By other ways.
        make("to-git/hooks/post-checkout"),
        json!({"do": "open", "path": "to-config", "follow": true, "with": "write"}),
        json!({"do": "open", "path": "to-agents", "follow": true, "with": "truncate"}),
        make("plain/up/.git/hooks/new"),
        make("plain/../.git/hooks/new"),
        make_in("git", "hooks/new"),
        make_in("git", "../x").merged("follow"),
        json!({"do": "mkdir", "at": "git", "path": "new"}),
        json!({"do": "unlink", "at": "git", "path": "config"}),
        json!({"do": "set_times", "handle": "config", "modified": 1}),
        json!({"do": "set_times", "handle": "git", "modified": 1}),
        make_in("github", "workflows/new.yml"),
        make_in("sub", ".git/new"),
        // Folders of another name become what is obeyed, or stop to be.
        rename("prepared", ".git"),
        rename("prepared", ".github"),
        rename("prepared", "plain/.github"),
        rename(".github", "taken"),
        rename(".git", "taken"),
        rename(".git/hooks", "taken"),
        rename("prepared/hooks", ".git/hooks"),
        json!({"do": "symlink", "target": "../prepared", "path": "plain/.github"}),
        make("plain/to-github/workflows/new.yml"),
        // What lies in them moves along with a folder around them.
        rename("sub", "taken"),
        rename("sub", "plain/sub"),
        json!({"do": "rmdir", "path": ".git/hooks"}),
    ]);
    attacks
}

#[tokio::test]
async fn protected_paths_are_written_in_no_mode_by_no_way() {
    for mode in [PermissionMode::Bypass, PermissionMode::AcceptEdits] {
        let bench = Bench::new();
        protected_fixture(&bench);
        let before = snapshot(&bench.workspace());
        let config = SandboxConfig {
            policy: Policy { mode, rules: Rules::default() },
            ..bench.raw_config(raw_grant(&[], &["."]))
        };
        let sandbox = Sandbox::open(config).await.unwrap();
        let attacks = attacks();
        let mut said = 0;
        for chunk in attacks[4..].chunks(40) {
            let script: Vec<_> = attacks[..4].iter().chain(chunk).collect();
            let (answers, report) = steps(&sandbox, json!(script)).await;
            for (attack, answer) in chunk.iter().zip(&answers[4..]) {
                let code = answer["error"].as_str().unwrap_or(DONE);
                assert_eq!(code, NO, "{attack}");
            }
            said += report.receipt.unwrap().denied.len();
        }
        assert!(snapshot(&bench.workspace()) == before, "something has changed");
        assert!(said >= 30, "{said}");
    }
}

#[tokio::test]
async fn what_is_not_protected_beside_it_is_written_as_ever() {
    let bench = Bench::new();
    protected_fixture(&bench);
    let sandbox = bench.raw().await;
    check(
        &sandbox,
        &[
            (cat(".git/config"), DONE),
            (cat("AGENTS.md"), DONE),
            (make(".gitignore"), DONE),
            (make(".github/ISSUE_TEMPLATE.md"), DONE),
            (make("agents.md.txt"), DONE),
            (make("workflows.yml"), DONE),
            (mkdir("git"), DONE),
            (make("git/config"), DONE),
            (rename("prepared", "taken"), DONE),
            (rename("taken/hooks", "hooks"), DONE),
            (mkdir("plain/.github"), DONE),
            (make("plain/.github/x.md"), DONE),
        ],
    )
    .await;
}

/// A person's yes to a call that names a protected path holds for that path alone.
#[tokio::test]
async fn a_yes_that_names_a_protected_path_permits_exactly_that() {
    let bench = Bench::new();
    protected_fixture(&bench);
    bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let grants = [("hostile".to_owned(), crate::support::writing())].into();
    let config = SandboxConfig {
        grants,
        policy: Policy { mode: PermissionMode::Default, rules: Rules::default() },
        ..bench.config()
    };
    let sandbox = Sandbox::open(config).await.unwrap();
    let call = |path: &str| {
        let arguments = json!({"path": path, "text": "agreed"});
        crate::support::call("hostile__write_path", arguments)
    };
    let answered = async |prepared: Box<dyn PreparedCall>| {
        let cancel = tokio_util::sync::CancellationToken::new();
        prepared.run(Some(ApprovalAnswer::Once), crate::support::ignore(), cancel).await
    };
    let report = answered(sandbox.prepare(&call("sub/AGENTS.md")).unwrap()).await;
    assert_eq!(text(&report), "written", "{report:?}");
    assert_eq!(bench.read("sub/AGENTS.md"), "agreed");
    // A yes to a link that leads to one is none to that.
    let report = answered(sandbox.prepare(&call("to-agents")).unwrap()).await;
    let denied = report.receipt.unwrap().denied;
    assert_eq!(denied[0].target, "AGENTS.md", "{denied:?}");
    assert_eq!(bench.read("AGENTS.md"), "CANARY");
}

#[tokio::test]
async fn the_bundled_tools_work_in_a_folder_named_tmp() {
    let bench = Bench::new();
    bench.write("tmp/a.txt", "mine");
    let config = SandboxConfig { bundled: crate::support::bundled(), ..bench.config() };
    let sandbox = Sandbox::open(config).await.unwrap();
    let report = run(&sandbox, "read_file", json!({"path": "tmp/a.txt"})).await;
    assert!(text(&report).contains("mine"), "{report:?}");
    let report = run(&sandbox, "write_file", json!({"path": "tmp/b.txt", "content": "kept"})).await;
    assert!(report.outcome.is_ok(), "{report:?}");
    assert_eq!(bench.read("tmp/b.txt"), "kept");
}
