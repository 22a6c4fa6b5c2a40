//! The user's configuration file and the variables.

use super::{Target, Verdict};
use crate::generate;
use belljar_workspace::{Flags, Loaded, Places, Sources, load};
use std::{fs, path::Path};
use tempfile::TempDir;

/// Variables, one a line, then `---`, then the file.
pub(super) const TARGET: Target =
    Target { name: "configuration", check, generate: |rng| generate::text(rng, &SAMPLES, &WORDS) };

const SAMPLES: [&str; 3] = [
    "BELLJAR_MAX_TURNS=3\n---\nmodel = \"anthropic/claude\"\npermission_mode = \"plan\"\nmax_turns = 12\nmax_output_tokens = 4096\n\n[providers.local]\nprotocol = \"openai\"\nbase_url = \"http://127.0.0.1:8080/v1\"\napi_key_env = \"LOCAL_KEY\"\n\n[rules]\nallow = [\"files/read_file\", \"read_*\"]\nask = [\"files/*(path=src/**)\"]\ndeny = [\"*/*(path=**/.env)\"]\n",
    "---\n[plugins.weather]\ndigest = \"sha256:00\"\nread = [\"data\", { host = \"/srv/d\", guest = \"/d\" }]\nwrite = [\"out\"]\nnet = [\"GET https://api.example.com/v1\"]\nenv = [\"LANG\"]\nsecrets = [{ name = \"KEY\", from_env = \"KEY\", host = \"api.example.com\", header = \"authorization\", format = \"Bearer {}\" }]\nlimits = { deadline = \"10s\", memory = \"64MiB\", fuel = 1000 }\n",
    "BELLJAR_MODEL=a/b\nBELLJAR_PERMISSION_MODE=bypass\nBELLJAR_ODD=\n---\n",
];

const WORDS: [&str; 26] = [
    "\n---\n",
    "BELLJAR_",
    "BELLJAR_MODEL=",
    "model = ",
    "max_turns = ",
    "0\n",
    "-1\n",
    "[rules]\n",
    "allow = [",
    "deny = [\"",
    "\"(\"",
    "[providers.",
    "[providers.\"a b\"]\n",
    "base_url = ",
    "\"http://user:pass@host/\"",
    "api_key_env = \"sk-123\"\n",
    "[plugins]\n",
    "dev = ",
    "\"\"\"\n",
    "trust = true\n",
    "1979-05-27",
    "{ a = 1 }",
    "[[",
    "]]\n",
    "''",
    "= ",
];

#[expect(clippy::expect_used, reason = "a temporary folder that can be written")]
fn check(input: &[u8]) -> Verdict {
    let split = input.windows(4).position(|window| window == b"---\n").unwrap_or(0);
    let (variables, file) = input.split_at(split);
    let file = file.strip_prefix(b"---\n").unwrap_or(file);
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("config.toml");
    fs::write(&path, file).expect("a file in it");
    let variables = String::from_utf8_lossy(variables);
    let once = resolve(folder.path(), &path, &variables);
    if let Ok(loaded) = &once {
        let rules = &loaded.config.rules;
        for rule in rules.allow.iter().chain(&rules.ask).chain(&rules.deny) {
            assert_eq!(rule.text().parse().as_ref(), Ok(rule), "a rule is what was written");
        }
    }
    assert_eq!(resolve(folder.path(), &path, &variables), once, "the same is read alike");
    if once.is_ok() { Verdict::Taken } else { Verdict::Refused }
}

/// The settings, or the message that says what is wrong.
fn resolve(folder: &Path, file: &Path, variables: &str) -> Result<Loaded, String> {
    let variable = |line: &str| {
        let (name, value) = line.split_once('=')?;
        Some((name.into(), value.into()))
    };
    let sources = Sources {
        places: &Places::below(folder),
        file: Some(file),
        workspace: None,
        built_in: &["anthropic", "openai"],
        environment: variables.lines().filter_map(variable).collect(),
        flags: Flags::default(),
    };
    load(sources).map_err(|error| error.to_string())
}
