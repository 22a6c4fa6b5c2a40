use super::*;
use crate::repository::Workspace;
use gix::objs::{Commit, Tree, tree};
use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    time::SystemTime,
};

const FILES: [(&str, &str); 3] = [("a", "text a\n"), ("d/e", "text e\n"), ("run", "#!/bin/sh\n")];

/// A repository with one commit of a few files, all of them on the disk.
struct Committed {
    _guard: tempfile::TempDir,
    root: PathBuf,
    repository: gix::Repository,
}

impl Committed {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let root = guard.path().canonicalize().unwrap().join("repository");
        fs::create_dir_all(root.join("d")).unwrap();
        for (path, text) in FILES {
            fs::write(root.join(path), text).unwrap();
        }
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("d/e", root.join("link")).unwrap();
        let repository = gix::init(&root).unwrap();
        let this = Self { _guard: guard, root, repository };
        let blob = |text: &str| this.repository.write_blob(text).unwrap().detach();
        let inner = this.tree([(EntryKind::Blob, "e", blob(FILES[1].1))]);
        let tree = this.tree([
            (EntryKind::Blob, "a", blob(FILES[0].1)),
            (EntryKind::Tree, "d", inner),
            (EntryKind::Link, "link", blob("d/e")),
            (EntryKind::BlobExecutable, "run", blob(FILES[2].1)),
        ]);
        this.commit(tree);
        this.write_index(this.repository.index_from_tree(&tree).unwrap());
        this
    }

    fn tree<const N: usize>(&self, entries: [(EntryKind, &str, ObjectId); N]) -> ObjectId {
        let entry = |(kind, name, oid): (EntryKind, &str, ObjectId)| tree::Entry {
            mode: kind.into(),
            filename: name.into(),
            oid,
        };
        let tree = Tree { entries: entries.map(entry).to_vec() };
        self.repository.write_object(&tree).unwrap().detach()
    }

    fn commit(&self, tree: ObjectId) {
        let who = gix::actor::Signature {
            name: "A".into(),
            email: "a@example.org".into(),
            time: gix::date::Time::new(1_700_000_000, 0),
        };
        let commit = Commit {
            tree,
            parents: Default::default(),
            author: who.clone(),
            committer: who,
            encoding: None,
            message: "x".into(),
            extra_headers: Vec::new(),
        };
        let id = self.repository.write_object(&commit).unwrap().detach();
        fs::write(self.git("HEAD"), format!("{id}\n")).unwrap();
    }

    fn git(&self, path: &str) -> PathBuf {
        self.root.join(".git").join(path)
    }

    fn index(&self) -> gix::index::File {
        self.repository.open_index().unwrap()
    }

    fn write_index(&self, mut index: gix::index::File) {
        index.set_path(self.git("index"));
        index.write(gix::index::write::Options::default()).unwrap();
    }

    /// As git leaves it: with the sizes and times of the files.
    fn write_index_with_stats(&self) {
        let mut index = self.index();
        let paths: Vec<_> =
            index.entries().iter().map(|entry| entry.path(&index).to_owned()).collect();
        for (entry, path) in index.entries_mut().iter_mut().zip(paths) {
            let path = self.root.join(gix::path::from_bstr(path.as_bstr()).unwrap());
            let metadata = gix::index::fs::Metadata::from_path_no_follow(&path).unwrap();
            entry.stat = gix::index::entry::Stat::from_fs(&metadata).unwrap();
        }
        self.write_index(index);
    }

    /// Lets all files and the index be from another time, so that times say something.
    fn age(&self) {
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000);
        for (path, _) in FILES {
            let file = fs::File::options().write(true).open(self.root.join(path)).unwrap();
            file.set_modified(then).unwrap();
        }
    }

    /// With all the time of the world.
    fn look(&self) -> WorkTree {
        self.look_for(Duration::from_secs(600))
    }

    fn look_for(&self, patience: Duration) -> WorkTree {
        look(&crate::repository::open(&self.root).unwrap(), &self.root, patience)
    }
}

#[test]
fn a_fresh_commit_is_clean_with_and_without_the_stats_of_files() {
    let repository = Committed::new();
    assert_eq!(repository.look(), WorkTree::Clean);
    repository.age();
    repository.write_index_with_stats();
    assert_eq!(repository.look(), WorkTree::Clean);
    // A file that git does not know does not count; one that was only touched is the same.
    fs::write(repository.root.join("new"), "x").unwrap();
    let file = fs::File::options().write(true).open(repository.root.join("a")).unwrap();
    file.set_modified(SystemTime::now()).unwrap();
    assert_eq!(repository.look(), WorkTree::Clean);
    // So it is seen from a folder inside.
    let inside = Workspace::open(&repository.root.join("d")).unwrap();
    assert_eq!(inside.repository(), Some(repository.root.as_path()));
    assert!(inside.state().unwrap().to_string().starts_with("no branch, at commit "));
    // Where there is no time nothing is claimed.
    assert_eq!(repository.look_for(Duration::ZERO), WorkTree::NotKnown);
}

#[test]
fn every_change_of_a_tracked_file_is_seen() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 9] = [
        ("longer", |root| fs::write(root.join("a"), "text a\nmore\n").unwrap()),
        ("as long", |root| fs::write(root.join("a"), "text b\n").unwrap()),
        ("empty", |root| fs::write(root.join("a"), "").unwrap()),
        ("in a folder", |root| fs::write(root.join("d/e"), "text f\n").unwrap()),
        ("removed", |root| fs::remove_file(root.join("a")).unwrap()),
        ("folder removed", |root| fs::remove_dir_all(root.join("d")).unwrap()),
        ("not executable", |root| {
            fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("link elsewhere", |root| {
            fs::remove_file(root.join("link")).unwrap();
            symlink("a", root.join("link")).unwrap();
        }),
        ("folder for a file", |root| {
            fs::remove_file(root.join("a")).unwrap();
            fs::create_dir(root.join("a")).unwrap();
        }),
    ];
    for (what, change) in changes {
        for stats in [false, true] {
            let repository = Committed::new();
            if stats {
                repository.age();
                repository.write_index_with_stats();
            }
            change(&repository.root);
            assert_eq!(repository.look(), WorkTree::Changed, "{what}, stats: {stats}");
        }
    }
}

/// A change within the moment in which the index was written, of the same size and time.
#[test]
fn a_change_that_size_and_time_hide_is_seen() {
    let repository = Committed::new();
    repository.write_index_with_stats();
    let path = repository.root.join("a");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "text b\n").unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    let index = fs::File::options().write(true).open(repository.git("index")).unwrap();
    index.set_modified(before).unwrap();
    assert_eq!(repository.look(), WorkTree::Changed);
}

#[test]
fn what_is_staged_counts() {
    let repository = Committed::new();
    fs::write(repository.root.join("a"), "text b\n").unwrap();
    let id = repository.repository.write_blob("text b\n").unwrap().detach();
    let mut index = repository.index();
    index.entries_mut()[0].id = id;
    repository.write_index(index);
    assert_eq!(repository.look(), WorkTree::Changed);

    // Taken out of the index, and nothing but the index.
    let repository = Committed::new();
    let mut index = repository.index();
    index.remove_entries(|number, _, _| number == 0);
    repository.write_index(index);
    assert_eq!(repository.look(), WorkTree::Changed);

    // No index at all is an empty one.
    let repository = Committed::new();
    fs::remove_file(repository.git("index")).unwrap();
    assert_eq!(repository.look(), WorkTree::Changed);

    // A merge that was not ended.
    let repository = Committed::new();
    let mut index = repository.index();
    index.entries_mut()[0].flags.insert(Flags::from_stage(Stage::Ours));
    repository.write_index(index);
    assert_eq!(repository.look(), WorkTree::Changed);

    // Before the first commit.
    let repository = Committed::new();
    fs::write(repository.git("HEAD"), "ref: refs/heads/main\n").unwrap();
    assert_eq!(repository.look(), WorkTree::Changed);
    fs::remove_file(repository.git("index")).unwrap();
    assert_eq!(repository.look(), WorkTree::Clean);
}

/// Git would convert first, by a program that the repository names.
#[test]
fn nothing_that_a_repository_names_is_run_and_nothing_is_claimed_then() {
    let repository = Committed::new();
    let mark = repository.root.join("evil");
    let config = format!(
        "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {mark}\n\tpager = touch \
         {mark}\n\tworktree = ../..\n[filter \"evil\"]\n\tclean = touch {mark}\n\tsmudge = touch \
         {mark}\n\tprocess = touch {mark}\n\trequired = true\n[diff \"evil\"]\n\ttextconv = touch \
         {mark}\n",
        mark = mark.display()
    );
    fs::write(repository.git("config"), config).unwrap();
    assert_eq!(repository.look(), WorkTree::Clean);
    fs::write(repository.root.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    assert_eq!(repository.look(), WorkTree::Clean);
    fs::write(repository.root.join("a"), "text b\n").unwrap();
    assert_eq!(repository.look(), WorkTree::NotKnown);
    assert!(!mark.exists());
}

#[test]
fn an_index_that_is_none_is_not_waited_for() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let repository = Committed::new();
    let index = repository.git("index");
    for garbage in [&b""[..], b"DIRC\0\0\0\x02\xff\xff\xff\xff", b"what is this"] {
        fs::write(&index, garbage).unwrap();
        assert_eq!(repository.look(), WorkTree::NotKnown);
    }
    fs::File::create(&index).unwrap().set_len(MAX_INDEX + 1).unwrap();
    assert_eq!(repository.look(), WorkTree::NotKnown);
    fs::remove_file(&index).unwrap();
    mknodat(CWD, &index, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    assert_eq!(repository.look(), WorkTree::NotKnown);
    fs::remove_file(&index).unwrap();
    symlink("/dev/zero", &index).unwrap();
    assert_eq!(repository.look(), WorkTree::NotKnown);
}

/// A name in the index that leads out of the repository is not looked at.
#[test]
fn an_index_cannot_make_other_files_be_read() {
    let repository = Committed::new();
    let outside = repository.root.join("../outside");
    fs::write(&outside, "text a\n").unwrap();
    let mut index = repository.index();
    let id = index.entries()[0].id;
    let stat = gix::index::entry::Stat::default();
    index.dangerously_push_entry(stat, id, Flags::empty(), Mode::FILE, "../outside".into());
    index.sort_entries();
    repository.write_index(index);
    // Whether it would be the same is not told: else it would be clean or changed by its content.
    let first = repository.look();
    fs::write(&outside, "text b\n").unwrap();
    assert_eq!(first, repository.look());
    fs::remove_file(&outside).unwrap();
    assert_eq!(first, repository.look());
}

/// A few objects that unfold to billions of files.
#[test]
fn a_tree_without_end_is_left() {
    let repository = Committed::new();
    let mut tree = repository.tree([]);
    for _ in 0..30 {
        tree = repository.tree([
            (EntryKind::Tree, "a", tree),
            (EntryKind::Tree, "b", tree),
            (EntryKind::Tree, "c", tree),
        ]);
    }
    repository.commit(tree);
    assert_eq!(repository.look(), WorkTree::NotKnown);
    // Damaged objects are no end of a run either.
    fs::write(repository.git("HEAD"), "0123456789abcdef0123456789abcdef01234567\n").unwrap();
    assert_eq!(repository.look(), WorkTree::NotKnown);
}

/// Damage in an index is no panic, whatever it does to the answer.
#[test]
fn a_damaged_index_is_no_end_of_a_round() {
    let repository = Committed::new();
    repository.write_index_with_stats();
    let index = repository.git("index");
    let whole = fs::read(&index).unwrap();
    let look = || {
        let opened = crate::repository::open(&repository.root).unwrap();
        look(&opened, &repository.root, Duration::from_secs(600))
    };
    assert_eq!(look(), WorkTree::Clean);
    for at in 0..whole.len() {
        for bits in [0x01, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= bits;
            fs::write(&index, &bytes).unwrap();
            look();
        }
        fs::write(&index, &whole[..at]).unwrap();
        look();
    }
}
