//! Files: ways out, and changes in read-only worlds.

use crate::commands::selftest::{
    case::{Case, Outcome, next_call},
    stage::{self, CANARY, Stage, call, words},
};
use anyhow::{bail, ensure};
use belljar_types::ToolErrorKind::{self, Denied, Failed, Trap};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::symlink, path::Path, time::SystemTime};

const REFUSED: &[ToolErrorKind] = &[Denied, Failed];

pub(super) fn cases() -> Vec<Case> {
    let read = |path: &str| ("read_path", json!({"path": path}));
    vec![
        Case::scene(8, "read a pipe in the workspace", |stage| Box::pin(pipe(stage))),
        Case::ends(9, "climb with dots", read("../outside/canary.txt"), REFUSED),
        Case::ends(9, "climb from a folder", read("a/../../outside/canary.txt"), REFUSED),
        Case::ends(9, "an absolute path", read("/etc/passwd"), REFUSED),
        Case::scene(9, "links of every kind", |stage| Box::pin(links(stage))),
        Case::scene(9, "a link that the guest makes", |stage| Box::pin(own_links(stage))),
        Case::scene(10, "change a read-only world", |stage| Box::pin(read_only(stage))),
        Case::ends(
            10,
            "claim to read, and write",
            ("write_path_read_only", json!({"path": "note.txt", "text": "changed"})),
            REFUSED,
        ),
        Case::scene(30, "plant orders", |stage| Box::pin(planted_orders(stage))),
    ]
}

/// A pipe that nobody writes to: opening it must not hold a thread.
async fn pipe(stage: &Stage) -> Outcome {
    let path = stage.workspace().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)?;
    let sandbox = stage.open().await?;
    let report = call(&sandbox, "hostile__read_for_ever", json!({"path": "pipe"})).await;
    let words = words(&report);
    ensure!(!words.contains("left behind"), "a thread was left behind: {words}");
    let Err(error) = &report.outcome else { bail!("it answered: {words}") };
    ensure!(REFUSED.contains(&error.kind), "it waited: {words}");
    next_call(&sandbox).await?;
    Ok(words)
}

/// Reads and writes through links that were there before.
async fn links(stage: &Stage) -> Outcome {
    let outside = stage.path("outside");
    let workspace = stage.workspace();
    symlink(&outside, workspace.join("to-folder"))?;
    symlink(outside.join("canary.txt"), workspace.join("to-file"))?;
    symlink("../outside/canary.txt", workspace.join("climbing"))?;
    symlink("to-folder", workspace.join("chained"))?;
    symlink(outside.join("new.txt"), workspace.join("dangling"))?;
    symlink("/proc/self/cwd", workspace.join("magic"))?;
    let sandbox = stage.open().await?;
    for path in ["to-folder/canary.txt", "to-file", "climbing", "chained/canary.txt"] {
        for tool in ["read_path", "write_path", "stat_path"] {
            let arguments = json!({"path": path, "text": "changed"});
            let text = words(&call(&sandbox, &format!("hostile__{tool}"), arguments).await);
            ensure!(!text.contains(CANARY), "`{tool}` of `{path}` read: {text}");
        }
    }
    for (tool, path) in [("list_path", "to-folder"), ("list_path", "magic"), ("read_path", "magic")]
    {
        let report = call(&sandbox, &format!("hostile__{tool}"), json!({"path": path})).await;
        ensure!(report.outcome.is_err(), "`{tool}` of `{path}` answered: {}", words(&report));
    }
    call(&sandbox, "hostile__write_path", json!({"path": "dangling", "text": "made"})).await;
    outside_is_as_it_was(stage)?;
    next_call(&sandbox).await?;
    Ok("nothing was read, written or made outside".to_owned())
}

/// Makes links itself, and goes through them.
async fn own_links(stage: &Stage) -> Outcome {
    let sandbox = stage.open().await?;
    let canary = stage.path("outside/canary.txt");
    let absolute = canary.to_string_lossy().into_owned();
    for (number, says) in ["../outside/canary.txt", &absolute, "/", ".."].iter().enumerate() {
        let link = format!("link{number}");
        let make = json!({"operation": "symlink", "path": link, "to": says});
        call(&sandbox, "hostile__change", make).await;
        for path in
            [link.clone(), format!("{link}/outside/canary.txt"), format!("{link}{absolute}")]
        {
            let report = call(&sandbox, "hostile__read_path", json!({"path": path})).await;
            let text = words(&report);
            ensure!(!text.contains(CANARY), "`{path}` read: {text}");
        }
    }
    for operation in ["hard_link", "rename"] {
        let make =
            json!({"operation": operation, "path": "../outside/canary.txt", "to": "taken.txt"});
        let report = call(&sandbox, "hostile__change", make).await;
        ensure!(report.outcome.is_err(), "`{operation}` of a file outside was done");
    }
    outside_is_as_it_was(stage)?;
    Ok("no link led out".to_owned())
}

fn outside_is_as_it_was(stage: &Stage) -> anyhow::Result<()> {
    let folder = stage.path("outside");
    let names: Vec<_> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<std::io::Result<_>>()?;
    ensure!(names == ["canary.txt"], "outside there is now {names:?}");
    let text = fs::read_to_string(folder.join("canary.txt"))?;
    ensure!(text == CANARY, "the file outside says {text:?}");
    Ok(())
}

/// What can be seen of a file.
fn seen(path: &Path) -> anyhow::Result<(Vec<u8>, u64, SystemTime)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((fs::read(path)?, metadata.len(), metadata.modified()?))
}

/// Every operation that changes something, by a tool that says that it only reads.
async fn read_only(stage: &Stage) -> Outcome {
    let note = stage.workspace().join("note.txt");
    fs::create_dir(stage.workspace().join("folder"))?;
    let before = seen(&note)?;
    let sandbox = stage.open().await?;
    let operations: [(&str, &str, &str); 13] = [
        ("create", "new.txt", ""),
        ("truncate", "note.txt", ""),
        ("overwrite", "note.txt", ""),
        ("append", "note.txt", ""),
        ("set_size", "note.txt", ""),
        ("set_times", "note.txt", ""),
        ("rename", "note.txt", "other.txt"),
        ("hard_link", "note.txt", "other.txt"),
        ("symlink", "link", "note.txt"),
        ("make_directory", "made", ""),
        ("remove_file", "note.txt", ""),
        ("remove_directory", "folder", ""),
        ("remove_tree", "folder", ""),
    ];
    for (operation, path, to) in operations {
        let arguments = json!({"operation": operation, "path": path, "to": to});
        let report = call(&sandbox, "hostile__change_read_only", arguments).await;
        let Err(error) = &report.outcome else { bail!("`{operation}` was done") };
        ensure!(
            REFUSED.contains(&error.kind) || error.kind == Trap,
            "`{operation}` ended as {}",
            error.kind
        );
        ensure!(seen(&note)? == before, "`{operation}` changed the file");
    }
    let mut names: Vec<_> = fs::read_dir(stage.workspace())?
        .map(|entry| Ok(entry?.file_name()))
        .collect::<std::io::Result<_>>()?;
    names.sort();
    ensure!(names == ["folder", "note.txt"], "there is now {names:?}");
    Ok(format!("{} operations were refused, and nothing changed", operations.len()))
}

/// Files that other programs obey are not written where nobody can be asked.
async fn planted_orders(stage: &Stage) -> Outcome {
    let mut config = stage.config();
    config.bundled = stage::bundled();
    let sandbox = stage.open_with(config).await?;
    let paths = [".git/hooks/post-checkout", ".belljar/plugins/x.wasm", "belljar.toml", ".envrc"];
    for path in paths {
        let write: Value = json!({"path": path, "content": "obey"});
        let report = call(&sandbox, "write_file", write).await;
        let Err(error) = &report.outcome else { bail!("`{path}` was written") };
        ensure!(error.kind == Denied, "`{path}`: {error}");
        ensure!(!stage.workspace().join(path).exists(), "`{path}` is there");
    }
    let plain = call(&sandbox, "write_file", json!({"path": "a.txt", "content": "x"})).await;
    ensure!(plain.outcome.is_ok(), "an ordinary file: {}", words(&plain));
    Ok(format!("{} paths were refused", paths.len()))
}
