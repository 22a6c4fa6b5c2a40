//! The guarded world: what it holds, and every way out of it that is refused and recorded.

use crate::support::{Bench, bundled, error, kind, reading, run, snapshot, text, writing};
use belljar_capability::Limits;
use belljar_sandbox::{Sandbox, SandboxConfig};
use belljar_types::{Denial, ToolErrorKind};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, os::unix::fs::symlink};

const OUTSIDE: &str = "it leads out of the workspace, or the system protects it";

fn denial(operation: &str, target: &str, reason: &str) -> Denial {
    Denial {
        operation: operation.into(),
        target: target.into(),
        reason: reason.into(),
        grant: None,
    }
}

#[tokio::test]
async fn every_path_that_leads_out_is_refused_and_recorded() {
    let bench = Bench::new();
    fs::write(bench.root.path().join("secret"), "secret").unwrap();
    fs::create_dir(bench.root.path().join("workspace-two")).unwrap();
    fs::write(bench.root.path().join("workspace-two/secret"), "secret").unwrap();
    bench.write("folder/inside.txt", "inside");
    let workspace = bench.workspace();
    let link = |target: &str, name: &str| symlink(target, workspace.join(name)).unwrap();
    link("/etc/passwd", "absolute");
    link("../secret", "relative");
    link("relative", "chained");
    link("..", "to-parent");
    link("/", "to-root");
    link("../missing", "dangling");
    link("../workspace-two/secret", "sibling");
    link("folder/../../secret", "winding");
    let sandbox = bench.hostile(Limits::default()).await;
    let cases = [
        ("../secret", "../secret"),
        ("folder/../../secret", "folder/../../secret"),
        ("./../secret", "../secret"),
        ("folder//..//../secret", "folder//..//../secret"),
        ("../workspace-two/secret", "../workspace-two/secret"),
        ("absolute", "absolute"),
        ("relative", "relative"),
        ("chained", "chained"),
        ("to-parent/secret", "to-parent/secret"),
        ("to-root/etc/passwd", "to-root/etc/passwd"),
        ("dangling", "dangling"),
        ("sibling", "sibling"),
        ("winding", "winding"),
    ];
    for (path, _) in cases {
        for (tool, arguments, operation) in [
            ("hostile__read_path", json!({"path": path}), "read"),
            ("hostile__write_path", json!({"path": path, "text": "x"}), "write"),
        ] {
            let report = run(&sandbox, tool, arguments).await;
            assert_eq!(kind(&report), ToolErrorKind::Denied, "{tool} {path}: {report:?}");
            let denied = report.receipt.unwrap().denied;
            assert_eq!(denied.len(), 1, "{tool} {path}: {denied:?}");
            assert_eq!(denied[0].operation, operation, "{tool} {path}: {denied:?}");
            assert_eq!(denied[0].reason, OUTSIDE, "{tool} {path}: {denied:?}");
        }
    }
    assert_eq!(fs::read_to_string(bench.root.path().join("secret")).unwrap(), "secret");
    assert!(!bench.root.path().join("missing").exists());
    // A link that stays inside is as good as the file.
    symlink("folder/inside.txt", workspace.join("fine")).unwrap();
    assert_eq!(text(&run(&sandbox, "hostile__read_path", json!({"path": "fine"})).await), "inside");
}

#[tokio::test]
async fn a_path_of_the_host_is_missing_and_recorded() {
    let bench = Bench::new();
    let sandbox = bench.hostile(Limits::default()).await;
    for path in ["/etc/passwd", "/etc/../etc/passwd", "//etc/passwd"] {
        let report = run(&sandbox, "hostile__read_path", json!({"path": path})).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{path}: {report:?}");
        let message = &error(&report).message;
        assert!(message.contains("nothing outside it can be reached"), "{message}");
    }
    // A name that is missing on both sides is only missing.
    let report =
        run(&sandbox, "hostile__read_path", json!({"path": "no-such-file-anywhere"})).await;
    assert_eq!(kind(&report), ToolErrorKind::Failed);
    assert_eq!(report.receipt.unwrap().denied, []);
}

#[tokio::test]
async fn a_read_only_world_stays_as_it_was_whatever_the_guest_tries() {
    let bench = Bench::new();
    bench.write("file.txt", "content");
    bench.write("folder/inside.txt", "inside");
    fs::create_dir(bench.workspace().join("empty")).unwrap();
    symlink("file.txt", bench.workspace().join("link")).unwrap();
    let sandbox = bench.hostile(Limits::default()).await;
    let before = snapshot(&bench.workspace());
    let changes = [
        json!({"operation": "create", "path": "new"}),
        json!({"operation": "create", "path": "folder/new"}),
        json!({"operation": "truncate", "path": "file.txt"}),
        json!({"operation": "truncate", "path": "link"}),
        json!({"operation": "truncate", "path": "new"}),
        json!({"operation": "overwrite", "path": "file.txt"}),
        json!({"operation": "append", "path": "file.txt"}),
        json!({"operation": "set_size", "path": "file.txt"}),
        json!({"operation": "set_times", "path": "file.txt"}),
        json!({"operation": "rename", "path": "file.txt", "to": "new"}),
        json!({"operation": "rename", "path": "folder", "to": "new"}),
        json!({"operation": "hard_link", "path": "file.txt", "to": "new"}),
        json!({"operation": "symlink", "path": "new", "to": "file.txt"}),
        json!({"operation": "make_directory", "path": "new"}),
        json!({"operation": "remove_file", "path": "file.txt"}),
        json!({"operation": "remove_file", "path": "link"}),
        json!({"operation": "remove_directory", "path": "empty"}),
        json!({"operation": "remove_tree", "path": "folder"}),
    ];
    for change in &changes {
        let report = run(&sandbox, "hostile__change_read_only", change.clone()).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{change}: {report:?}");
        let receipt = report.receipt.unwrap();
        assert_eq!(receipt.files_written, Vec::<String>::new(), "{change}");
        let reasons: Vec<_> = receipt.denied.iter().map(|denial| &*denial.reason).collect();
        // Operations on two names note both.
        assert!(!reasons.is_empty(), "{change}");
        assert!(reasons.iter().all(|reason| *reason == "this call may only read"), "{change}");
        assert_eq!(snapshot(&bench.workspace()), before, "{change}");
    }
    // The same changes work where writing is allowed, so it was the world that refused them.
    for change in &changes {
        let bench = Bench::new();
        bench.write("file.txt", "content");
        bench.write("folder/inside.txt", "inside");
        fs::create_dir(bench.workspace().join("empty")).unwrap();
        symlink("file.txt", bench.workspace().join("link")).unwrap();
        let sandbox = Sandbox::open(SandboxConfig {
            grants: BTreeMap::from([("hostile".to_owned(), writing())]),
            ..{
                bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
                bench.config()
            }
        })
        .await
        .unwrap();
        let report = run(&sandbox, "hostile__change", change.clone()).await;
        assert_eq!(text(&report), "changed", "{change}: {report:?}");
        assert_ne!(report.receipt.unwrap().files_written, Vec::<String>::new(), "{change}");
    }
}

#[tokio::test]
async fn a_grant_for_reading_is_not_widened_by_a_tool_that_writes() {
    let bench = Bench::new();
    bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let reading = reading();
    let grants = BTreeMap::from([("hostile".to_owned(), reading)]);
    let sandbox = Sandbox::open(SandboxConfig { grants, ..bench.config() }).await.unwrap();
    let report = run(&sandbox, "hostile__write_path", json!({"path": "new", "text": "x"})).await;
    assert_eq!(kind(&report), ToolErrorKind::Denied);
    let denied = report.receipt.unwrap().denied;
    let grant = format!("hostile.write={}:/", bench.workspace().display());
    let expected = Denial {
        grant: Some(grant),
        ..denial("write", "new", "its folder is granted for reading only")
    };
    assert_eq!(denied, [expected]);
    assert!(!bench.workspace().join("new").exists());
}

#[tokio::test]
async fn without_a_grant_there_is_no_file_at_all() {
    let bench = Bench::new();
    bench.write("file.txt", "content");
    bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let sandbox = Sandbox::open(bench.config()).await.unwrap();
    // But for the call's own temporary folder, which is empty.
    let report = run(&sandbox, "hostile__look_around", json!({})).await;
    assert_eq!(text(&report), "/tmp");
    for path in ["file.txt", "/file.txt", ".", "/", "/etc/passwd"] {
        let report = run(&sandbox, "hostile__read_path", json!({"path": path})).await;
        assert!(report.outcome.is_err(), "{path}: {report:?}");
        let report = run(&sandbox, "hostile__list_path", json!({"path": path})).await;
        assert!(report.outcome.is_err(), "{path}: {report:?}");
    }
}

#[tokio::test]
async fn what_can_block_or_is_no_file_is_not_opened() {
    let bench = Bench::new();
    let fifo = bench.workspace().join("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bench.workspace().join("socket")).unwrap();
    symlink("fifo", bench.workspace().join("link")).unwrap();
    let sandbox = bench.hostile(Limits::default()).await;
    for (path, tool, arguments) in [
        ("fifo", "hostile__read_path", json!({"path": "fifo"})),
        ("fifo", "hostile__read_for_ever", json!({"path": "fifo"})),
        ("link", "hostile__read_path", json!({"path": "link"})),
        ("fifo", "hostile__change", json!({"operation": "truncate", "path": "fifo"})),
        ("fifo", "hostile__change", json!({"operation": "append", "path": "fifo"})),
        ("socket", "hostile__read_path", json!({"path": "socket"})),
    ] {
        let report = run(&sandbox, tool, arguments).await;
        assert!(
            matches!(kind(&report), ToolErrorKind::Denied | ToolErrorKind::Failed),
            "{tool} {path}: {report:?}"
        );
    }
    let report = run(&sandbox, "hostile__read_path", json!({"path": "fifo"})).await;
    let reason = "only regular files and folders of a disk can be opened";
    assert_eq!(report.receipt.unwrap().denied, [denial("open", "fifo", reason)]);
}

#[tokio::test]
async fn a_name_that_is_not_utf8_does_not_hide_its_folder() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let bench = Bench::new();
    bench.write("a.txt", "");
    fs::write(bench.workspace().join(OsStr::from_bytes(b"bad-\xff")), "").unwrap();
    bench.write("z.txt", "");
    let sandbox = bench.hostile(Limits::default()).await;
    let report = run(&sandbox, "hostile__list_path", json!({"path": "."})).await;
    assert_eq!(text(&report), "a.txt\nz.txt");
}

#[tokio::test]
async fn the_bundled_tools_name_what_was_refused() {
    let bench = Bench::new();
    symlink("/etc/passwd", bench.workspace().join("link")).unwrap();
    let sandbox =
        Sandbox::open(SandboxConfig { bundled: bundled(), ..bench.config() }).await.unwrap();
    let cases: [(&str, Value); 6] = [
        ("read_file", json!({"path": "/etc/passwd"})),
        ("read_file", json!({"path": "../x"})),
        ("read_file", json!({"path": "link"})),
        ("write_file", json!({"path": "link", "content": "x"})),
        ("list_directory", json!({"path": "/etc"})),
        ("search_text", json!({"pattern": "root", "path": "/etc"})),
    ];
    for (tool, arguments) in cases {
        let named = arguments["path"].as_str().unwrap().to_owned();
        let report = run(&sandbox, tool, arguments).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{tool} {named}: {report:?}");
        assert!(error(&report).message.contains(&named), "{tool} {named}: {report:?}");
    }
    // A missing file of the workspace is missing, though the host has a folder of that name.
    let report = run(&sandbox, "read_file", json!({"path": "etc/nothing"})).await;
    assert_eq!(kind(&report), ToolErrorKind::Failed, "{report:?}");
}

#[tokio::test]
async fn sockets_are_there_and_lead_nowhere() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let sandbox = bench.hostile(Limits::default()).await;
    for (tool, address, operation, target) in [
        ("hostile__connect", address.as_str(), "open", "a TCP socket"),
        ("hostile__listen", "127.0.0.1:0", "open", "a TCP socket"),
        ("hostile__resolve", "localhost:80", "look up", "localhost"),
        ("hostile__connect", "localhost:80", "look up", "localhost"),
    ] {
        let report = run(&sandbox, tool, json!({"address": address})).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{tool} {address}: {report:?}");
        let reason =
            "plugins get no sockets; they can send requests over HTTP, where a host is granted";
        let denied = report.receipt.unwrap().denied;
        assert_eq!(denied, [denial(operation, target, reason)], "{tool} {address}");
    }
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn names_of_two_paths_that_lead_out_are_refused_together() {
    let bench = Bench::new();
    bench.write("inside", "inside");
    fs::write(bench.root.path().join("secret"), "secret").unwrap();
    let sandbox = bench.hostile(Limits::default()).await;
    for (operation, path, to) in [
        ("rename", "inside", "../moved"),
        ("rename", "../secret", "moved"),
        ("hard_link", "../secret", "linked"),
        ("hard_link", "inside", "../linked"),
        ("symlink", "absolute", "/etc/passwd"),
    ] {
        let arguments = json!({"operation": operation, "path": path, "to": to});
        let report = run(&sandbox, "hostile__change", arguments).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{operation} {path} {to}: {report:?}");
        let denied = report.receipt.unwrap().denied;
        assert_eq!(denied.len(), 1, "{operation} {path} {to}: {denied:?}");
        if operation != "symlink" {
            let target = format!("{path} → {to}");
            assert_eq!(denied, [denial("write", &target, OUTSIDE)], "{operation}");
        }
    }
    let left: Vec<_> =
        fs::read_dir(bench.workspace()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["inside"]);
    assert!(!bench.root.path().join("moved").exists());
}

#[tokio::test]
async fn the_systems_own_state_is_no_workspace_and_not_read_through_one() {
    let bench = Bench::new();
    for path in ["/proc", "/sys", "/proc/self"] {
        let workspace = Some(path.into());
        let error = Sandbox::open(SandboxConfig { workspace, ..bench.config() }).await.unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("system's own state"), "{path}: {cause}");
    }
    bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let grants = BTreeMap::from([("hostile".to_owned(), writing())]);
    let workspace = Some("/".into());
    let sandbox = Sandbox::open(SandboxConfig { workspace, grants, cache: None, ..bench.config() })
        .await
        .unwrap();
    for path in ["proc/self/environ", "proc/self/mem", "proc/version", "sys/kernel/mm"] {
        for tool in ["hostile__read_path", "hostile__list_path"] {
            let report = run(&sandbox, tool, json!({"path": path})).await;
            assert!(
                matches!(kind(&report), ToolErrorKind::Denied | ToolErrorKind::Failed),
                "{tool} {path}: {report:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_cache_inside_the_workspace_is_used_and_no_guest_sees_it() {
    let bench = Bench::new();
    bench.write("deep/file.txt", "x");
    bench.add("hostile.wasm", belljar_test_guests::HOSTILE.bytes);
    let cache = bench.workspace().join("deep/cache");
    let grants = BTreeMap::from([("hostile".to_owned(), writing())]);
    let config = SandboxConfig { cache: Some(cache.clone()), grants, ..bench.config() };
    let sandbox = Sandbox::open(config).await.unwrap();
    assert_eq!(sandbox.notices(), Vec::<String>::new());
    let entries = fs::read_dir(&cache).unwrap().count();
    assert!(entries > 0);
    let report = run(&sandbox, "hostile__list_path", json!({"path": "deep"})).await;
    assert_eq!(text(&report), "file.txt");
    for path in ["deep/cache", "deep/cache/new", "deep/./cache/../cache/new"] {
        let report = run(&sandbox, "hostile__write_path", json!({"path": path, "text": "x"})).await;
        assert_eq!(kind(&report), ToolErrorKind::Denied, "{path}: {report:?}");
        let report = run(&sandbox, "hostile__list_path", json!({"path": path})).await;
        assert!(error(&report).message.contains("No such file"), "{path}: {report:?}");
    }
    assert_eq!(fs::read_dir(&cache).unwrap().count(), entries);
}

#[tokio::test]
async fn paths_without_end_cost_the_host_little() {
    let bench = Bench::new();
    bench.write("folder/file.txt", "x");
    let sandbox = bench.hostile(Limits::default()).await;
    let path = format!("{}file.txt", "folder/../folder/".repeat(400));
    let report = run(&sandbox, "hostile__read_path", json!({"path": path})).await;
    assert_eq!(kind(&report), ToolErrorKind::Failed, "{report:?}");
    let path = format!("{}folder/file.txt", "folder/../".repeat(100));
    let report = run(&sandbox, "hostile__read_path", json!({"path": path})).await;
    assert_eq!(text(&report), "x");
    let read = report.receipt.unwrap().files_read;
    assert!(read.len() == 1 && read[0].len() < 600, "{read:?}");
    assert!(read[0].ends_with("folder/file.txt"), "{read:?}");
}
