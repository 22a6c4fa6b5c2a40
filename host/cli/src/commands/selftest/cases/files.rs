//! Files: ways out, and changes in read-only worlds.

use crate::commands::selftest::{
    case::{Case, Outcome, next_call},
    stage::{self, CANARY, Stage, call, words},
};
use anyhow::{bail, ensure};
use belljar_capability::{Binding, FolderGrant, Limits, PluginGrant};
use belljar_sandbox::{Sandbox, SandboxConfig, check_grantable};
use belljar_test_guests::RAW;
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
        Case::scene(11, "what a glob denies", |stage| Box::pin(denied_globs(stage))),
        Case::scene(12, "the system's own folders", |stage| Box::pin(system_folders(stage))),
        Case::scene(12, "the program's own folders", |stage| Box::pin(own_folders(stage))),
        Case::scene(12, "nested grants", |stage| Box::pin(nested_grants(stage))),
        Case::scene(13, "append without end", |stage| Box::pin(append_without_end(stage)))
            .under(Limits { written_bytes: 4 << 20, ..stage::patient() }),
        Case::scene(13, "files without number", |stage| Box::pin(files_without_number(stage)))
            .under(Limits { created_files: 100, ..stage::patient() }),
        Case::scene(13, "a size out of nothing", |stage| Box::pin(sparse(stage))),
        Case::scene(25, "the temporary folder", |stage| Box::pin(temporary(stage))),
        Case::scene(30, "plant orders by way of a link", |stage| Box::pin(planted_by_link(stage))),
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

/// A sandbox in which the hostile guest has this grant besides its digest.
async fn with_grant(stage: &Stage, grant: PluginGrant) -> anyhow::Result<Sandbox> {
    stage.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes)?;
    stage.open_with(granting(stage, grant)).await
}

fn granting(stage: &Stage, grant: PluginGrant) -> SandboxConfig {
    let mut config = stage.config();
    if let Some(usual) = config.grants.get_mut("hostile") {
        *usual = PluginGrant { binding: usual.binding.clone(), ..grant };
    }
    config
}

fn folder(host: &str) -> FolderGrant {
    FolderGrant { host: host.to_owned(), guest: None }
}

/// A denied file is closed by every path and link that leads to it, and cannot be moved aside.
async fn denied_globs(stage: &Stage) -> Outcome {
    let workspace = stage.workspace();
    fs::create_dir(workspace.join("keys"))?;
    fs::write(workspace.join(".env"), CANARY)?;
    fs::write(workspace.join("keys/id"), CANARY)?;
    symlink(".env", workspace.join("link"))?;
    symlink("keys", workspace.join("to-keys"))?;
    let grant = PluginGrant {
        write: vec![folder(".")],
        deny: vec![".env".to_owned(), "keys/**".to_owned()],
        ..PluginGrant::default()
    };
    let sandbox = with_grant(stage, grant).await?;
    let change = |operation: &str, path: &str, to: &str| json!({"operation": operation, "path": path, "to": to});
    for change in [
        change("hard_link", ".env", "copy"),
        change("rename", ".env", "copy"),
        change("rename", "keys", "copies"),
        change("remove_file", ".env", ""),
        change("truncate", "keys/id", ""),
    ] {
        let report = call(&sandbox, "hostile__change", change.clone()).await;
        ensure!(report.outcome.is_err(), "this was done: {change}");
    }
    for path in [".env", "./.env", "link", "keys/id", "to-keys/id", ".ENV", "copy", "copies/id"] {
        let report = call(&sandbox, "hostile__read_path", json!({"path": path})).await;
        let text = words(&report);
        ensure!(report.outcome.is_err() && !text.contains(CANARY), "`{path}`: {text}");
    }
    let listed = words(&call(&sandbox, "hostile__list_path", json!({"path": "/"})).await);
    ensure!(!listed.contains(".env"), "it is listed: {listed}");
    let plain = call(&sandbox, "hostile__read_path", json!({"path": "note.txt"})).await;
    ensure!(plain.outcome.is_ok(), "an ordinary file: {}", words(&plain));
    Ok("closed by every way".to_owned())
}

/// No grant opens the system's own state, and one that was written gives nothing.
async fn system_folders(stage: &Stage) -> Outcome {
    let folders: &[&str] = if cfg!(target_os = "linux") {
        &["/proc", "/sys", "/dev", "/proc/self"]
    } else {
        &["/dev"]
    };
    for path in folders {
        ensure!(check_grantable(Path::new(path), &[]).is_err(), "`{path}` can be granted");
        let host = FolderGrant { host: (*path).to_owned(), guest: Some("/granted".parse()?) };
        let grant = PluginGrant { read: vec![host], ..PluginGrant::default() };
        stage.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes)?;
        let sandbox = Sandbox::open(granting(stage, grant)).await?;
        let said = sandbox.notices().join("\n");
        ensure!(said.contains("cannot be granted"), "nobody is told: {said:?}");
        let report = call(&sandbox, "hostile__list_path", json!({"path": "/granted"})).await;
        ensure!(report.outcome.is_err(), "`{path}` was listed: {}", words(&report));
    }
    Ok(format!("{} folders cannot be granted", folders.len()))
}

/// The program's own folders do not exist for guests, inside a folder that is granted.
async fn own_folders(stage: &Stage) -> Outcome {
    let own = stage.workspace().join("own");
    fs::create_dir(&own)?;
    fs::write(own.join("grants.toml"), CANARY)?;
    symlink("own", stage.workspace().join("link"))?;
    stage.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes)?;
    let config = SandboxConfig { own_folders: vec![own.clone()], ..stage.config() };
    let sandbox = stage.open_with(config).await?;
    for path in ["own/grants.toml", "link/grants.toml", "./own/grants.toml"] {
        for tool in ["read_path", "write_path", "stat_path"] {
            let arguments = json!({"path": path, "text": "grant = all"});
            let report = call(&sandbox, &format!("hostile__{tool}"), arguments).await;
            ensure!(report.outcome.is_err(), "`{tool}` of `{path}`: {}", words(&report));
        }
    }
    for operation in ["rename", "remove_tree", "hard_link"] {
        let change = json!({"operation": operation, "path": "own", "to": "other"});
        call(&sandbox, "hostile__change", change).await;
    }
    ensure!(fs::read_to_string(own.join("grants.toml"))? == CANARY, "it was changed");
    Ok("they do not exist for guests".to_owned())
}

/// Of a folder for reading inside one for writing, the deepest grant holds.
async fn nested_grants(stage: &Stage) -> Outcome {
    fs::create_dir(stage.workspace().join("vault"))?;
    fs::write(stage.workspace().join("vault/note.txt"), "as it was")?;
    let grant = PluginGrant {
        write: vec![folder(".")],
        read: vec![folder("vault")],
        ..PluginGrant::default()
    };
    let sandbox = with_grant(stage, grant).await?;
    let write = |path: &str| json!({"path": path, "text": "changed"});
    for path in ["vault/note.txt", "./vault/note.txt", "vault/new.txt"] {
        let report = call(&sandbox, "hostile__write_path", write(path)).await;
        ensure!(report.outcome.is_err(), "`{path}` was written");
    }
    for (operation, path, to) in [
        ("rename", "vault/note.txt", "note2.txt"),
        ("hard_link", "vault/note.txt", "note3.txt"),
        ("rename", "note.txt", "vault/note4.txt"),
        ("remove_tree", "vault", ""),
    ] {
        let change = json!({"operation": operation, "path": path, "to": to});
        let report = call(&sandbox, "hostile__change", change.clone()).await;
        ensure!(report.outcome.is_err(), "this was done: {change}");
    }
    let text = fs::read_to_string(stage.workspace().join("vault/note.txt"))?;
    ensure!(text == "as it was", "the file says {text:?}");
    let outer = call(&sandbox, "hostile__write_path", write("note.txt")).await;
    ensure!(outer.outcome.is_ok(), "the outer folder: {}", words(&outer));
    Ok("the deepest grant held".to_owned())
}

fn names_a_limit(words: &str, limit: &str) -> anyhow::Result<()> {
    ensure!(words.contains(&format!("limits.{limit}")), "`limits.{limit}` is not named: {words}");
    Ok(())
}

async fn append_without_end(stage: &Stage) -> Outcome {
    let sandbox = stage.open().await?;
    let report = call(&sandbox, "hostile__fill_disk", json!({"path": "big"})).await;
    ensure!(report.outcome.is_err(), "it answered: {}", words(&report));
    names_a_limit(&words(&report), "written_bytes")?;
    let size = fs::metadata(stage.workspace().join("big"))?.len();
    ensure!(size <= stage.limits.written_bytes, "{size} bytes were written");
    next_call(&sandbox).await?;
    Ok(format!("{size} bytes were written"))
}

async fn files_without_number(stage: &Stage) -> Outcome {
    fs::create_dir(stage.workspace().join("many"))?;
    let sandbox = stage.open().await?;
    let arguments = json!({"folder": "many", "count": 100_000});
    let report = call(&sandbox, "hostile__many_files", arguments).await;
    ensure!(report.outcome.is_err(), "it answered: {}", words(&report));
    names_a_limit(&words(&report), "created_files")?;
    let count = fs::read_dir(stage.workspace().join("many"))?.count() as u64;
    ensure!(count <= stage.limits.created_files, "{count} files were made");
    next_call(&sandbox).await?;
    Ok(format!("{count} files were made"))
}

/// Makes a file of a terabyte without writing any of it.
async fn sparse(stage: &Stage) -> Outcome {
    stage.add("raw.wasm", RAW.bytes)?;
    let mut config = stage.config();
    let grant = PluginGrant {
        binding: Some(Binding::Digest(RAW.digest.to_owned())),
        write: vec![folder(".")],
        ..PluginGrant::default()
    };
    config.grants.insert("raw".to_owned(), grant);
    let sandbox = stage.open_with(config).await?;
    let steps = json!([
        {"do": "open", "path": "sparse", "as": "f", "with": "create write"},
        {"do": "set_size", "handle": "f", "size": 1_u64 << 40}
    ]);
    // So the guest takes them: see its own words.
    let steps: String = steps.to_string().chars().flat_map(|c| [c, '%']).collect();
    let report = call(&sandbox, "raw__script", json!({"steps": steps})).await;
    let text = words(&report);
    ensure!(text.contains("quota"), "it was not refused: {text}");
    let size = fs::metadata(stage.workspace().join("sparse"))?.len();
    ensure!(size == 0, "it is {size} bytes long");
    Ok("refused, and the file is empty".to_owned())
}

/// What one call leaves in `/tmp` is not there for the next, nor for another plugin.
async fn temporary(stage: &Stage) -> Outcome {
    stage.add("second.wasm", belljar_test_guests::HOSTILE.bytes)?;
    let sandbox = stage.open().await?;
    let write = json!({"path": "/tmp/canary", "text": CANARY});
    let wrote = call(&sandbox, "hostile__write_path", write).await;
    ensure!(wrote.outcome.is_ok(), "there is no `/tmp`: {}", words(&wrote));
    for plugin in ["hostile", "second"] {
        let read = json!({"path": "/tmp/canary"});
        let report = call(&sandbox, &format!("{plugin}__read_path"), read).await;
        ensure!(report.outcome.is_err(), "`{plugin}` read {}", words(&report));
    }
    drop(sandbox);
    let left = fs::read_dir(stage.path("scratch")).map_or(0, Iterator::count);
    ensure!(left == 0, "{left} folders are left");
    Ok("it was empty, and is gone".to_owned())
}

/// The same files, by names that are none of them.
async fn planted_by_link(stage: &Stage) -> Outcome {
    fs::create_dir_all(stage.workspace().join(".git/hooks"))?;
    symlink(".git", stage.workspace().join("innocent"))?;
    let sandbox = stage.open().await?;
    let script = json!({"path": "script", "text": "obey"});
    let wrote = call(&sandbox, "hostile__write_path", script).await;
    ensure!(wrote.outcome.is_ok(), "an ordinary file: {}", words(&wrote));
    for (operation, path, to) in [
        ("create", "innocent/hooks/pre-commit", ""),
        ("rename", "script", ".git/hooks/pre-commit"),
        ("rename", "script", "innocent/hooks/pre-commit"),
        ("hard_link", "script", ".git/hooks/pre-commit"),
        ("symlink", ".git/hooks/pre-commit", "../../script"),
        ("rename", ".git", "aside"),
        ("make_directory", ".GIT/hooks", ""),
        ("symlink", ".envrc", "script"),
    ] {
        let change = json!({"operation": operation, "path": path, "to": to});
        let report = call(&sandbox, "hostile__change", change.clone()).await;
        ensure!(report.outcome.is_err(), "this was done: {change}");
    }
    let hooks = fs::read_dir(stage.workspace().join(".git/hooks"))?.count();
    ensure!(hooks == 0, "{hooks} hooks are there");
    Ok("no hook was planted".to_owned())
}
