use super::*;
use belljar_capability::{GrantPart, SecretGrant};
use std::fs;

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "sha256:ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

struct Home {
    _guard: tempfile::TempDir,
    places: Places,
    store: GrantStore,
}

impl Home {
    fn new(text: &str) -> Self {
        let guard = tempfile::tempdir().unwrap();
        let places = Places::below(&guard.path().canonicalize().unwrap());
        private_dir(&places.config).unwrap();
        if !text.is_empty() {
            fs::write(places.config_file(), text).unwrap();
        }
        let store = GrantStore::new(&places, None);
        Self { _guard: guard, places, store }
    }

    fn text(&self) -> String {
        fs::read_to_string(self.places.config_file()).unwrap()
    }

    fn apply(&self, change: &Change) -> Result<(), String> {
        self.store.apply(change).map_err(|error| error.to_string())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.places.config).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn parts(texts: &[&str]) -> PluginGrant {
    let mut grant = PluginGrant::default();
    for text in texts {
        grant.extend(text.parse::<GrantPart>().unwrap().into_grant());
    }
    grant
}

/// Adds parts, whatever stands there.
fn grant(home: &Home, plugin: &str, texts: &[&str], binding: Option<Binding>) -> Change {
    let text = if home.store.file().exists() { home.text() } else { String::new() };
    let config = parse_user(home.store.file(), &text).unwrap();
    Change::Grant {
        plugin: plugin.to_owned(),
        grant: PluginGrant { binding, ..parts(texts) },
        expected: Expected::Grant(config.plugins.get(plugin).cloned().unwrap_or_default()),
    }
}

fn digest(digest: &str) -> Option<Binding> {
    Some(Binding::Digest(digest.to_owned()))
}

fn revoke(plugin: &str, what: &[&str]) -> Change {
    let what = match what {
        [] => Revoked::All,
        parts => Revoked::Parts(parts.iter().map(|part| part.parse().unwrap()).collect()),
    };
    Change::Revoke { plugin: plugin.to_owned(), what }
}

fn check(text: &str, changes: &[&dyn Fn(&Home) -> Change], expected: &str) {
    let home = Home::new(text);
    for change in changes {
        home.apply(&change(&home)).unwrap();
    }
    assert_eq!(home.text(), expected);
}

#[test]
fn a_first_grant_makes_the_file() {
    let home = Home::new("");
    let all = [
        "read=data",
        "write=~/out:/out",
        "deny=**/.env",
        "net=https://a.example",
        "env=TZ",
        "limits.memory=64MiB",
        "limits.requests=5",
        "limits.written_bytes=1000001",
    ];
    home.apply(&grant(&home, "weather", &all, digest(DIGEST))).unwrap();
    assert_eq!(
        home.text(),
        format!(
            "[plugins.weather]\ndigest = \"{DIGEST}\"\nfiles.read = [\"data\"]\nfiles.write = [{{ \
             host = \"~/out\", guest = \"/out\" }}]\nfiles.deny = [\"**/.env\"]\nnet = \
             [\"https://a.example\"]\nenv = [\"TZ\"]\nlimits = {{ memory = \"64MiB\", requests = \
             5, written_bytes = 1000001 }}\n"
        )
    );
    assert_eq!(home.names(), [".config.toml.lock", "config.toml"]);
}

#[cfg(unix)]
#[test]
fn what_is_written_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new("");
    home.apply(&grant(&home, "a", &["net=public"], None)).unwrap();
    for name in home.names() {
        let mode = fs::metadata(home.places.config.join(&name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
}

#[test]
fn comments_order_and_spelling_stay() {
    let text = "\
# mine
model   = 'a/b' # why

[plugins.weather]  # forecasts
digest = \"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\" # looked at
net = [
  \"https://a.example\", # one
  'https://b.example',
]
limits = { deadline = \"10s\", memory = '64 MiB' }

[rules]
allow = [ \"x\" ]
# the end
";
    let add = |home: &Home| {
        grant(home, "weather", &["net=https://c.example", "limits.memory=128MiB"], digest(OTHER))
    };
    let take = |_: &Home| revoke("weather", &["net=https://a.example", "limits.deadline"]);
    let expected = "\
# mine
model   = 'a/b' # why

[plugins.weather]  # forecasts
digest = \"sha256:ffff456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\" # looked at
net = [ # one
  'https://b.example', \"https://c.example\",
]
limits = { memory = \"128MiB\" }

[rules]
allow = [ \"x\" ]
# the end
";
    check(text, &[&add, &take], expected);
}

#[test]
fn every_shape_that_toml_has_can_be_changed() {
    let more = ["read=b", "env=LANG=C", "limits.calls=2"];
    let add = |home: &Home| grant(home, "a", &more, None);
    check(
        "plugins = { a = { files = { read = [\"x\"] } } }\n",
        &[&add],
        "plugins = { a = { files = { read = [\"x\", \"b\"] } , env = { LANG = \"C\" }, limits = { \
         calls = 2 } } }\n",
    );
    check(
        "plugins.a.files.read = [\"x\"]\nplugins.a.env = [\"TZ\"]\n",
        &[&add],
        "plugins.a.files.read = [\"x\", \"b\"]\nplugins.a.env = { TZ = true, LANG = \"C\" }\nplugins.a.limits = { calls = 2 }\n",
    );
    check(
        "[plugins.a.files]\nread = [\"x\"]\n[plugins.a.env]\nTZ = true\n[plugins.a.limits]\nfuel = 1000\n",
        &[&add, &|_| revoke("a", &["env=TZ", "limits.fuel", "read=x"])],
        "[plugins.a.files]\nread = [\"b\"]\n[plugins.a.env]\nLANG = \"C\"\n[plugins.a.limits]\ncalls = 2\n",
    );
    check(
        "[[plugins.a.files.read]]\nhost = \"x\"\n",
        &[&|home| grant(home, "a", &["read=b"], None)],
        "[plugins.a.files]\nread = [{ host = \"x\" }, \"b\"]\n",
    );
}

#[test]
fn what_is_taken_back_is_gone_and_the_rest_is_there() {
    let text = format!(
        "[plugins.a]\ndigest = \"{DIGEST}\"\nnet = [\"public\"]\nfiles.read = [\"x\"]\nsecrets = \
         [{{ name = \"K\", from_env = \"K\", host = \"h.example\", header = \"x-key\" }}]\n\n\
         [plugins.b] # stays\nnet = [\"public\"]\n"
    );
    let rest =
        format!("[plugins.a]\ndigest = \"{DIGEST}\"\n\n[plugins.b] # stays\nnet = [\"public\"]\n");
    check(&text, &[&|_| revoke("a", &["net", "read", "secrets=K"])], &rest);
    check(&text, &[&|_| revoke("a", &[])], "\n[plugins.b] # stays\nnet = [\"public\"]\n");
    let home = Home::new(&text);
    for (change, what) in [
        (revoke("c", &[]), "nothing of `c` is granted to `c`"),
        (revoke("a", &["env"]), "nothing of `env` is granted to `a`"),
        (revoke("a", &["net", "read=y"]), "nothing of `read=y` is granted to `a`"),
    ] {
        let message = format!("{what}, so there is nothing to take back");
        assert_eq!(home.apply(&change), Err(message));
        assert_eq!(home.text(), text);
    }
}

#[test]
fn secrets_can_be_granted_by_programs() {
    let secret = SecretGrant::new("K", "FROM", "h.example:8443", "x-key", "Bearer {}").unwrap();
    let change = Change::Grant {
        plugin: "a".to_owned(),
        grant: PluginGrant { secrets: vec![secret], ..PluginGrant::default() },
        expected: Expected::Grant(PluginGrant::default()),
    };
    check(
        "",
        &[&|_| change.clone()],
        "[plugins.a]\nsecrets = [{ name = \"K\", from_env = \"FROM\", host = \"h.example:8443\", \
         header = \"x-key\", format = \"Bearer {}\" }]\n",
    );
}

#[test]
fn a_binding_takes_the_place_of_the_one_before() {
    let dev = |_: &Home| Change::Grant {
        plugin: "a".to_owned(),
        grant: PluginGrant {
            binding: Some(Binding::Dev("/src/a.wasm".into())),
            ..PluginGrant::default()
        },
        expected: Expected::Grant(PluginGrant {
            binding: digest(DIGEST),
            ..parts(&["net=public"])
        }),
    };
    check(
        &format!("[plugins.a]\ndigest = \"{DIGEST}\"\nnet = [\"public\"]\n"),
        &[&dev],
        "[plugins.a]\nnet = [\"public\"]\ndev = \"/src/a.wasm\"\n",
    );
}

#[test]
fn folders_get_rules_and_trust() {
    let allow =
        |rule: &str| Change::Allow { workspace: "/home/u/a b".into(), rule: rule.parse().unwrap() };
    let trust =
        |digest: &str| Change::Trust { folder: "/home/u/a b".into(), digest: digest.to_owned() };
    let text = format!(
        "[workspaces.\"/home/u/a b\"]\nallow = [\"files/write_file\", \"x\"]\ntrusted = \"{OTHER}\"\n"
    );
    check(
        "",
        &[
            &|_| allow("files/write_file"),
            &|_| trust(DIGEST),
            &|_| allow("files/write_file"),
            &|_| allow("x"),
            &|_| trust(OTHER),
        ],
        &text,
    );
    let distrust = Change::Distrust { folder: "/home/u/a b".into() };
    check(
        &text.replace("a b\"]", "a b/\"]"),
        &[&|_| distrust.clone()],
        "[workspaces.\"/home/u/a b/\"]\nallow = [\"files/write_file\", \"x\"]\n",
    );
    let home = Home::new("model = \"a/b\"\n");
    assert_eq!(
        home.apply(&distrust),
        Err("nothing is known of `/home/u/a b`: it was not trusted".to_owned())
    );
}

#[test]
fn what_changed_since_it_was_shown_is_not_granted() {
    let text = format!("[plugins.a]\ndigest = \"{OTHER}\"\nnet = [\"public\"]\n");
    let home = Home::new(&text);
    let change =
        |expected| Change::Grant { plugin: "a".to_owned(), grant: parts(&["env=TZ"]), expected };
    let shown = PluginGrant { binding: digest(OTHER), ..PluginGrant::default() };
    for expected in [Expected::Grant(shown), Expected::Digest(DIGEST.to_owned())] {
        assert_eq!(
            home.apply(&change(expected)),
            Err("what is granted to `a` has changed since it was shown: look at it again and \
                 repeat"
                .to_owned())
        );
        assert_eq!(home.text(), text);
    }
    home.apply(&change(Expected::Digest(OTHER.to_owned()))).unwrap();
}

#[test]
fn a_broken_file_is_left_alone() {
    for text in ["not TOML", "modle = \"a/b\"\n", "[plugins.a]\nnet = [\"nonsense\"]\n"] {
        let home = Home::new(text);
        let change = Change::Allow { workspace: "/w".into(), rule: "x".parse().unwrap() };
        home.apply(&change).unwrap_err();
        assert_eq!(home.text(), text);
    }
}

#[cfg(unix)]
#[test]
fn a_file_or_folder_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let home = Home::new("model = \"a/b\"\n");
    let change = Change::Allow { workspace: "/w".into(), rule: "x".parse().unwrap() };
    mode(home.store.file(), 0o646);
    assert_eq!(
        home.apply(&change),
        Err(format!(
            "`{}` can be written by others (mode 0646), so nothing is written there: make it yours \
             alone to write (`chmod go-w`)",
            home.store.file().display()
        ))
    );
    mode(home.store.file(), 0o644);
    mode(&home.places.config, 0o777);
    assert!(home.apply(&change).unwrap_err().contains("can be written by others"));
    // A file that was named on the command line is no exception.
    let named = GrantStore::new(&home.places, Some(home.store.file()));
    let error = named.apply(&change).unwrap_err().to_string();
    assert!(error.contains("can be written by others (mode 0777)"), "{error}");
    assert_eq!(home.text(), "model = \"a/b\"\n");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let home = Home::new("");
    let dotfiles = home.places.data.join("dotfiles");
    private_dir(&dotfiles).unwrap();
    let target = dotfiles.join("mine.toml");
    let link = home.places.config_file();
    let change = Change::Allow { workspace: "/w".into(), rule: "x".parse().unwrap() };
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert_eq!(
        home.apply(&change),
        Err(format!(
            "the configuration `{}` is a link to nothing, so it cannot be changed: make it a file",
            link.display()
        ))
    );
    fs::write(&target, "# here\n").unwrap();
    home.apply(&change).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let written = "# here\n\n[workspaces.\"/w\"]\nallow = [\"x\"]\n";
    assert_eq!(fs::read_to_string(&target).unwrap(), written);
}

#[cfg(unix)]
#[test]
fn a_planted_link_in_the_way_is_not_followed() {
    let home = Home::new("model = \"a/b\"\n");
    let victim = home.places.data.join("victim");
    private_dir(&home.places.data).unwrap();
    fs::write(&victim, "unharmed").unwrap();
    std::os::unix::fs::symlink(&victim, home.places.config.join(".config.toml.new")).unwrap();
    let change = Change::Allow { workspace: "/w".into(), rule: "x".parse().unwrap() };
    home.apply(&change).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "unharmed");
    assert_eq!(home.names(), [".config.toml.lock", "config.toml"]);
}

/// Threads take the lock as processes do: each opens the file for itself.
#[test]
fn changes_at_the_same_time_all_count() {
    let home = Home::new("");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let home = &home;
            scope.spawn(move || {
                for number in 0..5 {
                    let rule = format!("tool_{thread}_{number}").parse().unwrap();
                    home.apply(&Change::Allow { workspace: "/w".into(), rule }).unwrap();
                }
            });
        }
    });
    let config = parse_user(home.store.file(), &home.text()).unwrap();
    assert_eq!(config.workspaces[Path::new("/w")].allow.len(), 20);
}

#[test]
fn hooks_stay_as_they_are_while_grants_change() {
    let hooks = "[[hooks.pre_tool]] # mine\ncommand = [\"/usr/bin/check\", \"--x\"]\nenv = { A = \
                 \"b\" }\ntimeout = \"5s\"\non_failure = \"block\"\n";
    let home = Home::new(hooks);
    home.apply(&grant(&home, "web", &["net=https://a.example"], None)).unwrap();
    assert_eq!(home.text(), format!("{hooks}\n[plugins.web]\nnet = [\"https://a.example\"]\n"));
    // A file whose hooks are wrong is changed by nobody.
    let broken = Home::new("[[hooks.pre_tool]]\ncommand = [\"check\"]\n");
    let error = broken
        .apply(&Change::Trust { folder: PathBuf::from("/w"), digest: DIGEST.to_owned() })
        .unwrap_err();
    assert!(error.contains("which is not an absolute path"), "{error}");
}
