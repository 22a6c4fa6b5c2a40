//! Manifests and standings: what a plugin asks for, what people said, and what of it counts.

use crate::support::{Bench, bundled, call, error, kind, run, text, writing};
use belljar_capability::{
    Access, Binding, FolderGrant, Manifest, PluginGrant, Standing, WantedFiles, Wants,
};
use belljar_sandbox::{
    BundledPlugin, Declared, LoadError, PluginFolder, PluginInfo, Sandbox, SandboxConfig, digest,
    inspect_bundled, inspect_bytes, pack,
};
use belljar_test_guests::{HOSTILE, NOOP, Odd, made, odd};
use belljar_types::{ToolErrorKind, Toolbox};
use serde_json::json;
use std::{collections::BTreeMap, fs};

fn manifest(text: &str) -> Manifest {
    Manifest::from_toml(&format!("manifest = 1\n{text}")).unwrap()
}

fn packed(component: &[u8], text: &str) -> Vec<u8> {
    pack(component, &manifest(text)).unwrap()
}

/// The workspace for writing, granted to these bytes.
fn granted(bytes: &[u8], beside: Option<&[u8]>) -> BTreeMap<String, PluginGrant> {
    let binding = Some(Binding::Digest(digest(bytes, beside)));
    BTreeMap::from([("hostile".to_owned(), PluginGrant { binding, ..writing() })])
}

async fn open(bench: &Bench, grants: BTreeMap<String, PluginGrant>) -> Sandbox {
    Sandbox::open(SandboxConfig { grants, ..bench.config() }).await.unwrap()
}

/// A sandbox whose plugins lie in a folder of the user's own, so that nothing is offered unseen.
async fn open_own(bench: &Bench, grants: BTreeMap<String, PluginGrant>) -> Sandbox {
    let folders = vec![PluginFolder { path: bench.plugins(), named: false }];
    Sandbox::open(SandboxConfig { grants, folders, ..bench.config() }).await.unwrap()
}

fn info(sandbox: &Sandbox, name: &str) -> PluginInfo {
    sandbox.plugins().iter().find(|info| info.name == name).unwrap().clone()
}

#[test]
fn the_bundled_plugins_say_what_they_want() {
    for (name, write) in [("files", true), ("search", false)] {
        let plugin: BundledPlugin =
            bundled().into_iter().find(|plugin| plugin.name == name).unwrap();
        let inspected = inspect_bundled(&plugin).unwrap();
        let manifest = inspected.declared.manifest.clone().unwrap();
        let [files] = manifest.wants.files.as_slice() else { panic!("{manifest:?}") };
        assert_eq!((files.path.as_str(), files.write), (".", write), "{name}");
        assert!(!files.why.is_empty() && !manifest.description.is_empty(), "{manifest:?}");
        assert_eq!(manifest.version, env!("CARGO_PKG_VERSION"));
        assert_eq!(inspected.digest, plugin.digest);
        assert!(inspected.declared.reach().iter().any(|word| word == "files"), "{inspected:?}");
        assert_eq!(inspected.tools, None);
    }
}

#[tokio::test]
async fn the_bundled_search_reads_the_workspace_and_cannot_write_it() {
    let bench = Bench::new();
    let sandbox =
        Sandbox::open(SandboxConfig { bundled: bundled(), ..bench.config() }).await.unwrap();
    let access = |name| info(&sandbox, name).granted.unwrap().mounts[0].access;
    assert_eq!((access("files"), access("search")), (Access::ReadWrite, Access::Read));
}

#[tokio::test]
async fn what_a_plugin_gets_is_what_it_asked_for_of_what_was_granted() {
    let read = json!({"path": "a.txt"});
    let write = json!({"path": "new.txt", "text": "x"});
    for (wants, may_read, may_write) in [
        ("", false, false),
        ("[[wants.files]]\npath = \".\"", true, false),
        ("[[wants.files]]\npath = \"/\"\nwrite = true", true, true),
        ("[[wants.files]]\npath = \"./\"\nwrite = true\nwhy = \"to write\"", true, true),
    ] {
        let bench = Bench::new();
        bench.write("a.txt", "content");
        let bytes = packed(HOSTILE.bytes, wants);
        bench.add("hostile.wasm", &bytes);
        let sandbox = open(&bench, granted(&bytes, None)).await;
        let report = run(&sandbox, "hostile__read_path", read.clone()).await;
        assert_eq!(report.outcome.is_ok(), may_read, "{wants}: {report:?}");
        let report = run(&sandbox, "hostile__write_path", write.clone()).await;
        assert_eq!(report.outcome.is_ok(), may_write, "{wants}: {report:?}");
        assert_eq!(bench.workspace().join("new.txt").exists(), may_write, "{wants}");
    }
    // And asking grants nothing.
    let bench = Bench::new();
    bench.write("a.txt", "content");
    let bytes = packed(HOSTILE.bytes, "[[wants.files]]\npath = \".\"\nwrite = true");
    bench.add("hostile.wasm", &bytes);
    let sandbox = open(&bench, BTreeMap::new()).await;
    assert!(run(&sandbox, "hostile__read_path", read).await.outcome.is_err());
}

const TOOLS: &str = "\
version = \"1.2.3\"
[[tools]]
name = \"sound\"
description = \"Answers `ok`.\"
input_schema = { type = \"object\" }
hints = { read_only = true }
";

#[tokio::test]
async fn a_plugin_whose_manifest_tells_its_tools_is_not_asked_for_them() {
    // Asked, each of these would never answer, or end.
    for kind in [Odd::ListSpins, Odd::ListSleeps, Odd::ListTraps, Odd::NoTools] {
        let bench = Bench::new();
        bench.add("told.wasm", packed(&odd(kind), TOOLS));
        let sandbox = open(&bench, BTreeMap::new()).await;
        assert_eq!(sandbox.skipped().len(), 0, "{kind:?}: {:?}", sandbox.skipped());
        let [tool] = &*sandbox.tools() else { panic!("{kind:?}: one tool") };
        assert_eq!((&*tool.name, tool.hints.read_only), ("told__sound", true));
        assert_eq!(text(&run(&sandbox, "told__sound", json!({})).await), "ok", "{kind:?}");
    }
}

#[tokio::test]
async fn tools_in_a_manifest_are_held_to_the_rules_of_all_tools() {
    let tool = |name: &str, rest: &str| format!("[[tools]]\nname = \"{name}\"\n{rest}\n");
    let sound = "description = \"x\"\ninput_schema = { type = \"object\" }";
    let long = format!(
        "description = \"{}\"\ninput_schema = {{ type = \"object\" }}",
        "x".repeat(17 << 10)
    );
    let cases = [
        ("tools = []".to_owned(), "offers no tool"),
        (tool("1st", sound), "names a tool `1st`"),
        (tool("a b", sound), "names a tool `a b`"),
        (tool("\u{441}ound", sound), "names a tool"),
        (format!("{}{}", tool("Twice", sound), tool("twice", sound)), "names two tools `twice`"),
        (tool("a", &long), "its description is longer than"),
        (tool("a", "description = \" \"\ninput_schema = { type = \"object\" }"), "no description"),
        (tool("a", "description = \"x\"\ninput_schema = { type = \"string\" }"), "is not `object`"),
        (tool("a", "description = \"x\"\ninput_schema = [1]"), "is not a JSON object"),
        ((0..201).map(|n| tool(&format!("t{n}"), sound)).collect(), "offers 201 tools"),
    ];
    for (text, says) in cases {
        let bench = Bench::new();
        bench.add("told.wasm", packed(NOOP.bytes, &text));
        let sandbox = open(&bench, BTreeMap::new()).await;
        let [skipped] = sandbox.skipped().try_into().unwrap();
        assert!(skipped.reason.to_string().contains(says), "{says}: {}", skipped.reason);
        assert_eq!(sandbox.tools().len(), 0);
    }
}

#[tokio::test]
async fn a_manifest_that_is_none_keeps_the_plugin_out() {
    let section = |data: &[u8]| made::with_section(NOOP.bytes, "belljar:manifest", data);
    let twice = section(b"{\"manifest\":1}");
    let twice = made::with_section(&twice, "belljar:manifest", b"{\"manifest\":1}");
    let deep = format!("{{\"manifest\":1,\"tools\":{}{}}}", "[".repeat(500), "]".repeat(500));
    let cases = [
        (section(b""), "cannot be read"),
        (section(b"not json"), "cannot be read"),
        (section(b"{\"manifest\":2}"), "the format 2"),
        (section(b"{\"manifest\":1,\"wants\":{\"disk\":1}}"), "unknown field"),
        (section(b"{\"manifest\":1,\"wants\":{\"files\":[{\"path\":\"../x\"}]}}"), "climbs out"),
        (
            section(b"{\"manifest\":1,\"wants\":{\"limits\":{\"time\":{\"value\":\"1\"}}}}"),
            "no limit",
        ),
        (section(deep.as_bytes()), "cannot be read"),
        (section(&vec![b' '; (1 << 20) + 1]), "one has at most"),
        (twice, "two manifests"),
    ];
    for (bytes, says) in cases {
        let bench = Bench::new();
        bench.add("told.wasm", &bytes);
        let sandbox = open(&bench, BTreeMap::new()).await;
        let [skipped] = sandbox.skipped().try_into().unwrap();
        assert!(skipped.reason.to_string().contains(says), "{says}: {}", skipped.reason);
        assert_eq!(
            inspect_bytes("told", &bytes, None).unwrap_err().to_string(),
            skipped.reason.to_string()
        );
    }
}

#[test]
fn only_the_manifest_of_the_component_itself_counts() {
    // One deeper inside, as a plugin may carry that is made of another.
    let inner = packed(NOOP.bytes, "version = \"inner\"");
    assert_eq!(Declared::read(&made::wrapped(&inner), None).unwrap().manifest, None);
    // Its own stands before that of the module inside it.
    let [files] = bundled().into_iter().filter(|b| b.name == "files").collect::<Vec<_>>()[..]
    else {
        panic!("one plugin of the name");
    };
    let outer = packed(files.bytes, "version = \"outer\"");
    let read = |bytes: &[u8]| Declared::read(bytes, None).unwrap().manifest.unwrap().version;
    assert_eq!(read(&outer), "outer");
    // And packed again, there is still one.
    let again = packed(&outer, "version = \"again\"");
    assert_eq!(read(&again), "again");
    assert!(again.len() < outer.len() + 10, "{} {}", again.len(), outer.len());
}

#[tokio::test]
async fn a_manifest_beside_the_component_is_part_of_what_was_allowed() {
    let bench = Bench::new();
    bench.write("a.txt", "content");
    bench.add("hostile.wasm", HOSTILE.bytes);
    let text = b"manifest = 1\n[[wants.files]]\npath = \".\"\n".as_slice();
    let toml = bench.plugins().join("hostile.toml");
    fs::write(&toml, text).unwrap();
    let read = json!({"path": "a.txt"});
    let write = json!({"path": "new.txt", "text": "x"});

    // What was allowed with it is read-only, as the manifest says.
    let sandbox = open_own(&bench, granted(HOSTILE.bytes, Some(text))).await;
    assert_eq!(info(&sandbox, "hostile").standing, Some(Standing::Granted));
    assert_eq!(text_of(&sandbox, "hostile__read_path", read.clone()).await, "content");
    assert!(run(&sandbox, "hostile__write_path", write).await.outcome.is_err());

    // With another manifest, without one, or with one where none was, it is another plugin.
    let wider = b"manifest = 1\n[[wants.files]]\npath = \".\"\nwrite = true\n".as_slice();
    for beside in [Some(wider), Some(b"manifest = 1\n".as_slice()), None] {
        match beside {
            Some(beside) => fs::write(&toml, beside).unwrap(),
            None => fs::remove_file(&toml).unwrap(),
        }
        let sandbox = open_own(&bench, granted(HOSTILE.bytes, Some(text))).await;
        let from = digest(HOSTILE.bytes, Some(text));
        let changed = Standing::Changed { from, named: false };
        assert_eq!(info(&sandbox, "hostile").standing, Some(changed), "{beside:?}");
        assert_eq!(sandbox.tools().len(), 0, "{beside:?}");
    }
    fs::write(&toml, text).unwrap();
    let sandbox = open_own(&bench, granted(HOSTILE.bytes, None)).await;
    assert_eq!(sandbox.tools().len(), 0);

    // Two manifests are one too many.
    bench.add("hostile.wasm", packed(HOSTILE.bytes, ""));
    let sandbox = open_own(&bench, BTreeMap::new()).await;
    let [skipped] = sandbox.skipped().try_into().unwrap();
    assert!(matches!(&*skipped.reason, LoadError::TwoManifests(name) if name == "hostile.toml"));
}

async fn text_of(sandbox: &Sandbox, tool: &str, arguments: serde_json::Value) -> String {
    text(&run(sandbox, tool, arguments).await).to_owned()
}

#[tokio::test]
async fn what_nobody_allowed_is_listed_and_not_offered() {
    let bench = Bench::new();
    bench.add("hostile.wasm", HOSTILE.bytes);
    let sandbox = open_own(&bench, BTreeMap::new()).await;
    assert_eq!(sandbox.tools().len(), 0);
    assert_eq!(sandbox.withheld().len(), 0);
    let listed = info(&sandbox, "hostile");
    assert_eq!(listed.standing, Some(Standing::Unseen));
    assert_eq!(listed.digest.as_deref(), Some(HOSTILE.digest));
    assert_eq!(listed.size, Some(HOSTILE.bytes.len() as u64));
    assert!(listed.tools.iter().any(|tool| &*tool.name == "hostile__count"));
    let [notice] = sandbox.notices() else { panic!("{:?}", sandbox.notices()) };
    assert!(notice.contains("belljar plugin grant hostile"), "{notice}");
    for name in ["hostile__count", "hostile__read_path", "hostile__spin"] {
        let error = sandbox.prepare(&call(name, json!({}))).err().unwrap();
        assert_eq!(error.kind, ToolErrorKind::Denied, "{error}");
        assert_eq!(error.remedy.as_deref(), Some("belljar plugin grant hostile"));
    }
}

#[tokio::test]
async fn one_byte_more_or_less_is_another_plugin() {
    let longer = made::with_section(HOSTILE.bytes, "note", b"");
    let mut other = made::with_section(HOSTILE.bytes, "note", b"x");
    let flipped = {
        let last = other.len() - 1;
        other[last] = b'y';
        other.clone()
    };
    for bytes in [longer, flipped, packed(HOSTILE.bytes, "")] {
        let bench = Bench::new();
        bench.write("a.txt", "content");
        bench.add("hostile.wasm", &bytes);
        let grants = granted(HOSTILE.bytes, None);
        let sandbox = open_own(&bench, grants.clone()).await;
        let from = HOSTILE.digest.to_owned();
        let changed = Standing::Changed { from, named: false };
        assert_eq!(info(&sandbox, "hostile").standing, Some(changed));
        assert_eq!(sandbox.tools().len(), 0);
        let [notice] = sandbox.notices() else { panic!("{:?}", sandbox.notices()) };
        assert!(notice.contains("has changed since it was allowed"), "{notice}");
        let error = sandbox.prepare(&call("hostile__count", json!({}))).err().unwrap();
        assert_eq!(error.kind, ToolErrorKind::Denied);
        // In a folder that was named for this run it is offered, and its grants are not.
        let sandbox = open(&bench, grants).await;
        let report = run(&sandbox, "hostile__read_path", json!({"path": "a.txt"})).await;
        assert!(report.outcome.is_err(), "{report:?}");
        assert_eq!(text(&run(&sandbox, "hostile__count", json!({})).await), "1");
    }
}

#[tokio::test]
async fn a_grant_that_cannot_be_given_gives_nothing_and_hides_nothing() {
    for (folder, says) in [
        ("../x", "climbs"),
        ("/proc/self", "the system's own state"),
        ("/elsewhere", "lies outside the workspace"),
    ] {
        let bench = Bench::new();
        bench.write("a.txt", "content");
        bench.add("hostile.wasm", HOSTILE.bytes);
        let mut grants = granted(HOSTILE.bytes, None);
        let bad = FolderGrant { host: folder.to_owned(), guest: None };
        grants.get_mut("hostile").unwrap().read.push(bad);
        let sandbox = open_own(&bench, grants).await;
        assert!(sandbox.tools().iter().any(|tool| &*tool.name == "hostile__count"));
        let [notice] = sandbox.notices() else { panic!("{:?}", sandbox.notices()) };
        assert!(
            notice.contains("does not get all that its grant says") && notice.contains(says),
            "{notice}"
        );
        assert_eq!(info(&sandbox, "hostile").granted.unwrap().mounts, []);
        let report = run(&sandbox, "hostile__read_path", json!({"path": "a.txt"})).await;
        assert!(report.outcome.is_err(), "{report:?}");
    }
}

#[test]
fn imports_are_told_in_words_and_wants_beside_them() {
    let declared = Declared::read(HOSTILE.bytes, None).unwrap();
    let words = declared.reach();
    for word in ["files", "clocks", "the run's log and progress", "streams"] {
        assert!(words.iter().any(|known| known == word), "{word}: {words:?}");
    }
    assert!(words.iter().any(|word| word.starts_with("sockets")), "{words:?}");
    assert_eq!(declared.interfaces, ["0.1.0"]);
    let wants = Wants {
        files: vec![WantedFiles { path: "data".into(), write: true, why: String::new() }],
        ..Wants::default()
    };
    let manifest = Manifest { wants, ..manifest("") };
    let bytes = pack(HOSTILE.bytes, &manifest).unwrap();
    assert_eq!(inspect_bytes("x", &bytes, None).unwrap().declared.manifest, Some(manifest));
}

#[tokio::test]
async fn a_failure_is_remembered_and_a_changed_limit_asks_again() {
    let bench = Bench::new();
    bench.add("odd.wasm", odd(Odd::ListSpins));
    let own = |fuel| {
        let limits = belljar_capability::Limits { fuel, ..Default::default() };
        SandboxConfig { cache: Some(bench.cache()), limits, ..bench.config() }
    };
    let reason = async |fuel| {
        let sandbox = Sandbox::open(own(fuel)).await.unwrap();
        let [skipped] = sandbox.skipped().try_into().unwrap();
        skipped.reason.to_string()
    };
    let first = reason(50_000_000).await;
    assert!(first.contains("could not be asked for its tools: out_of_fuel"), "{first}");
    let second = reason(50_000_000).await;
    assert!(second.starts_with(&first) && second.contains("found at an earlier start"), "{second}");
    let third = reason(60_000_000).await;
    assert!(third.contains("60000000") && !third.contains("earlier start"), "{third}");
}

#[tokio::test]
async fn a_tool_of_a_plugin_that_is_not_as_it_was_says_so() {
    let bench = Bench::new();
    bench.add("hostile.wasm", HOSTILE.bytes);
    let sandbox = open(&bench, BTreeMap::new()).await;
    let report = run(&sandbox, "hostile__fail", json!({"kind": "failed", "message": "m"})).await;
    assert_eq!((kind(&report), error(&report).message.as_str()), (ToolErrorKind::Failed, "m"));
}
