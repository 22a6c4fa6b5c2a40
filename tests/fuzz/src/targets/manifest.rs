//! Manifests: what a plugin asks for, in a custom section and as TOML.

use super::{Target, Verdict};
use crate::generate;
use belljar_capability::{
    Access, Granted, GuestPath, MANIFEST_SIZE, Manifest, ManifestError, Mount,
};

pub(super) const SECTION: Target = Target {
    name: "manifest-section",
    check: section,
    generate: |rng| generate::text(rng, &JSON_SAMPLES, &JSON_WORDS),
};

pub(super) const TOML: Target = Target {
    name: "manifest-toml",
    check: toml,
    generate: |rng| generate::text(rng, &TOML_SAMPLES, &TOML_WORDS),
};

const JSON_SAMPLES: [&str; 3] = [
    r#"{"manifest":1,"version":"0.2.0","description":"Weather","wants":{"files":[{"path":"data","write":true,"why":"keeps its cache"},{"path":"/data/in"}],"net":[{"host":"GET https://api.example.com/v1","why":"forecasts"},{"host":"public"}],"env":[{"name":"LANG"}],"secrets":[{"name":"KEY","host":"api.example.com","header":"authorization","why":"its key"}],"limits":{"deadline":{"value":"1m 30s","why":"slow"},"memory":{"value":"64MiB"}}}}"#,
    r#"{"manifest":1,"tools":[{"name":"now","title":"Now","description":"The weather now.","input_schema":{"type":"object","properties":{"place":{"type":"string"}}},"hints":{"read_only":true,"open_world":true}}]}"#,
    r#"{"manifest":1}"#,
];

const JSON_WORDS: [&str; 24] = [
    r#""manifest":"#,
    "1",
    "2",
    r#","wants":{}"#,
    r#""files":["#,
    r#"{"path":"..","write":true}"#,
    r#"{"path":"a/../b"}"#,
    r#"{"path":""}"#,
    r#","net":[{"host":"*"}]"#,
    r#"{"host":"https://*.com"}"#,
    r#"{"host":"http://0x7f.1"}"#,
    "\\u0000",
    "\\ud800",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":",
    "null",
    "true",
    r#","limits":{"fuel":{"value":"0"}}"#,
    r#"{"value":"99999999999TiB"}"#,
    "1e400",
    "}",
    "]",
    "{",
    "[",
];

const TOML_SAMPLES: [&str; 2] = [
    "manifest = 1\nversion = \"0.2.0\"\ndescription = \"Weather\"\n\n[[wants.files]]\npath = \"data\"\nwrite = true\nwhy = \"keeps its cache\"\n\n[[wants.net]]\nhost = \"GET,HEAD https://api.example.com:8443/v1\"\n\n[wants.limits]\ndeadline = { value = \"10s\" }\n",
    "manifest = 1\n[[tools]]\nname = \"now\"\ndescription = \"The weather.\"\ninput_schema = { type = \"object\" }\nhints = { read_only = true }\n[[wants.secrets]]\nname = \"KEY\"\nhost = \"a.example\"\nheader = \"x-key\"\n",
];

const TOML_WORDS: [&str; 20] = [
    "manifest = 1\n",
    "[wants]\n",
    "[[wants.files]]\n",
    "path = \"..\"\n",
    "path = '''\na'''\n",
    "net = [{ host = \"public\" }]\n",
    "a.b.c.d = 1\n",
    "1979-05-27T07:32:00Z",
    "inf",
    "nan",
    "0x7f",
    "\"\\u0000\"",
    "{ a = { a = { a = 1 } } }",
    "\"\"\"",
    "'''",
    "#",
    "[",
    "]",
    "[[",
    "why = \"\"\n",
];

fn section(input: &[u8]) -> Verdict {
    let read = Manifest::from_section(input);
    assert_eq!(
        matches!(read, Err(ManifestError::TooLong(_))),
        input.len() > MANIFEST_SIZE,
        "a manifest is too long where it is longer than it may be"
    );
    check(read)
}

fn toml(input: &[u8]) -> Verdict {
    match std::str::from_utf8(input) {
        Ok(text) => check(Manifest::from_toml(text)),
        Err(_) => Verdict::Refused,
    }
}

fn check(read: Result<Manifest, ManifestError>) -> Verdict {
    let manifest = match read {
        Ok(manifest) => manifest,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return Verdict::Refused;
        }
    };
    assert!(manifest.limits().is_ok(), "the limits of a manifest that was taken can be read");
    let written = manifest.to_section();
    assert_eq!(Manifest::from_section(&written).as_ref(), Ok(&manifest), "it is what was written");
    never_widens(&manifest);
    Verdict::Taken
}

/// What a plugin gets is never more than what was granted.
#[expect(clippy::unwrap_used, reason = "guest paths that are known to be ones")]
fn never_widens(manifest: &Manifest) {
    let mount = |guest: &str, access| Mount {
        host: format!("/host/{guest}").into(),
        guest: guest.parse().unwrap(),
        access,
    };
    let mounts = vec![
        mount("", Access::Read),
        mount("data", Access::ReadWrite),
        mount("data/in", Access::Read),
    ];
    // How far a path is open: as far as the deepest mount above it.
    fn access(mounts: &[Mount], path: &GuestPath) -> Option<Access> {
        let above = mounts.iter().filter(|mount| mount.guest.rest_of(path).is_some());
        above.max_by_key(|mount| mount.guest.as_str().len()).map(|mount| mount.access)
    }
    let granted = Granted { mounts: mounts.clone(), ..Granted::default() }.asked_for(manifest);
    let paths = granted.mounts.iter().map(|mount| mount.guest.clone());
    for path in paths.chain(mounts.iter().map(|mount| mount.guest.clone())) {
        let (given, before) = (access(&granted.mounts, &path), access(&mounts, &path));
        assert!(given <= before, "`{path}` is open as {given:?}, and was granted as {before:?}");
    }
}
