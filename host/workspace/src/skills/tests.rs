use super::*;
use std::fs;

struct Fixture {
    _guard: tempfile::TempDir,
    places: Places,
    workspace: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap();
        let places = Places::below(&root.join("home"));
        let workspace = root.join("w/.belljar/skills");
        for folder in [&places.skills(), &workspace] {
            fs::create_dir_all(folder).unwrap();
        }
        Self { _guard: guard, places, workspace }
    }

    fn read(&self) -> Skills {
        Skills::read(&self.places, Some(&self.workspace))
    }

    /// The one thing that is wrong with a file.
    fn fault(&self, name: &str, file: impl AsRef<[u8]>) -> String {
        write(&self.places.skills(), name, file);
        let skills = self.read();
        assert_eq!(skills.catalog().count(), 0, "{name}");
        let [notice] = skills.notices() else { panic!("{:?}", skills.notices()) };
        let start = format!("no skill: `{}`: ", self.places.skills().join(name).display());
        fs::remove_dir_all(self.places.skills().join(name)).unwrap();
        notice.strip_prefix(&start).unwrap().to_owned()
    }
}

fn write(folder: &Path, name: &str, file: impl AsRef<[u8]>) {
    fs::create_dir_all(folder.join(name)).unwrap();
    fs::write(folder.join(name).join(FILE), file).unwrap();
}

fn file(name: &str, description: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n{text}")
}

fn plain(name: &str, description: &str, source: SkillSource) -> Skill {
    Skill {
        name: name.to_owned(),
        description: description.to_owned(),
        source,
        allowed_tools: Vec::new(),
        license: None,
        compatibility: None,
    }
}

fn loaded(skill: &Skill, text: &str) -> LoadedSkill {
    LoadedSkill {
        name: skill.name.clone(),
        text: text.to_owned(),
        allowed_tools: skill.allowed_tools.clone(),
        origin: skill.source.origin(),
    }
}

#[test]
fn skills_of_both_folders_are_listed_and_loaded_when_asked_for() {
    let fixture = Fixture::new();
    let full = "\u{feff}---\r\nname: pdf-files\r\ndescription: >\r\n  Reads PDF files.\r\n  Use it \
                for forms.\r\nlicense: MIT\r\ncompatibility: Needs a network\r\nmetadata:\r\n  \
                version: \"1\"\r\nallowed-tools: Bash(git:*) Read\r\n---\r\n\r\n# PDF\r\n---\r\nmore\r\n";
    write(&fixture.places.skills(), "pdf-files", full);
    write(&fixture.workspace, "release", file("release", "Makes a release.", "Tag it.\n"));
    // Beside the skills, and nobody's mistake.
    fs::write(fixture.places.skills().join("README.md"), "").unwrap();
    fs::create_dir(fixture.places.skills().join(".git")).unwrap();
    let skills = fixture.read();
    let pdf = Skill {
        allowed_tools: vec!["Bash(git:*)".to_owned(), "Read".to_owned()],
        license: Some("MIT".to_owned()),
        compatibility: Some("Needs a network".to_owned()),
        ..plain("pdf-files", "Reads PDF files. Use it for forms.", SkillSource::User)
    };
    let source = SkillSource::Workspace { path: ".belljar/skills/release/SKILL.md".to_owned() };
    let release = plain("release", "Makes a release.", source);
    assert_eq!(skills.catalog().collect::<Vec<_>>(), [&pdf, &release]);
    assert_eq!(skills.notices(), [""; 0]);
    assert_eq!(skills.load("pdf-files").unwrap(), loaded(&pdf, "# PDF\r\n---\r\nmore\r\n"));
    assert_eq!(skills.load("release").unwrap(), loaded(&release, "Tag it.\n"));
    assert_eq!(
        release.source.origin(),
        Origin::Workspace { path: ".belljar/skills/release/SKILL.md".to_owned() }
    );
    // The text is read as it is now; a file that went bad is not.
    write(&fixture.workspace, "release", file("release", "Makes a release.", "Sign it.\n"));
    assert_eq!(skills.load("release").unwrap().text, "Sign it.\n");
    write(&fixture.workspace, "release", "no front matter");
    assert_eq!(
        skills.load("release").unwrap_err().to_string(),
        "the skill `release` is not loaded: its `SKILL.md` is not read: its first line is not \
         `---`, which begins the front matter"
    );
    fs::remove_dir_all(fixture.workspace.join("release")).unwrap();
    assert_eq!(
        skills.load("release").unwrap_err().to_string(),
        "the skill `release` is not loaded: it is not there any more"
    );
    for (name, hint) in [
        ("relase", "did you mean `release`?"),
        ("../x", "the known ones are `pdf-files`, `release`"),
    ] {
        let message = format!("there is no skill `{name}`: {hint}");
        assert_eq!(skills.load(name).unwrap_err().to_string(), message);
    }
}

#[test]
fn no_folder_is_no_skill_and_no_notice() {
    let guard = tempfile::tempdir().unwrap();
    let skills = Skills::read(&Places::below(guard.path()), Some(&guard.path().join("none")));
    assert_eq!((skills.catalog().count(), skills.notices().len()), (0, 0));
    assert_eq!(
        skills.load("x").unwrap_err().to_string(),
        "there is no skill `x`: none is installed"
    );
}

#[test]
fn front_matter_that_is_wrong_is_named_and_its_skill_left_out() {
    let fixture = Fixture::new();
    let read = |name: &str, file: &str| {
        let fault = fixture.fault(name, file);
        fault.strip_prefix("its `SKILL.md` is not read: ").unwrap().to_owned()
    };
    let name_rule = "its `name` is not 1 to 64 lower-case letters, digits and single hyphens";
    let cases = [
        ("", "its first line is not `---`, which begins the front matter"),
        ("# Title\n", "its first line is not `---`, which begins the front matter"),
        ("---\nname: a\n", "no second line of `---` ends its front matter"),
        ("---\nname: a\n  ---\n", "no second line of `---` ends its front matter"),
        ("---\nname: a\ndescription: ''\n---\n", "its `description` is empty"),
        (
            "---\nname: a\ndescription: \"x\\ey\"\n---\n",
            "its `description` holds control characters",
        ),
        ("---\nname: A\ndescription: x\n---\n", name_rule),
        ("---\nname: a--b\ndescription: x\n---\n", name_rule),
        ("---\nname: -a\ndescription: x\n---\n", name_rule),
        ("---\nname: ../a\ndescription: x\n---\n", name_rule),
        (
            "---\nname: b\ndescription: x\n---\n",
            "its `name` is `b`, and its folder's is `a`: they must be the same",
        ),
        (
            "---\nname: a\ndescription: x\nallowed-tools: ['']\n---\n",
            "its `allowed-tools` is empty",
        ),
    ];
    for (file, fault) in cases {
        assert_eq!(read("a", file), fault, "{file}");
    }
    let long = file("a", &"é".repeat(1025), "");
    assert_eq!(read("a", &long), "its `description` is longer than 1024 characters");
    let long = format!("---\nname: a\ndescription: x\nmetadata: {}\n---\n", "x".repeat(16 << 10));
    assert_eq!(read("a", &long), "its front matter is longer than 16384 bytes");
    let long = file("a", "x", &"x".repeat(64 << 10));
    assert_eq!(
        read("a", &long),
        "it is longer than 65536 bytes: move what is not always needed into files beside it"
    );
    // What the parser refuses is told in its words, in one line.
    let bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n\
                c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n\
                e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
                name: [*f,*f]\ndescription: x\n---\n";
    let deep = format!("---\nname: {}\n---\n", "[".repeat(10_000));
    for file in [
        "---\nname: a\n---\n",
        "---\nname: [a\ndescription: x\n---\n",
        "---\n- name\n---\n",
        "---\nname: a\nname: a\ndescription: x\n---\n",
        "---\nname: {x: y}\ndescription: x\n---\n",
        "---\nname: a\ndescription: x\nallowed-tools: {a: b}\n---\n",
        "---\n---\n",
        bomb,
        &deep,
    ] {
        let fault = read("a", file);
        let what = fault.strip_prefix("its front matter cannot be understood: ");
        assert!(what.is_some_and(|what| !what.is_empty() && !what.contains('\n')), "{fault}");
    }
    assert_eq!(fixture.fault("a", b"\xff\xfe"), "its `SKILL.md` is not read: it is not UTF-8 text");
    fs::create_dir(fixture.places.skills().join("empty")).unwrap();
    assert!(fixture.read().notices()[0].ends_with("/empty`: it has no `SKILL.md`"));
}

#[test]
fn of_two_with_one_name_the_users_counts() {
    let fixture = Fixture::new();
    write(&fixture.places.skills(), "same", file("same", "mine", "mine"));
    write(&fixture.workspace, "same", file("same", "theirs", "theirs"));
    let skills = fixture.read();
    assert_eq!(skills.catalog().collect::<Vec<_>>(), [&plain("same", "mine", SkillSource::User)]);
    assert_eq!(skills.load("same").unwrap().text, "mine");
    let theirs = fixture.workspace.join("same");
    assert_eq!(
        skills.notices(),
        [format!("no skill: `{}`: your own skill of that name counts", theirs.display())]
    );
}

#[test]
fn a_folder_is_read_to_a_limit() {
    let fixture = Fixture::new();
    for number in 0..=MAX_SKILLS {
        let name = format!("s{number:03}");
        write(&fixture.workspace, &name, file(&name, "x", ""));
    }
    let skills = fixture.read();
    assert_eq!(skills.catalog().count(), MAX_SKILLS);
    let last = fixture.workspace.join("s100");
    assert_eq!(
        skills.notices(),
        [format!("no skill: `{}`: a folder holds at most 100", last.display())]
    );
}

#[cfg(unix)]
#[test]
fn links_pipes_and_what_others_can_write_are_not_read() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    let fixture = Fixture::new();
    let own = fixture.places.skills();
    let elsewhere = fixture.workspace.join("../../elsewhere");
    write(&elsewhere, "a", file("a", "x", "secret"));
    let only_notice = || {
        let skills = fixture.read();
        assert_eq!(skills.catalog().count(), 0);
        skills.notices().to_vec()
    };
    let named = |reason: &str| vec![format!("no skill: `{}`: {reason}", own.join("a").display())];

    symlink(elsewhere.join("a"), own.join("a")).unwrap();
    assert_eq!(only_notice(), named("it is a link or cannot be opened"));
    fs::remove_file(own.join("a")).unwrap();
    fs::create_dir(own.join("a")).unwrap();
    symlink(elsewhere.join("a/SKILL.md"), own.join("a/SKILL.md")).unwrap();
    assert_eq!(
        only_notice(),
        named(
            "its `SKILL.md` is not read: it is a link, and links are not followed: put the text \
             into the file itself"
        )
    );
    fs::remove_file(own.join("a/SKILL.md")).unwrap();
    mknodat(CWD, own.join("a/SKILL.md"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(only_notice(), named("its `SKILL.md` is not read: it is not a regular file"));
    fs::remove_file(own.join("a/SKILL.md")).unwrap();

    write(&own, "a", file("a", "x", ""));
    let mode =
        |path: &Path, bits| fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    mode(&own.join("a/SKILL.md"), 0o666);
    let open = "can be written by others (mode 0666)";
    assert_eq!(only_notice(), named(&format!("its `SKILL.md` is not read: it {open}")));
    mode(&own.join("a/SKILL.md"), 0o644);
    mode(&own.join("a"), 0o777);
    assert_eq!(only_notice(), named("it can be written by others (mode 0777)"));
    mode(&own.join("a"), 0o755);
    mode(&own, 0o777);
    let whole =
        format!("no skill is read in `{}`: it can be written by others (mode 0777)", own.display());
    assert_eq!(only_notice(), [whole]);
    mode(&own, 0o755);
    // Only the administrator can make a file that is somebody else's.
    if chown(own.join("a/SKILL.md"), Some(4321), None).is_ok() {
        let user = rustix::process::geteuid().as_raw();
        let foreign = format!("it belongs to user 4321, and you are user {user}");
        assert_eq!(only_notice(), named(&format!("its `SKILL.md` is not read: {foreign}")));
    }
}
