//! Links and folders that are swapped while guests open, make, move and remove: nothing leads out,
//! into what is closed, or into what is protected. With `openat2`, and with it refused.

use crate::{
    files_conformance::WITHOUT_OPENAT2,
    support::{Bench, raw_grant, snapshot, steps},
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

const SWAPS: u64 = 100_000;

/// Names that are swapped: what guests use, and what leads where they must not come.
fn fixture(bench: &Bench) -> Vec<[PathBuf; 2]> {
    let root = bench.root.path();
    let workspace = bench.workspace();
    for folder in ["outside", "workspace/closed", "workspace/.git", "workspace/own", "workspace/ro"]
    {
        fs::create_dir_all(root.join(folder).join("d")).unwrap();
        let readable = ["workspace/.git", "workspace/ro"].contains(&folder);
        for file in ["f", "g", "d/f"] {
            let content = if readable { "readable" } else { "CANARY" };
            fs::write(root.join(folder).join(file), content).unwrap();
        }
    }
    let mut pairs = Vec::new();
    // A folder, and links of the same look that lead to each of them.
    for (number, target) in ["../outside", "closed", ".git", "own", "ro"].into_iter().enumerate() {
        let (folder, link) = (format!("x{number}"), format!("link{number}"));
        fs::create_dir_all(workspace.join(&folder).join("d")).unwrap();
        fs::write(workspace.join(&folder).join("f"), "fine").unwrap();
        symlink(target, workspace.join(&link)).unwrap();
        pairs.push([workspace.join(folder), workspace.join(link)]);
    }
    // A file, and a link that leads to one.
    for (number, target) in
        ["../outside/f", "closed/f", ".git/f", "own/f", "ro/f"].into_iter().enumerate()
    {
        let (file, link) = (format!("f{number}"), format!("file-link{number}"));
        fs::write(workspace.join(&file), "fine").unwrap();
        symlink(target, workspace.join(&link)).unwrap();
        pairs.push([workspace.join(file), workspace.join(link)]);
    }
    pairs
}

/// Swaps until it is told to stop, and counts.
fn swap(pairs: &[[PathBuf; 2]], swaps: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        for [one, other] in pairs {
            // A guest may have taken one of them away.
            if renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok() {
                swaps.fetch_add(1, Relaxed);
            }
        }
    }
}

/// Everything that can be tried on a name, for each of the swapped ones.
fn attempts() -> Value {
    let mut all = Vec::new();
    for number in 0..5 {
        let (x, f) = (format!("x{number}"), format!("f{number}"));
        let at = |name: &str| format!("{x}/{name}");
        for path in [at("f"), f.clone(), format!("{x}/./d/../f")] {
            all.extend([
                json!({"do": "cat", "path": path}),
                json!({"do": "cat", "path": path, "follow": false}),
                json!({"do": "open", "path": path, "follow": true, "with": "write truncate"}),
                json!({"do": "open", "path": path, "follow": true, "with": "create write"}),
                json!({"do": "set_times_at", "path": path, "follow": true, "modified": 1}),
                json!({"do": "stat_at", "path": path, "follow": true}),
            ]);
        }
        all.extend([
            json!({"do": "open", "path": x, "follow": true, "as": "d", "with": "read directory"}),
            json!({"do": "list", "handle": "d"}),
            json!({"do": "cat", "at": "d", "path": "f"}),
            json!({"do": "open", "at": "d", "path": "new", "with": "create write"}),
            json!({"do": "unlink", "at": "d", "path": "new"}),
            json!({"do": "open", "path": at("new"), "with": "create exclusive write"}),
            json!({"do": "mkdir", "path": at("made")}),
            json!({"do": "mkdir", "path": at("d/made")}),
            json!({"do": "symlink", "target": "f", "path": at("sym")}),
            json!({"do": "link", "path": at("f"), "to": at("hard")}),
            json!({"do": "cat", "path": at("hard")}),
            json!({"do": "link", "path": at("f"), "to": format!("stolen{number}")}),
            json!({"do": "cat", "path": format!("stolen{number}")}),
            json!({"do": "unlink", "path": format!("stolen{number}")}),
            json!({"do": "rename", "path": at("f"), "to": format!("stolen{number}")}),
            json!({"do": "cat", "path": format!("stolen{number}")}),
            json!({"do": "rename", "path": format!("stolen{number}"), "to": at("f")}),
            json!({"do": "rename", "path": at("d"), "to": at("e")}),
            json!({"do": "rename", "path": at("e"), "to": at("d")}),
            json!({"do": "set_times_at", "path": at("f"), "modified": 1}),
            json!({"do": "set_times", "handle": "d", "modified": 1}),
            json!({"do": "rmdir", "path": at("d/made")}),
            json!({"do": "rmdir", "path": at("made")}),
            json!({"do": "unlink", "path": at("sym")}),
            json!({"do": "unlink", "path": at("hard")}),
            json!({"do": "unlink", "path": at("new")}),
            json!({"do": "unlink", "path": at("g")}),
        ]);
    }
    json!([{"do": "repeat", "times": 20, "steps": all}])
}

async fn race(swaps_wanted: u64) {
    let bench = Bench::new();
    let pairs = fixture(&bench);
    let mut grant = raw_grant(&["ro"], &["."]);
    grant.deny = vec!["closed/**".to_owned()];
    let mut config = bench.raw_config(grant);
    config.own_folders = vec![bench.workspace().join("own")];
    let sandbox = belljar_sandbox::Sandbox::open(config).await.unwrap();
    let guarded =
        ["outside", "workspace/closed", "workspace/.git", "workspace/own", "workspace/ro"];
    let look = || guarded.map(|folder| snapshot(&bench.root.path().join(folder)));
    let before = look();

    let (swaps, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let swapper = {
        let (swaps, stop) = (Arc::clone(&swaps), Arc::clone(&stop));
        std::thread::spawn(move || swap(&pairs, &swaps, &stop))
    };
    let attempts = attempts();
    let mut done = 0_u64;
    while swaps.load(Relaxed) < swaps_wanted {
        let (answers, _) = steps(&sandbox, attempts.clone()).await;
        let answers = answers[0]["ok"].as_object().unwrap();
        let read: Vec<_> = answers.keys().filter(|answer| answer.contains("CANARY")).collect();
        assert!(read.is_empty(), "{read:?}");
        done += answers.iter().filter(|(answer, _)| answer.contains("\"ok\"")).count() as u64;
        mend(&bench.workspace());
    }
    stop.store(true, Relaxed);
    swapper.join().unwrap();
    assert!(done > 0, "nothing was done, so nothing was tried");
    assert!(look() == before, "something that is guarded has changed");
}

/// Puts back what guests took, so that there is something to race for.
fn mend(workspace: &Path) {
    for number in 0..5 {
        for folder in [format!("x{number}"), format!("link{number}")] {
            let folder = workspace.join(folder);
            // Nothing is made through a link: the folder itself is opened, and not what it leads to.
            let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
            let Ok(folder) = rustix::fs::open(&folder, flags, rustix::fs::Mode::empty()) else {
                continue;
            };
            let flags = rustix::fs::OFlags::CREATE
                | rustix::fs::OFlags::WRONLY
                | rustix::fs::OFlags::NOFOLLOW;
            let mode = rustix::fs::Mode::from_raw_mode(0o644);
            if let Ok(file) = rustix::fs::openat(&folder, "f", flags, mode) {
                let _ = rustix::io::write(&file, b"fine");
            }
            let _ = rustix::fs::mkdirat(&folder, "d", rustix::fs::Mode::from_raw_mode(0o755));
        }
    }
}

#[tokio::test]
async fn swaps_lead_nowhere_with_openat2() {
    race(SWAPS / 2).await;
}

const WITHOUT: &str = "BELLJAR_TEST_WITHOUT_OPENAT2";

/// In a process of its own, in which the kernel answers as one that has no `openat2`.
#[test]
fn swaps_lead_nowhere_without_openat2() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--exact", "files_races::in_a_process_without_openat2", "--nocapture"])
        .env(WITHOUT, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{failed}");
    assert!(told.contains("1 passed"), "{told}\n{failed}");
}

/// Does its work in the process that the test above starts, and nothing elsewhere.
#[test]
fn in_a_process_without_openat2() {
    if std::env::var_os(WITHOUT).is_none() {
        return;
    }
    refuse_openat2();
    let refused = rustix::fs::openat2(
        CWD,
        ".",
        rustix::fs::OFlags::RDONLY,
        rustix::fs::Mode::empty(),
        rustix::fs::ResolveFlags::empty(),
    );
    assert_eq!(refused.unwrap_err(), rustix::io::Errno::NOSYS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        race(SWAPS / 2).await;
        crate::files_conformance::everywhere(WITHOUT_OPENAT2).await;
    });
}

fn refuse_openat2() {
    use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};
    const OPENAT2: i64 = 437;
    const NOSYS: u32 = 38;
    let arch: TargetArch = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(
        [(OPENAT2, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(NOSYS),
        arch,
    );
    let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter_all_threads(&program).unwrap();
}
