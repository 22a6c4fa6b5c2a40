//! What a plugin gets of its grant, held by tables and by properties.

#![expect(clippy::unwrap_used, reason = "the helpers of tests panic as tests do")]

use belljar_capability::{
    Access, FolderGrant, GrantError, Granted, Limit, LimitSettings, Limits, MANIFEST_SIZE,
    Manifest, ManifestError, Mount, NetRequest, PluginGrant, SecretGrant, Surroundings,
    WantedFiles, WantedHost, WantedName, Wants,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, path::Path};

fn around() -> Surroundings<'static> {
    Surroundings {
        workspace: Some(Path::new("/home/user/project")),
        home: Some(Path::new("/home/user")),
        variable: |name| (name == "TZ").then(|| "UTC".to_owned()),
    }
}

fn folder(host: &str) -> FolderGrant {
    FolderGrant { host: host.to_owned(), guest: None }
}

fn folder_at(host: &str, guest: &str) -> FolderGrant {
    FolderGrant { host: host.to_owned(), guest: Some(guest.parse().unwrap()) }
}

fn mount(host: &str, guest: &str, access: Access) -> Mount {
    Mount { host: host.into(), guest: guest.parse().unwrap(), access }
}

fn resolve(grant: &PluginGrant, manifest: Option<&Manifest>) -> Result<Granted, GrantError> {
    grant.resolve(manifest, around(), Limits::default())
}

#[test]
fn folders_appear_where_they_lie_or_where_the_grant_says() {
    use Access::{Read, ReadWrite};
    let cases = [
        (folder("."), mount("/home/user/project", "", Read)),
        (folder("./"), mount("/home/user/project", "", Read)),
        (folder("data"), mount("/home/user/project/data", "data", Read)),
        (folder("a/./b/"), mount("/home/user/project/a/b", "a/b", Read)),
        (folder("/home/user/project/data"), mount("/home/user/project/data", "data", Read)),
        (folder("~/project/data"), mount("/home/user/project/data", "data", Read)),
        (folder_at("~/sets", "/sets"), mount("/home/user/sets", "sets", Read)),
        (folder_at("~", "/home"), mount("/home/user", "home", Read)),
        (folder_at("/srv/x", "x/y"), mount("/srv/x", "x/y", Read)),
        (folder_at("data", "elsewhere"), mount("/home/user/project/data", "elsewhere", Read)),
        // A name that only begins like a folder of the system.
        (folder_at("/process", "p"), mount("/process", "p", Read)),
    ];
    for (folder, expected) in cases {
        let grant = PluginGrant { read: vec![folder.clone()], ..PluginGrant::default() };
        let mounts = resolve(&grant, None).unwrap().mounts;
        assert_eq!(mounts, std::slice::from_ref(&expected), "{folder:?}");
        let grant = PluginGrant { write: vec![folder.clone()], ..PluginGrant::default() };
        let writable = Mount { access: ReadWrite, ..expected };
        assert_eq!(resolve(&grant, None).unwrap().mounts, [writable], "{folder:?}");
    }
}

#[test]
fn a_folder_that_means_nothing_or_nothing_safe_is_refused() {
    let cases = [
        (folder("/srv/x"), GrantError::NoGuestPath("/srv/x".into())),
        (folder("~/sets"), GrantError::NoGuestPath("~/sets".into())),
        (folder("/home/user/projects"), GrantError::NoGuestPath("/home/user/projects".into())),
        (folder("../x"), GrantError::Climbs("../x".into())),
        (folder("a/../../x"), GrantError::Climbs("a/../../x".into())),
        (folder("~/../x"), GrantError::Climbs("~/../x".into())),
        (folder("/home/user/project/../x"), GrantError::Climbs("/home/user/project/../x".into())),
        (folder_at("/proc", "p"), GrantError::SystemState("/proc".into())),
        (folder_at("/proc/self", "p"), GrantError::SystemState("/proc/self".into())),
        (folder_at("//proc//", "p"), GrantError::SystemState("//proc//".into())),
        (folder_at("/./sys/kernel", "p"), GrantError::SystemState("/./sys/kernel".into())),
        (folder_at("/dev", "p"), GrantError::SystemState("/dev".into())),
        (folder_at("data", "tmp"), GrantError::Temporary("tmp".parse().unwrap())),
        (folder("tmp/x"), GrantError::Temporary("tmp/x".parse().unwrap())),
    ];
    for (folder, expected) in cases {
        let grant = PluginGrant { read: vec![folder.clone()], ..PluginGrant::default() };
        assert_eq!(resolve(&grant, None).unwrap_err(), expected, "{folder:?}");
    }
    let two = [folder_at("/srv/a", "x"), folder_at("/srv/b", "x")];
    let grant = PluginGrant { read: two.to_vec(), ..PluginGrant::default() };
    let error = resolve(&grant, None).unwrap_err();
    assert_eq!(error, GrantError::SamePlace("x".parse().unwrap()));
    let nowhere = Surroundings { workspace: None, home: None, variable: |_| None };
    for (folder, expected) in [
        (folder("data"), GrantError::NoWorkspace("data".into())),
        (folder("~/x"), GrantError::NoHome("~/x".into())),
    ] {
        let grant = PluginGrant { read: vec![folder], ..PluginGrant::default() };
        assert_eq!(grant.resolve(None, nowhere, Limits::default()).unwrap_err(), expected);
    }
}

#[test]
fn a_folder_granted_twice_has_the_wider_right() {
    let grant = PluginGrant {
        read: vec![folder("data"), folder(".")],
        write: vec![folder("/home/user/project/data")],
        ..PluginGrant::default()
    };
    assert_eq!(
        resolve(&grant, None).unwrap().mounts,
        [
            mount("/home/user/project", "", Access::Read),
            mount("/home/user/project/data", "data", Access::ReadWrite),
        ]
    );
}

fn wants(files: &[(&str, bool)]) -> Manifest {
    let files = files
        .iter()
        .map(|(path, write)| WantedFiles {
            path: (*path).to_owned(),
            write: *write,
            why: String::new(),
        })
        .collect();
    Manifest { manifest: 1, wants: Wants { files, ..Wants::default() }, ..Manifest::default() }
}

#[test]
fn a_plugin_gets_the_part_of_its_grant_that_it_asked_for() {
    use Access::{Read, ReadWrite};
    let project = "/home/user/project";
    let data = "/home/user/project/data";
    // Granted for reading, for writing, asked for, got.
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [(&'a str, bool)], Vec<Mount>);
    let cases: [Case<'_>; 11] = [
        (&["."], &[], &[], vec![]),
        (&["."], &[], &[("/", false)], vec![mount(project, "", Read)]),
        (&["."], &[], &[("/", true)], vec![mount(project, "", Read)]),
        (&[], &["."], &[("/", false)], vec![mount(project, "", Read)]),
        (&[], &["."], &[("/", true)], vec![mount(project, "", ReadWrite)]),
        // More is granted than asked for.
        (&[], &["."], &[("data", true)], vec![mount(data, "data", ReadWrite)]),
        // Less is granted than asked for.
        (&["data"], &[], &[("/", true)], vec![mount(data, "data", Read)]),
        (&["data"], &[], &[("other", true)], vec![]),
        (&["data"], &[], &[("database", true)], vec![]),
        // The deeper grant counts where both are there.
        (
            &["."],
            &["data"],
            &[("/", true)],
            vec![mount(project, "", Read), mount(data, "data", ReadWrite)],
        ),
        (
            &["."],
            &["data"],
            &[("/", false), ("data", true)],
            vec![mount(project, "", Read), mount(data, "data", ReadWrite)],
        ),
    ];
    for (read, write, asked, expected) in cases {
        let folders = |paths: &[&str]| paths.iter().map(|path| folder(path)).collect();
        let grant =
            PluginGrant { read: folders(read), write: folders(write), ..PluginGrant::default() };
        let got = resolve(&grant, Some(&wants(asked))).unwrap().mounts;
        assert_eq!(got, expected, "{read:?} {write:?} {asked:?}");
    }
}

#[test]
fn names_hosts_and_secrets_have_to_be_asked_for_as_well() {
    let secret = |name: &str| {
        let text = format!(
            r#"{{"name":"{name}","from_env":"{name}","host":"api.example.com",
                "header":"authorization"}}"#
        );
        serde_json::from_str::<SecretGrant>(&text).unwrap()
    };
    let grant = PluginGrant {
        net: vec!["https://*.example.com".parse().unwrap()],
        env: BTreeMap::from([
            ("TZ".to_owned(), None),
            ("UNSET".to_owned(), None),
            ("LANG".to_owned(), Some("C".to_owned())),
        ]),
        secrets: vec![secret("API_KEY"), secret("OTHER_KEY")],
        ..PluginGrant::default()
    };
    let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let all = resolve(&grant, None).unwrap();
    assert_eq!(all.env, [variable("LANG", "C"), variable("TZ", "UTC")]);
    assert_eq!(all.secrets.len(), 2);
    let request = |url: &str| NetRequest::for_url("GET", url).unwrap();
    assert!(all.covers(&request("https://a.example.com/")));
    assert!(all.covers(&request("https://b.example.com/")));

    let manifest = Manifest::from_toml(
        r#"
        manifest = 1
        [wants]
        net = [{ host = "https://a.example.com" }, { host = "https://c.example.org" }]
        env = [{ name = "TZ", why = "to tell the time" }]
        secrets = [{ name = "API_KEY", host = "API.example.com", header = "Authorization" }]
        "#,
    )
    .unwrap();
    let part = resolve(&grant, Some(&manifest)).unwrap();
    assert_eq!(part.env, [variable("TZ", "UTC")]);
    assert_eq!(part.secrets, [secret("API_KEY")]);
    assert!(part.covers(&request("https://a.example.com/")));
    // Granted and not asked for, asked for and not granted.
    assert!(!part.covers(&request("https://b.example.com/")));
    assert!(!part.covers(&request("https://c.example.org/")));
}

#[test]
fn limits_are_set_by_grants_and_never_by_manifests() {
    let manifest =
        Manifest::from_toml("manifest = 1\n[wants.limits]\nmemory = { value = \"1GiB\" }").unwrap();
    assert_eq!(manifest.limits(), Ok(LimitSettings::from([(Limit::Memory, 1 << 30)])));
    let got = resolve(&PluginGrant::default(), Some(&manifest)).unwrap();
    assert_eq!(got.limits, Limits::default());
    let limits = LimitSettings::from([(Limit::Memory, 64 << 20)]);
    let grant = PluginGrant { limits, ..PluginGrant::default() };
    assert_eq!(resolve(&grant, Some(&manifest)).unwrap().limits.memory, 64 << 20);
}

#[test]
fn a_manifest_is_read_strictly() {
    let syntax = |text: &str| match Manifest::from_toml(text) {
        Err(ManifestError::Syntax(message)) => message,
        other => panic!("{text}: {other:?}"),
    };
    let wrong = |text: &str| match Manifest::from_toml(text) {
        Err(ManifestError::Wrong(message)) => message,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(Manifest::from_toml("manifest = 2"), Err(ManifestError::Format(2)));
    assert!(syntax("").contains("missing field `manifest`"));
    assert!(syntax("manifest = 1\nname = \"evil\"").contains("unknown field `name`"));
    assert!(syntax("manifest = 1\n[wants]\nnett = []").starts_with("line 3: unknown field `nett`"));
    assert!(syntax("manifest = 1\n[wants]\nnet = [{ host = \"ftp://x\" }]").starts_with("line 3"));
    let cases = [
        (
            "version = \"12345678901234567890123456789012345678901234567890123456789012345\"",
            "version",
        ),
        ("description = \"two\\nlines\"", "one line"),
        ("wants.files = [{ path = \"../x\" }]", "climbs"),
        ("wants.files = [{ path = \"x\" }, { path = \"/x/\" }]", "twice"),
        ("wants.files = [{ path = \"a\\u0000b\" }]", "control character"),
        ("wants.env = [{ name = \"A B\" }]", "no variable's name"),
        ("wants.env = [{ name = \"\" }]", "no variable's name"),
        ("wants.secrets = [{ name = \"1\", host = \"h\", header = \"x\" }]", "no variable's name"),
        ("wants.limits = { time = { value = \"1s\" } }", "there is no limit `time`"),
        ("wants.limits = { memory = { value = \"lots\" } }", "is not a size"),
        ("wants.limits = { deadline = { value = \"40h\" } }", "out of range"),
    ];
    for (line, says) in cases {
        let message = wrong(&format!("manifest = 1\n{line}"));
        assert!(message.contains(says), "{line}: {message}");
    }
    let why = "x".repeat(301);
    assert!(
        wrong(&format!("manifest = 1\nwants.files = [{{ path = \"x\", why = \"{why}\" }}]"))
            .contains("longer than 300 bytes")
    );
    let many: Vec<_> = (0..101).map(|n| format!("{{ name = \"A{n}\" }}")).collect();
    assert!(
        wrong(&format!("manifest = 1\nwants.env = [{}]", many.join(","))).contains("more than 100")
    );
    let long = vec![b' '; MANIFEST_SIZE + 1];
    assert_eq!(Manifest::from_section(&long), Err(ManifestError::TooLong(MANIFEST_SIZE + 1)));
    for bytes in [&b""[..], b"{", b"[]", b"\xff", b"{\"manifest\":1}x"] {
        assert!(
            matches!(Manifest::from_section(bytes), Err(ManifestError::Syntax(_))),
            "{bytes:?}"
        );
    }
}

#[test]
fn a_manifest_is_the_same_in_both_forms() {
    let manifest = Manifest::from_toml(
        r#"
        manifest = 1
        version = "1.2.0"
        description = "Weather forecasts"
        [[tools]]
        name = "forecast"
        description = "Tells the weather"
        input_schema = { type = "object" }
        hints = { read_only = true, open_world = true }
        [wants]
        files = [{ path = "data", why = "stations" }, { path = "out", write = true }]
        net = [{ host = "https://api.open-meteo.com" }]
        limits = { deadline = { value = "10s", why = "a slow server" } }
        "#,
    )
    .unwrap();
    assert_eq!(Manifest::from_section(&manifest.to_section()), Ok(manifest));
}

fn any_paths() -> impl Strategy<Value = Vec<String>> {
    let part = prop::sample::select(["a", "b", "ab"].as_slice());
    let path = prop::collection::vec(part, 0..3).prop_map(|parts| match parts.join("/") {
        root if root.is_empty() => ".".to_owned(),
        path => path,
    });
    prop::collection::vec(path, 0..4)
}

fn any_grant() -> impl Strategy<Value = PluginGrant> {
    (any_paths(), any_paths(), prop::collection::btree_set("[A-C]", 0..3)).prop_map(
        |(read, write, env)| PluginGrant {
            read: read.iter().map(|path| folder(path)).collect(),
            write: write.iter().map(|path| folder(path)).collect(),
            net: vec!["https://a.example".parse().unwrap()],
            env: env.into_iter().map(|name| (name, Some("x".to_owned()))).collect(),
            ..PluginGrant::default()
        },
    )
}

fn any_manifest() -> impl Strategy<Value = Manifest> {
    (any_paths(), any_paths(), prop::collection::btree_set("[A-C]", 0..3), any::<bool>()).prop_map(
        |(read, write, env, net)| {
            let mut files: Vec<WantedFiles> = Vec::new();
            let asked = read.iter().map(|p| (p, false)).chain(write.iter().map(|p| (p, true)));
            for (path, write) in asked {
                if files.iter().all(|want| want.path != *path) {
                    files.push(WantedFiles { path: path.clone(), write, why: String::new() });
                }
            }
            let host = "https://a.example".parse().unwrap();
            Manifest {
                manifest: 1,
                wants: Wants {
                    files,
                    env: env
                        .into_iter()
                        .map(|name| WantedName { name, why: String::new() })
                        .collect(),
                    net: net.then(|| WantedHost { host, why: String::new() }).into_iter().collect(),
                    ..Wants::default()
                },
                ..Manifest::default()
            }
        },
    )
}

/// How far a path of the workspace is open: by the deepest mount above it.
fn right(granted: &Granted, path: &str) -> Option<Access> {
    let path = path.parse().unwrap();
    let above = granted.mounts.iter().filter(|mount| mount.guest.rest_of(&path).is_some());
    above.max_by_key(|mount| mount.guest.as_str().len()).map(|mount| mount.access)
}

const PATHS: [&str; 8] = ["", "x", "a", "a/b", "a/b/x", "ab", "b/a", "b"];

proptest! {
    #[test]
    fn what_a_plugin_gets_is_never_wider_than_its_grant(
        grant in any_grant(), manifest in any_manifest(),
    ) {
        let all = resolve(&grant, None).unwrap();
        let part = resolve(&grant, Some(&manifest)).unwrap();
        for path in PATHS {
            prop_assert!(right(&part, path) <= right(&all, path), "{path}: {:?}", part.mounts);
        }
        prop_assert!(part.env.iter().all(|variable| all.env.contains(variable)));
        // A folder appears at the place of the workspace that it comes from.
        for mount in &part.mounts {
            prop_assert_eq!(
                &mount.host,
                &Path::new("/home/user/project").join(mount.guest.as_str())
            );
        }
    }

    #[test]
    fn what_a_plugin_gets_is_never_wider_than_what_it_asked_for(
        grant in any_grant(), manifest in any_manifest(),
    ) {
        let part = resolve(&grant, Some(&manifest)).unwrap();
        // As if the whole workspace had been granted for writing.
        let whole = PluginGrant { write: vec![folder(".")], ..PluginGrant::default() };
        let asked = resolve(&whole, Some(&manifest)).unwrap();
        for path in PATHS {
            prop_assert!(right(&part, path) <= right(&asked, path), "{path}: {:?}", part.mounts);
        }
        let request = NetRequest::for_url("GET", "https://a.example/").unwrap();
        prop_assert_eq!(part.covers(&request), !manifest.wants.net.is_empty());
    }

    #[test]
    fn adding_to_a_grant_never_takes_anything_away(grant in any_grant(), more in any_grant()) {
        let before = resolve(&grant, None).unwrap();
        let mut wider = grant;
        wider.extend(PluginGrant { read: Vec::new(), ..more });
        let after = resolve(&wider, None).unwrap();
        for path in PATHS {
            prop_assert!(right(&before, path) <= right(&after, path), "{path}");
        }
    }
}
