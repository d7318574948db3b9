use std::collections::BTreeMap;

use super::*;

/// `mark` describes everything, `doc` the other names.
static OUTLET: CommitPolicy = CommitPolicy {
    prefix: ".scratch-",
    contents: "texts",
    durability: Durability::Unsynced,
    rank: |name| match name {
        "mark" => 2,
        "doc" => 1,
        _ => 0,
    },
    writes: |name| name != "of another",
};

const OLD: [&str; 4] = ["a", "b", "doc", "mark"];
const NEW: [&str; 4] = ["b", "c", "doc", "mark"];

/// The old names in a folder, and the new ones in its scratch folder.
struct Folders {
    room: tempfile::TempDir,
    new: Vec<&'static str>,
}

impl Folders {
    fn new(new: &[&'static str]) -> Self {
        let folders = Self { room: tempfile::tempdir().unwrap(), new: new.to_vec() };
        fs::create_dir(folders.scratch()).unwrap();
        for name in OLD {
            fs::write(folders.out().join(name), "old").unwrap();
        }
        for name in new {
            fs::write(folders.scratch().join(name), "new").unwrap();
        }
        folders
    }

    fn out(&self) -> &Path {
        self.room.path()
    }

    fn scratch(&self) -> PathBuf {
        self.out().join(".scratch-1")
    }

    fn commit<'a>(&self, scratch: &'a Path) -> Commit<'a> {
        let names = self.new.iter().map(|name| (*name).to_owned()).collect();
        Commit::new(&OUTLET, scratch.parent().unwrap(), scratch, names).unwrap()
    }

    /// Runs a commit up to step `done`, and its rollback up to step `undone`. Whether there were so
    /// many steps.
    fn cut_off(&self, done: usize, undone: usize) -> bool {
        let scratch = self.scratch();
        let mut commit = self.commit(&scratch);
        let displaced = commit.names_to_displace(&OLD.map(str::to_owned).into()).unwrap();
        let moved = displaced.iter().map(|name| DisplacedEntry::of(self.out(), name).unwrap());
        commit.journal.displaced = moved.collect();
        commit.write_record().unwrap();
        fs::create_dir(&commit.replaced).unwrap();
        let (out, replaced) = (self.out(), commit.replaced.as_path());
        let names = commit.journal.names.clone();
        let forth = self.play(&commit, [(displaced, out, replaced), (names, &scratch, out)], done);
        let (appeared, displaced) =
            (commit.appeared().unwrap(), commit.displaced_entries().unwrap());
        forth && self.play(&commit, [(appeared, out, &scratch), (displaced, replaced, out)], undone)
    }

    /// Renames the first `count` names of `steps`. Whether `steps` has that many.
    fn play(
        &self,
        commit: &Commit<'_>,
        steps: [(Vec<String>, &Path, &Path); 2],
        count: usize,
    ) -> bool {
        let steps = steps.iter().flat_map(|(names, from, to)| {
            names.iter().map(|name| (std::slice::from_ref(name), *from, *to))
        });
        let played = steps.take(count).map(|(name, from, to)| {
            commit.rename(name, from, to).unwrap();
            self.is_described();
        });
        played.count() == count
    }

    fn shown(&self) -> BTreeMap<String, String> {
        let files = list(self.out())
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_file());
        let texts = files.map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        });
        texts.collect()
    }

    fn all(&self, age: &str) -> BTreeMap<String, String> {
        let names = if age == "old" { OLD.to_vec() } else { self.new.clone() };
        names.into_iter().map(|name| (name.to_owned(), age.to_owned())).collect()
    }

    /// Checks that every ranked entry is there with everything that it describes.
    fn is_described(&self) {
        let shown = self.shown();
        if let Some(age) = shown.get("mark") {
            assert_eq!(shown, self.all(age));
        }
        if let Some(age) = shown.get("doc") {
            for (name, age) in self.all(age).into_iter().filter(|(name, _)| name != "mark") {
                assert_eq!(shown.get(&name), Some(&age), "{name} of {shown:?}");
            }
        }
    }

    /// Checks that the next run completes the folder, and that later clean-up does not harm it.
    fn recovers(&self, age: &str) {
        for _ in 0..2 {
            OUTLET.recover(self.out(), &self.scratch()).unwrap();
            assert_eq!(self.shown(), self.all(age));
            assert!(age == "new" || !self.scratch().join(REPLACED).exists());
            remove_file(&self.scratch().join("b")).unwrap();
        }
    }
}

#[test]
fn a_commit_is_taken_back_wherever_it_and_that_were_cut_off() {
    for new in [&NEW[..], &["b", "c", "mark"]] {
        let mut played = 0;
        for (done, undone) in (0..10).flat_map(|done| (0..10).map(move |undone| (done, undone))) {
            let folders = Folders::new(new);
            if folders.cut_off(done, undone) {
                let is_finished = done == OLD.len() + new.len() && undone == 0;
                folders.recovers(if is_finished { "new" } else { "old" });
                played += 1;
            }
        }
        assert!(played > 30, "{played}");
    }
}

#[test]
fn a_commit_that_fails_is_taken_back_at_once() {
    for missing in [Some("missing"), None] {
        let folders = Folders::new(&NEW);
        let scratch = folders.scratch();
        let mut commit = folders.commit(&scratch);
        let mut displaced = commit.names_to_displace(&OLD.map(str::to_owned).into()).unwrap();
        displaced.extend(missing.map(str::to_owned));
        // The final sync of the folder may fail, too.
        assert_eq!(commit.run(&displaced).is_err(), missing.is_some());
        commit.undo().unwrap();
        folders.recovers("old");
    }
}

#[test]
fn commits_of_one_run_follow_one_another() {
    let room = tempfile::tempdir().unwrap();
    let swap = Swap::begin(&OUTLET, room.path(), || Ok(())).unwrap();
    assert!(put(&swap, "a", &["absent"]).is_empty());
    assert!(put(&swap, "b", &[]).is_empty());
    assert_eq!(put(&swap, "c", &["a", "b", "c"]), ["a".to_owned(), "b".to_owned()].into());
    let nothing = CommitChange { added: Vec::new(), removed: ["c".to_owned()].into() };
    assert_eq!(swap.commit(|| Ok(nothing)).unwrap().len(), 1);
    drop(swap);
    assert_eq!(list(room.path()).unwrap().count(), 0);
}

fn put(swap: &Swap, name: &str, removed: &[&str]) -> BTreeSet<String> {
    fs::write(swap.folder().join(name), "new").unwrap();
    let removed = removed.iter().map(|name| (*name).to_owned()).collect();
    swap.commit(|| Ok(CommitChange { added: vec![name.to_owned()], removed })).unwrap()
}

#[test]
fn nothing_outside_is_taken_back() {
    let room = tempfile::tempdir().unwrap();
    let (out, victim) = (room.path().join("out"), room.path().join("victim"));
    let scratch = out.join(".scratch-1");
    fs::create_dir_all(scratch.join(REPLACED)).unwrap();
    fs::create_dir(&victim).unwrap();
    for name in ["../victim", victim.to_str().unwrap(), "..", ""] {
        fs::write(scratch.join(RECORD), format!("{name}\n")).unwrap();
        let error = OUTLET.recover(&out, &scratch).unwrap_err();
        assert!(error.to_string().contains("is not a valid file name for a commit"), "{error}");
        assert!(victim.exists() && scratch.exists());
    }
}

/// The outlet writes no such name, so a record with it is forged.
#[test]
fn what_is_of_another_is_not_taken_back() {
    let room = tempfile::tempdir().unwrap();
    let scratch = room.path().join(".scratch-1");
    fs::create_dir_all(scratch.join(REPLACED)).unwrap();
    fs::write(room.path().join("of another"), "precious").unwrap();
    fs::write(scratch.join(RECORD), "of another\nb").unwrap();
    fs::write(scratch.join("b"), "").unwrap();
    let error = OUTLET.recover(room.path(), &scratch).unwrap_err();
    assert!(
        error.to_string().contains("`of another` is not a valid file name for a commit"),
        "{error}"
    );
    assert!(room.path().join("of another").exists());
    fs::write(scratch.join(RECORD), vec![b'a'; (16 << 20) + 1]).unwrap();
    let error = OUTLET.recover(room.path(), &scratch).unwrap_err();
    assert!(error.to_string().contains("too many for a record of names"), "{error}");
}

/// A commit that replaces `b`, interrupted after the old one was moved out of the way.
fn half_way(out: &Path) -> PathBuf {
    let scratch = out.join(".scratch-1");
    fs::create_dir_all(scratch.join(REPLACED)).unwrap();
    fs::write(scratch.join("b"), "new").unwrap();
    fs::write(scratch.join(REPLACED).join("b"), "old").unwrap();
    let displaced = vec![DisplacedEntry::of(&scratch.join(REPLACED), "b").unwrap()];
    let journal = Journal { names: vec!["b".to_owned()], displaced };
    fs::write(scratch.join(RECORD), journal.to_text()).unwrap();
    scratch
}

#[test]
fn what_nobody_moved_out_of_the_way_is_not_put_back() {
    use std::os::unix::fs::{chown, symlink};
    type Odd = fn(&Path);
    let odd: [(&str, Odd); 4] = [
        ("x", |replaced| fs::write(replaced.join("x"), "").unwrap()),
        ("b", |replaced| {
            fs::remove_file(replaced.join("b")).unwrap();
            symlink("/etc/passwd", replaced.join("b")).unwrap();
        }),
        ("b", |replaced| {
            fs::remove_file(replaced.join("b")).unwrap();
            fs::create_dir(replaced.join("b")).unwrap();
        }),
        // Only root can give a file away; other users get the same result with a link.
        ("b", |replaced| {
            if chown(replaced.join("b"), Some(12345), None).is_err() {
                fs::remove_file(replaced.join("b")).unwrap();
                symlink("/etc/passwd", replaced.join("b")).unwrap();
            }
        }),
    ];
    for (name, put) in odd {
        let room = tempfile::tempdir().unwrap();
        let scratch = half_way(room.path());
        put(&scratch.join(REPLACED));
        let error = OUTLET.recover(room.path(), &scratch).unwrap_err().full_text();
        assert!(error.contains("is not put back") && error.contains(name), "{error}");
        assert!(kind_of(&room.path().join(name)).unwrap().is_none(), "{name}");
    }
    let room = tempfile::tempdir().unwrap();
    let scratch = half_way(room.path());
    fs::write(room.path().join("b"), "of somebody").unwrap();
    let error = OUTLET.recover(room.path(), &scratch).unwrap_err().full_text();
    assert!(error.contains("blocks the entry that an interrupted run"), "{error}");
    fs::remove_file(room.path().join("b")).unwrap();
    OUTLET.recover(room.path(), &scratch).unwrap();
    assert_eq!(fs::read_to_string(room.path().join("b")).unwrap(), "old");
}

#[test]
fn what_a_run_that_is_alive_has_is_left_alone() {
    let room = tempfile::tempdir().unwrap();
    let alive = Swap::begin(&OUTLET, &room.path().join("out"), || Ok(())).unwrap();
    let dead = alive.out().join(".scratch-7");
    fs::create_dir(&dead).unwrap();
    let other = Swap::begin(&OUTLET, alive.out(), || Ok(())).unwrap();
    assert!(alive.folder().exists() && other.folder().exists() && !dead.exists());
    drop((other, alive));
    assert_eq!(list(room.path()).unwrap().count(), 0, "the folder that was made goes, too");
}
