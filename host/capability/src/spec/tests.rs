use super::*;
use proptest::prelude::*;

fn folder(host: &str, guest: Option<&str>) -> FolderGrant {
    FolderGrant { host: host.to_owned(), guest: guest.map(|guest| guest.parse().unwrap()) }
}

fn spec(plugin: &str, part: GrantPart) -> GrantSpec {
    GrantSpec { plugin: plugin.to_owned(), part }
}

fn env(name: &str, value: Option<&str>) -> GrantPart {
    GrantPart::Env { name: name.to_owned(), value: value.map(str::to_owned) }
}

#[test]
fn every_kind_is_read_and_shown_in_its_shortest_form() {
    let cases = [
        ("weather.read=data", "weather", GrantPart::Read(folder("data", None)), None),
        (
            "weather.files.read=data",
            "weather",
            GrantPart::Read(folder("data", None)),
            Some("weather.read=data"),
        ),
        ("files.write=out", "files", GrantPart::Write(folder("out", None)), None),
        (
            "files.files.write=out",
            "files",
            GrantPart::Write(folder("out", None)),
            Some("files.write=out"),
        ),
        ("my.files.read=x", "my", GrantPart::Read(folder("x", None)), Some("my.read=x")),
        ("my.files.files.read=x", "my.files", GrantPart::Read(folder("x", None)), None),
        ("my.limits.net=public", "my.limits", GrantPart::Net("public".parse().unwrap()), None),
        (
            "weather.read=~/sets:sets",
            "weather",
            GrantPart::Read(folder("~/sets", Some("/sets"))),
            Some("weather.read=~/sets:/sets"),
        ),
        (r"a.write=x\:y:/z\:1", "a", GrantPart::Write(folder("x:y", Some("/z:1"))), None),
        (
            r"a.read=C\:\data",
            "a",
            GrantPart::Read(folder(r"C:\data", None)),
            Some(r"a.read=C\:\\data"),
        ),
        ("a.read=x=y", "a", GrantPart::Read(folder("x=y", None)), None),
        ("a.read=/:/", "a", GrantPart::Read(folder("/", Some("/"))), None),
        ("a.deny=**/.env", "a", GrantPart::Deny("**/.env".to_owned()), None),
        (
            "web.net=https://api.github.com",
            "web",
            GrantPart::Net("https://api.github.com".parse().unwrap()),
            None,
        ),
        (
            "web.net=GET,HEAD https://*.example.com/v1",
            "web",
            GrantPart::Net("GET,HEAD https://*.example.com/v1".parse().unwrap()),
            None,
        ),
        ("a.env=TZ", "a", env("TZ", None), None),
        ("a.env=TZ=", "a", env("TZ", Some("")), None),
        ("a.env=TZ=a=b.net=c", "a", env("TZ", Some("a=b.net=c")), None),
        ("a.limits.memory=64MiB", "a", GrantPart::Limit(Limit::Memory, 64 << 20), None),
        (
            "a.limits.memory=65537",
            "a",
            GrantPart::Limit(Limit::Memory, 65_537),
            Some("a.limits.memory=65537B"),
        ),
        (
            "a.limits.deadline=1m 30s",
            "a",
            GrantPart::Limit(Limit::Deadline, 90_000),
            Some("a.limits.deadline=90s"),
        ),
        ("a.b.limits.requests=7", "a.b", GrantPart::Limit(Limit::Requests, 7), None),
    ];
    for (text, plugin, part, shown) in cases {
        let expected = spec(plugin, part);
        assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
        assert_eq!(expected.to_string(), shown.unwrap_or(text), "{text}");
        assert_eq!(expected.to_string().parse(), Ok(expected));
    }
}

#[test]
fn what_is_no_grant_says_what_to_write() {
    let shape = |text: &str| {
        format!(
            "`{text}` is not a grant: write `PLUGIN.KEY=VALUE`, such as `weather.read=data` or \
             `weather.net=https://api.example.com`"
        )
    };
    let folder = |text: &str| {
        format!(
            "the folder in `{text}` is empty or holds a control character: write `HOST` or \
             `HOST:GUEST`"
        )
    };
    let key = |key: &str| {
        format!(
            "`{key}` cannot be granted: the keys are `read`, `write`, `deny`, `net`, `env` and \
             `limits.NAME`"
        )
    };
    let cases = [
        ("", shape("")),
        ("weather", shape("weather")),
        ("read=data", shape("read=data")),
        (".read=data", shape(".read=data")),
        ("a\u{7}.read=x", shape("a\\u{7}.read=x")),
        ("weather.secrets=KEY", key("secrets")),
        ("weather.digest=sha256:0", key("digest")),
        ("weather.dev=/x", key("dev")),
        ("a.read=", folder("a.read=")),
        ("a.read=:/x", folder("a.read=:/x")),
        ("a.read=x:", folder("a.read=x:")),
        ("a.read=x:/y:/z", folder("a.read=x:/y:/z")),
        ("a.read=x\n", folder("a.read=x\\n")),
        ("a.read=x:../y", "`../y` climbs out of its folder: write it without `..`".to_owned()),
        (
            "a.deny=",
            "the deny glob `` cannot be read: it is empty; write one such as `**/.env`".to_owned(),
        ),
        ("a.env=1X", "`1X` is no variable's name: write `env=NAME` or `env=NAME=VALUE`".to_owned()),
        (
            "a.limits.memory=lots",
            "the limit `memory`: `lots` is not a size such as `64MiB`".to_owned(),
        ),
    ];
    for (text, message) in cases {
        assert_eq!(text.parse::<GrantSpec>().unwrap_err().to_string(), message, "{text}");
    }
    assert!("a.net=example.com".parse::<GrantSpec>().is_err());
    assert!("a.limits.time=3".parse::<GrantSpec>().is_err());
}

#[test]
fn a_grant_is_the_sum_of_its_parts_and_parts_can_be_taken_back() {
    let texts = ["read=a", "write=b:/c", "deny=.env", "net=public", "env=TZ=UTC", "limits.calls=2"];
    let mut grant = PluginGrant::default();
    for text in texts {
        grant.extend(text.parse::<GrantPart>().unwrap().into_grant());
    }
    let shown: Vec<_> = grant.parts().iter().map(ToString::to_string).collect();
    assert_eq!(shown, texts);
    let cases = [
        ("read=z", false),
        ("read=a", true),
        ("read", false),
        ("files.write", true),
        ("net=https://a.example", false),
        ("net", true),
        ("env=TZ", true),
        ("limits.memory", false),
        ("limits", true),
        ("secrets", false),
        ("secrets=KEY", false),
    ];
    for (text, found) in cases {
        let what: Withdrawal = text.parse().unwrap();
        assert_eq!(grant.withdraw(&what), found, "{text}");
    }
    assert_eq!(grant, PluginGrant { deny: vec![".env".to_owned()], ..PluginGrant::default() });
    for text in ["deny", "deny=.env", "files.deny=.env"] {
        assert_eq!(text.parse::<Withdrawal>(), Err(SpecError::WithdrawsDeny));
    }
    for text in ["", "digest", "everything"] {
        let error = SpecError::Withdrawal { text: text.to_owned() };
        assert_eq!(text.parse::<Withdrawal>(), Err(error));
    }
}

#[test]
fn a_limit_that_was_met_is_raised_as_far_as_it_takes_and_can_be() {
    let limits = Limits::default();
    let raised =
        |limit, wanted| GrantPart::raised(&limits, limit, wanted).map(|part| part.to_string());
    assert_eq!(raised(Limit::Deadline, None).as_deref(), Some("limits.deadline=60s"));
    let wanted = Some((512 << 20) + 1);
    assert_eq!(raised(Limit::Memory, wanted).as_deref(), Some("limits.memory=1GiB"));
    assert_eq!(raised(Limit::Memory, Some(5 << 30)), None);
    let most = Limits { memory: 4 << 30, ..limits };
    assert_eq!(GrantPart::raised(&most, Limit::Memory, None), None);
    let none = Limits { requests: 0, ..limits };
    assert_eq!(GrantPart::raised(&none, Limit::Requests, None), "limits.requests=2".parse().ok());
}

fn any_folder() -> impl Strategy<Value = FolderGrant> {
    let guest = proptest::option::of("(/[a-z:. ]{1,6}){0,3}");
    ("[a-zA-Z~/.:\\\\= \"'é-]{1,20}", guest).prop_filter_map("a guest path", |(host, guest)| {
        let guest = guest.map(|guest| guest.parse()).transpose().ok()?;
        Some(FolderGrant { host, guest })
    })
}

fn any_part() -> impl Strategy<Value = GrantPart> {
    let limit = (0..Limit::ALL.len(), any::<u64>()).prop_filter_map("in range", |(at, value)| {
        let limit = Limit::ALL[at];
        let value = value % (1 << 33);
        limit.checked(value).ok().map(|value| GrantPart::Limit(limit, value))
    });
    let variable = ("[A-Z_][A-Z0-9_]{0,8}", proptest::option::of("[ -~]{0,10}"));
    prop_oneof![
        any_folder().prop_map(GrantPart::Read),
        any_folder().prop_map(GrantPart::Write),
        "[a-z]{1,5}(/[a-z*]{1,3}){0,2}".prop_filter_map("a glob", |glob| {
            DenyGlobs::new([&glob]).ok().map(|_| GrantPart::Deny(glob))
        }),
        "https://[a-z]{1,8}\\.example(:[1-9][0-9]{0,3})?"
            .prop_map(|text| GrantPart::Net(text.parse().unwrap())),
        variable.prop_map(|(name, value)| GrantPart::Env { name, value }),
        limit,
    ]
}

proptest! {
    #[test]
    fn what_is_shown_reads_back_the_same(
        plugin in "[a-z]{1,6}(\\.(files|read|limits|memory|net|[a-z]{1,4})){0,3}",
        part in any_part(),
    ) {
        let expected = GrantSpec { plugin, part };
        prop_assert_eq!(expected.to_string().parse(), Ok(expected.clone()));
        prop_assert_eq!(expected.part.to_string().parse(), Ok(expected.part));
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        let _ = text.parse::<GrantSpec>();
        let _ = text.parse::<Withdrawal>();
    }
}
