//! The pool: files that several channels share, that keep their times, or that somebody deleted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;

use support::example::rockpack;
use support::repo_fixture::{contents, deb, publish, refused, repo, repo_at};
use support::tools::{need, run};

use crate::broken_off::{Failing, Room};

#[test]
fn a_file_that_stays_in_the_pool_is_read_no_more_than_once() {
    need(&["dpkg-deb", "gpg"]);
    let room = Room::new();
    let first = deb(&room.path("first"), ("one", "1", "amd64"), "");
    let copy = room.path("copy.deb");
    fs::copy(&first, &copy).unwrap();
    touch(&copy, "2024-01-02");
    let out = room.path("out");
    publish(&mut room.run(&[&first], &out, 0));
    publish(room.run(&[&copy], &out, 0).args(["--suite", "other"]));
    let suites = ["stable", "other"];
    assert_eq!(suites.map(|suite| opened(&room, &out, suite)), [0, 0]);
    // Where the time does not tell, once.
    touch(&out.join("pool/main/o/one/one_1_amd64.deb"), "2024-01-03");
    assert_eq!(suites.map(|suite| opened(&room, &out, suite)), [1, 1]);
    assert_eq!(suites.map(|suite| opened(&room, &out, suite)), [0, 0]);
}

fn touch(file: &Path, date: &str) {
    run(Command::new("touch").args(["-d", date]).arg(file));
}

/// Publishes again, without packages: how many files are opened.
fn opened(room: &Room, out: &Path, suite: &str) -> usize {
    let store = Failing::open(out, usize::MAX);
    room.publish_to(&store, (&[], out), 1, suite).unwrap();
    store.opened.load(Ordering::SeqCst)
}

#[test]
fn a_package_that_comes_back_is_the_one_that_was_given() {
    need(&["dpkg-deb", "gpg"]);
    let room = Room::new();
    let first = deb(&room.path("first"), ("one", "1", "amd64"), "");
    let out = room.path("out");
    let own = fs::read(&first).unwrap();
    let pool = out.join("pool/main/o/one/one_1_amd64.deb");
    let changed = vec![b'x'; own.len()];
    publish(&mut room.run(&[&first], &out, 0));
    // What an earlier generation left, and what another suite has.
    publish(room.run(&[], &out, 1).args(["--remove", "one"]));
    fs::write(&pool, &changed).unwrap();
    publish(&mut room.run(&[&first], &out, 2));
    assert!(fs::read(&pool).unwrap() == own);
    fs::write(&pool, &changed).unwrap();
    publish(room.run(&[&first], &out, 2).args(["--suite", "other"]));
    assert!(fs::read(&pool).unwrap() == own);
}

#[test]
fn what_becomes_visible_is_finished_though_an_older_package_is_gone() {
    need(&["dpkg-deb", "gpg"]);
    let room = Room::new();
    let old = deb(&room.path("old"), ("one", "1", "amd64"), "");
    let new = deb(&room.path("new"), ("two", "1", "amd64"), "");
    let [old_path, new_path] =
        ["one", "two"].map(|name| format!("pool/main/{}/{name}/{name}_1_amd64.deb", &name[..1]));
    let base = room.path("base");
    publish(&mut room.run(&[&old], &base, 0));
    let (release, signed) = ("dists/stable/Release", "dists/stable/InRelease");
    let before = contents(&base);
    let mut partly = 0;
    for ends in 0.. {
        let out = room.path("out");
        run(Command::new("cp").arg("-a").arg(&base).arg(&out));
        let done = room.fails_after(ends, &new, &out, 10);
        let begun = out.join(".rockpack/next-apt-stable.json.zst").exists();
        let visible = differs(&out, &before, release);
        partly += usize::from(begun && visible && !differs(&out, &before, signed));
        fs::remove_file(out.join(&old_path)).unwrap();
        // What is refused comes after the interrupted publication was settled.
        refused(&mut room.run(&[], &out, 1));
        assert!(!out.join(".rockpack/next-apt-stable.json.zst").exists());
        let is_still = differs(&out, &before, release);
        assert!(!visible || is_still, "{ends}: what was visible was taken back");
        let index = out.join("dists/stable/main/binary-amd64/Packages");
        let names_new = fs::read_to_string(index).unwrap().contains("Package: two\n");
        assert_eq!(names_new, differs(&out, &before, signed), "{ends}");
        assert_eq!(names_new, out.join(&new_path).exists(), "{ends}");
        fs::remove_dir_all(&out).unwrap();
        if done {
            break;
        }
    }
    assert!(partly > 0, "no run ended between Release and InRelease");
}

fn differs(out: &Path, before: &BTreeMap<String, Vec<u8>>, path: &str) -> bool {
    contents(out).get(path) != before.get(path)
}

/// Two suites may have different packages with the same name, size and time, each in a component of its own.
#[test]
fn what_two_suites_know_differently_is_read() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let mut all = (0..).map(|number| of_the_same_time(room.path(), number));
    let first = all.next().unwrap();
    let size = fs::metadata(&first).unwrap().len();
    let other = all.find(|other| fs::metadata(other).unwrap().len() == size).unwrap();
    assert!(fs::read(&first).unwrap() != fs::read(&other).unwrap());
    for (suite, file, check) in
        [("s1", &first, false), ("s2", &other, true), ("s3", &first, false), ("s4", &other, false)]
    {
        let mut command = repo(&[file], &out);
        command.args(["--suite", suite, "--set", &format!("component={suite}")]);
        publish(command.args(check.then_some("--check")));
        let path = format!("pool/{suite}/o/one/one_1_amd64.deb");
        assert!(fs::read(out.join(path)).unwrap() == fs::read(file).unwrap(), "{suite}");
    }
    publish(rockpack().arg("verify").arg(&out));
}

fn of_the_same_time(room: &Path, number: u32) -> PathBuf {
    let fields = format!("Homepage: https://example.org/{number}\n");
    let file = deb(&room.join(number.to_string()), ("one", "1", "amd64"), &fields);
    touch(&file, "2024-01-02");
    file
}

/// The JSON of a repository's state.
pub fn state_text(file: &Path) -> String {
    String::from_utf8(zstd::decode_all(&*fs::read(file).unwrap()).unwrap()).unwrap()
}

/// The state of a repository has each path once.
#[test]
fn a_state_with_a_path_twice_is_refused() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    let packages = ["one", "two"].map(|name| deb(room.path(), (name, "1", "amd64"), ""));
    publish(&mut repo(&[&packages[0], &packages[1]], &out));
    publish(repo(&[], &out).args(["--remove", "two"]));
    let file = out.join(".rockpack/apt-stable.json.zst");
    let good = state_text(&file);
    let state: serde_json::Value = serde_json::from_str(&good).unwrap();
    for (map, name) in [("records", "one"), ("retired", "two")] {
        let path = format!("pool/main/{}/{name}/{name}_1_amd64.deb", &name[..1]);
        let first = format!("\"{map}\":{{\"{path}\":{},", state[map][&path]);
        let twice = good.replacen(&format!("\"{map}\":{{"), &first, 1);
        assert_ne!(twice, good);
        fs::write(&file, zstd::encode_all(twice.as_bytes(), 1).unwrap()).unwrap();
        let (said, _) = refused(&mut repo(&[], &out));
        assert!(said.contains(&format!("`{path}` is given twice")), "{said}");
    }
}

/// A publication costs what it adds: an index is written once under all of its names.
#[test]
fn the_names_of_an_index_are_those_of_one_file() {
    need(&["dpkg-deb"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("out");
    for (name, after) in [("one", 0), ("two", 10)] {
        let package = deb(room.path(), (name, "1", "amd64"), "");
        publish(&mut repo_at(&[&package], &out, after));
        let folder = out.join("dists/stable/main/binary-amd64");
        for form in ["Packages", "Packages.gz", "Packages.zst"] {
            let index = fs::metadata(folder.join(form)).unwrap();
            assert_eq!(index.nlink(), 3, "{form}: its name, and one for each of two digests");
        }
        let names = fs::read_dir(out.join(".rockpack/unfinished")).unwrap();
        assert_eq!(names.count(), 0, "files that were not put in place");
    }
}
